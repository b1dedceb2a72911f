#!/usr/bin/env python3
"""Run a Bank-of-Values GGUF in plain NumPy and answer questions with it: the proof of the exported file itself.

Everything comes from the file: weights, vocabulary, merges, template. This is a reference, not a server: float64, one sequence.
  sample.py MODEL.gguf "What does the ls command do?"
  sample.py MODEL.gguf --expected expected.json      writes the golden answers of PROMPTS
"""

import argparse
import json
import os
import sys

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import gguf  # noqa: E402

PROMPTS = [
    "What does the ls command do?",
    "What does tar do?",
    "Which command lists directory contents?",
    "How do I see disk usage?",
    "What does the -a option of ls mean?",
    "What can you do?",
    "hello",
    "thanks",
    "What does git commit do?",
    "What is systemctl?",
    "grep -i?",
    "How do I copy a file to another machine?",
    "What does the frobnicate command do?",
    "What is the capital of France?",
    "What does chmod -R do?",
    "What does ssh do?",
    "What is the purpose of rsync?",
    "Which command searches for files in a directory tree?",
    "explain the curl command",
    "What is fstab?",
]


class Gguf:
    def __init__(self, path):
        file = gguf.read(path)
        self.meta, m = file.meta, file.meta
        self.w = {name: t.values(np.float64) for name, t in file.tensors.items()}
        self.layers, self.heads = m["llama.block_count"], m["llama.attention.head_count"]
        self.kv_heads, self.dim = m["llama.attention.head_count_kv"], m["llama.embedding_length"]
        self.eps, self.head_dim = m["llama.attention.layer_norm_rms_epsilon"], self.dim // self.heads
        self.source = m.get("llama.attention.value_source", ["residual"] * self.layers)
        self.freq = m["llama.rope.freq_base"] ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        tokens = m["tokenizer.ggml.tokens"]
        self.special = [t for t, kind in zip(tokens, m["tokenizer.ggml.token_type"]) if kind == 3]
        merges = [tuple(x.split(" ")) for x in m["tokenizer.ggml.merges"]]
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.tok = Tokenizer(models.BPE(vocab=self.ids, merges=merges))
        self.tok.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
        self.tok.decoder = decoders.ByteLevel()

    def prompt(self, messages):
        """Ids of the chat template with the reply opened; special tokens and texts are encoded apart."""
        ids = []
        for role, content in messages:
            ids += [
                self.ids["<|im_start|>"],
                *self.text(role),
                *self.text("\n"),
                *self.text(content),
                self.ids["<|im_end|>"],
                *self.text("\n"),
            ]
        return ids + [self.ids["<|im_start|>"], *self.text("assistant"), *self.text("\n")]

    def text(self, s):
        return self.tok.encode(s).ids

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.w[name]

    def rope(self, x, first):
        """x [T, heads, D], positions from `first`; pairs are (2i, 2i+1)."""
        angle = (first + np.arange(len(x)))[:, None, None] * self.freq
        a, b = x[..., 0::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., 0::2], out[..., 1::2] = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
        return out

    def forward(self, ids, cache):
        """Logits [T, V] of new ids; cache is a list per layer of [k, v], and the value ids under "ids"."""
        first = len(cache.setdefault("ids", []))
        cache["ids"] = cache["ids"] + list(ids)
        x = self.w["token_embd.weight"][ids]
        t, group = len(ids), self.heads // self.kv_heads
        hidden = np.arange(first + t)[None, :] > (first + np.arange(t))[:, None]
        for n in range(self.layers):
            w = {
                k: self.w.get("blk.%d.%s" % (n, k))
                for k in (
                    "attn_q.weight",
                    "attn_k.weight",
                    "attn_v.weight",
                    "attn_output.weight",
                    "ffn_gate.weight",
                    "ffn_up.weight",
                    "ffn_down.weight",
                    "attn_v_bank.weight",
                )
            }
            h = self.norm(x, "blk.%d.attn_norm.weight" % n)
            q = self.rope((h @ w["attn_q.weight"].T).reshape(t, self.heads, self.head_dim), first)
            k = self.rope((h @ w["attn_k.weight"].T).reshape(t, self.kv_heads, self.head_dim), first)
            k = np.concatenate([cache[n, "k"], k]) if (n, "k") in cache else k
            cache[n, "k"] = k
            if self.source[n] == "bank":
                v = w["attn_v_bank.weight"][cache["ids"]].reshape(-1, self.kv_heads, self.head_dim)
            else:
                v = (h @ w["attn_v.weight"].T).reshape(t, self.kv_heads, self.head_dim)
                v = np.concatenate([cache[n, "v"], v]) if (n, "v") in cache else v
                cache[n, "v"] = v
            k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
            s = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(self.head_dim)
            s = np.where(hidden, -np.inf, s)
            p = np.exp(s - s.max(-1, keepdims=True))
            y = np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v).reshape(t, -1)
            if self.source[n] == "bank":
                y = y * self.w["blk.%d.attn_v_bank.gamma" % n]
            x = x + y @ w["attn_output.weight"].T
            h = self.norm(x, "blk.%d.ffn_norm.weight" % n)
            gate = h @ w["ffn_gate.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w["ffn_up.weight"].T)) @ w["ffn_down.weight"].T
        return self.norm(x, "output_norm.weight") @ self.w.get("output.weight", self.w["token_embd.weight"]).T

    def reply(self, messages, limit=96):
        """Greedy answer: (text, prompt ids, answer ids without the end token, smallest lead of a chosen logit)."""
        prompt, out, cache, lead = self.prompt(messages), [], {}, np.inf
        new = prompt
        stop = {self.meta["tokenizer.ggml.eos_token_id"], self.ids["<|endoftext|>"]}
        while len(out) < limit:
            logits = self.forward(new, cache)[-1]
            best = int(logits.argmax())
            lead = min(lead, logits[best] - np.partition(logits, -2)[-2])
            if best in stop:
                break
            out.append(best)
            new = [best]
        return self.tok.decode(out, skip_special_tokens=False), prompt, out, float(lead)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("questions", nargs="*", help="each is asked alone; with --chat they are turns of one conversation")
    ap.add_argument("--chat", action="store_true")
    ap.add_argument("--expected", help="write prompts, ids and answers to this file")
    args = ap.parse_args()
    model = Gguf(args.model)
    if args.expected:
        rows = []
        for q in PROMPTS:
            text, prompt, ids, lead = model.reply([("user", q)])
            rows.append(
                {"prompt": q, "answer": text, "prompt_ids": prompt, "answer_ids": ids, "smallest_lead": round(lead, 4)}
            )
            print("%-55s %s  (%.2f)" % (q, text, lead))
        with open(args.expected, "w") as f:
            f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
    said = []
    for q in args.questions:
        said = (said if args.chat else []) + [("user", q)]
        text = model.reply(said)[0]
        said.append(("assistant", text))
        print("%s\n  %s" % (q, text))


if __name__ == "__main__":
    main()
