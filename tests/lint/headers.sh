#!/bin/sh
# Each public header compiles alone, as C.
cd "${SRCDIR:-.}" || exit 99
flags=$(pkg-config --cflags libuv jansson 2>/dev/null)
bad=$(for h in $(find include -name '*.h'); do
    echo "#include \"${h#include/}\"" | ${CC:-cc} -std=gnu17 -Wall -Wextra -Werror -fsyntax-only -Iinclude -I"${BUILDDIR:-.}" $flags -x c - 2>&1 || echo "$h does not stand alone"
done)
echo "1..1"
if [ -n "$bad" ]; then echo "$bad" | sed 's/^/# /'; echo "not ok 1 - headers stand alone"; exit 1; fi
echo "ok 1 - headers stand alone"
