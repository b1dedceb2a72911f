#!/bin/sh
# Make the shipped model from nothing: fetch text, train for MINUTES on one core, export, check, draw.
# usage: run.sh WORK_FOLDER MODEL_FOLDER [MINUTES]
# Needs (Debian 12): python3-torch libopenblas0-pthread python3-matplotlib mandoc gcc, and the PyPI package tokenizers.
set -eu
work=$1
models=$2
minutes=${3:-80}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
mkdir -p "$work/run" "$models"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

"$python" "$here/data.py" --out "$work"
"$python" "$here/qa.py" --data "$work"
"$python" "$here/tokenizer.py" --data "$work" --vocab 4096
"$python" "$here/train.py" --data "$work" --out "$work/run" --minutes "$minutes" --seed 1
"$python" "$here/export.py" --checkpoint "$work/run/checkpoint.pt" --tokenizer "$work/tokenizer.json" --folder "$models"
"$python" "$here/plot.py" "$models/training.json" "$models/loss.png"
for model in "$models"/teller-unix-*.gguf; do
    "$python" "$here/sample.py" "$model" --expected "$models/expected.json"
done
