#!/usr/bin/env python3
"""The tools that measure: what bench/load counts is what the server did; bench/compare.py renders what it kept."""
import glob
import json
import os
import subprocess
import sys
import tempfile

from harness import BUILDDIR, SRCDIR, Daemon, run_tests

LOAD = os.path.join(BUILDDIR, "bench", "load")
MODEL = sorted(glob.glob(os.path.join(SRCDIR, "models", "*.gguf")))[0]


def load(*arguments):
    done = subprocess.run([LOAD, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_each_level_counts_what_the_server_did():
    with Daemon(MODEL) as d:
        for endpoint in ("completions", "chat"):
            before = d.metric("tellerd_generation_tokens_total")
            code, rows, _ = load("--url", f"http://127.0.0.1:{d.port}", "--concurrency", "1,3", "--requests", 6,
                                 "--prompt-tokens", 4, "--max-tokens", 5, "--endpoint", endpoint)
            assert code == 0 and [r["concurrency"] for r in rows] == [1, 3], rows
            for r in rows:
                assert r["ok"] == 6 and r["errors"] == {}, r
                assert r["completion_tokens"] == 30 and r["prompt_tokens"] >= 6 * 4 and 6 <= r["text_events"] <= 30, r
                assert r["gen_tok_s"] > 0 and r["ttft_ms"]["p50"] <= r["ttft_ms"]["p99"] <= r["ttft_ms"]["max"], r
            assert d.metric("tellerd_generation_tokens_total") - before == 60


def test_errors_are_counted_by_kind_and_fail_the_run():
    with Daemon(MODEL) as d:
        code, rows, _ = load("--url", f"http://127.0.0.1:{d.port}", "--requests", 2, "--prompt-tokens", 4, "--model", "nope")
        assert code == 1 and rows[0]["ok"] == 0, rows
        assert [n for n in rows[0]["errors"].values()] == [2] and "404" in next(iter(rows[0]["errors"])), rows


def test_a_server_that_is_not_there_is_an_error_not_a_hang():
    code, rows, _ = load("--url", "http://127.0.0.1:1", "--requests", 2, "--time-limit", 5)
    assert code == 1 and rows[0]["ok"] == 0 and sum(rows[0]["errors"].values()) == 2, rows


def test_only_the_loopback_is_loaded():
    code, rows, stderr = load("--url", "http://192.0.2.1:80")
    assert code == 2 and rows == [] and "loopback" in stderr, stderr


def test_comparisons_are_rendered_pair_by_pair():
    pairs = [{"ours": {"tok_s@16": 30.0}, "peer": {"tok_s@16": 10.0}}, {"ours": {"tok_s@16": 40.0}, "peer": {"tok_s@16": 10.0}},
             {"ours": {"tok_s@16": 20.0}, "peer": {"tok_s@16": 20.0}}]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"label": "X", "date": "D", "threads": 2, "pairs": pairs}, f)
        f.flush()
        out = subprocess.run([sys.executable, os.path.join(SRCDIR, "bench", "compare.py"), "--render", f.name],
                             capture_output=True, text=True, check=True).stdout
    assert "| tok_s@16 | 30 | 10 | 3.00 (1.00 - 4.00) |" in out, out


run_tests(globals())
