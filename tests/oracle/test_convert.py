#!/usr/bin/env python3
"""tools/convert_nanochat.py: checkpoints in torch's file form, made here without torch, become models with the same logits."""

import json
import pickle
import sys
import tempfile
import types
import zipfile
from collections import OrderedDict
from pathlib import Path

import tap

np = tap.import_numpy()
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import convert_nanochat  # noqa: E402
import forward  # noqa: E402
from lib import tiny_specs, tiny_vocab, tiny_weights, tiny_write  # noqa: E402
from load import load  # noqa: E402

SPECIALS = ["<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>", "<|python_start|>",
            "<|python_end|>", "<|output_start|>", "<|output_end|>"]
PARTS = {ours: theirs for theirs, ours in convert_nanochat.LAYER_NAMES.items()} | {"attn_v_bank.gamma": "attn.gamma_v"}
NAMES = {ours: theirs for theirs, ours in convert_nanochat.NAMES.items()}

# Classes that pickle writes down under the names that torch and tiktoken would.


def module(name, **members):
    """Registers a module that only the pickler looks at."""
    made = sys.modules[name] = types.ModuleType(name)
    for key, value in members.items():
        value.__module__, value.__qualname__, value.__name__ = name, key, key
        setattr(made, key, value)


class FloatStorage:
    pass


def rebuild():
    raise AssertionError("never called")


class Encoding:
    pass


module("torch", FloatStorage=FloatStorage)
module("torch._utils", _rebuild_tensor_v2=rebuild)
module("tiktoken")
module("tiktoken.core", Encoding=Encoding)


class Reference:
    """A storage on its way into the pickle."""

    def __init__(self, key, n):
        self.key, self.n = key, n


class FakeTensor:
    def __init__(self, storage, shape):
        self.storage, self.shape = storage, shape

    def __reduce__(self):
        strides = [int(np.prod(self.shape[i + 1 :])) for i in range(len(self.shape))]
        return rebuild, (self.storage, 0, tuple(self.shape), tuple(strides), False, OrderedDict())


class StatePickler(pickle.Pickler):
    def persistent_id(self, obj):
        if isinstance(obj, Reference):
            return "storage", FloatStorage, obj.key, "cpu", obj.n
        return None


def save_state(path, state):
    """state: name -> array; the same array under two names is one storage, as tied tensors are."""
    storages = {}
    tensors = OrderedDict()
    for name, x in state.items():
        reference = storages.setdefault(id(x), (Reference(str(len(storages)), x.size), x))[0]
        tensors[name] = FakeTensor(reference, x.shape)
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("archive/data.pkl", "w") as file:
            StatePickler(file, protocol=2).dump(tensors)
        for reference, x in storages.values():
            archive.writestr(f"archive/data/{reference.key}", x.astype("<f4").tobytes())


def save_tokenizer(folder):
    """The tiny vocabulary as a tiktoken encoding with nanochat's special tokens."""
    vocab = tiny_vocab.make("nanochat")
    back = {letter: byte for byte, letter in enumerate(tiny_vocab.byte_letters())}
    plain = [t for t in vocab.tokens if t not in vocab.specials]
    encoding = Encoding()
    encoding.pat_str = convert_nanochat.PATTERNS["nanochat"]
    encoding.mergeable_ranks = {bytes(back[letter] for letter in t): i for i, t in enumerate(plain)}
    encoding.special_tokens = {t: len(plain) + i for i, t in enumerate(SPECIALS)}
    (folder / "tokenizer.pkl").write_bytes(pickle.dumps(encoding))
    return plain + SPECIALS, [f"{a} {b}" for a, b in vocab.merges]


def checkpoint_name(name):
    if name in NAMES:
        return NAMES[name]
    _, layer, part = name.split(".", 2)
    return f"value_embeds.{layer}.weight" if part == "attn_v_bank.weight" else f"transformer.h.{layer}.{PARTS[part]}"


def save_checkpoint(folder, spec, n_tokens, flags):
    """Writes the files of a checkpoint and, for comparison, the weights as a GGUF file by another way."""
    weights = tiny_weights.make(spec)
    state = {"_orig_mod." + checkpoint_name(n): x for n, (_, x) in weights.items()}
    for n in range(spec.L):
        if spec.source_layer[n] != n:
            state[f"_orig_mod.value_embeds.{n}.weight"] = state[f"_orig_mod.value_embeds.{spec.source_layer[n]}.weight"]
    save_state(folder / "model_000007.pt", state)
    config = {"sequence_len": 512, "vocab_size": n_tokens, "n_layer": spec.L, "n_head": spec.H, "n_kv_head": spec.K,
              "n_embd": spec.C, "window_pattern": spec.pattern} | flags
    (folder / "meta_000007.json").write_text(json.dumps({"model_type": "gpt_base_tiny", "model_config": config}))
    tiny_write.write_gguf(folder / "expected.gguf", spec, weights, tiny_vocab.make("nanochat"))


def make_spec(name, **differences):
    base = dict(next(row[2] for row in tiny_specs.TABLE if row[0] == name))
    # 512 positions make short windows of 128 and the position itself.
    return tiny_specs.make_spec(name, "nanochat", base | {"rows": 384, "window": 129, "hf": None} | differences)


def test_model(label, spec, flags):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        tokens, merges = save_tokenizer(folder)
        save_checkpoint(folder, spec, len(tokens), flags)
        convert_nanochat.convert(folder, folder, folder / "out.gguf", type_name="F32")
        file = convert_nanochat.gguf.read(folder / "out.gguf")
        tap.ok(file.meta["tokenizer.ggml.tokens"] == tokens and file.meta["tokenizer.ggml.merges"] == merges,
               f"{label}: tokens and merges")
        got, wanted = load(folder / "out.gguf"), load(folder / "expected.gguf")
        ids = np.random.Generator(np.random.PCG64(3)).integers(0, len(tokens), 150)
        difference = np.abs(forward.logits(got, ids) - forward.logits(wanted, ids)).max()
        tap.ok(difference < 1e-9, f"{label}: logits", f"{difference:.1e}")
        tap.ok(got.bank_layer == wanted.bank_layer, f"{label}: a table that layers share is stored once")


def refusal(folder):
    try:
        convert_nanochat.convert(folder, folder, folder / "out.gguf")
    except (SystemExit, ValueError) as e:
        return str(e)
    return ""


def test_refusals():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        tokens, _ = save_tokenizer(folder)
        save_checkpoint(folder, make_spec("nanochat"), len(tokens), {"v_exclude_self": True})
        tap.ok("v_exclude_self" in refusal(folder), "a flag without a counterpart is named", refusal(folder))
        with zipfile.ZipFile(folder / "model_000007.pt", "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(print))
        (folder / "meta_000007.json").write_text(json.dumps({"model_type": "gpt_base", "model_config": {}}))
        tap.ok("print" in refusal(folder), "a pickle that asks for a function is refused", refusal(folder))


def main():
    test_model("plain", make_spec("nanochat"), {})
    test_model("bank", make_spec("nanochat-bank", pattern="SSSLSL"), {"v_from_value_emb": True, "learn_init_coeffs": True})
    test_model("shared bank", make_spec("nanochat-bank", pattern="SSSLSL", source_layer=[0, 1, 2, 3, 4, 4]),
               {"v_from_value_emb": True, "learn_init_coeffs": True, "value_emb_shared": True})
    test_model("gated", make_spec("nanochat-gated"), {"add_init_value_emb_nanogpt": True, "on_every_two_layers": True})
    test_refusals()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
