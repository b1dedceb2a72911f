#!/bin/sh
# The unit files: systemd reads them without complaint, the service is as closed as promised, and
# the user and folder files are sound.  Nothing is started.
cd "${SRCDIR:-.}" || exit 99
TELLERD=${TELLERD:-${BUILDDIR:-.}/tellerd}
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
n=0
rc=0
report() { # exit status of what is tested, text; its output is in $scratch/out
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        sed 's/^/# /' "$scratch/out"
        rc=1
    fi
}
skip() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

echo "1..6"
# The binary and the paths of this build stand in for the installed ones.
sed -e "s|@sbindir@/tellerd|$TELLERD|" -e 's|@sysconfdir@|/etc|' systemd/tellerd.service.in >"$scratch/tellerd.service"
cp systemd/tellerd.socket "$scratch/"

! grep -n '@[a-z]*dir@' "$scratch/tellerd.service" >"$scratch/out"
report $? "no path is left to fill in"

# What a hardened unit must never lose, whatever the score of a systemd version.
for line in NoNewPrivileges=yes ProtectSystem=strict ProtectHome=yes PrivateDevices=yes MemoryDenyWriteExecute=yes \
    CapabilityBoundingSet= RestartPreventExitStatus=78 LimitCORE=0 Type=notify; do
    grep -qx "$line" "$scratch/tellerd.service" || echo "$line is missing"
done >"$scratch/out"
[ ! -s "$scratch/out" ]
report $? "the service is hardened, and not restarted on a bad configuration"

if command -v systemd-analyze >/dev/null; then
    SYSTEMD_UNIT_PATH="$scratch:" systemd-analyze verify --man=no "$scratch/tellerd.service" "$scratch/tellerd.socket" >"$scratch/out" 2>&1
    status=$?
    [ ! -s "$scratch/out" ] || status=1
    report $status "systemd-analyze verify has nothing to say"
    systemd-analyze security --offline=true --threshold=12 --no-pager "$scratch/tellerd.service" >"$scratch/out" 2>&1
    report $? "systemd-analyze security gives an exposure of at most 1.2"
else
    skip "systemd-analyze verify has nothing to say" "systemd-analyze is not installed"
    skip "systemd-analyze security gives an exposure of at most 1.2" "systemd-analyze is not installed"
fi

# Both tools read a file by path; --root keeps them off this machine.
if command -v systemd-sysusers >/dev/null; then
    mkdir -p "$scratch/root/etc"
    systemd-sysusers --root="$scratch/root" "$PWD/systemd/tellerd.sysusers" >"$scratch/out" 2>&1 &&
        grep -q '^tellerd:' "$scratch/root/etc/passwd"
    report $? "systemd-sysusers makes the user"
else
    skip "systemd-sysusers makes the user" "systemd-sysusers is not installed"
fi
if [ "$(id -u)" = 0 ] && command -v systemd-tmpfiles >/dev/null && [ -f "$scratch/root/etc/passwd" ]; then
    systemd-tmpfiles --root="$scratch/root" --create "$PWD/systemd/tellerd.tmpfiles" >"$scratch/out" 2>&1
    status=$?
    [ -d "$scratch/root/var/lib/tellerd/models" ] || status=1
    report $status "systemd-tmpfiles makes the folders"
else
    skip "systemd-tmpfiles makes the folders" "systemd-tmpfiles or root is not there"
fi
exit $rc
