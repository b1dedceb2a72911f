#!/usr/bin/env python3
"""The oracle against itself: what must hold of the reference pass whatever the numbers are."""

import sys
import tempfile
from pathlib import Path

import tap

np = tap.import_numpy()
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import compile_bank  # noqa: E402
import forward  # noqa: E402
import make_models  # noqa: E402
from lib import tiny_specs  # noqa: E402
from load import load  # noqa: E402

SAME = 1e-12     # another order of float64 sums, in parts of the greatest logit
FLOAT32 = 2e-7   # a number that one of the two files holds in float32 (eps, RoPE divisors, a compiled bank)


def some_ids(model, length=50):
    rng = np.random.Generator(np.random.PCG64(11))
    return rng.choice(rng.integers(0, model.n_tokens, length // 3), length)


def agree(a, b, allowed, label):
    difference = np.abs(a - b).max() / np.abs(a).max()
    tap.ok(difference <= allowed, label, f"{difference:.1e}")


def differ(a, b, label):
    difference = np.abs(a - b).max() / np.abs(a).max()
    tap.ok(difference > 1e-5, label, f"{difference:.1e}")


def test_forms(folder):
    """GGUF and Hugging Face twins; value paths."""
    for name, spec in tiny_specs.specs().items():
        paths = make_models.write_model(folder, spec)
        model = load(paths[0])
        ids = some_ids(model)
        z = forward.logits(model, ids)
        if len(paths) > 1:
            agree(z, forward.logits(load(paths[1]), ids), FLOAT32, f"{name}: both forms give the same logits")
        if "bank" in model.value:
            for value_path in ("gather", "dedup"):
                agree(z, forward.logits(model, ids, value_path=value_path), SAME, f"{name}: {value_path} equals direct")


def test_compiled(folder):
    for name, spec in tiny_specs.sources().items():
        source, path = map(load, compile_bank.write_pair(folder, spec))
        ids = some_ids(source)
        z = forward.logits(source, ids)
        for value_path in ("direct", "gather", "dedup"):
            label = f"{name}: the compiled bank, {value_path}, equals the source"
            agree(z, forward.logits(path, ids, value_path=value_path), FLOAT32, label)


def test_attention(folder):
    """Causality, windows, relative positions, the sink row, the smear."""
    def model_of(name):
        return load(Path(folder) / f"{name}.gguf")

    for name in ("llama", "nanochat", "bank-sink"):
        model = model_of(name)
        ids = some_ids(model)
        label = f"{name}: later tokens change nothing before them"
        agree(forward.logits(model, ids)[:20], forward.logits(model, ids[:20]), SAME, label)
    model = model_of("mistral")  # 4 layers, window 16: position 61 and later see nothing of position 0
    ids = some_ids(model, 70)
    other = ids.copy()
    other[0] = (ids[0] + 1) % model.n_tokens
    z, y = forward.logits(model, ids), forward.logits(model, other)
    agree(z[61:], y[61:], SAME, "mistral: a token leaves the windows")
    differ(z[60], y[60], "mistral: and not one position before")
    for name in ("llama", "llama3", "rope-part", "qwen3"):
        model = model_of(name)
        ids = some_ids(model)
        moved = forward.logits(model, ids, positions=np.arange(len(ids)) + 1000)
        agree(forward.logits(model, ids), moved, 1e-9, f"{name}: only the distance between positions counts")
    model = model_of("bank-sink")
    ids = some_ids(model)
    z = forward.logits(model, ids)
    differ(z, forward.logits(model, ids, positions=np.arange(len(ids)) + 1), "bank-sink: position 0 reads the sink row")
    model = model_of("nanochat")
    ids = some_ids(model)
    z = forward.logits(model, ids)
    weights = model.w
    model.w = lambda n: np.zeros(1) if n == "smear_lambda" else weights(n)
    differ(z, forward.logits(model, ids), "nanochat: the smear counts")


def test_cache(folder):
    model = load(Path(folder) / "llama.gguf")
    ids = some_ids(model)
    z = forward.logits(model, ids)
    agree(z, forward.logits(model, ids, cache=("F32", "F32")), 1e-5, "llama: an F32 cache changes little")
    sizes = [np.abs(forward.logits(model, ids, cache=(t, t)) - z).max() for t in ("F16", "BF16", "Q8_0")]
    grows = 1e-4 < sizes[0] < sizes[1] < sizes[2] < 2
    tap.ok(grows, "llama: F16, BF16, Q8_0 caches change more and more", str(np.round(sizes, 4)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        test_forms(folder)
        test_compiled(folder)
        test_attention(folder)
        test_cache(folder)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
