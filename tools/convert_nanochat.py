#!/usr/bin/env python3
"""Converts a nanochat checkpoint (model type gpt_base, with or without a Bank of Values) into a GGUF file.

    tools/convert_nanochat.py CHECKPOINT_DIR --tokenizer DIR --out FILE.gguf [--step N] [--type BF16] [--bank-type Q8_0]

CHECKPOINT_DIR holds model_STEP.pt and meta_STEP.json; the tokenizer folder tokenizer.pkl (tiktoken) or tokenizer.json.
Needs NumPy only. Value embeddings become banks: v_from_value_emb (with its gammas) bank layers, add_init_value_emb_nanogpt gated and
add_init_value_emb plain residual+bank layers. A flag that tellerd's forward pass has no counterpart for is an error.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lib import gguf, quant, tiny_vocab, torch_file  # noqa: E402
from lib.gguf import array, boolean, f32, string, u32  # noqa: E402
from lib.tiny_hf_tokenizer import PATTERNS  # noqa: E402

SOFTCAP, QK_SCALE, SMEAR_CHANNELS, GATE_CHANNELS, GATE_SCALE, ROPE_BASE = 15.0, 1.2, 24, 12, 3.0, 100000.0
EPS = 1.1920929e-07  # of single precision: what a norm without an eps takes
KNOWN_FLAGS = {
    "v_from_value_emb", "add_init_value_emb_nanogpt", "add_init_value_emb", "value_emb_shared", "v_scale_learn",
    "learn_init_coeffs",
    "on_every_layer", "on_second_half_layers", "on_last_two_thirds_layers", "on_every_two_layers", "detach_init_value",
}
TEMPLATE = (
    "{{ '<|bos|>' }}{% set ns = namespace(system='') %}{% for message in messages %}{% if message['role'] == 'system' %}"
    "{% set ns.system = message['content'] + '\n\n' %}{% elif message['role'] == 'user' %}"
    "{{ '<|user_start|>' + ns.system + message['content'] + '<|user_end|>' }}{% set ns.system = '' %}{% else %}"
    "{{ '<|assistant_start|>' + message['content'] + '<|assistant_end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant_start|>' }}{% endif %}"
)


def fail(text):
    raise SystemExit(f"convert_nanochat: {text}")


# -- checkpoint ---------------------------------------------------------------------------------------------------


def read_checkpoint(folder, step):
    """meta and state of the step, or of the last one."""
    steps = sorted(int(m[1]) for p in Path(folder).glob("model_*.pt") if (m := re.fullmatch(r"model_(\d+)\.pt", p.name)))
    if not steps:
        fail(f"{folder} holds no model_STEP.pt")
    step = steps[-1] if step is None else step
    meta = json.loads((Path(folder) / f"meta_{step:06d}.json").read_text())
    return meta, torch_file.read_state(Path(folder) / f"model_{step:06d}.pt")


def read_config(meta):
    """The model's configuration, after a check that nothing in it changes the forward pass behind our back."""
    config = SimpleNamespace(**meta["model_config"])
    if not meta.get("model_type", "gpt").startswith("gpt_base"):
        fail(f"model type {meta.get('model_type', 'gpt')} is not supported (gpt_base and its variants are)")
    unknown = [k for k, v in vars(config).items() if v is True and k not in KNOWN_FLAGS]
    if unknown:
        fail(f"the model was trained with {', '.join(unknown)}, which has no counterpart in a tellerd model")
    return config


def flag(config, name):
    return getattr(config, name, False)


def windows(config):
    """W of the short layers (they see their own position and `short` before it) and, a layer, whether it is short."""
    short = -(-config.sequence_len // 4 // 128) * 128
    pattern = getattr(config, "window_pattern", "L").upper()
    is_short = [pattern[n % len(pattern)] == "S" for n in range(config.n_layer)]
    is_short[-1] = False
    return short + 1, is_short


# -- tensors ------------------------------------------------------------------------------------------------------

LAYER_NAMES = {
    "attn.c_q.weight": "attn_q.weight", "attn.c_k.weight": "attn_k.weight", "attn.c_v.weight": "attn_v.weight",
    "attn.c_proj.weight": "attn_output.weight", "mlp.c_fc.weight": "ffn_up.weight", "mlp.c_proj.weight": "ffn_down.weight",
    "attn.ve_gate.weight": "attn_v_gate.weight",
}
NAMES = {
    "transformer.wte.weight": "token_embd.weight", "lm_head.weight": "output.weight",
    "smear_gate.weight": "smear_gate.weight", "smear_lambda": "smear_lambda",
}


def value_sources(config, state):
    """One a layer: residual, bank or residual+bank, by which layers have a table."""
    has_table = {int(name.split(".")[1]) for name in state if name.startswith("value_embeds.")}
    source = "bank" if flag(config, "v_from_value_emb") else "residual+bank"
    return [source if n in has_table else "residual" for n in range(config.n_layer)]


def scalar(state, name):
    return float(state[name].values.reshape(-1)[0])


def coefficients(config, state, n, source):
    """(factor of Wv, gamma) of layer n."""
    attn = f"transformer.h.{n}.attn."
    if flag(config, "v_scale_learn") and attn + "gamma_v" in state:
        return scalar(state, attn + "gamma_v"), None
    if source == "bank":
        return None, scalar(state, attn + "gamma_v") if attn + "gamma_v" in state else None
    if source == "residual+bank" and flag(config, "add_init_value_emb"):
        if attn + "alpha_v" in state:
            return scalar(state, attn + "alpha_v"), scalar(state, attn + "beta_v")
        return 0.5, 0.5
    return 1.0, None


def convert_tensors(config, state, type_name, bank_type):
    """GGUF tensors, value sources, and the layer that each layer's bank is stored with."""
    sources = value_sources(config, state)
    bank_layer, stored = list(range(config.n_layer)), {}
    tensors, used = [], set()

    def add(name, theirs, kind, factor=1.0):
        used.add(theirs)
        tensors.append((name, kind, state[theirs].values * np.float32(factor)))

    for theirs, ours in NAMES.items():
        add(ours, theirs, "F32" if ours.startswith("smear") else type_name)
    for n, source in enumerate(sources):
        blk, layer = f"blk.{n}.", f"transformer.h.{n}."
        v_factor, gamma = coefficients(config, state, n, source)
        for theirs, ours in LAYER_NAMES.items():
            if layer + theirs not in state:
                continue
            if ours == "attn_v.weight" and source == "bank":
                used.add(layer + theirs)  # there, but not part of the forward pass
                continue
            kind = "F32" if ours == "attn_v_gate.weight" else type_name
            add(blk + ours, layer + theirs, kind, v_factor if ours == "attn_v.weight" else 1.0)
        used |= {f"{layer}attn.{c}" for c in ("gamma_v", "alpha_v", "beta_v")}
        if source == "residual":
            continue
        table = f"value_embeds.{n}.weight"
        used.add(table)
        bank_layer[n] = stored.setdefault(state[table].key, n)
        if bank_layer[n] == n:
            add(blk + "attn_v_bank.weight", table, bank_type)
        if gamma is not None:
            tensors.append((blk + "attn_v_bank.gamma", "F32", np.array([gamma], np.float32)))
    left = sorted(set(state) - used)
    if left:
        fail(f"tensors that no part of the model uses: {', '.join(left[:5])}")
    return tensors, sources, bank_layer


# -- tokenizer ----------------------------------------------------------------------------------------------------


def split_in_two(token, ranks):
    """The two pieces that byte-pair merging joins last to make the token."""
    parts = [bytes([b]) for b in token]
    limit = ranks[token]
    while len(parts) > 2:
        pairs = [(ranks.get(a + b, limit), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
        rank, i = min(pairs)
        if rank >= limit:
            fail(f"token {token!r} cannot be made by merges")
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def from_tiktoken(path):
    """tokens and merges in the letters of byte-level BPE, special tokens, pattern."""
    encoding = torch_file.read_encoding(path)
    letters = tiny_vocab.byte_letters()

    def spelled(token):
        return "".join(letters[b] for b in token)

    ranks = encoding.mergeable_ranks
    specials = encoding.special_tokens
    tokens = [None] * (1 + max([*ranks.values(), *specials.values()]))
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        tokens[rank] = spelled(token)
        if len(token) > 1:
            merges.append(" ".join(map(spelled, split_in_two(token, ranks))))
    for token, number in specials.items():
        tokens[number] = token
    return tokens, merges, set(specials), encoding.pat_str


def from_json(path):
    tokenizer = json.loads(Path(path).read_text(encoding="utf-8"))
    vocab = dict(tokenizer["model"]["vocab"])
    specials = {t["content"] for t in tokenizer["added_tokens"]}
    vocab.update({t["content"]: t["id"] for t in tokenizer["added_tokens"]})
    tokens = [None] * (1 + max(vocab.values()))
    for token, number in vocab.items():
        tokens[number] = token
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    steps = tokenizer["pre_tokenizer"].get("pretokenizers", [tokenizer["pre_tokenizer"]])
    patterns = [s["pattern"]["Regex"] for s in steps if s["type"] == "Split"]
    return tokens, merges, specials, patterns[0] if patterns else None


def tokenizer_meta(folder):
    pickled = Path(folder) / "tokenizer.pkl"
    read = from_tiktoken(pickled) if pickled.exists() else from_json(Path(folder) / "tokenizer.json")
    tokens, merges, specials, pattern = read
    if pattern != PATTERNS["nanochat"]:
        fail(f"the tokenizer splits text by a pattern that is not nanochat's: {pattern}")
    if None in tokens:
        fail(f"token {tokens.index(None)} is missing")
    ids = {t: i for i, t in enumerate(tokens)}
    if "<|bos|>" not in ids:
        fail("the tokenizer has no <|bos|>")
    t = "tokenizer.ggml."
    meta = {
        t + "model": string("gpt2"), t + "pre": string("nanochat"),
        t + "tokens": array("string", tokens),
        t + "token_type": array("i32", [3 if token in specials else 1 for token in tokens]),
        t + "merges": array("string", merges),
        t + "bos_token_id": u32(ids["<|bos|>"]), t + "eos_token_id": u32(ids["<|bos|>"]),
        t + "add_bos_token": boolean(True), t + "add_eos_token": boolean(False), t + "add_space_prefix": boolean(False),
    }
    if "<|assistant_end|>" in ids:
        meta[t + "eot_token_id"] = u32(ids["<|assistant_end|>"])
        meta["tokenizer.chat_template"] = string(TEMPLATE)
    return meta, len(tokens)


# -- file ---------------------------------------------------------------------------------------------------------


def model_meta(config, name, n_tokens, n_rows, sources, bank_layer, eps, feed_forward):
    a = "nanochat."
    width, is_short = windows(config)
    meta = {
        "general.architecture": string("nanochat"), "general.name": string(name),
        a + "block_count": u32(config.n_layer), a + "context_length": u32(config.sequence_len),
        a + "embedding_length": u32(config.n_embd), a + "feed_forward_length": u32(feed_forward),
        a + "attention.head_count": u32(config.n_head), a + "attention.head_count_kv": u32(config.n_kv_head),
        a + "attention.layer_norm_rms_epsilon": f32(eps), a + "attention.qk_scale": f32(QK_SCALE),
        a + "rope.freq_base": f32(ROPE_BASE), a + "rope.dimension_count": u32(config.n_embd // config.n_head),
        a + "final_logit_softcapping": f32(SOFTCAP), a + "smear.channels": u32(SMEAR_CHANNELS), a + "vocab_size": u32(n_tokens),
    }
    if any(is_short):
        meta[a + "attention.sliding_window"] = u32(width)
        meta[a + "attention.sliding_window_pattern"] = array("bool", is_short)
    if set(sources) != {"residual"}:
        meta[a + "attention.value_source"] = array("string", sources)
        meta[a + "value_bank.rows"] = u32(n_rows)
        if bank_layer != list(range(config.n_layer)):
            meta[a + "value_bank.source_layer"] = array("u32", bank_layer)
    if flag(config, "add_init_value_emb_nanogpt"):
        meta |= {a + "value_bank.gate": string("sigmoid"), a + "value_bank.gate_channels": u32(GATE_CHANNELS),
                 a + "value_bank.gate_scale": f32(GATE_SCALE)}
    return meta


def convert(folder, tokenizer, out, step=None, type_name="BF16", bank_type=None, name=None, eps=EPS):
    """Writes the GGUF file."""
    meta, state = read_checkpoint(folder, step)
    config = read_config(meta)
    tensors, sources, bank_layer = convert_tensors(config, state, type_name, bank_type or type_name)
    vocab_meta, n_tokens = tokenizer_meta(tokenizer)
    n_rows = len(state["transformer.wte.weight"].values)
    if n_tokens > n_rows or n_tokens != config.vocab_size:
        fail(f"the tokenizer has {n_tokens} tokens, the model {config.vocab_size}")
    feed_forward = len(state["transformer.h.0.mlp.c_fc.weight"].values)
    name = name or Path(folder).resolve().name
    head = model_meta(config, name, n_tokens, n_rows, sources, bank_layer, eps, feed_forward)
    gguf.write(out, head | vocab_meta, tensors)


def main():
    parser = argparse.ArgumentParser(description="Converts a nanochat checkpoint into a GGUF file.")
    parser.add_argument("checkpoint", metavar="CHECKPOINT_DIR")
    parser.add_argument("--tokenizer", metavar="DIR", required=True)
    parser.add_argument("--out", metavar="FILE", required=True)
    parser.add_argument("--step", type=int, help="default: the last one")
    parser.add_argument("--type", choices=sorted(quant.TYPES), default="BF16", help="of the matrices")
    parser.add_argument("--bank-type", choices=sorted(quant.TYPES), help="of the banks (default: --type)")
    parser.add_argument("--name", help="model name (default: the folder's)")
    parser.add_argument("--eps", type=float, default=EPS, help="of the norms (default: %(default)s)")
    args = parser.parse_args()
    try:
        convert(args.checkpoint, args.tokenizer, args.out, args.step, args.type, args.bank_type, args.name, args.eps)
    except (OSError, KeyError, ValueError) as e:
        fail(e)
    return 0


if __name__ == "__main__":
    sys.exit(main())
