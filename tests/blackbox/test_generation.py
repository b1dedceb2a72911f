#!/usr/bin/env python3
"""The same text whatever else runs: batch, chunk, threads, prefix cache, preemption, cache view; and the KV bytes per token."""
import re

from harness import Daemon, parallel, run_tests, tiny_model

MODELS = [tiny_model(m) for m in ("bank-third", "nanochat-bank", "bank-sink")]
PROMPT = "the quick brown fox jumps over the lazy dog and the "


def requests(d):
    """A greedy and a seeded completion and a chat, as functions; ignore_eos so that they have their length."""
    return [lambda: d.text(PROMPT, max_tokens=24, ignore_eos=True),
            lambda: d.text(PROMPT, max_tokens=24, ignore_eos=True, temperature=0.9, top_p=0.95, seed=7),
            lambda: d.chat("hello there", max_tokens=24, ignore_eos=True).json["choices"][0]["message"]["content"]]


def others(d, n, n_tokens=16):
    return [lambda i=i: d.text(f"number {i} " * (1 + i % 7), max_tokens=n_tokens + i, ignore_eos=True, temperature=0.5 * (i % 3), seed=i)
            for i in range(n)]


def test_the_text_is_the_same_alone_among_31_others_in_any_chunks_with_1_and_2_threads():
    for model in MODELS:
        expected = None
        for args in (("--threads", "1", "--max-batch-tokens", "16"), ("--threads", "2", "--max-batch-tokens", "512"),
                     ("--threads", "2", "--prefill-chunk", "16", "--prefix-cache=no"), ("--threads", "1", "--block-size", "32")):
            with Daemon(model, "--kv-cache-bytes", "64M", *args) as d:
                alone = [r() for r in requests(d)]
                expected = expected or alone
                assert alone == expected, (model, args)
                crowd = parallel(requests(d) + others(d, 29))
                assert crowd[:3] == expected, (model, args)
                assert [r() for r in requests(d)] == expected, "after a prefix hit"


def test_each_kernel_set_gives_the_same_logprobs_within_rounding():
    seen = {}
    for name in ("portable", "avx2", "avx512"):
        try:
            with Daemon(MODELS[0], "--cpu-activations", "f32", "--kv-type-k", "f32", "--kv-type-v", "f32", env={"TELLERD_CPU_PATH": name}) as d:
                assert re.search(rf"\b{name}, \d+ thread", d.log()), d.log()
                entries = d.complete(PROMPT * 3, max_tokens=1, prompt_logprobs=0).json["choices"][0]["prompt_logprobs"]
                seen[name] = [next(iter(e.values()))["logprob"] for e in entries[1:]]
        except AssertionError as e:
            assert f"this machine or build has no {name} kernels" in str(e), e
    assert "portable" in seen and len(seen["portable"]) > 20
    for name, values in seen.items():
        worst = max(abs(a - b) for a, b in zip(seen["portable"], values, strict=True))
        assert worst < 1e-4, (name, worst)


def test_preempted_requests_end_as_undisturbed_ones():
    for model in MODELS:
        with Daemon(model, "--kv-cache-bytes", "64M") as d:
            jobs = others(d, 12, 200)
            alone = [j() for j in jobs]
            per_block = d.metric("tellerd_kv_bytes_per_token") * 16
        with Daemon(model, "--kv-cache-bytes", str(int(per_block * 24)), "--max-batch-tokens", "64") as d:
            assert parallel(others(d, 12, 200)) == alone  # two at once are too many for the pool, model
            assert d.metric("tellerd_preemptions_total") >= 1, "the pool was meant to be too small"
            d.wait_idle()
            assert sum(v for k, v in d.metrics().items() if k.startswith("tellerd_kv_blocks{") and 'state="used"' in k) == 0


def test_prompts_at_block_and_chunk_borders_with_and_without_the_cache():
    with Daemon(MODELS[0], "--kv-cache-bytes", "8M", "--max-batch-tokens", "32") as small, \
            Daemon(MODELS[0], "--kv-cache-bytes", "8M", "--prefix-cache=no") as whole:
        for n in (1, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65):
            prompt = [(7 * i + n) % 200 for i in range(n)]
            body = {"max_tokens": 6, "ignore_eos": True, "logprobs": 2, "return_token_ids": True}
            expected = whole.complete(prompt, **body).json["choices"][0]
            for _ in range(2):  # cold, then with the prefix cached
                answer = small.complete(prompt, **body).json
                assert answer["choices"][0]["token_ids"] == expected["token_ids"], n
                assert answer["choices"][0]["logprobs"] == expected["logprobs"], n
                assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] <= n - 1
        assert small.metric("tellerd_prefix_cache_hit_tokens_total") > 0


def test_cache_salts_keep_tenants_apart():
    with Daemon(MODELS[0], "--kv-cache-bytes", "8M") as d:
        prompt = PROMPT * 2
        for salt, cached in (("a", False), ("a", True), ("b", False), (None, False)):
            usage = d.complete(prompt, max_tokens=1, **({"cache_salt": salt} if salt else {})).json["usage"]
            assert (usage["prompt_tokens_details"]["cached_tokens"] > 0) == cached, salt


def test_a_prompt_that_fits_the_context_but_not_the_pool_is_refused_and_harms_nobody():
    with Daemon(MODELS[0]) as d:
        per_block = d.metric("tellerd_kv_bytes_per_token") * 16
    with Daemon(MODELS[0], "--kv-cache-bytes", str(int(per_block * 10))) as d:
        answer = d.complete([5] * 300, max_tokens=4)
        assert answer.status == 400 and answer.error["code"] == "context_length_exceeded", answer
        end = d.complete([5] * 100, max_tokens=500, ignore_eos=True).json
        assert end["choices"][0]["finish_reason"] == "length"
        assert d.complete("hi", max_tokens=2).status == 200


def test_kv_bytes_per_token_follow_the_formula():
    # K, V and ids of METHOD: bytes = sum over layers of K*D*(key bytes + value bytes where the layer has values) + 4 with a bank
    width = {"f32": 4, "bf16": 2, "int8": 34 / 32}
    kv = 2 * 32
    for name, layers, with_values in (("llama", 4, 4), ("bank-third", 6, 4), ("bank-half", 6, 3)):
        heads = 4 * 32 if name == "llama" else kv
        for k in ("bf16", "int8", "f32"):
            with Daemon(tiny_model(name), "--kv-type-k", k, "--kv-cache-bytes", "4M") as d:
                expected = layers * heads * width[k] + with_values * heads * 2 + (4 if with_values < layers else 0)
                assert d.metric("tellerd_kv_bytes_per_token") == expected, (name, k, d.metric("tellerd_kv_bytes_per_token"), expected)
                kinds = {re.search(r'kind="(\w+)"', s).group(1): v for s, v in d.metrics().items() if s.startswith("tellerd_kv_bytes{")}
                blocks = sum(v for s, v in d.metrics().items() if s.startswith("tellerd_kv_blocks{"))
                assert abs(sum(kinds.values()) - blocks * 16 * expected) < 1, (kinds, blocks)


def anonymous_mib(d):
    with open(f"/proc/{d.process.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon")) / 1024


def test_the_cache_takes_memory_with_use_or_at_start():
    with Daemon(MODELS[0], "--kv-cache-bytes", "256M") as d:
        idle = anonymous_mib(d)
    with Daemon(MODELS[0], "--kv-cache-bytes", "256M", "--kv-cache-prefault=yes") as d:
        assert anonymous_mib(d) - idle > 200, (idle, anonymous_mib(d))


if __name__ == "__main__":
    run_tests(dict(globals()))
