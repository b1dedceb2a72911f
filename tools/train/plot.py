#!/usr/bin/env python3
"""Draw training.json: training losses, held-out bits per byte, and answers right on wordings never trained on."""

import argparse
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("training", help="training.json")
    ap.add_argument("image", help="PNG to write")
    args = ap.parse_args()
    with open(args.training) as f:
        training = json.load(f)
    curve = training["curve"]
    ends = {phase["until_step"] for phase in training["phases"][:-1]}
    x = [p["tokens"] / 1e6 for p in curve]
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.8))
    left.plot(x, [p["train_text_loss"] for p in curve], "o-", label="plain text (training)")
    left.plot(x, [p["train_answer_loss"] for p in curve], "o-", label="answers (training)")
    left.set_ylabel("nats a token")
    middle.plot(x, [p["held_out_bpb"] for p in curve], "o-", label="plain text (held out)")
    middle.set_ylabel("bits per byte")
    for key in curve[-1]["accuracy"]:
        right.plot(x, [100 * p["accuracy"][key] for p in curve], "o-", label=key)
    right.set_ylabel("% exact answers, held-out wording")
    for ax in (left, middle, right):
        ax.set_xlabel("million tokens")
        ax.set_ylim(bottom=0)
        for point in curve:
            if point["step"] in ends:
                ax.axvline(point["tokens"] / 1e6, color="grey", linestyle=":")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    fig.tight_layout()
    fig.savefig(args.image, dpi=110)


if __name__ == "__main__":
    main()
