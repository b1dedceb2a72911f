#!/usr/bin/env python3
"""HTTP itself: framing, limits, keep-alive, pipelining, Expect, HEAD, OPTIONS, CORS, time-outs, sockets."""
import json
import os
import re
import resource
import signal
import socket
import tempfile
import time

from harness import Daemon, Skip, raw, run_tests, tiny_model, wait_for

MODEL = tiny_model("bank-third")
daemon = Daemon(MODEL, "--header-timeout", "1s", "--body-timeout", "1s", "--max-body-bytes", "64K", "--max-headers", "20",
                "--cors-origins", "https://app.example", "--kv-cache-bytes", "4M")
POST = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
BODY = b'{"prompt":"ab","max_tokens":2,"temperature":0}'


def post(body=BODY, extra=b""):
    return POST + extra + b"Content-Length: %d\r\n\r\n" % len(body) + body


def statuses(data):
    """Status codes of the responses in a byte string, by their status lines."""
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z]", data)]


def test_pipelined_requests_are_answered_in_order_in_one_segment_or_byte_by_byte():
    get = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    data = get + post() + get + b"GET /nope HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    out, closed = raw(daemon, data)
    assert statuses(out) == [200, 200, 200, 404] and closed, out
    assert out.find(b'"status":"ok"') < out.find(b"text_completion") < out.rfind(b'"status":"ok"'), out
    split, closed = raw(daemon, b"", pieces=[data[i:i + 1] for i in range(len(data))])
    assert statuses(split) == [200, 200, 200, 404] and closed, split


def test_a_stream_followed_by_a_pipelined_request():
    body = b'{"prompt":"ab","max_tokens":4,"stream":true,"temperature":0}'
    out, closed = raw(daemon, post(body) + b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert closed and b"data: [DONE]\n\n\r\n0\r\n\r\nHTTP/1.1 200 OK" in out, out[-600:]


def test_expect_100_continue_is_answered_at_once():
    with daemon.connect(5) as s:
        s.sendall(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        assert s.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        s.sendall(BODY)
        assert s.recv(65536).startswith(b"HTTP/1.1 200")
    out, closed = raw(daemon, POST + b"Expect: 100-continue\r\nContent-Length: 999999\r\n\r\n")
    assert statuses(out) == [413] and closed, out
    out, closed = raw(daemon, POST + b"Expect: foo\r\nContent-Length: 2\r\n\r\n{}")
    assert statuses(out) == [417] and closed, out
    out, closed = raw(daemon, post().replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Host", b"Expect: 100-continue\r\nHost"))
    assert statuses(out) == [200] and closed, out


def test_an_error_before_the_body_leaves_the_connection_in_step_or_closes_it():
    with daemon.connect(5) as s:
        s.sendall(b"POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n")
        for _ in range(20):
            s.sendall(b"GET /smuggled HTTP/1.1\r\n".ljust(1000, b"x"))
            time.sleep(0.002)
        s.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        out = b""
        while True:
            got = s.recv(65536)
            if not got:
                break
            out += got
    assert statuses(out) == [404, 200], out


def test_requests_that_parsers_disagree_about_are_refused_and_closed():
    smuggled = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    for head in (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n",
                 b"Content-Length: +5\r\n", b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: chunked, gzip\r\n",
                 b"X: a\r\n b\r\n", b"X : a\r\n", b"X: a\rb\r\n", b"Content-Length: 99999999999999999999\r\n"):
        out, closed = raw(daemon, POST + head + b"\r\n" + smuggled)
        assert statuses(out) == [400] and closed, (head, out)
    out, closed = raw(daemon, b"GET /livez\nHost: a\n\n" + smuggled)
    assert statuses(out) == [400] and closed, out


def test_body_limits_hold_with_length_and_chunked():
    def body(size):
        head = b'{"prompt":"ab","max_tokens":1,"user":"'
        return head + b"u" * (size - len(head) - 2) + b'"}'
    limit = 64 * 1024
    assert statuses(raw(daemon, post(body(limit), b"Connection: close\r\n"))[0]) == [200]
    assert statuses(raw(daemon, post(body(limit + 1)))[0]) == [413]
    chunked = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    for size, status in ((limit, 200), (limit + 1, 413)):
        data = body(size)
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + 5000]), data[i:i + 5000]) for i in range(0, size, 5000))
        out, _ = raw(daemon, chunked + chunks + b"0\r\n\r\n")
        assert statuses(out) == [status], out
        if status == 413:
            assert b'"code":"request_too_large"' in out


def test_head_limits():
    assert statuses(raw(daemon, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")[0]) == [414]
    assert statuses(raw(daemon, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 9000 + b"\r\n\r\n")[0]) == [431]
    assert statuses(raw(daemon, b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 20 + b"\r\n")[0]) == [431]
    assert statuses(raw(daemon, b"GET / HTTP/1.1\r\nHost: a\r\n" + (b"X: " + b"a" * 8000 + b"\r\n") * 9 + b"\r\n")[0]) == [431]


def test_slow_senders_are_timed_out_and_cost_nobody_else():
    slow = [daemon.connect(10) for _ in range(30)]
    for s in slow[:10]:
        s.sendall(b"GET /liv")
    for s in slow[10:20]:
        s.sendall(POST + b"Content-Length: 50\r\n\r\n{")
    assert daemon.get("/livez").status == 200
    for i, s in enumerate(slow):
        out = b""
        while True:
            got = s.recv(65536)
            if not got:
                break
            out += got
        s.close()
        assert statuses(out) == ([408] if i < 20 else []), (i, out)


def test_http_1_0_gets_no_chunks_and_closes_unless_asked():
    request = post().replace(b"HTTP/1.1", b"HTTP/1.0")
    out, closed = raw(daemon, request)
    assert statuses(out) == [200] and closed and b"Content-Length:" in out and b"chunked" not in out, out
    with daemon.connect(5) as s:
        for _ in range(2):
            s.sendall(request.replace(b"Host: a", b"Connection: keep-alive"))
            got = s.recv(65536)
            assert b"Connection: keep-alive" in got, got
    body = b'{"prompt":"ab","max_tokens":3,"stream":true}'
    out, closed = raw(daemon, post(body).replace(b"HTTP/1.1", b"HTTP/1.0"))
    head, text = out.split(b"\r\n\r\n", 1)
    assert closed and b"chunked" not in head and text.startswith(b"data: ") and text.endswith(b"data: [DONE]\n\n"), out


def test_head_options_and_methods():
    get, head = daemon.get("/health"), daemon.request("HEAD", "/health")
    assert head.status == 200 and head.body == b"" and head.headers["content-length"] == get.headers["content-length"]
    for _ in range(3):
        answer = daemon.request("DELETE", "/v1/models/x")
        assert answer.status == 405 and "GET" in answer.headers["allow"], answer
    assert daemon.request("GET", "/v1/chat/completions").headers["allow"] == "OPTIONS, POST"
    assert daemon.request("OPTIONS", "/v1/models").status == 204


def test_paths_have_one_normal_form():
    assert daemon.get("/v1/models?x=1").status == 200
    assert daemon.get("/v1/models/").status == 200
    assert daemon.get("/v1/%6dodels").status == 200
    for path in ("//v1/models", "/v1//models", "/..%2f", "/v1/models/a%2500b"):
        answer = daemon.get(path)
        assert answer.status == 404 and answer.error["code"] in ("not_found", "model_not_found"), (path, answer)
    assert statuses(raw(daemon, b"GET /v1/models/a%00b HTTP/1.1\r\nHost: a\r\n\r\n")[0]) == [400]
    assert statuses(raw(daemon, b"GET http://h/v1/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")[0]) == [200]


def test_cors_is_for_listed_origins_only():
    ask = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
           "Access-Control-Request-Headers": "authorization,x-stainless-os"}
    answer = daemon.request("OPTIONS", "/v1/chat/completions", headers=ask)
    assert answer.status == 204 and answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "x-stainless-os" in answer.headers["access-control-allow-headers"]
    other = daemon.request("OPTIONS", "/v1/chat/completions", headers=dict(ask, Origin="https://evil.example"))
    assert "access-control-allow-origin" not in other.headers
    error = daemon.request("POST", "/v1/chat/completions", body={}, headers={"Origin": "https://app.example"})
    assert error.status == 400 and error.headers["access-control-allow-origin"] == "https://app.example"


def test_request_ids_are_echoed_only_when_they_are_plain():
    assert daemon.get("/livez", {"X-Request-Id": "my-id_1.2"}).headers["x-request-id"] == "my-id_1.2"
    for bad in ("a b", "x" * 129, "<script>"):
        made = daemon.get("/livez", {"X-Request-Id": bad}).headers["x-request-id"]
        assert made.startswith("req-") and len(made) == 36, made


def test_an_error_body_has_all_four_fields_and_is_json():
    answer = daemon.get("/nope")
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.error) == {"message", "type", "param", "code"} and answer.error["param"] is None


def large_request(connection=b"keep-alive"):
    """A request whose answer is much larger than the kernel keeps for a client that does not read."""
    body = json.dumps({"prompt": "".join(chr(33 + i * 7 % 94) for i in range(100000)), "return_token_strs": True}).encode()
    return b"POST /tokenize HTTP/1.1\r\nHost: a\r\nConnection: %s\r\nContent-Length: %d\r\n\r\n" % (connection, len(body)) + body


def unix_daemon(*args):
    """A daemon at a unix socket: for TCP the kernel may keep megabytes, here it keeps little."""
    path = os.path.join(tempfile.mkdtemp(prefix="tellerd-sock-"), "s")
    return Daemon(MODEL, "--kv-cache-bytes", "4M", *args, listen=f"unix:{path}")


def read_whole(s, out=b""):
    """Reads one answer; its body, which must have the length that was promised."""
    while b"\r\n\r\n" not in out:
        out += s.recv(65536)
    head, body = out.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"Content-Length: (\d+)", head).group(1))
    assert statuses(head) == [200] and length > 500000, head
    while len(body) < length:
        got = s.recv(65536)
        assert got, f"cut after {len(body)} of {length} bytes"
        body += got
    return json.loads(body)


def test_a_slow_reader_gets_the_whole_answer_whatever_else_has_run_out():
    with unix_daemon("--idle-timeout", "300ms") as d:
        for connection in (b"keep-alive", b"close"):
            for half_close in (False, True):
                with d.connect(30) as s:
                    s.sendall(large_request(connection))
                    first = s.recv(100)
                    if half_close:
                        s.shutdown(socket.SHUT_WR)
                    time.sleep(2.6)  # longer than idle-timeout, and than a lingering close takes
                    assert read_whole(s, first)["count"] > 1000
                    if half_close or connection == b"close":
                        assert s.recv(100) == b""


def test_a_drain_waits_for_answers_that_are_being_read():
    with unix_daemon() as d:
        with d.connect(30) as s:
            s.sendall(large_request())
            first = s.recv(100)
            d.process.send_signal(signal.SIGTERM)
            time.sleep(1.5)
            assert read_whole(s, first)["count"] > 1000


def test_pipelined_requests_wait_for_a_client_that_does_not_read():
    with unix_daemon() as d:
        def answered():
            return d.metric('tellerd_http_requests_total{endpoint="/metrics",code="2xx"}')
        n = 400
        with d.connect(30) as s:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * (n - 1) +
                      b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            before = -10
            while (now := answered()) - before > 3:  # the question itself counts, too
                before = now
                time.sleep(0.5)
            # max-output-buffer and what the kernel keeps are some forty answers
            assert 10 < now < 150, f"{now} of {n} answered although nobody reads"
            whole, line = 0, b"HTTP/1.1 200 OK\r\n"
            tail = b""
            while got := s.recv(1 << 20):
                whole += (tail + got).count(line)
                tail = (tail + got)[-len(line) + 1:]
            assert whole == n, (whole, n)


def test_connections_past_the_limit_are_told_so_and_a_flood_is_closed():
    with Daemon(MODEL, "--max-connections", "3", "--kv-cache-bytes", "4M") as d:
        def open_fds():
            return len(os.listdir(f"/proc/{d.process.pid}/fd"))
        base = open_fds()
        held = [d.connect(5) for _ in range(3)]
        for s in held:
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            assert s.recv(4096).startswith(b"HTTP/1.1 200")
        out, closed = raw(d, b"")
        assert statuses(out) == [503] and closed and b"Connection: close" in out and b"Retry-After: 1" in out, out
        flood = [d.connect(5) for _ in range(200)]
        time.sleep(0.3)
        assert open_fds() <= base + 3 + 64, (base, open_fds())
        for s in held + flood:
            s.close()
        wait_for(lambda: open_fds() <= base, "descriptors to be closed")


def status_field(d, name):
    with open(f"/proc/{d.process.pid}/status") as f:
        return int(re.search(rf"^{name}:\s+(\d+)", f.read(), re.M).group(1))


def few_descriptors(soft, function):
    """Calls function, what it starts having that soft limit of open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        return function()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


MANY = 2000  # connections; this process needs as many descriptors


def test_thousands_of_connections_begun_at_once_are_answered_and_cost_little_while_idle():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < MANY + 200:
        raise Skip(f"at most {hard} open files")
    args = (MODEL, "--kv-cache-bytes", "4M", "--max-connections", str(MANY + 10), "--header-timeout", "1m")
    with few_descriptors(256, lambda: Daemon(*args)) as d:  # the daemon raises its own soft limit
        def burst(n):
            held = [socket.socket() for _ in range(n)]
            for s in held:
                s.setblocking(False)
                s.connect_ex(("127.0.0.1", d.port))
            for s in held:
                s.setblocking(True)
                s.settimeout(60)
                s.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            for s in held:
                assert s.recv(4096).startswith(b"HTTP/1.1 200")
            return held
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        held = burst(1000)
        before = status_field(d, "RssAnon")
        held += burst(MANY - 1000)
        each = (status_field(d, "RssAnon") - before) * 1024 / (MANY - 1000)
        if status_field(d, "VmSize") < 1 << 30:  # KiB; sanitizers take terabytes, and memory of their own
            assert each < 8192, f"{each} bytes for an idle connection"
        assert d.get("/livez").status == 200
        for s in held:
            s.close()
        wait_for(lambda: d.metric("process_open_fds") < 100, "descriptors to be closed")


def test_an_idle_connection_gives_back_what_its_last_request_took():
    body = json.dumps({"prompt": "a", "max_tokens": 1, "user": "u" * 60000}).encode()
    with Daemon(MODEL, "--kv-cache-bytes", "4M") as d:
        def ask(n):
            held = []
            for _ in range(n):
                held.append(d.connect(30))
                held[-1].sendall(post(body))
                assert held[-1].recv(65536).startswith(b"HTTP/1.1 200")
            return held
        held = ask(50)
        before = status_field(d, "RssAnon")
        held += ask(300)
        each = (status_field(d, "RssAnon") - before) * 1024 / 300
        if status_field(d, "VmSize") < 1 << 30:
            assert each < 16384, f"{each} bytes for an idle connection that once sent {len(body)}"
        for s in held:
            s.close()


def test_open_files_that_are_too_few_are_warned_of_and_their_connections_refused():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Daemon(MODEL, "--kv-cache-bytes", "4M", "--max-connections", "1000000") as d:
        assert (limits[1] > 1000128) != ("max-connections: 1000000 connections need 1000128 open files" in d.log()), d.log()


def test_a_client_that_vanishes_is_asked_for_by_the_kernel():
    def timers():
        with open("/proc/net/tcp") as f:
            rows = [line.split() for line in f.readlines()[1:]]
        here = f"0100007F:{daemon.port:04X}"
        # state 01: established; timer 02: keep-alive
        return [row[5].split(":")[0] for row in rows if row[1] == here and row[3] == "01"]
    with daemon.connect(5) as s:
        s.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 200")
        wait_for(lambda: timers() and all(t == "02" for t in timers()), "a keep-alive timer")


def test_a_body_that_drips_is_timed_out_and_a_slow_one_is_not():
    def send(d, size, pause, most):
        """What comes back for a body sent in pieces of size; gives up after `most` pieces."""
        body = json.dumps({"prompt": "ab", "max_tokens": 1, "user": "u" * 3000}).encode()
        with d.connect(30) as s:
            s.sendall(POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
            s.settimeout(pause)
            for i in range(0, min(len(body), most * size), size):
                try:
                    s.sendall(body[i:i + size])
                    return s.recv(4096)
                except (TimeoutError, socket.timeout):
                    pass
            s.settimeout(30)
            return s.recv(4096)

    args = (MODEL, "--kv-cache-bytes", "4M", "--body-timeout", "1s")
    with Daemon(*args, "--body-min-rate", "500") as d:
        assert statuses(send(d, 10, 0.1, 1000)) == [408]  # 100 bytes a second, never a pause of a second
        assert statuses(send(d, 200, 0.1, 1000)) == [200]  # 2000 bytes a second, for longer than body-timeout
    with Daemon(*args, "--body-min-rate", "0") as d:
        assert statuses(send(d, 100, 0.1, 1000)) == [200]  # any speed, for three times body-timeout


def test_a_connection_lives_for_many_requests():
    with daemon.connect(10) as s:
        for _ in range(200):
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            assert s.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_reset_while_answering_harms_nobody():
    for _ in range(20):
        s = daemon.connect(5)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        s.sendall(post(b'{"prompt":"ab","max_tokens":50,"stream":true}'))
        s.close()
    daemon.wait_idle()
    assert daemon.text("ab", max_tokens=2) == daemon.text("ab", max_tokens=2)


if __name__ == "__main__":
    with daemon:
        run_tests(dict(globals()))
