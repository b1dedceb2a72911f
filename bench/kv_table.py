#!/usr/bin/env python3
"""KV bytes per token and sessions that fit, measured through /metrics on a running daemon, for SmolLM2-135M's cache shape (30 layers, 3 KV heads of 64).

    TELLERD=path/to/tellerd bench/kv_table.py [--kv-cache-bytes 64M] [--tokens 512]

The models are small random ones: the cache depends on layers, KV heads and head size alone.  For each value layout and key type a daemon gets the same
kv-cache-bytes, many clients start a generation over prompts of --tokens different tokens, and the most sequences that ran at once (none preempted) are read
from tellerd_sequences_running.  Prints a Markdown table beside the formula (docs/kv-cache.md).
"""
import argparse
import os
import sys
import tempfile
import threading
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "blackbox"), os.path.join(ROOT, "tools")]
os.environ.setdefault("SRCDIR", ROOT)

import harness  # noqa: E402
import make_models  # noqa: E402
from lib import tiny_specs  # noqa: E402

LAYERS, HEADS, KV_HEADS, HEAD = 30, 9, 3, 64
LAYOUTS = [("standard", LAYERS), ("last third keys only", 20), ("last half keys only", 15)]
PLATEAU_STEPS = 12  # nobody new was admitted in so many steps: the pool is full
BYTES = {"bf16": 2.0, "int8": 34 / 32}  # int8: 32 numbers and one f16 scale


def write(folder, with_values):
    spec = tiny_specs.make_spec(f"shape-{with_values}", "llama",
                                {"L": LAYERS, "C": 64, "H": HEADS, "K": KV_HEADS, "D": HEAD, "F": 64, "context": 2048,
                                 "value": "r" * with_values + "b" * (LAYERS - with_values)})
    return str(make_models.write_model(folder, spec)[0])


def sessions(daemon, n_tokens, n_clients):
    """Most sequences at once while n_clients want to generate; clients hold their place until all who fit have started."""
    stop = threading.Event()

    def client(i):
        prompt = [(i * 31 + t * 7 + t * t) % 250 for t in range(n_tokens)]
        stream = daemon.stream("/v1/completions", {"prompt": prompt, "max_tokens": 1000, "ignore_eos": True})
        try:
            stream.begin()
            while not stop.is_set() and stream.answer.read1(4096):
                pass
        except OSError:
            pass
        stream.close()

    threads = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(n_clients)]
    for t in threads:
        t.start()
    most, last_growth = 0, 0.0
    while daemon.metric("tellerd_preemptions_total") == 0:
        now, steps = int(daemon.metric("tellerd_sequences_running")), daemon.metric("tellerd_steps_total")
        if now > most or now == 0:
            most, last_growth = max(most, now), steps
        elif steps - last_growth > PLATEAU_STEPS:
            break
        time.sleep(0.02)
    stop.set()
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kv-cache-bytes", default="64M")
    parser.add_argument("--tokens", type=int, default=512, help="prompt tokens of a session")
    args = parser.parse_args()
    print(f"kv-cache-bytes {args.kv_cache_bytes}, sessions of {args.tokens} prompt tokens, blocks of 16\n")
    print("| values | keys | formula, bytes/token | measured | sessions |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for title, with_values in LAYOUTS:
            model = write(folder, with_values)
            for key in ("bf16", "int8"):
                row = KV_HEADS * HEAD
                formula = LAYERS * row * BYTES[key] + with_values * row * 2 + (4 if with_values < LAYERS else 0)
                with harness.Daemon(model, "--kv-type-k", key, "--kv-cache-bytes", args.kv_cache_bytes, "--max-sequences", "512",
                                    "--max-batch-tokens", "2048", "--drain-timeout", "0s") as daemon:
                    measured = daemon.metric("tellerd_kv_bytes_per_token")
                    n = sessions(daemon, args.tokens, 140)
                print(f"| {title} | {key} | {formula:g} | {measured:g} | {n} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
