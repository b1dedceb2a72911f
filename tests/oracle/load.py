"""Reads a model for the reference forward pass: one description, whatever the file form. Written from docs/formats.md.

load(path) gives a namespace with the numbers of docs/formats.md (L, C, H, K, D, eps, ...), lists with one entry a layer
(value, bank_layer, window) and w(name): a weight as float64, by its GGUF name, rows outermost; type(name) is its type in the file.
activations may be set to "int8" (forward.py).
"""

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from lib import gguf, safetensors  # noqa: E402
from lib.tiny_write import HF_LAYER_NAMES, HF_NAMES  # noqa: E402


def load(path):
    return load_hf(Path(path)) if Path(path).is_dir() else load_gguf(path)


# -- GGUF ---------------------------------------------------------------------------------------------------------


def load_gguf(path):
    file = gguf.read(path)
    arch = file.meta["general.architecture"]

    def get(key, default=None):
        return file.meta.get(f"{arch}.{key}", default)

    small = sum(t.raw.size for t in file.tensors.values()) < 1 << 25
    cache = {}

    def w(name):
        if name not in cache:
            values = file.tensors[name].values()
            if not small:
                return values  # a large model is expanded tensor by tensor
            cache[name] = values
        return cache[name]

    C, H = get("embedding_length"), get("attention.head_count")
    L = get("block_count")
    D = get("attention.key_length", C // H)
    rope_dims = get("rope.dimension_count", D)
    divisors = w("rope_freqs.weight") if "rope_freqs.weight" in file.tensors else np.ones(rope_dims // 2)
    linear = get("rope.scaling.factor", 1.0) if get("rope.scaling.type") == "linear" else 1.0
    return SimpleNamespace(
        arch=arch, L=L, C=C, H=H, K=get("attention.head_count_kv", H), D=D,
        V=file.tensors["token_embd.weight"].shape[0], n_tokens=len(file.meta["tokenizer.ggml.tokens"]),
        eps=get("attention.layer_norm_rms_epsilon"),
        rope_base=get("rope.freq_base", 10000.0), rope_dims=rope_dims, rope_divisors=divisors * linear,
        rope_pairs="interleaved" if arch == "llama" else "halves",
        window=windows(L, get("attention.sliding_window"), get("attention.sliding_window_pattern")),
        qk_scale=get("attention.qk_scale", 1.0), softcap=get("final_logit_softcapping"), smear_channels=get("smear.channels"),
        value=get("attention.value_source", ["residual"] * L), bank_layer=get("value_bank.source_layer", list(range(L))),
        sink_row=get("value_bank.sink_row"), gate=get("value_bank.gate", "none"),
        gate_channels=get("value_bank.gate_channels"), gate_scale=get("value_bank.gate_scale", 1.0),
        w=w, has=lambda name: name in file.tensors, type=lambda name: file.tensors[name].type, activations="f32",
    )


def windows(L, width, pattern):
    """One entry a layer: W, or None for full attention."""
    if not width:
        return [None] * L
    return [width if windowed else None for windowed in pattern or [True] * L]


# -- Hugging Face -------------------------------------------------------------------------------------------------


def gguf_name(name):
    for ours, theirs in HF_NAMES.items():
        if name == theirs:
            return ours
    layer, rest = name.removeprefix("model.layers.").split(".", 1)
    part, kind = rest.rsplit(".", 1)
    for ours, theirs in HF_LAYER_NAMES.items():
        if part == theirs:
            return f"blk.{layer}.{ours}.{kind}"
    raise ValueError(f"unknown tensor {name}")


def load_hf(folder):
    config = json.loads((folder / "config.json").read_text())
    tensors = {gguf_name(name): x for name, x in safetensors.read_model(folder).items()}
    L, C, H = config["num_hidden_layers"], config["hidden_size"], config["num_attention_heads"]
    D = config.get("head_dim") or C // H
    base = config.get("rope_theta", 10000.0)
    bank = config.get("value_bank", {})
    width = config.get("sliding_window")
    if not config.get("use_sliding_window", True):
        width = None
    return SimpleNamespace(
        arch={"mistral": "llama"}.get(config["model_type"], config["model_type"]),
        L=L, C=C, H=H, K=config.get("num_key_value_heads", H), D=D,
        V=tensors["token_embd.weight"].shape[0], n_tokens=hf_token_count(folder),
        eps=config["rms_norm_eps"],
        rope_base=base, rope_dims=D, rope_divisors=hf_rope_divisors(config.get("rope_scaling"), base, D), rope_pairs="halves",
        window=windows(L, width, config.get("sliding_window_pattern")),
        qk_scale=config.get("qk_scale", 1.0), softcap=config.get("final_logit_softcapping"),
        smear_channels=config.get("smear_channels"),
        value=bank.get("value_source", ["residual"] * L), bank_layer=bank.get("source_layer", list(range(L))),
        sink_row=bank.get("sink_row"), gate=bank.get("gate", "none"),
        gate_channels=bank.get("gate_channels"), gate_scale=bank.get("gate_scale", 1.0),
        w=lambda name: tensors[name], has=lambda name: name in tensors,
        type=lambda name: "F32", activations="f32",
    )


def hf_token_count(folder):
    """Rows that have a token; config.json's vocab_size counts padding too."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    ids = list(vocab.values()) if isinstance(vocab, dict) else list(range(len(vocab)))
    return 1 + max(ids + [t["id"] for t in tokenizer["added_tokens"]])


def hf_rope_divisors(scaling, base, D):
    """What each of the D/2 frequencies is divided by."""
    if not scaling:
        return np.ones(D // 2)
    if scaling["rope_type"] == "linear":
        return np.full(D // 2, scaling["factor"])
    # llama3: long waves are stretched by the factor, short ones kept, those between blended.
    factor, original = scaling["factor"], scaling["original_max_position_embeddings"]
    divisors = np.empty(D // 2)
    for i in range(D // 2):
        turns = original / (2 * math.pi * base ** (2 * i / D))  # turns that the original context makes
        share = (turns - scaling["low_freq_factor"]) / (scaling["high_freq_factor"] - scaling["low_freq_factor"])
        share = min(max(share, 0.0), 1.0)
        divisors[i] = 1 / (share + (1 - share) / factor)
    return divisors
