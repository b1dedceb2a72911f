#!/bin/sh
# No source file over 900 lines, no public header over 260.
cd "${SRCDIR:-.}" || exit 99
bad=$(find src include tests clients bench tools \( -name '*.[ch]' -o -name '*.py' -o -name '*.cu' \) -type f 2>/dev/null |
    xargs wc -l | awk '$2 != "total" { max = ($2 ~ /^include\//) ? 260 : 900; if ($1 > max) print $2 ": " $1 " lines, at most " max }')
echo "1..1"
if [ -n "$bad" ]; then echo "$bad" | sed 's/^/# /'; echo "not ok 1 - files stay short"; exit 1; fi
echo "ok 1 - files stay short"
