#!/usr/bin/env python3
"""Compares what the C loader reads with the independent readers, for every tiny model in both file forms.

    tests/oracle/check_loader.py [--cli BUILD/tests/oracle/model_info] [--only NAME]...

The numbers are compared with load.py, the vocabulary with what tools/lib/tiny_vocab.py made. A directory must give the same
vocabulary as its GGUF twin, but for what the forms say differently: merges in place of scores, more ids that end a text.
Prints a TAP line a file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

np = tap.import_numpy()
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]

import make_models  # noqa: E402
from lib import tiny_specs, tiny_vocab  # noqa: E402
from load import load  # noqa: E402

KINDS = {"gpt2": "bpe", "llama": "spm", "t5": "unigram"}


def read(cli, path):
    done = subprocess.run([str(cli), "--vocab", str(path)], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-300:])
    return json.loads(done.stdout)


def hexes(texts):
    return [t.encode().hex() for t in texts]


def inv_freq(model):
    sign = -1 if model.arch == "nanochat" else 1
    return sign * model.rope_base ** (-np.arange(0, model.rope_dims, 2) / model.rope_dims) / model.rope_divisors


def differs(a, b):
    if isinstance(b, float) and a is not None:
        return abs(a - b) > 1e-6 * abs(b)
    return a != b


def compare(info, wanted):
    return [f"{key} is {str(info.get(key))[:80]}, not {str(value)[:80]}" for key, value in wanted.items()
            if differs(info.get(key), value)]


def numbers(model, has_bank):
    gamma = [float(model.w(f"blk.{n}.attn_v_bank.gamma")[0]) if model.has(f"blk.{n}.attn_v_bank.gamma") else 1.0
             for n in range(model.L)]
    return {
        "family": model.arch, "C": model.C, "H": model.H, "K": model.K, "D": model.D, "V": model.V, "n_tokens": model.n_tokens,
        "eps": float(model.eps), "rope_base": float(model.rope_base), "rope_dims": model.rope_dims,
        "rope_interleaved": model.rope_pairs == "interleaved", "rope_negative": model.arch == "nanochat",
        "qk_scale": float(model.qk_scale), "softcap": float(model.softcap or 0), "smear_channels": model.smear_channels or 0,
        "norm_has_weights": model.arch != "nanochat", "attention_bias": model.has("blk.0.attn_q.bias"),
        "qk_norm": 2 if model.arch == "nanochat" else int(model.has("blk.0.attn_q_norm.weight")),
        "tied_output": not model.has("output.weight"), "has_bank": has_bank, "sink_row": model.sink_row,
        "gate_sigmoid": model.gate == "sigmoid",
        "layers": [{"source": s, "bank_layer": b, "window": w or 0, "gamma": g}
                   for s, b, w, g in zip(model.value, model.bank_layer, model.window, gamma)],
    }


def vocabulary(vocab, is_hf):
    split = vocab.pre if vocab.kind == "gpt2" else "none"
    wanted = {
        "kind": KINDS[vocab.kind], "split": split, "tokens": hexes(vocab.tokens), "types": vocab.types,
        "bos": vocab.bos, "eos": vocab.eos, "unknown": vocab.unk, "add_bos": vocab.add_bos, "add_eos": vocab.add_eos,
        "add_space_prefix": vocab.add_space_prefix, "nfc": vocab.pre == "qwen2", "template": tiny_vocab.CHATML.encode().hex(),
    }
    if vocab.merges:
        wanted["merges"] = hexes(f"{a} {b}" for a, b in vocab.merges)
    if vocab.scores and not (is_hf and vocab.kind == "llama"):
        wanted["scores"] = vocab.scores
    return wanted


def check(cli, path, spec):
    """The differences between what the program and the oracle read of one file."""
    model = load(path)
    try:
        info = read(cli, path)
    except (RuntimeError, OSError, ValueError, subprocess.TimeoutExpired) as e:
        return [str(e)]
    vocab = tiny_vocab.make(spec.vocab)
    bad = compare(info, numbers(model, spec.value != "r" * spec.L))
    wanted = vocabulary(vocab, Path(path).is_dir())
    scores = wanted.pop("scores", None)
    bad += compare(info, wanted)
    if scores is not None and not np.allclose(info.get("scores", []), scores, rtol=1e-6):
        bad.append("scores differ")
    worst = np.max(np.abs(np.array(info["inv_freq"]) / inv_freq(model) - 1))
    if worst > 1e-6:
        bad.append(f"inv_freq differs by {worst:.1e}")
    return bad


def main():
    parser = argparse.ArgumentParser(description="Compares what the loader reads with independent readers.")
    parser.add_argument("--cli", type=Path, default=Path(os.environ.get("BUILDDIR", ".")) / "tests/oracle/model_info")
    parser.add_argument("--only", metavar="NAME", action="append", help="only this model; may be given again")
    args = parser.parse_args()
    if not args.cli.exists():
        tap.skip_all(f"{args.cli} is not built")
    with tempfile.TemporaryDirectory() as folder:
        for name, spec in tiny_specs.specs().items():
            if args.only and name not in args.only:
                continue
            for path in make_models.write_model(folder, spec):
                bad = check(args.cli, path, spec)
                tap.ok(not bad, f"{path.name} is read as the oracle reads it", "; ".join(bad))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
