#!/usr/bin/env python3
"""Makes the golden files NAME.json beside this script, and checks them.

    tests/golden/make.py            # writes them (run it after a change of the tiny models or of the format)
    tests/golden/make.py --check    # makes them anew in memory and compares; exit code says whether all agree
    tests/golden/make.py --models DIR   # also leaves the models in DIR, for the tests that compare with the files

A golden file holds, for one tiny model: the file's name in DIR and its SHA-256 (null where the file was computed with
matrix products, whose last bit depends on the machine), and for each prompt its ids, for every position the five best
[id, logit], all logits of the last position, and 24 greedy tokens with the smallest lead that the best token had. Only rows
that have a token count as best. Everything is the float64 result of tests/oracle/forward.py rounded to 7 digits; prompts
are chosen so that no greedy lead is below 0.02, a hundred times what single precision differs by.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "oracle"), str(HERE.parents[1] / "tools")]

import tap  # noqa: E402

np = tap.import_numpy()
import compile_bank  # noqa: E402
import forward  # noqa: E402
import make_models  # noqa: E402
from lib import tiny_specs  # noqa: E402
from load import load  # noqa: E402

MODELS = ["llama", "llama3", "smollm", "mistral", "qwen2", "qwen3", "nanochat", "nanochat-bank", "nanochat-gated", "bank-third",
          "bank-alternate", "bank-plus", "bank-shared", "bank-sink", "type-q8_0", "type-q6_k"]
COMPILED = ["x0wv-gamma", "v1-gamma", "v1-nanochat"]
LENGTHS = [40, 70]
N_GREEDY = 24
MIN_LEAD = 0.02
DIGITS = 7
# Two makings differ in the order of float64 sums, and a rounded number by one in the seventh digit.
TOLERANCE = 2e-5


def prompt(name, attempt, length, n_tokens):
    """Ids drawn from a third as many distinct ones, so that value ids repeat as they do in text."""
    seed = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little"), length, attempt]
    words = np.random.PCG64(np.random.SeedSequence(seed)).random_raw(2 * length)
    few = words[: length // 3] % np.uint64(n_tokens)
    return [int(few[w % np.uint64(len(few))]) for w in words[length:]]


def best(row, n):
    order = np.argsort(-row, kind="stable")[:n]
    return [[int(i), rounded(row[i])] for i in order]


def rounded(x):
    return float(f"{x:.{DIGITS}g}")


def prompt_record(model, ids, tokens):
    """What the model says of ids, and of tokens as their greedy continuation; one pass covers both."""
    z = forward.logits(model, ids + tokens)
    steps = z[len(ids) - 1 : -1, : model.n_tokens]
    leads = np.diff(np.sort(steps, axis=1)[:, -2:])
    return {
        "ids": ids,
        "best": [best(row[: model.n_tokens], 5) for row in z[: len(ids)]],
        "last": [rounded(x) for x in z[len(ids) - 1]],
        "greedy": [int(t) for t in steps.argmax(axis=1)],
        "greedy_lead": rounded(leads.min()),
    }


def clear_prompt(model, name, length):
    """The first prompt of the length whose greedy tokens are clear, and these."""
    for attempt in range(100):
        ids = prompt(name, attempt, length, model.n_tokens)
        tokens, lead = forward.greedy(model, ids, N_GREEDY, stop_below=MIN_LEAD)
        if lead >= MIN_LEAD:
            return ids, tokens
    raise ValueError(f"{name}: no prompt of {length} ids has a clear continuation")


def record(name, folder, prompts=None):
    """Writes the model into folder and gives its golden record, for given prompts or for new ones."""
    if name in COMPILED:
        source, path = compile_bank.write_pair(folder, tiny_specs.sources()[name])
        digest = None
    else:
        source = path = make_models.write_model(folder, tiny_specs.specs()[name])[0]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    model = load(source)
    if prompts is None:
        prompts = [clear_prompt(model, name, length) for length in LENGTHS]
    return {
        "model": path.name, "sha256": digest, "n_tokens": model.n_tokens, "n_rows": model.V,
        "prompts": [prompt_record(model, ids, tokens) for ids, tokens in prompts],
    }


def write_record(path, golden):
    """One line a field of a prompt, so that a change is readable."""
    head = {k: v for k, v in golden.items() if k != "prompts"}
    lines = [f" {json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()]
    prompts = []
    for p in golden["prompts"]:
        fields = [f"  {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in p.items()]
        prompts.append(" {\n" + ",\n".join(fields) + "\n }")
    path.write_text("{\n" + "\n".join(lines) + '\n "prompts": [\n' + ",\n".join(prompts) + "\n ]\n}\n")


def same(a, b):
    """Equal up to TOLERANCE in the numbers, exactly in all else."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= TOLERANCE
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def main(argv=None):
    parser = argparse.ArgumentParser(description="Makes or checks the golden files.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--models", metavar="DIR", help="leave the models here")
    parser.add_argument("--only", metavar="NAME", action="append")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.only or MODELS + COMPILED:
            path = HERE / f"{name}.json"
            if args.check:
                old = json.loads(path.read_text())
                agrees = same(old, record(name, args.models or scratch, [(p["ids"], p["greedy"]) for p in old["prompts"]]))
                tap.ok(agrees, f"{name}.json is what the oracle says today")
            else:
                golden = record(name, args.models or scratch)
                write_record(path, golden)
                print(f"{path.name}: {path.stat().st_size} bytes, leads {[p['greedy_lead'] for p in golden['prompts']]}")
    return tap.finish() if args.check else 0


if __name__ == "__main__":
    sys.exit(main())
