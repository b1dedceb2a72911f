#!/bin/sh
# The architecture, as a table: each layer, the layers whose headers it may include, and the
# outside headers it alone may use. Fails on any #include that the table does not allow.
#   layer     may include                          outside headers
table='
base      :                                      : xxhash.h
backend   : base                                 : cuda_runtime_api.h cublas_v2.h cublasLt.h
model     : base backend                         : jansson.h utf8proc.h
engine    : base backend model                   :
http      : base                                 : uv.h llhttp.h openssl/
api       : base model engine http               : jansson.h
daemon    : base backend model engine http api   : uv.h jansson.h
'
owned='xxhash.h utf8proc.h curl/ cuda_runtime_api.h cublas_v2.h cublasLt.h uv.h llhttp.h openssl/ jansson.h'
cd "${SRCDIR:-.}" || exit 99
bad=$(
    echo "$table" | while IFS=: read -r layer may outside; do
        layer=$(echo $layer)
        [ -n "$layer" ] || continue
        for dir in "src/$layer" "include/tellerd/$layer"; do
            [ -d "$dir" ] || continue
            grep -rnoE --include='*.[ch]' --include='*.cu' --include='*.cuh' \
                '#include "tellerd/[a-z]+/' "$dir" |
            while IFS= read -r hit; do
                used=$(echo "$hit" | sed 's|.*"tellerd/\([a-z]*\)/|\1|')
                case " $layer $may " in *" $used "*) ;; *) echo "$layer may not use $used: $hit" ;; esac
            done
            for header in $owned; do
                case " $outside " in *" $header "*) continue ;; esac
                grep -rn --include='*.[ch]' --include='*.cu' "#include <$header" "$dir" |
                    sed "s|^|$layer may not use <$header>: |"
            done
        done
    done
)
echo "1..1"
if [ -n "$bad" ]; then echo "$bad" | sed 's/^/# /'; echo "not ok 1 - layers include only what stands below them"; exit 1; fi
echo "ok 1 - layers include only what stands below them"
