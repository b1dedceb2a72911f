#!/bin/sh
# What the daemon answers without serving: version, help, configuration check and dump, and the exit
# codes that the service manager acts on.
TELLERD=${TELLERD:-${BUILDDIR:-.}/tellerd}
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
for variable in $(env | sed -n 's/^\(TELLERD_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
n=0
rc=0
run() { # arguments; the exit status is in $status, the output in $scratch/out and $scratch/err
    "$TELLERD" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
}
report() { # exit status of what is tested, text
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        sed 's/^/# /' "$scratch/out" "$scratch/err"
        rc=1
    fi
}
echo "1..11"
: >"$scratch/model.gguf"

run --version
[ $status = 0 ] && grep -q '^tellerd [0-9]' "$scratch/out" && grep -q llhttp "$scratch/out"
report $? "--version names the version and the build"

run --help
[ $status = 0 ] && grep -q -e '--max-queued NUMBER' "$scratch/out"
report $? "--help lists options"

run -t --config /dev/null --model "$scratch/model.gguf"
[ $status = 0 ] && [ ! -s "$scratch/err" ]
report $? "-t passes a good configuration in silence on stderr"

run -t --config /dev/null
[ $status = 78 ] && grep -q 'no model is given' "$scratch/err"
report $? "-t without a model exits with 78 and says what to do"

run --config /dev/null
[ $status = 78 ] && grep -q 'model' "$scratch/err"
report $? "serving without a model exits with 78 too"

run --config "$scratch/nowhere.conf" --model "$scratch/model.gguf"
[ $status = 78 ] && grep -q 'nowhere.conf' "$scratch/err"
report $? "a configuration file that is not there exits with 78 and is named"

printf '[limits]\nmax-queud = 1\n' >"$scratch/typo.conf"
run -t --config "$scratch/typo.conf"
[ $status = 78 ] && grep -q 'typo.conf:2:1: unknown key max-queud; did you mean max-queued?' "$scratch/err"
report $? "a mistyped key exits with 78, its place and a hint"

run -t --config /dev/null --model "$scratch/model.gguf" --listen 0.0.0.0:0
[ $status = 78 ] && grep -q 'api-keys-file' "$scratch/err"
report $? "an open address without keys exits with 78"

run --max-queud=1
[ $status = 78 ] && grep -q 'did you mean --max-queued?' "$scratch/err"
report $? "a mistyped flag exits with 78 and a hint"

printf '[limits]\nmax-queued = 5\nmax-headers = 6\n' >"$scratch/t.conf"
TELLERD_MAX_HEADERS=7 "$TELLERD" -T --config "$scratch/t.conf" --threads 3 >"$scratch/out" 2>"$scratch/err"
[ $? = 0 ] && grep -q '^max-queued = 5  # file$' "$scratch/out" &&
    grep -q '^max-headers = 7  # environment$' "$scratch/out" && grep -q '^threads = 3  # flag$' "$scratch/out"
report $? "-T shows each value and its source"

run -T --config "$scratch/t.conf"
cp "$scratch/out" "$scratch/again.conf"
run -T --config "$scratch/again.conf"
sed -e 's/  # file$//' -e 1d "$scratch/again.conf" >"$scratch/a"
sed -e 's/  # file$//' -e 1d "$scratch/out" | cmp -s - "$scratch/a"
report $? "what -T prints reads back the same"
exit $rc
