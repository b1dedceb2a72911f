#!/usr/bin/env python3
"""Write a checkpoint of train.py as GGUF: Q8_0 matrices, embedding and bank, F32 norms and gamma (docs/formats.md)."""

import argparse
import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import gguf  # noqa: E402
from tokenizer import CHAT_TEMPLATE, IM_END, SPECIAL  # noqa: E402


def vocabulary(path):
    """tokens by id, merges as GGUF has them ("left right")."""
    with open(path) as f:
        model = json.load(f)["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return tokens, merges


def metadata(c, name, tokenizer):
    tokens, merges = vocabulary(tokenizer)
    if len(tokens) != c["vocab"] or tokens[: len(SPECIAL)] != SPECIAL:
        raise SystemExit("export: the tokenizer is not the one that the model was trained with")
    first_bank = 2 * c["layers"] // 3
    return {
        "general.architecture": gguf.string("llama"),
        "general.name": gguf.string(name),
        "general.description": gguf.string(
            "Small Unix helper with a Bank-of-Values cache, trained from Debian's manual pages"
        ),
        "llama.block_count": gguf.u32(c["layers"]),
        "llama.context_length": gguf.u32(c["context"]),
        "llama.embedding_length": gguf.u32(c["dim"]),
        "llama.feed_forward_length": gguf.u32(c["ffn"]),
        "llama.attention.head_count": gguf.u32(c["heads"]),
        "llama.attention.head_count_kv": gguf.u32(c["kv_heads"]),
        "llama.attention.layer_norm_rms_epsilon": gguf.f32(c["eps"]),
        "llama.rope.freq_base": gguf.f32(c["theta"]),
        "llama.rope.dimension_count": gguf.u32(c["dim"] // c["heads"]),
        "llama.vocab_size": gguf.u32(c["vocab"]),
        "llama.attention.value_source": gguf.array(
            "string", ["bank" if i >= first_bank else "residual" for i in range(c["layers"])]
        ),
        "llama.value_bank.rows": gguf.u32(c["vocab"]),
        "tokenizer.ggml.model": gguf.string("gpt2"),
        "tokenizer.ggml.pre": gguf.string("smollm"),
        "tokenizer.ggml.tokens": gguf.array("string", tokens),
        "tokenizer.ggml.token_type": gguf.array("i32", [3 if t in SPECIAL else 1 for t in tokens]),
        "tokenizer.ggml.merges": gguf.array("string", merges),
        "tokenizer.ggml.bos_token_id": gguf.u32(0),
        "tokenizer.ggml.eos_token_id": gguf.u32(IM_END),
        "tokenizer.ggml.add_bos_token": gguf.boolean(False),
        "tokenizer.chat_template": gguf.string(CHAT_TEMPLATE),
    }


NAMES = {
    "attn_norm": "attn_norm.weight",
    "ffn_norm": "ffn_norm.weight",
    "q": "attn_q.weight",
    "k": "attn_k.weight",
    "v": "attn_v.weight",
    "o": "attn_output.weight",
    "gate": "ffn_gate.weight",
    "up": "ffn_up.weight",
    "down": "ffn_down.weight",
    "bank": "attn_v_bank.weight",
    "gamma": "attn_v_bank.gamma",
}


def tensors(state):
    """(GGUF name, type, array) of each parameter."""
    for name, value in state.items():
        parts = name.split(".")
        if name == "emb":
            out = "token_embd.weight"
        elif name == "norm":
            out = "output_norm.weight"
        else:
            out = "blk.%s.%s" % (parts[1], NAMES[parts[2]])
        yield out, "Q8_0" if value.dim() == 2 else "F32", value.numpy()


def history(paths):
    """Curves of the checkpoints that this one started from, in order, on one axis; and each phase's arguments."""
    curve, phases, minutes, tokens, step = [], [], 0.0, 0, 0
    for path in paths:
        saved = torch.load(path, map_location="cpu")
        for point in saved["curve"]:
            curve.append(
                dict(
                    point,
                    minutes=point["minutes"] + minutes,
                    tokens=point["tokens"] + tokens,
                    step=point["step"] + step,
                )
            )
        minutes, tokens, step = curve[-1]["minutes"], curve[-1]["tokens"], curve[-1]["step"]
        args = {k: v for k, v in saved["args"].items() if k not in ("data", "out", "init")}
        phases.append(dict(args, held_out_questions=saved["sizes"], until_step=step))
    return curve, phases


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--checkpoint", required=True)
    ap.add_argument("--earlier", nargs="*", default=[], help="checkpoints of earlier phases, in order")
    ap.add_argument("--tokenizer", required=True, help="tokenizer.json")
    ap.add_argument("--folder", required=True, help="where NAME.gguf and training.json are written")
    ap.add_argument("--name", default="", help="default: teller-unix-<millions of parameters>m-q8_0")
    args = ap.parse_args()
    saved = torch.load(args.checkpoint, map_location="cpu")
    c = saved["config"]
    name = args.name or "teller-unix-%.0fm-q8_0" % (saved["parameters"] / 1e6)
    path = os.path.join(args.folder, name + ".gguf")
    gguf.write(path, metadata(c, name, args.tokenizer), list(tensors(saved["model"])))
    curve, phases = history(args.earlier + [args.checkpoint])
    with open(os.path.join(args.folder, "training.json"), "w") as f:
        json.dump({"model": c, "parameters": saved["parameters"], "phases": phases, "curve": curve}, f, indent=1)
        f.write("\n")
    print("%s: %d bytes" % (path, os.path.getsize(path)))


if __name__ == "__main__":
    main()
