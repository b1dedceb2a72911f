#!/usr/bin/env python3
"""Real models through the client that people have: SmolLM2-135M-Instruct and the shipped model, with the Python openai package."""
import glob
import json
import os
import subprocess
import sys

import harness
from harness import SRCDIR, Daemon, Skip, parallel, run_tests

# Not "What is the capital of France?": on these 4-bit weights that one sits on the edge, and activations rounded to int8
# (ours and llama.cpp's alike) lead it elsewhere, word for word the same way; with --cpu-activations f32 it is Paris.
QUESTION = [{"role": "user", "content": "Name the capital of France."}]
SHIPPED = sorted(glob.glob(os.path.join(SRCDIR, "models", "*.gguf")))
# under a sanitizer or on a busy machine the big model is slow; the answers do not change
harness.WAIT_S = max(harness.WAIT_S, 400)  # 64 streams of a 135M model on two cores that others may use, too
STREAMS = int(os.environ.get("TELLERD_TEST_STREAMS", "64"))


def smollm2():
    fetch = subprocess.run([sys.executable, os.path.join(SRCDIR, "tools", "fetch_model.py"), "smollm2"], capture_output=True, text=True)
    if fetch.returncode != 0:
        raise Skip("SmolLM2 could not be fetched: " + fetch.stderr.strip().splitlines()[-1] if fetch.stderr.strip() else "fetch failed")
    return fetch.stdout.strip().splitlines()[-1]


def client(d):
    try:
        import openai
    except ImportError as e:
        raise Skip("the openai package is not installed") from e
    return openai.OpenAI(base_url=f"http://127.0.0.1:{d.port}/v1", api_key="none", timeout=harness.WAIT_S, max_retries=0)


def ask(c, model, stream, **fields):
    if not stream:
        return c.chat.completions.create(model=model, messages=QUESTION, temperature=0, **fields).choices[0].message.content
    return "".join(part.choices[0].delta.content or "" for part in
                   c.chat.completions.create(model=model, messages=QUESTION, temperature=0, stream=True, **fields) if part.choices)


def jobs(d, n, n_tokens):
    return [lambda i=i: d.text(f"Story number {i}: once upon a time ", max_tokens=n_tokens + i % 5, ignore_eos=True,
                               temperature=0.7 * (i % 2), seed=i) for i in range(n)]


def test_smollm2_answers_paris_alone_and_among_31_others_streaming_and_not():
    with Daemon(smollm2(), "--kv-cache-bytes", "256M") as d:
        import openai
        c = client(d)
        model = c.models.list().data[0].id
        alone = ask(c, model, False)
        assert "Paris" in alone, alone
        assert ask(c, model, True) == alone
        answers = parallel([lambda: ask(c, model, False), lambda: ask(c, model, True)] +
                           [lambda i=i: d.chat(f"Tell me about the number {i}", max_tokens=12) for i in range(30)])
        assert answers[0] == alone and answers[1] == alone, answers[:2]
        usage = c.chat.completions.create(model=model, messages=QUESTION, temperature=0).usage
        assert usage.prompt_tokens_details.cached_tokens > 0
        try:
            c.chat.completions.create(model="nope", messages=QUESTION)
            raise AssertionError("an unknown model was taken")
        except openai.NotFoundError as e:
            assert e.code == "model_not_found" and e.param == "model", e


def test_smollm2_streams_on_a_pool_that_forces_preemption_end_as_undisturbed_ones():
    n = STREAMS
    with Daemon(smollm2(), "--kv-cache-bytes", "512M", "--max-sequences", "64") as d:
        alone = parallel(jobs(d, n, 24))  # room for all: nobody is disturbed
        assert d.metric("tellerd_preemptions_total") == 0
        per_token = d.metric("tellerd_kv_bytes_per_token")
    with Daemon(smollm2(), "--kv-cache-bytes", str(int(per_token * 16 * n * 1.6)), "--max-sequences", "64") as d:
        assert parallel(jobs(d, n, 24)) == alone
        assert d.metric("tellerd_preemptions_total") >= 1
        d.wait_idle()
        assert sum(v for k, v in d.metrics().items() if k.startswith("tellerd_kv_blocks{") and 'state="used"' in k) == 0


def test_the_shipped_model_answers_and_survives_2000_requests_with_flat_memory():
    if not SHIPPED:
        raise AssertionError("no model under models/")
    with Daemon(SHIPPED[0]) as d:
        per_token = d.metric("tellerd_kv_bytes_per_token")
        alone = [j() for j in jobs(d, 64, 100)]
    with Daemon(SHIPPED[0], "--kv-cache-bytes", str(int(per_token * 16 * 40)), "--max-queued", "1000") as d:
        answer = d.chat("What does the ls command do?")
        text = answer.json["choices"][0]["message"]["content"]
        assert "list" in text and "director" in text, text
        assert parallel(jobs(d, 64, 100)) == alone  # seven blocks each: six at once are too many for the pool
        assert d.metric("tellerd_preemptions_total") >= 1

        def some(worker):
            for i in range(125):
                d.text(f"{worker} {i} What does the ls command do?", max_tokens=4)
        parallel([lambda w=w: some(w) for w in range(4)])
        before = d.metric("process_resident_memory_bytes")
        parallel([lambda w=w: some(w) for w in range(4, 16)])
        grown = d.metric("process_resident_memory_bytes") - before
        assert grown < 1 << 20, f"resident memory grew by {grown} bytes over 1500 requests"
        d.wait_idle()


def test_the_shipped_model_says_what_its_reference_says():
    expected = os.path.join(SRCDIR, "models", "expected.json")
    if not os.path.exists(expected):
        raise AssertionError("models/expected.json is missing")
    with open(expected) as f:
        cases = json.load(f)
    cases = cases["cases"] if isinstance(cases, dict) and "cases" in cases else cases
    with Daemon(SHIPPED[0], "--kv-type-k", "f32", "--kv-type-v", "f32") as d:
        wrong = []
        for case in cases:
            got = d.chat(case["prompt"], max_tokens=64).json["choices"][0]["message"]["content"]
            if got.strip() != case["answer"].strip():
                wrong.append((case["prompt"], got, case["answer"]))
        assert not wrong, wrong


if __name__ == "__main__":
    run_tests(dict(globals()))
