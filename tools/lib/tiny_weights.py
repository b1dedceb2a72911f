"""Random weights of the tiny models, the same bits on every machine.

Only integer arithmetic, one addition order and single IEEE operations are used (no logarithm or cosine, whose last bit
differs between NumPy builds): a number is the sum of the four 16-bit parts of one raw PCG64 word, which is near enough
to a normal distribution, shifted and scaled. NumPy guarantees the raw streams of its bit generators.

Rows of q and k are in the order that rotates halves; the GGUF writer reorders them for arch llama.
"""

import zlib

import numpy as np

from . import quant

SEED = 20260602


def normal(label, shape, deviation, mean=0.0):
    """float32 of the shape; label names the stream."""
    seed = np.random.SeedSequence([SEED, zlib.crc32(label.encode())])
    words = np.random.PCG64(seed).random_raw(int(np.prod(shape)))
    parts = sum((words >> np.uint64(16 * i)) & np.uint64(0xFFFF) for i in range(4)).astype(np.float64)
    unit = (parts - 4 * 32767.5) / (2 * 65536 / np.sqrt(12.0))
    return (unit * deviation + mean).astype(np.float32).reshape(shape)


def rounded_to(type_name, x):
    """x as the plain type holds it: exact in GGUF and in the Hugging Face twin. Block types are left to the writer."""
    if quant.TYPES[type_name][1] > 1:
        return x
    return quant.dequantise(type_name, quant.quantise(type_name, x), np.float32)


def make(spec):
    """name (of docs/formats.md, GGUF) -> (type, float32 array), shapes outermost first."""
    weights = {}

    def add(name, shape, deviation, mean=0.0, type_name="F32"):
        x = normal(f"{spec.name}/{name}", shape, deviation, mean)
        # The twin holds everything in its one type, so the vectors are rounded to it too.
        weights[name] = (type_name, rounded_to(type_name, rounded_to(spec.hf or "F32", x)))

    def matrix(name, rows, columns, gain=1.0, type_name=None):
        add(name, (rows, columns), gain / np.sqrt(columns), type_name=type_name or spec.type)

    C, D, H, K, F = spec.C, spec.D, spec.H, spec.K, spec.F
    louder = 2.0 if spec.tied else 1.0  # else a tied head answers with the token it was given
    has_norms = spec.arch != "nanochat"
    # A head of deviation about 3 in the logits: the best token then leads the second by about 1 on average.
    # Embeddings that are no head too are small, so that a wrong eps shows in the first norm.
    matrix("token_embd.weight", spec.rows, C, 3.0 if spec.tied else 0.3, spec.embed_type)
    if not spec.tied:
        matrix("output.weight", spec.rows, C, 3.0, spec.embed_type)
    if has_norms:
        add("output_norm.weight", (C,), 0.2, 1.0)
    else:
        add("smear_gate.weight", (1, 24), 0.3)
        weights["smear_lambda"] = ("F32", np.array([spec.smear], np.float32))
    for n in range(spec.L):
        blk = f"blk.{n}."
        if has_norms:
            add(blk + "attn_norm.weight", (C,), 0.3, 1.0)
            add(blk + "ffn_norm.weight", (C,), 0.3, 1.0)
        matrix(blk + "attn_q.weight", H * D, C, 1.4)
        matrix(blk + "attn_k.weight", K * D, C, 1.4)
        if spec.value[n] in "r+x":
            matrix(blk + "attn_v.weight", K * D, C)
        matrix(blk + "attn_output.weight", C, H * D, louder)
        matrix(blk + "ffn_up.weight", F, C)
        if spec.arch != "nanochat":
            matrix(blk + "ffn_gate.weight", F, C)
        matrix(blk + "ffn_down.weight", C, F, 1.2 * louder)
        if spec.bias:
            for part, width in (("q", H * D), ("k", K * D), ("v", K * D)):
                if blk + f"attn_{part}.weight" in weights:
                    add(blk + f"attn_{part}.bias", (width,), 0.4)
        if spec.qk_norm:
            add(blk + "attn_q_norm.weight", (D,), 0.2, 1.2)
            add(blk + "attn_k_norm.weight", (D,), 0.2, 1.2)
        add_bank(spec, n, weights, add)
    return weights


def add_bank(spec, n, weights, add):
    """The bank, gamma and gate of layer n, where it has them."""
    if spec.value[n] in "rx1" and not (spec.value[n] in "x1" and spec.gammas):
        return
    blk = f"blk.{n}."
    gamma = 1.0
    if spec.gammas:
        gamma = spec.gammas[sum(v != "r" for v in spec.value[:n])]
        weights[blk + "attn_v_bank.gamma"] = ("F32", rounded_to(spec.hf or "F32", np.array([gamma], np.float32)))
    if spec.value[n] in "x1":
        return
    if spec.source_layer[n] == n:
        rows = spec.rows + spec.extra_rows
        # Small where gamma is large, so that gamma * row stays of the size of an ordinary value.
        add(blk + "attn_v_bank.weight", (rows, spec.K * spec.D), 1.2 / abs(gamma), type_name=spec.bank_type)
    if spec.value[n] == "+" and spec.gate == "sigmoid":
        add(blk + "attn_v_gate.weight", (spec.K, 12), 0.3)
