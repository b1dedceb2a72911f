#!/bin/sh
# Functions that have no place in a server: unbounded copies, locale- and sign-blind parsers, stack that a caller sizes.
cd "${SRCDIR:-.}" || exit 99
bad=$(grep -rnE --include='*.[ch]' '(^|[^a-zA-Z0-9_>.])(sprintf|vsprintf|strcpy|strcat|strncat|gets|atoi|atol|atoll|atof|strtok|alloca|tmpnam|mktemp|system|popen)[ ]*\(' src include 2>/dev/null)
slashes=$(grep -rnE --include='*.[ch]' '^[ \t]*//' src include tests 2>/dev/null)
echo "1..2"
rc=0
if [ -n "$bad" ]; then echo "$bad" | sed 's/^/# /'; echo "not ok 1 - banned functions are not called"; rc=1; else echo "ok 1 - banned functions are not called"; fi
if [ -n "$slashes" ]; then echo "$slashes" | sed 's/^/# /'; echo "not ok 2 - comments are /* */"; rc=1; else echo "ok 2 - comments are /* */"; fi
exit $rc
