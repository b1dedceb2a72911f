#!/usr/bin/env python3
"""The reference forward pass, in float64: plain, slow, whole matrices, written from the papers and docs/formats.md.

    logits(model, ids)                 [T, V] at every position
    greedy(model, ids, n)              n tokens, each the best of the rows that have a token

value_path says how a bank layer's values are summed; all three are the same in real arithmetic:
    direct   v_j = gamma E[vid_j] is made for every position, o = P v
    gather   the rows E[vid_j] are gathered for every position, gamma is applied after the sum
    dedup    the weights of equal value ids are summed first, then each distinct row is read once

cache names the types (F32, BF16, F16, Q8_0) that keys and cached values are rounded to, as the key-value cache does;
None: not at all. model.activations = "int8" rounds what products of quantised weights read, as the CPU backend does.

Letters: T positions, L layers, C channels, H query heads, K kv heads, D head size, V rows of the embedding.
"""

import argparse
import json
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products: threads only wait for each other
import numpy as np  # noqa: E402

from load import load  # noqa: E402

from lib import quant  # noqa: E402  (load.py puts tools/ on the path)

# -- pieces -------------------------------------------------------------------------------------------------------


def rms(x, weight, eps):
    """x / sqrt(mean x^2 + eps), times the weight if there is one."""
    y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return y if weight is None else y * weight


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rotate(model, x, positions):
    """RoPE. x [T, heads, D]: pair i of the first R numbers turns by position * base^(-2i/R) / divisor_i.

    R is D unless the file says less. nanochat turns the other way.
    """
    R = model.rope_dims
    angle = positions[:, None] * (model.rope_base ** (-np.arange(0, R, 2) / R) / model.rope_divisors)
    if model.arch == "nanochat":
        angle = -angle
    cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    if model.rope_pairs == "interleaved":
        first, second = np.s_[..., 0:R:2], np.s_[..., 1:R:2]
    else:
        first, second = np.s_[..., : R // 2], np.s_[..., R // 2 : R]
    y = x.copy()
    y[first] = x[first] * cos - x[second] * sin
    y[second] = x[first] * sin + x[second] * cos
    return y


def rounded(x):
    """x to int8: in groups of 32 the nearest of -127 .. 127 times a 127th of the largest magnitude."""
    groups = x.reshape(*x.shape[:-1], -1, 32)
    d = np.abs(groups).max(axis=-1, keepdims=True) / 127
    return (np.rint(groups / np.where(d > 0, d, 1)) * d).reshape(x.shape)


def product(model, name, x):
    """W x; activations that meet quantised weights are rounded first when model.activations is int8."""
    if model.activations == "int8" and model.type(name) not in ("F32", "F16", "BF16"):
        x = rounded(x)
    return x @ model.w(name).T


def linear(model, name, x):
    """W x (+ b) for each row of x."""
    y = product(model, name + ".weight", x)
    return y + model.w(name + ".bias") if model.has(name + ".bias") else y


def norm_weight(model, name):
    """None where the family has norms without weights."""
    return None if model.arch == "nanochat" else model.w(name)


# -- the family differences ---------------------------------------------------------------------------------------


def embed(model, ids):
    """[T, C]. nanochat norms the embedding and smears: x_t += lambda sigmoid(W x_t[:24]) x_{t-1}."""
    x = model.w("token_embd.weight")[ids]
    if model.arch != "nanochat":
        return x
    x = rms(x, None, model.eps)
    gate = sigmoid(x[1:, : model.smear_channels] @ model.w("smear_gate.weight").T)
    smeared = x.copy()
    smeared[1:] += model.w("smear_lambda") * gate * x[:-1]
    return smeared


def query_key(model, n, x, positions):
    """q [T, H, D] and k [T, K, D] of layer n; x is the layer's normed input."""
    blk = f"blk.{n}."
    T = len(x)
    q = linear(model, blk + "attn_q", x).reshape(T, model.H, model.D)
    k = linear(model, blk + "attn_k", x).reshape(T, model.K, model.D)
    if model.has(blk + "attn_q_norm.weight"):  # qwen3: norm with weights, then RoPE
        q = rms(q, model.w(blk + "attn_q_norm.weight"), model.eps)
        k = rms(k, model.w(blk + "attn_k_norm.weight"), model.eps)
    q, k = rotate(model, q, positions), rotate(model, k, positions)
    if model.arch == "nanochat":  # RoPE, then norm without weights, then a factor
        q = model.qk_scale * rms(q, None, model.eps)
        k = model.qk_scale * rms(k, None, model.eps)
    return q, k


def feed_forward(model, n, x):
    blk = f"blk.{n}."
    up = linear(model, blk + "ffn_up", x)
    if model.arch == "nanochat":
        return linear(model, blk + "ffn_down", np.maximum(up, 0) ** 2)
    gate = linear(model, blk + "ffn_gate", x)
    return linear(model, blk + "ffn_down", gate * sigmoid(gate) * up)


# -- attention ----------------------------------------------------------------------------------------------------


def weights(model, n, q, k, positions):
    """Attention weights [H, T, T]: causal, within the window of layer n, query head h reading kv head h // (H/K)."""
    k = np.repeat(k, model.H // model.K, axis=1)
    scores = np.einsum("thd,jhd->htj", q, k) / np.sqrt(model.D)
    back = positions[:, None] - positions[None, :]
    seen = back >= 0
    if model.window[n]:
        seen &= back < model.window[n]
    return softmax(np.where(seen, scores, -np.inf))


def gamma(model, n):
    name = f"blk.{n}.attn_v_bank.gamma"
    return model.w(name)[0] if model.has(name) else 1.0


def bank(model, n):
    """E of layer n, [rows, K, D]; a shared one is stored with the layer that it is named after."""
    return model.w(f"blk.{model.bank_layer[n]}.attn_v_bank.weight").reshape(-1, model.K, model.D)


def value_ids(model, ids, positions):
    """A token's own id, but the sink row at position 0 where the model has one."""
    if model.sink_row is None:
        return ids
    return np.where(positions == 0, model.sink_row, ids)


def values(model, n, x, vid, trail):
    """v [T, K, D] of layer n for every source; x is the layer's normed input."""
    source = model.value[n]
    T = len(x)
    heads = (T, model.K, model.D)
    if source == "residual":
        return linear(model, f"blk.{n}.attn_v", x).reshape(heads)
    if source == "bank":
        return gamma(model, n) * bank(model, n)[vid]
    if source == "residual+bank":
        v = linear(model, f"blk.{n}.attn_v", x).reshape(heads)
        extra = gamma(model, n) * bank(model, n)[vid]
        if model.gate == "sigmoid":
            gate = sigmoid(x[:, : model.gate_channels] @ model.w(f"blk.{n}.attn_v_gate.weight").T)
            extra = model.gate_scale * gate[:, :, None] * extra
        return v + extra
    # The two context-free variants that compile into a bank (METHOD: x0 Wv, V1). Not in files that tellerd reads.
    if source == "x0":
        return gamma(model, n) * linear(model, f"blk.{n}.attn_v", rms(trail.x0, None, model.eps)).reshape(heads)
    if source == "v1":
        return gamma(model, n) * trail.v0
    raise ValueError(f"layer {n}: unknown value source {source}")


def spread(model, v):
    """[T, K, D] -> [T, H, D]: each kv head for the query heads that read it."""
    return np.repeat(v, model.H // model.K, axis=1)


def bank_sum(model, n, p, vid, value_path):
    """gamma sum_j p_j E[vid_j] without making v: [T, H, D]."""
    E = bank(model, n)
    if value_path == "gather":
        return gamma(model, n) * np.einsum("htj,jhd->thd", p, spread(model, E[vid]))
    distinct, slot = np.unique(vid, return_inverse=True)
    merged = np.zeros((*p.shape[:2], len(distinct)))
    for j in range(len(vid)):
        merged[:, :, slot[j]] += p[:, :, j]
    return gamma(model, n) * np.einsum("htu,uhd->thd", merged, spread(model, E[distinct]))


def cached(x, type_name):
    """x as the cache gives it back."""
    return quant.dequantise(type_name, quant.quantise(type_name, x)) if type_name else x


def attention(model, n, x, vid, positions, value_path, cache, trail):
    """[T, C]: what the attention of layer n adds to the residual stream."""
    q, k = query_key(model, n, x, positions)
    p = weights(model, n, q, cached(k, cache[0]), positions)
    if value_path == "direct" or model.value[n] != "bank":
        v = values(model, n, x, vid, trail)
        if n == 0:
            trail.v0 = v
        if model.value[n].startswith("residual"):
            v = cached(v, cache[1])
        o = np.einsum("htj,jhd->thd", p, spread(model, v))
    else:
        o = bank_sum(model, n, p, vid, value_path)
    return linear(model, f"blk.{n}.attn_output", o.reshape(len(x), model.H * model.D))


# -- the model ----------------------------------------------------------------------------------------------------


class Trail:
    """What the context-free variants look back at: the embedding output x0 and layer 0's value v0."""


def logits(model, ids, positions=None, value_path="direct", cache=(None, None)):
    """ids [T] -> [T, V]. positions default to 0..T-1; row t sees the rows with positions up to its own."""
    ids = np.asarray(ids)
    positions = np.arange(len(ids)) if positions is None else np.asarray(positions)
    vid = value_ids(model, ids, positions)
    x = embed(model, ids)
    trail = Trail()
    trail.x0 = x
    for n in range(model.L):
        y = rms(x, norm_weight(model, f"blk.{n}.attn_norm.weight"), model.eps)
        x = x + attention(model, n, y, vid, positions, value_path, cache, trail)
        y = rms(x, norm_weight(model, f"blk.{n}.ffn_norm.weight"), model.eps)
        x = x + feed_forward(model, n, y)
    x = rms(x, norm_weight(model, "output_norm.weight"), model.eps)
    head = "output.weight" if model.has("output.weight") else "token_embd.weight"
    z = product(model, head, x)
    return model.softcap * np.tanh(z / model.softcap) if model.softcap else z


def greedy(model, ids, n, value_path="direct", stop_below=None):
    """n tokens after ids, and the smallest lead that the best token had over the second. Padded rows never win.

    Stops early at a lead below stop_below.
    """
    out = []
    lead = np.inf
    for _ in range(n):
        z = logits(model, list(ids) + out, value_path=value_path)[-1, : model.n_tokens]
        second, best = np.sort(z)[-2:]
        lead = min(lead, best - second)
        out.append(int(z.argmax()))
        if stop_below and lead < stop_below:
            break
    return out, lead


def main():
    parser = argparse.ArgumentParser(description="Reference logits of a model, as JSON.")
    parser.add_argument("model")
    parser.add_argument("ids", type=int, nargs="+")
    parser.add_argument("--value-path", default="direct", choices=["direct", "gather", "dedup"])
    parser.add_argument("--greedy", type=int, metavar="N", help="print N tokens instead of logits")
    args = parser.parse_args()
    model = load(args.model)
    if args.greedy:
        print(json.dumps({"tokens": greedy(model, args.ids, args.greedy, args.value_path)[0]}))
    else:
        print(json.dumps({"logits": logits(model, args.ids, value_path=args.value_path).tolist()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
