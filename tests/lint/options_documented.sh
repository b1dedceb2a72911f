#!/bin/sh
# The files that are made from the option table are as the table is now: etc/tellerd.conf and the
# list in tellerd.conf(5).  (`make update-docs` makes them anew.)  The manual pages are sound roff.
cd "${SRCDIR:-.}" || exit 99
TELLERD=${TELLERD:-${BUILDDIR:-.}/tellerd}
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
n=0
rc=0
report() { # condition's exit status, text
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; rc=1; fi
}
echo "1..4"
"$TELLERD" --print-config >"$scratch/conf" && diff -u etc/tellerd.conf "$scratch/conf" >"$scratch/diff"
status=$?
sed 's/^/# /' "$scratch/diff"
report $status "etc/tellerd.conf is what --print-config prints"

"$TELLERD" --print-man-options >"$scratch/man" &&
    sed -e '1,/^\.\\" BEGIN OPTIONS/d' -e '/^\.\\" END OPTIONS/,$d' docs/man/tellerd.conf.5 |
    diff -u - "$scratch/man" >"$scratch/diff"
status=$?
sed 's/^/# /' "$scratch/diff"
report $status "tellerd.conf(5) lists the options as --print-man-options prints them"

# Every option is in the table once, and the table is the only place that declares one.
names=$(sed -n 's/^OPTION(\([a-z_0-9]*\),.*/\1/p' include/tellerd/daemon/options.def)
missing=$(for name in $names; do
    "$TELLERD" --help | grep -q -e "--\(\[no-\]\)\{0,1\}$(echo "$name" | tr _ -)\( \|\$\)" || echo "# $name is not in --help"
done)
[ -n "$names" ] && [ -z "$missing" ]
status=$?
[ -z "$missing" ] || echo "$missing"
report $status "--help names every option"

if command -v mandoc >/dev/null; then
    mandoc -Tlint -W warning docs/man/*.[1-9] >"$scratch/lint"
    status=$?
    sed 's/^/# /' "$scratch/lint"
    report $status "the manual pages are sound"
else
    n=$((n + 1))
    echo "ok $n - the manual pages are sound # SKIP mandoc is not installed"
fi
exit $rc
