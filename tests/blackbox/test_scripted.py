#!/usr/bin/env python3
"""Known tokens, slow and failing steps: text hold-back, stop strings, cancel in every state, failure isolation, drain, health, watchdog."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import time

import harness
from harness import BUILDDIR, Daemon, parallel, run_tests, tiny_model, wait_for

MODEL = tiny_model("bank-third")
harness.TELLERD = os.path.join(BUILDDIR, "tests", "support", "scripted_tellerd")

with Daemon(MODEL) as _d:
    BYTES = {b: _d.post("/tokenize", {"prompt": chr(b)}).json["tokens"][0] for b in range(33, 127)}
    _ids = _d.post("/tokenize", {"prompt": "\U0001f600\u6b6a"}).json["tokens"]
    EMOJI, CJK = _ids[:4], _ids[4:7]
    _text = _d.post("/tokenize", {"prompt": "\u00ff\u00c0\u0080\u00e0\u00af\u00ed\u00f4\u0090"}).json
    N_CTX = _d.get("/v1/models").json["data"][0]["max_model_len"]
    EOS = _d.post("/tokenize", {"prompt": "<|im_end|>"}).json["tokens"]


def ids(text):
    return [BYTES[ord(c)] for c in text]


def daemon(script, *args, **kwargs):
    env = dict(kwargs.pop("env", {}), SCRIPTED_TELLERD=json.dumps(script))
    return Daemon(MODEL, *args, env=env, **kwargs)


PACE = {"kind": "delay", "ms": 8}  # so that each token gets a turn of the loop


def emit(*pairs):
    return {"faults": [PACE], "emit": [[ids(prompt), output if isinstance(output, list) else ids(output)] for prompt, output in pairs]}


def both(d, prompt, **fields):
    """The text of a greedy completion, streamed and whole, which must agree; with the finish reason."""
    whole = d.complete(ids(prompt), **fields).json["choices"][0]
    stream = d.stream("/v1/completions", dict(prompt=ids(prompt), temperature=0, **fields))
    text, reason, deltas = "", None, 0
    for chunk in stream.chunks():
        choice = chunk["choices"][0]
        text += choice["text"]
        deltas += bool(choice["text"])
        reason = choice["finish_reason"] or reason
    assert (text, reason) == (whole["text"], whole["finish_reason"]), (text, reason, whole)
    return text, reason, deltas


def test_characters_split_over_tokens_come_out_whole():
    with daemon(emit(("a", EMOJI + CJK + ids("x")), ("b", EMOJI[:2]))) as d:
        assert both(d, "a", max_tokens=20) == ("\U0001f600\u6b6ax", "stop", 3)
        assert both(d, "b", max_tokens=2)[:2] == ("\ufffd", "length")
        entries = d.complete(ids("a"), max_tokens=20, logprobs=1).json["choices"][0]["logprobs"]
        assert len(entries["tokens"]) == 9


def test_stop_strings_over_tokens_and_their_hold_back():
    with daemon(emit(("a", "ABCDEFGHIJ"), ("b", "Mars?!x"), ("c", "xxabcd"), ("d", "xabz"))) as d:
        assert both(d, "a", max_tokens=20, stop=["DEF"])[:2] == ("ABC", "stop")
        assert both(d, "b", max_tokens=5, stop=["?!"])[:2] == ("Mars?", "length")
        assert both(d, "b", max_tokens=20, stop=["?!"])[:2] == ("Mars", "stop")
        assert both(d, "c", max_tokens=20, stop=["bcd", "ab"])[:2] == ("xx", "stop")
        assert both(d, "d", max_tokens=20, stop=["abc", "b"])[:2] == ("xa", "stop")
        assert both(d, "a", max_tokens=20, stop=["Z" * 20]) == ("ABCDEFGHIJ", "stop", 10)
        usage = d.complete(ids("a"), max_tokens=20, stop=["DEF"]).json["usage"]
        assert usage["completion_tokens"] == 6, usage
        d.wait_idle()
        assert d.metric("tellerd_requests_running") == 0


def test_silent_connections_and_a_long_queue_change_nothing_for_health():
    script = {"faults": [{"kind": "delay", "ms": 4}], "n_blocks": 64, "n_context": 128}
    silent, queued = 600, 200
    with daemon(script, "--max-sequences", "4", "--max-queued", "256", "--header-timeout", "10m") as d:
        def threads():
            return len(os.listdir(f"/proc/{d.process.pid}/task"))
        before = threads()
        held = [d.connect() for _ in range(silent)]
        streams = [d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 5, "ignore_eos": True}) for _ in range(queued)]
        wait_for(lambda: d.metric("tellerd_requests_waiting") > queued / 2, "a queue")
        while d.metric("tellerd_requests_waiting") > 0:
            assert d.get("/health").status == 200
            assert threads() == before
        for s in streams:
            assert sum(1 for chunk in s.chunks() if chunk["choices"][0]["text"]) > 0
            s.close()
        for s in held:
            s.close()
        assert threads() == before


def test_a_stop_string_in_the_prompt_does_not_count():
    with daemon(emit(("xab", "cd"))) as d:
        assert both(d, "xab", max_tokens=10, stop=["abc"])[:2] == ("cd", "stop")


SLOW = {"faults": [{"kind": "delay", "ms": 30}], "n_blocks": 40, "block_size": 16, "n_context": 512}


def blocks_used(d):
    return sum(v for k, v in d.metrics().items() if k.startswith("tellerd_kv_blocks{") and 'state="used"' in k)


def test_a_client_that_leaves_frees_its_blocks_in_every_state():
    with daemon(SLOW, "--max-batch-tokens", "32", "--max-sequences", "1") as d:
        base = blocks_used(d)
        # streaming; by FIN, then by RST
        for reset in (False, True):
            s = d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 400, "ignore_eos": True})
            events = s.events()
            for _ in range(3):
                next(events)
            assert blocks_used(d) > base
            s.close(reset)
            wait_for(lambda: blocks_used(d) == base and d.metric("tellerd_requests_running") == 0, "blocks back after a stream", 5)
        # not streaming
        with d.connect() as s:
            body = json.dumps({"prompt": ids("abd"), "max_tokens": 400, "ignore_eos": True}).encode()
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            wait_for(lambda: d.metric("tellerd_requests_running") == 1, "a running request", 5)
        wait_for(lambda: blocks_used(d) == base and d.metric("tellerd_requests_running") == 0, "blocks back after a whole request", 5)
        # in prefill: 400 tokens in chunks of 32
        s = d.stream("/v1/completions", {"prompt": ids("abcdefgh") * 50, "max_tokens": 5})
        wait_for(lambda: d.metric("tellerd_prefill_tokens_total") > 0 and d.metric("tellerd_requests_running") == 1, "prefill", 5)
        s.close()
        wait_for(lambda: blocks_used(d) == base and d.metric("tellerd_requests_running") == 0, "blocks back after prefill", 5)
        # queued: never runs
        a = d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 300, "ignore_eos": True})
        next(a.events())
        prompt_tokens = d.metric("tellerd_prompt_tokens_total")
        b = d.stream("/v1/completions", {"prompt": ids("zyxw") * 9, "max_tokens": 5})
        wait_for(lambda: d.metric("tellerd_requests_waiting") == 1, "a waiting request", 5)
        b.close()
        wait_for(lambda: d.metric("tellerd_requests_waiting") == 0, "the queue to be empty", 5)
        a.close()
        d.wait_idle()
        assert d.metric("tellerd_prompt_tokens_total") == prompt_tokens
        assert blocks_used(d) == base


def test_two_hundred_leaving_clients_leak_nothing():
    with daemon({"n_blocks": 60, "faults": [{"kind": "delay", "ms": 2}]}, "--max-sequences", "4", "--max-queued", "500") as d:
        before = d.text(ids("probe"), max_tokens=8)
        d.wait_idle()
        fds = d.metric("process_open_fds")
        for i in range(200):
            s = d.connect()
            body = json.dumps({"prompt": ids("ab") * (1 + i % 40), "max_tokens": 1 + i % 9, "stream": bool(i % 2), "ignore_eos": True}).encode()
            data = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            s.sendall(data[:len(data) - (i % 3 == 0) * 5])
            if i % 4 == 0:
                time.sleep(0.003 * (i % 5))
            s.close()
        wait_for(lambda: d.metric("tellerd_requests_running") == 0 and d.metric("tellerd_requests_waiting") == 0, "rest", 20)
        wait_for(lambda: d.metric("process_open_fds") <= fds, "descriptors", 5)
        assert blocks_used(d) == 0
        assert d.text(ids("probe"), max_tokens=8) == before
        m = d.metrics()
        ended = sum(v for k, v in m.items() if k.startswith("tellerd_requests_finished_total"))
        assert d.metric("tellerd_requests_accepted_total") == ended, (d.metric("tellerd_requests_accepted_total"), ended)


def test_a_poisoned_row_fails_its_own_request_only():
    poison = ids("!")[0]
    with daemon({"faults": [{"kind": "nan", "token": poison}], "follow": []}, "--max-sequences", "8") as d:
        alone = d.text(ids("abc"), max_tokens=12)
        answers = parallel([lambda: d.complete(ids("abc"), max_tokens=12), lambda: d.complete(ids("ab!"), max_tokens=12)] * 3)
        for i, answer in enumerate(answers):
            if i % 2 == 0:
                assert answer.status == 200 and answer.json["choices"][0]["text"] == alone
            else:
                assert answer.status == 500 and answer.error["code"] == "numeric_error", answer
        assert d.get("/health").status == 200


def test_an_error_inside_a_stream_sends_one_event_and_cuts():
    with daemon({"faults": [{"kind": "internal", "step": 4, "times": 1}, {"kind": "delay", "ms": 20}]}) as d:
        s = d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 50, "ignore_eos": True})
        events = []
        try:
            for e in s.events():
                events.append(e)
            cut = False
        except Exception as e:  # IncompleteRead: no terminating chunk
            cut = type(e).__name__ == "IncompleteRead"
        assert cut and "[DONE]" not in events
        assert json.loads(events[-1])["error"]["type"] == "server_error" and len(events) >= 3, events
        assert d.complete(ids("abc"), max_tokens=3).status == 200, "the engine goes on"


def test_an_engine_failure_turns_health_red_and_ends_the_process():
    d = daemon({"faults": [{"kind": "engine", "step": 3}]})
    answer = d.complete(ids("abc"), max_tokens=50, ignore_eos=True)
    assert answer.status == 503 and answer.error["code"] == "engine_failed", answer
    assert d.process.wait(10) == 1
    d.log_file.close()
    d.folder.cleanup()


def test_queue_full_is_answered_at_once():
    with daemon(SLOW, "--max-sequences", "1", "--max-queued", "4") as d:
        streams = [d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 60, "ignore_eos": True})]
        next(streams[0].events())
        streams += [d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 2}) for _ in range(4)]
        wait_for(lambda: d.metric("tellerd_requests_waiting") == 4, "four waiting", 5)
        answer = d.complete(ids("abc"))
        assert answer.status == 429 and answer.error["code"] == "rate_limit_exceeded" and int(answer.headers["retry-after"]) >= 1
        for s in streams:
            s.text()
        d.wait_idle()


def test_a_request_that_waits_too_long_is_told_so():
    with daemon(SLOW, "--max-sequences", "1", "--queue-timeout", "300ms") as d:
        a = d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 100, "ignore_eos": True})
        next(a.events())
        answer = d.complete(ids("abc"))
        assert answer.status == 503 and answer.error["code"] == "queue_timeout", answer
        assert answer.headers["retry-after"] == "1"
        a.close()


def test_a_client_that_does_not_read_is_cut_and_costs_nobody_else():
    script = {"n_blocks": 600, "n_context": 4096, "follow": [[BYTES[97], BYTES[97]]]}
    # a unix socket: for TCP the kernel may keep megabytes
    path = os.path.join(tempfile.mkdtemp(prefix="tellerd-sock-"), "s")
    with daemon(script, "--max-output-buffer", "64K", "--max-sequences", "16", listen=f"unix:{path}") as d:
        stuck = []
        for _ in range(4):
            s = d.connect()
            body = json.dumps({"prompt": ids("a"), "max_tokens": 4000, "ignore_eos": True, "stream": True, "logprobs": 5}).encode()
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            stuck.append(s)
        assert d.complete(ids("bc"), max_tokens=5).status == 200
        wait_for(lambda: d.metric("tellerd_requests_running") == 0, "slow readers to be cut", 30)
        assert "slow_reader" in d.log()
        for s in stuck:
            s.close()


def test_a_turn_larger_than_the_output_buffer_is_no_slow_reader():
    with daemon({"n_blocks": 400}, "--max-output-buffer", "16K", "--max-sequences", "128") as d:
        s = d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 4, "n": 128, "logprobs": 5, "ignore_eos": True})
        seen = {}
        for chunk in s.chunks():
            choice = chunk["choices"][0]
            seen[choice["index"]] = seen.get(choice["index"], 0) + len((choice["logprobs"] or {"tokens": []})["tokens"])
        assert seen == {i: 4 for i in range(128)}, seen


def test_a_key_withdrawn_while_the_body_comes_opens_nothing():
    with tempfile.NamedTemporaryFile("w", suffix=".keys", delete=False) as f:
        f.write("alice alices-key-0123456789\n")
    os.chmod(f.name, 0o600)
    with daemon({}, "--api-keys-file", f.name) as d:
        alice = {"Authorization": "Bearer alices-key-0123456789"}
        body = json.dumps({"prompt": ids("abc"), "max_tokens": 2}).encode()
        with d.connect() as s:
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alices-key-0123456789\r\n"
                      b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
            assert d.get("/v1/models", alice).status == 200
            with open(f.name, "w") as keys:
                keys.write("bob bobs-key-0123456789\n")
            d.process.send_signal(signal.SIGHUP)
            wait_for(lambda: d.get("/v1/models", alice).status == 401, "the new keys")
            s.sendall(body[5:])
            assert s.recv(65536).startswith(b"HTTP/1.1 401")
    os.unlink(f.name)


def test_long_silence_brings_keep_alive_comments():
    with daemon({"faults": [{"kind": "delay", "ms": 1200, "step": 0}]}, "--sse-keepalive", "300ms") as d:
        s = d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 3})
        s.begin()
        raw = b""
        while True:
            got = s.answer.read1(65536)
            if not got:
                break
            raw += got
        assert raw.startswith(b": keep-alive\n\n") and raw.endswith(b"data: [DONE]\n\n"), raw[:200]


def test_health_while_loading_and_after_a_failed_load():
    with daemon({"load_ms": 600}, ready=False) as d:
        assert d.get("/livez").status == 200
        answer = d.get("/health")
        assert answer.status == 503 and answer.error["code"] == "loading"
        for path in ("/v1/models", "/readyz"):
            assert d.get(path).status == 503
        chat = d.chat("x")
        assert chat.status == 503 and "retry-after" in chat.headers
        d.wait_ready()
        assert d.get("/health").status == 200 and d.get("/v1/models").status == 200
    d = daemon({"fail_load": "tensor x is damaged", "load_ms": 300}, ready=False)
    assert d.process.wait(10) == 78 and "tensor x is damaged" in d.log()
    d.log_file.close()
    d.folder.cleanup()


def test_sigterm_while_loading_does_not_wait_for_the_model():
    d = daemon({"load_ms": 3600000}, ready=False)
    assert d.get("/health").status == 503
    started = time.monotonic()
    assert d.stop() == 0 and time.monotonic() - started < 20
    d.log_file.close()
    d.folder.cleanup()


def test_sigterm_lets_running_requests_end_and_refuses_queued_ones():
    with daemon(SLOW, "--max-sequences", "2", "--drain-timeout", "20s") as d:
        running = [d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 20, "ignore_eos": True}) for _ in range(2)]
        iterators = [s.events() for s in running]
        for i in iterators:
            next(i)
        queued = d.connect()
        body = json.dumps({"prompt": ids("abc"), "max_tokens": 2}).encode()
        queued.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        wait_for(lambda: d.metric("tellerd_requests_waiting") == 1, "a queued request", 5)
        kept = d.connect()
        d.process.send_signal(signal.SIGTERM)
        assert queued.recv(65536).startswith(b"HTTP/1.1 503")
        for i in iterators:
            assert list(i)[-1] == "[DONE]"
        assert d.process.wait(10) == 0
        kept.close()


def test_the_drain_limit_and_a_second_signal_end_it():
    for second in (False, True):
        d = daemon(SLOW, "--drain-timeout", "500ms" if not second else "60s")
        s = d.stream("/v1/completions", {"prompt": ids("abc"), "max_tokens": 400, "ignore_eos": True})
        events = s.events()
        next(events)
        d.process.send_signal(signal.SIGTERM)
        if second:
            time.sleep(0.2)
            d.process.send_signal(signal.SIGTERM)
        seen = []
        try:
            for e in events:
                seen.append(e)
        except Exception as e:
            assert type(e).__name__ in ("IncompleteRead", "ConnectionResetError"), e
        assert json.loads(seen[-1])["error"]["code"] == "shutting_down", seen[-1]
        assert d.process.wait(10) == 0
        d.log_file.close()
        d.folder.cleanup()


def notify_socket():
    folder = tempfile.mkdtemp(prefix="tellerd-notify-")
    path = os.path.join(folder, "notify")
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(path)
    s.settimeout(harness.WAIT_S)
    return s, path


def test_the_service_manager_hears_of_loading_ready_and_stopping():
    s, path = notify_socket()
    d = daemon({"load_ms": 300}, env={"NOTIFY_SOCKET": path}, ready=False)
    seen = []
    while not any("READY=1" in m for m in seen):
        seen.append(s.recv(4096).decode())
    assert any("EXTEND_TIMEOUT_USEC=" in m for m in seen) and any("STATUS=loading" in m for m in seen), seen
    assert d.get("/health").status == 200
    d.process.send_signal(signal.SIGTERM)
    assert "STOPPING=1" in s.recv(4096).decode()
    assert d.process.wait(10) == 0
    d.log_file.close()
    d.folder.cleanup()


def test_the_watchdog_is_fed_by_progress_only():
    s, path = notify_socket()
    env = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"}
    d = daemon({"faults": [{"kind": "freeze", "token": BYTES[33], "times": 1, "ms": 4000},
                           {"kind": "delay", "token": BYTES[35], "times": 1, "ms": 3000}]}, env=env)

    def pings(seconds):
        n, end = 0, time.monotonic() + seconds
        s.settimeout(0.1)
        while time.monotonic() < end:
            try:
                n += "WATCHDOG=1" in s.recv(4096).decode()
            except (TimeoutError, socket.timeout):
                pass
        return n

    assert pings(2) >= 2, "idle"
    slow = d.stream("/v1/completions", {"prompt": ids("a#"), "max_tokens": 2})
    assert pings(2.5) >= 2, "a long step that progresses"
    slow.text()
    stuck = d.stream("/v1/completions", {"prompt": ids("a!"), "max_tokens": 2})
    pings(1.5)
    assert pings(2) == 0, "a frozen engine must not feed the watchdog"
    stuck.text()
    assert d.stop() == 0
    d.log_file.close()
    d.folder.cleanup()


def test_reload_applies_good_configurations_and_keeps_the_old_one_otherwise():
    folder = tempfile.mkdtemp(prefix="tellerd-conf-")
    path = os.path.join(folder, "tellerd.conf")
    keys = os.path.join(folder, "keys")
    with open(path, "w") as f:
        f.write("[limits]\nmax-queued = 3\n")
    with daemon({}, "--config", path, control=True) as d:
        assert d.get("/v1/models").status == 200
        with open(keys, "w") as f:
            f.write("alice some-long-api-key-value\n")
        os.chmod(keys, 0o600)
        with open(path, "w") as f:
            f.write(f"[auth]\napi-keys-file = {keys}\n")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.get("/v1/models").status == 401, "the new key to be asked for", 5)
        assert d.get("/v1/models", {"Authorization": "Bearer some-long-api-key-value"}).status == 200
        with open(path, "w") as f:
            f.write("[limits]\nmax-queued = many\n")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reload.failed" in d.log(), "the refusal", 5)
        assert d.get("/v1/models", {"Authorization": "Bearer some-long-api-key-value"}).status == 200
        assert d.metric("tellerd_config_last_reload_successful") == 0


def test_unix_sockets_and_stale_ones():
    folder = tempfile.mkdtemp(prefix="tellerd-sock-")
    path = os.path.join(folder, "s")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    with daemon({}, listen=f"unix:{path}") as d:
        assert d.complete(ids("abc"), max_tokens=2).status == 200
        assert os.stat(path).st_mode & 0o777 == 0o660
        second = subprocess.run(d.command[:3] + ["--listen", f"unix:{path}"], capture_output=True, text=True,
                                env=dict(os.environ, SCRIPTED_TELLERD="{}"))
        assert second.returncode == 78 and "in use" in second.stderr, second
    assert not os.path.exists(path)
    with open(path, "w") as f:
        f.write("precious")
    refused = subprocess.run([harness.TELLERD, "--model", MODEL, "--listen", f"unix:{path}"], capture_output=True, text=True)
    assert refused.returncode == 78 and open(path).read() == "precious"


def test_addresses_v4_v6_and_bad_ones():
    for listen in ("[::1]:0", "localhost:0", "127.0.0.1:0"):
        with daemon({}, listen=listen, ready=False) as d:
            assert d.port
    with daemon({}) as d:
        taken = subprocess.run([harness.TELLERD, "--model", MODEL, "--listen", f"127.0.0.1:{d.port}"], capture_output=True, text=True)
        assert taken.returncode == 78 and "in use" in taken.stderr, taken
    outside = subprocess.run([harness.TELLERD, "--model", MODEL, "--listen", "0.0.0.0:0"], capture_output=True, text=True)
    assert outside.returncode == 78 and "insecure" in outside.stderr, outside
    for bad in ("nonsense", "127.0.0.1:99999", "unix:", "unix:/" + "x" * 120, "host.invalid:80"):
        answer = subprocess.run([harness.TELLERD, "--model", MODEL, "--listen", bad], capture_output=True, text=True)
        assert answer.returncode == 78 and answer.stderr, bad


def test_out_of_descriptors_it_neither_spins_nor_dies():
    import resource
    command_limit = (40, 40)
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, old[1]))
    try:
        d = Daemon(MODEL, env={"SCRIPTED_TELLERD": "{}"}, ready=False)
        subprocess.run(["prlimit", f"--pid={d.process.pid}", f"--nofile={command_limit[0]}:{command_limit[1]}"], check=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)
    with d:
        d.wait_ready()
        idle = []
        for _ in range(80):
            try:
                idle.append(d.connect(2))
            except OSError:
                pass
        with open(f"/proc/{d.process.pid}/stat") as f:
            before = sum(int(x) for x in f.read().split()[13:15])
        time.sleep(1)
        with open(f"/proc/{d.process.pid}/stat") as f:
            spent = sum(int(x) for x in f.read().split()[13:15]) - before
        assert spent < 50, f"{spent} of 100 ticks spent while out of descriptors"
        for s in idle:
            s.close()
        wait_for(lambda: d.get("/health").status == 200, "recovery", 10)


if __name__ == "__main__":
    run_tests(dict(globals()))
