#!/usr/bin/env python3
"""Writes the tiny random test models: DIR/NAME.gguf, and DIR/NAME-hf/ where the model has a Hugging Face twin.

    tools/make_models.py --out DIR [--only NAME]... [--list]

The same bits come out on every machine; docs/formats.md says what the files hold, lib/tiny_specs.py which models there are.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lib import tiny_hf_tokenizer, tiny_specs, tiny_vocab, tiny_weights, tiny_write  # noqa: E402


def write_model(folder, spec):
    """The files of one model; gives their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    vocab = tiny_vocab.make(spec.vocab)
    if len(vocab.tokens) > spec.rows:
        raise ValueError(f"{spec.name}: {len(vocab.tokens)} tokens do not fit in {spec.rows} rows")
    weights = tiny_weights.make(spec)
    paths = [folder / f"{spec.name}.gguf"]
    tiny_write.write_gguf(paths[0], spec, weights, vocab)
    if spec.hf:
        paths.append(folder / f"{spec.name}-hf")
        tiny_write.write_hf(paths[1], spec, weights, vocab, tiny_hf_tokenizer.make(vocab))
    return paths


def main():
    parser = argparse.ArgumentParser(description="Writes the tiny random test models.")
    parser.add_argument("--out", metavar="DIR", help="folder to write into")
    parser.add_argument("--only", metavar="NAME", action="append", help="write only this model; may be given again")
    parser.add_argument("--list", action="store_true", help="list the models")
    args = parser.parse_args()
    specs = tiny_specs.specs()
    if args.list:
        for spec in specs.values():
            print(f"{spec.name:16} {spec.arch:9} {spec.type:5} L{spec.L} C{spec.C} H{spec.H}/{spec.K}x{spec.D} {spec.value}"
                  f"{'  + HF ' + spec.hf if spec.hf else ''}")
        return 0
    if not args.out:
        parser.error("--out DIR is needed")
    for name in args.only or specs:
        if name not in specs:
            parser.error(f"no model is called {name} (--list shows them)")
        for path in write_model(args.out, specs[name]):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
