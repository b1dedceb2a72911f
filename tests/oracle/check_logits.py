#!/usr/bin/env python3
"""Compares the C program with the float64 oracle: logits of every tiny model and weight type, cache types, value paths,
greedy tokens, compiled banks, and SmolLM2 where it is in the cache folder.

    tests/oracle/check_logits.py [--cli BUILD/tests/oracle/logits_cli] [--only NAME]... [--no-smollm2] [--threads N]

The program is taken from $BUILDDIR unless given; the models are made in a temporary folder. Prints a TAP line a comparison:
the greatest difference, what was allowed, and where it was. The exit code is 0 when all agree.

The program reads a line "id id id ..." a prompt and answers a line {"logits": [[V numbers] a position]}, or with --greedy N
{"tokens": [...]}; see tests/oracle/README.md.

What is allowed, in parts of the greatest logit (about 12 in the tiny models, 36 in SmolLM2):
    1.5e-5  exact weights (a block type is exact once decoded) and an F32 cache. Only single-precision rounding is left: the
            same pass in float32 NumPy differs by 0.5e-5 at most; three times that leaves room for another order of summing.
            A wrong RoPE pair, window edge, gamma, head map or factor gives 1e-3 to 1, an eps of twice the size 1e-4.
A rounded cache is compared with the oracle that rounds the same way. A key near the middle of two representable numbers may
go the other way there, so the test is on the root of the mean square: the difference may be 0.4 of what the rounding itself
changes (float32 NumPy: 0.22 at most; a wrong rounding, a wrong group or none at all: about 1 and more).
Activations rounded to int8 (where they meet quantised weights) are compared with the oracle that rounds them. Weights of few
bits give many activations exactly in the middle of two codes, where single precision decides, and what follows from one such
code is of the size of all rounding: noise of 1e-7 in the oracle itself moves its logits by up to 0.62 of the rounding's effect.
But rows before the first such code agree to 1e-5 of it, so a tenth of the rows must agree to 1e-3, and all together to 0.8; a
wrong code, scale, sum or group leaves no row below 0.1. All else is compared with activations as they are.
Chunks and threads change nothing at all: those answers are compared digit by digit.
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

import compile_bank  # noqa: E402
import fetch_model  # noqa: E402
import forward  # noqa: E402
import make_models  # noqa: E402
from lib import tiny_specs  # noqa: E402
from load import load  # noqa: E402

EXACT = 1.5e-5
ROUNDED = 0.4
LENGTHS = [1, 2, 33, 61]
CACHES = [("bf16", "bf16"), ("f16", "f16"), ("int8", "bf16"), ("int8", "int8")]
SAME = ["smollm", "mistral", "llama3", "bank-third", "bank-gated", "nanochat-bank", "type-q4_0", "type-q6_k"]
BANK_TYPES = [("bf16", "BF16"), ("int8", "Q8_0")]
KERNEL_SETS = ["portable", "avx2", "avx512"]
KERNEL_SET_MODELS = ["smollm", "qwen3", "head128", "bank-third", "bank-window", "nanochat-bank", "type-q8_0", "type-q4_0", "type-q4_1",
                     "type-q4_k", "type-q6_k"]
CACHE_TYPES = {"bf16": "BF16", "f16": "F16", "int8": "Q8_0"}
SMOLLM2_IDS = [1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198, 504, 3575, 282, 4649, 314]


def prompts(n_tokens):
    """Ids that repeat, so that equal value ids meet; the last one is longer than windows and blocks."""
    rng = np.random.Generator(np.random.PCG64(7))
    return [rng.choice(rng.integers(0, n_tokens, length // 3 + 1), length).tolist() for length in LENGTHS]


def run_cli(cli, model, lines, options):
    command = [str(cli), str(model), *options]
    text = "".join(" ".join(map(str, ids)) + "\n" for ids in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(lines):
        raise RuntimeError(f"{' '.join(command)}: {len(answers)} answers to {len(lines)} prompts")
    return answers


class Checker:
    """Runs comparisons with one program."""

    def __init__(self, cli, threads):
        self.cli = cli
        self.base = ["--threads", str(threads), "--activations", "f32"]

    def attempt(self, label, path, lines, options):
        try:
            return run_cli(self.cli, path, lines, self.base + options)
        except (RuntimeError, OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as e:
            tap.ok(False, label, str(e))
            return None

    def logits(self, label, path, lines, options, expected, allowed):
        """expected: [T, V] arrays, one a prompt."""
        answers = self.attempt(label, path, lines, options)
        if answers is None:
            return
        worst, where, scale = 0.0, "", max(np.abs(z).max() for z in expected)
        for i, (answer, z) in enumerate(zip(answers, expected)):
            got = np.array(answer["logits"])
            if got.shape != z.shape:
                tap.ok(False, label, f"prompt {i}: shape {got.shape}, expected {z.shape}")
                return
            error = np.where(np.isfinite(got), np.abs(got - z), np.inf)
            at = np.unravel_index(error.argmax(), error.shape)
            if error[at] >= worst:
                worst, where = error[at], f"prompt {i} position {at[0]} id {at[1]}"
        tap.ok(worst <= allowed * scale, label, f"{worst:.1e} of {allowed * scale:.1e} at {where}")

    def rounding(self, label, path, lines, options, expected, unrounded):
        """expected with, unrounded without the rounding that the options ask for."""
        answers = self.attempt(label, path, lines, options)
        if answers is None:
            return
        error = [np.array(answer["logits"]) - z for answer, z in zip(answers, expected)]
        effect = [z - y for z, y in zip(expected, unrounded)]
        share = np.sqrt(sum(np.sum(e * e) for e in error) / sum(np.sum(e * e) for e in effect))
        tap.ok(share <= ROUNDED, label, f"{share:.2f} of {ROUNDED} of the rounding's effect")

    def activations(self, label, path, lines, options, expected, unrounded):
        """The same for activations: row by row."""
        answers = self.attempt(label, path, lines, options)
        if answers is None:
            return
        error = np.concatenate([np.array(answer["logits"]) - z for answer, z in zip(answers, expected)])
        effect = np.concatenate([z - y for z, y in zip(expected, unrounded)])
        rows = np.sqrt(np.sum(error * error, axis=1) / np.sum(effect * effect, axis=1))
        best, share = np.quantile(rows, 0.1), np.sqrt(np.sum(error * error) / np.sum(effect * effect))
        note = f"a tenth of the rows within {best:.0e} of 1e-3, all {share:.2f} of 0.8 of the rounding's effect"
        tap.ok(best <= 1e-3 and share <= 0.8, label, note)

    def greedy(self, label, path, golden):
        prompts = golden["prompts"]
        n = len(prompts[0]["greedy"])
        answers = self.attempt(label, path, [p["ids"] for p in prompts], f32_cache() + ["--greedy", str(n)])
        if answers is not None:
            bad = [i for i, (a, p) in enumerate(zip(answers, prompts)) if a["tokens"] != p["greedy"]]
            tap.ok(not bad, label, f"prompts {bad} differ" if bad else f"{n} tokens, {len(prompts)} prompts")


def f32_cache():
    return ["--kv-type-k", "f32", "--kv-type-v", "f32"]


def has_bank(model):
    return "bank" in model.value


def check_model(checker, name, paths, source=None):
    """Every form of one model; source computes what a compiled bank must give."""
    model = load(source or paths[0])
    lines = prompts(model.n_tokens)
    expected = [forward.logits(model, ids) for ids in lines]
    for path in paths:
        form = "hf" if path.is_dir() else "gguf"
        checker.logits(f"{name} {form}", path, lines, f32_cache(), expected, EXACT)
    if has_bank(load(paths[0])):
        for value_path in ("gather", "dedup"):
            options = f32_cache() + ["--value-path", value_path, "--chunk", "16"]
            checker.logits(f"{name} {value_path}, chunks of 16", paths[0], lines, options, expected, EXACT)


def check_caches(checker, name, path):
    """Rounded keys and values; the long prompts show it."""
    model = load(path)
    lines = prompts(model.n_tokens)[-2:]
    unrounded = [forward.logits(model, ids) for ids in lines]
    for k, v in CACHES:
        expected = [forward.logits(model, ids, cache=(CACHE_TYPES[k], CACHE_TYPES[v])) for ids in lines]
        checker.rounding(f"{name} cache {k}/{v}", path, lines, ["--kv-type-k", k, "--kv-type-v", v], expected, unrounded)


def check_bank_types(checker, name, path):
    """A bank that is stored in another type than the file's: exact once that is taken into account."""
    model = load(path)
    lines = prompts(model.n_tokens)
    file_weight = model.w
    for option, type_name in BANK_TYPES:
        model.w = lambda n, t=type_name: forward.cached(file_weight(n), t) if n.endswith("v_bank.weight") else file_weight(n)
        expected = [forward.logits(model, ids) for ids in lines]
        checker.logits(f"{name} bank {option}", path, lines, f32_cache() + ["--bank-type", option], expected, EXACT)


def check_activations(checker, name, path):
    """Activations rounded to int8."""
    model = load(path)
    lines = prompts(model.n_tokens)
    unrounded = [forward.logits(model, ids) for ids in lines]
    model.activations = "int8"
    expected = [forward.logits(model, ids) for ids in lines]
    options = f32_cache() + ["--activations", "int8"]
    checker.activations(f"{name} int8 activations", path, lines, options, expected, unrounded)


def check_kernel_sets(checker, name, path):
    """Each kernel set, forced by the environment variable, gives the oracle's logits within the same bounds: the sets agree."""
    model = load(path)
    lines = prompts(model.n_tokens)
    exact = [forward.logits(model, ids) for ids in lines]
    model.activations = "int8"
    rounded = [forward.logits(model, ids) for ids in lines]
    for kernel_set in KERNEL_SETS:
        os.environ["TELLERD_CPU_PATH"] = kernel_set
        label = f"{name} {kernel_set}"
        if not has_kernel_set(kernel_set):
            tap.skip(label, "this processor has no such units")
            continue
        checker.logits(label, path, lines, f32_cache(), exact, EXACT)
        if name.startswith("type-q"):
            checker.activations(f"{label} int8 activations", path, lines, f32_cache() + ["--activations", "int8"], rounded, exact)
    del os.environ["TELLERD_CPU_PATH"]


def has_kernel_set(name):
    """Whether the processor has it; a build that lacks a set which the processor has fails the comparison."""
    flags = next((line.split() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), [])
    needed = {"portable": [], "avx2": ["avx2", "fma", "f16c"], "avx512": ["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"]}
    return all(flag in flags for flag in needed[name])


def check_sameness(checker, name, path):
    """The same bytes for any thread count and chunk size: chunks of 1 are step-by-step decoding."""
    lines = prompts(load(path).n_tokens)[-2:]
    for value_path in ("gather", "dedup") if has_bank(load(path)) else ("gather",):
        seen = []
        for threads, chunk in ((1, 512), (1, 1), (2, 16), (2, 512)):
            options = ["--value-path", value_path, "--chunk", str(chunk), "--threads", str(threads)]
            options += ["--activations", "auto"]
            seen.append(checker.attempt(f"{name} {value_path} same bytes", path, lines, options))
        same = all(s is not None and s == seen[0] for s in seen)
        tap.ok(same, f"{name} {value_path}: the same logits in chunks of 1, 16, 512, with 1 and 2 threads")


def check_smollm2(checker):
    path = fetch_model.cache_folder() / fetch_model.MODELS["smollm2"]["file"]
    if not fetch_model.is_cached(fetch_model.MODELS["smollm2"]):
        tap.skip("smollm2 Q4_1", "not in the cache; tools/fetch-model smollm2 gets it")
        return
    expected = [forward.logits(load(path), SMOLLM2_IDS)]
    checker.logits("smollm2 Q4_1", path, [SMOLLM2_IDS], f32_cache(), expected, EXACT)


def main():
    parser = argparse.ArgumentParser(description="Compares the C program's logits with the float64 oracle.")
    built = Path(os.environ.get("BUILDDIR", ".")) / "tests/oracle/logits_cli"
    parser.add_argument("--cli", default=built, type=Path, help="the program (default: $BUILDDIR/tests/oracle/logits_cli)")
    parser.add_argument("--only", metavar="NAME", action="append", help="only these models")
    parser.add_argument("--no-smollm2", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    checker = Checker(args.cli.resolve(), args.threads)
    wanted = args.only or [*tiny_specs.specs(), *tiny_specs.sources(), "smollm2"]
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            if name in tiny_specs.specs():
                paths = make_models.write_model(folder, tiny_specs.specs()[name])
                check_model(checker, name, paths)
                if name in ("llama", "bank-mixed", "nanochat-gated"):
                    check_caches(checker, name, paths[0])
                if name in SAME:
                    check_sameness(checker, name, paths[0])
                if name.startswith("type-") or name in ("smollm", "nanochat-q8_0"):
                    check_activations(checker, name, paths[0])
                if name in KERNEL_SET_MODELS:
                    check_kernel_sets(checker, name, paths[0])
                if name in ("bank-third", "bank-plus"):
                    check_bank_types(checker, name, paths[0])
            elif name in tiny_specs.sources():
                source, path = compile_bank.write_pair(folder, tiny_specs.sources()[name])
                check_model(checker, name + " compiled", [path], source)
            golden = HERE.parent / "golden" / f"{name}.json"
            if golden.exists():
                checker.greedy(f"{name} greedy", Path(folder) / f"{name}.gguf", json.loads(golden.read_text()))
    if "smollm2" in wanted and not args.no_smollm2:
        check_smollm2(checker)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
