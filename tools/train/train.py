#!/usr/bin/env python3
"""Train the Bank-of-Values helper on one core within a budget of minutes.

The learning rate follows the wall clock, so that the run always anneals fully; a checkpoint is written every few minutes.
"""

import argparse
import hashlib
import json
import math
import os
import random
import time

import torch

import facts as F
import qa
from model import AdamW, Config, Model
from tokenizer import END_OF_TEXT, Codec, plain


class Text:
    """Plain-text documents; two in a hundred (by name) are held out. Rows are windows of a sampled document."""

    def __init__(self, data, codec, common):
        cache = os.path.join(data, "text.pt")
        if os.path.exists(cache):
            self.train, self.held, self.weights = torch.load(cache)
            return
        self.train, self.held, self.weights = [], [], []
        for p in qa.load_pages(os.path.join(data, "pages.jsonl")):
            text = plain(p["text"])[:60000]
            ids = torch.tensor(codec.tok.encode(text, add_special_tokens=False).ids + [END_OF_TEXT], dtype=torch.int16)
            key = hashlib.sha256((p["package"] + "/" + p["name"] + p["section"]).encode()).digest()
            if key[0] * 256 + key[1] < 65536 // 50:
                self.held.append((ids, len(text.encode())))
            else:
                self.train.append(ids)
                self.weights.append(min(len(ids), 3000) * (4.0 if p["name"] in common else 1.0))
        torch.save((self.train, self.held, self.weights), cache)

    def row(self, rng, t, weight):
        ids = rng.choices(self.train, cum_weights=self.cum())[0]
        at = 0 if len(ids) <= t or rng.random() < 0.3 else rng.randrange(len(ids) - t)
        got = [int(x) for x in ids[at : at + t + 1]]
        n = len(got)
        return [(got, [weight] * (n - 1))]

    def cum(self):
        if not hasattr(self, "_cum"):
            total, self._cum = 0.0, []
            for w in self.weights:
                total += w
                self._cum.append(total)
        return self._cum


class Chats:
    """Rows packed with whole conversations; a conversation sees only itself."""

    def __init__(self, facts, codec, seed, question_weight):
        self.source, self.codec, self.pool = qa.conversations(facts, seed), codec, []
        self.weight = (0.0, question_weight, 1.0)

    def row(self, t):
        out, room = [], t + 1
        while True:
            while len(self.pool) < 48:
                ids, kinds = self.codec.chat(next(self.source))
                if len(ids) <= t:
                    self.pool.append((ids, [self.weight[k] for k in kinds[1:]]))
            fit = [i for i in range(len(self.pool)) if len(self.pool[i][0]) <= room]
            if not fit:
                return out
            best = fit[0] if room > t // 2 else max(fit, key=lambda i: len(self.pool[i][0]))
            out.append(self.pool.pop(best))
            room -= len(out[-1][0])


def assemble(rows, t):
    """Tensors [B, T] from rows of documents (ids, weights of ids[1:])."""
    b = len(rows)
    ids = torch.zeros(b, t, dtype=torch.int64)
    target = torch.zeros(b, t, dtype=torch.int64)
    weight = torch.zeros(b, t)
    start = torch.zeros(b, t, dtype=torch.int32)
    for r, docs in enumerate(rows):
        at = 0
        for doc, w in docs:
            n = min(len(doc), t - at)
            if n <= 0:
                break
            ids[r, at : at + n] = torch.tensor(doc[:n])
            m = min(len(doc) - 1, t - at)
            target[r, at : at + m] = torch.tensor(doc[1 : m + 1])
            weight[r, at : at + m] = torch.tensor(w[:m])
            start[r, at : at + n] = at
            at += n
        start[r, at:] = at
    return ids, start, target, weight


def text_bpb(model, text, t, limit):
    """Bits per byte of held-out documents, in windows of t tokens without overlap."""
    nats = size = seen = 0.0
    rows = []
    for ids, nbytes in text.held:
        whole = [int(x) for x in ids]
        for at in range(0, min(len(whole) - 1, 4 * t), t):
            part = whole[at : at + t + 1]
            rows.append(([(part, [1.0] * (len(part) - 1))], nbytes * (len(part) - 1) / len(whole)))
    random.Random(5).shuffle(rows)
    with torch.no_grad():
        for i in range(0, len(rows), 8):
            batch = rows[i : i + 8]
            total, _ = model.loss(*assemble([r for r, _ in batch], t))
            nats += float(total)
            size += sum(n for _, n in batch)
            seen += sum(len(r[0][0]) - 1 for r, _ in batch)
            if seen >= limit:
                break
    return nats / size / math.log(2)


def exact_match(model, codec, pairs, t=96):
    """Share of questions whose greedy answer is the expected one (argmax at every answer token, the same thing)."""
    right = []
    for i in range(0, len(pairs), 16):
        rows = []
        for q, a in pairs[i : i + 16]:
            ids, kinds = codec.chat([("user", q), ("assistant", a)])
            rows.append([(ids, [1.0 if k == 2 else 0.0 for k in kinds[1:]])])
        ids, start, target, weight = assemble(rows, t)
        with torch.no_grad():
            guess = (model.hidden(ids, start) @ model.emb.t()).argmax(-1)
        right += ((guess == target) | (weight == 0)).all(1).tolist()
    return right


def held_out_questions(facts):
    """Named lists of (question, answer) in wordings that are never trained on."""
    cmds = facts["commands"]
    out = {"command, common": [], "command, other": [], "which command": [], "option": [], "example": [], "task": []}
    for i, c in enumerate(cmds):
        out["command, common" if c["tier"] == 0 else "command, other"].append(
            (F.FORWARD_HELD[i % 2].format(c=c["name"]), c["sentence"])
        )
        if c["unique"] and c["base"] and c["tier"] == 0:
            out["which command"].append((F.REVERSE_HELD[0].format(d=c["phrase"]), c["sentence"]))
    for o in facts["options"]:
        out["option"].append((F.OPTION_HELD[0].format(c=o["name"], o=o["option"]), o["answer"]))
    for name, example, does in F.EXAMPLES:
        out["example"].append((F.EXAMPLE_HELD[0].format(c=name), F.EXAMPLE_ANSWER.format(e=example, d=does)))
    for asks, answer in F.TASKS:
        out["task"].append((F.TASK_HELD[0].format(t=asks[0]), answer))
    return out


def groups(model, lr):
    pick = {"emb": [], "bank": [], "gamma": [], "norm": [], "matrix": []}
    for name, p in model.named_parameters():
        last = name.split(".")[-1]
        pick[last if last in pick else "norm" if "norm" in last else "matrix"].append(p)
    return [
        {"params": pick["matrix"], "lr": lr, "betas": (0.9, 0.95), "decay": 0.05},
        {"params": pick["emb"], "lr": lr * 2, "betas": (0.9, 0.95), "decay": 0.0},
        {"params": pick["norm"], "lr": lr, "betas": (0.9, 0.95), "decay": 0.0},
        {"params": pick["bank"], "lr": 1e-2, "betas": (0.9, 0.95), "decay": 0.0},
        {"params": pick["gamma"], "lr": 2e-2, "betas": (0.9, 0.95), "decay": 0.0},
    ]


def schedule(frac):
    """Share of the peak learning rate at a fraction of the time budget."""
    if frac < 0.01:
        return frac / 0.01 + 0.02
    return max(0.01, min(1.0, (1 - frac) / 0.6))


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--minutes", type=float, default=80)
    ap.add_argument("--init", help="a checkpoint whose weights to start from")
    ap.add_argument("--peak", type=float, default=1.0, help="factor on all learning rates")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--length", type=int, default=256)
    ap.add_argument("--text-share", type=float, default=0.2)
    ap.add_argument("--text-weight", type=float, default=0.5)
    ap.add_argument("--question-weight", type=float, default=0.1)
    ap.add_argument("--save-every", type=float, default=300, help="seconds")
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.data, "facts.json")) as f:
        facts = json.load(f)
    codec = Codec(os.path.join(args.data, "tokenizer.json"))
    text = Text(args.data, codec, set(F.COMMON))
    chats = Chats(facts, codec, args.seed, args.question_weight)
    c = Config(vocab=codec.tok.get_vocab_size())
    model = Model(c)
    if args.init:
        model.load_state_dict(torch.load(args.init)["model"])
    opt = AdamW(groups(model, args.lr))
    params = [p for p in model.parameters()]
    held = held_out_questions(facts)
    probe = {k: random.Random(3).sample(v, min(48, len(v))) for k, v in held.items()}
    n_params = sum(p.numel() for p in params)
    print(
        "parameters %d, held-out documents %d, training documents %d" % (n_params, len(text.held), len(text.train)),
        flush=True,
    )
    curve, tokens, step, begin = [], 0, 0, time.time()
    last_save = begin
    mean = {"text": [], "chat": []}

    def report(full):
        # Time spent in evaluation counts against the budget as well.
        with torch.no_grad():
            bpb = text_bpb(model, text, args.length, 1 << 30 if full else 6000)
        acc = {
            k: sum(r) / len(r)
            for k, r in ((k, exact_match(model, codec, v)) for k, v in (held if full else probe).items())
        }
        gamma = [float(layer.gamma) for layer in model.layers if layer.is_bank]
        point = {
            "minutes": (time.time() - begin) / 60,
            "step": step,
            "tokens": tokens,
            "held_out_bpb": bpb,
            "accuracy": acc,
            "gamma": gamma,
            "train_text_loss": sum(mean["text"]) / max(1, len(mean["text"])),
            "train_answer_loss": sum(mean["chat"]) / max(1, len(mean["chat"])),
        }
        mean["text"].clear()
        mean["chat"].clear()
        curve.append(point)
        print("== " + json.dumps(point), flush=True)

    def save():
        path = os.path.join(args.out, "checkpoint.pt")
        torch.save(
            {
                "config": c.__dict__,
                "model": model.state_dict(),
                "curve": curve,
                "args": vars(args),
                "parameters": n_params,
                "sizes": {k: len(v) for k, v in held.items()},
            },
            path + ".new",
        )
        os.replace(path + ".new", path)

    while True:
        frac = (time.time() - begin) / (args.minutes * 60)
        if frac >= 1:
            break
        is_text = [rng.random() < args.text_share for _ in range(args.batch)]
        rows = [text.row(rng, args.length, args.text_weight) if x else chats.row(args.length) for x in is_text]
        ids, start, target, weight = assemble(rows, args.length)
        total, ce = model.loss(ids, start, target, weight)
        norm = float(weight.sum())
        (total / norm).backward()
        size = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in params))
        if size > 1:
            for p in params:
                p.grad.mul_(1 / size)
        opt.step(args.peak * schedule(frac))
        step += 1
        tokens += int(ids.numel())
        w = weight.view(-1)[weight.view(-1) > 0]
        for name, value in (("text", args.text_weight), ("chat", 1.0)):
            if (w == value).any():
                mean[name].append(float(ce[w == value].mean()))
        if step % 20 == 0:
            print(
                "%.1f min step %d lr %.2f text %.3f answer %.3f grad %.2f tok/s %.0f"
                % (
                    (time.time() - begin) / 60,
                    step,
                    schedule(frac),
                    mean["text"][-1] if mean["text"] else 0,
                    mean["chat"][-1] if mean["chat"] else 0,
                    size,
                    tokens / (time.time() - begin),
                ),
                flush=True,
            )
        if time.time() - last_save > args.save_every:
            report(False)
            save()
            last_save = time.time()
    report(True)
    save()


if __name__ == "__main__":
    main()
