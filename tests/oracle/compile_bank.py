#!/usr/bin/env python3
"""Compiles the two context-free value variants into a Bank of Values, exactly.

    tests/oracle/compile_bank.py --out DIR [--only NAME]...

writes for each tiny source model DIR/NAME.source.gguf, whose deep layers compute their values directly, and DIR/NAME.gguf,
the same model with banks:
    x0   v_j = gamma Wv_l rms(x0_j)      ->  E_l[t] = Wv_l rms(embedding of t), one bank a layer
    v1   v_j = gamma times layer 0's v_j  ->  E[t] = layer 0's value of t, one bank that the layers share
Only the second is a model that tellerd runs; forward.py runs both. The values must be functions of the token alone, so a
model that smears the previous embedding in is refused.
"""

import argparse
import sys
from pathlib import Path

import forward  # before NumPy: it sets the threads of its products
import numpy as np
from load import load

from lib import gguf, tiny_specs, tiny_vocab, tiny_weights, tiny_write


def token_values(model, n):
    """[V, K*D]: for every token, what layer n's direct computation gives before gamma."""
    if model.arch == "nanochat" and model.w("smear_lambda")[0] != 0:
        raise ValueError("a smearing model's first values depend on the previous token")
    x = forward.embed(model, np.arange(model.V))
    if model.value[n] == "v1":
        n = 0
        y = forward.rms(x, forward.norm_weight(model, "blk.0.attn_norm.weight"), model.eps)
    else:
        y = forward.rms(x, None, model.eps)
    return forward.linear(model, f"blk.{n}.attn_v", y)


def banks(model):
    """bank_layer [L] and {layer: E} for the layers that become bank layers."""
    tables = {}
    bank_layer = list(range(model.L))
    shared = [n for n in range(model.L) if model.value[n] == "v1"]
    for n in range(model.L):
        if model.value[n] == "v1":
            bank_layer[n] = shared[0]
        if model.value[n] == "x0" or n in shared[:1]:
            tables[n] = token_values(model, n)
    return bank_layer, tables


def compile_bank(source_path, path, bank_type="F32"):
    """Reads a source model, writes the compiled one."""
    model = load(source_path)
    file = gguf.read(source_path)
    bank_layer, tables = banks(model)
    a = model.arch + "."
    meta = dict(file.typed)
    meta[a + "attention.value_source"] = gguf.array("string", [
        "bank" if source in ("x0", "v1") else source for source in model.value])
    meta[a + "value_bank.rows"] = gguf.u32(model.V)
    if bank_layer != list(range(model.L)):
        meta[a + "value_bank.source_layer"] = gguf.array("u32", bank_layer)
    dropped = {f"blk.{n}.attn_v.weight" for n in range(model.L) if model.value[n] == "x0"}
    tensors = [(t.name, t.type, np.asarray(t.raw)) for t in file.tensors.values() if t.name not in dropped]
    tensors += [(f"blk.{n}.attn_v_bank.weight", bank_type, table.astype(np.float32)) for n, table in tables.items()]
    gguf.write(path, meta, tensors)


def write_pair(folder, spec):
    """NAME.source.gguf and NAME.gguf; gives both paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{spec.name}.source.gguf"
    path = folder / f"{spec.name}.gguf"
    tiny_write.write_gguf(source, spec, tiny_weights.make(spec), tiny_vocab.make(spec.vocab))
    compile_bank(source, path)
    return source, path


def main():
    parser = argparse.ArgumentParser(description="Writes x0 Wv and V1 models and their compiled banks.")
    parser.add_argument("--out", metavar="DIR", required=True)
    parser.add_argument("--only", metavar="NAME", action="append")
    args = parser.parse_args()
    sources = tiny_specs.sources()
    for name in args.only or sources:
        for path in write_pair(args.out, sources[name]):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
