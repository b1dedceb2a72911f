"""tellerctl against a server that does exactly what a test wants: streams, errors, broken streams, terminals."""
import contextlib
import http.server
import json
import os
import pty
import select
import signal
import socketserver
import subprocess
import tempfile
import threading
import time

from harness import TELLERCTL, WAIT_S, Skip, run_tests, wait_for

CHUNK = 'data: {"choices":[{"index":0,"delta":{"content":%s},"finish_reason":%s}]}\n\n'
TEXT_CHUNK = 'data: {"choices":[{"index":0,"text":%s,"finish_reason":%s}]}\n\n'
DONE = "data: [DONE]\n\n"


def chat_stream(*texts, reason="stop"):
    events = [CHUNK % (json.dumps(t), "null") for t in texts]
    return "".join(events) + CHUNK % ('""', json.dumps(reason)) + ": keep-alive\n\n" + DONE


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "peer"

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        action = self.server.actions.get(self.path)
        if callable(action):
            action(self)
            return
        status, kind, text = action or (404, "application/json", '{"error":{"message":"no such path"}}')
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer


class TcpServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@contextlib.contextmanager
def server(actions=None, unix=None):
    """A server with an answer for each path: (status, type, text) or a function of the handler."""
    s = UnixServer(unix, Handler) if unix else TcpServer(("127.0.0.1", 0), Handler)
    s.requests = []
    s.actions = {"/v1/models": (200, "application/json", '{"data":[{"id":"m1","max_model_len":512},{"id":"m2"}]}')}
    s.actions.update(actions or {})
    thread = threading.Thread(target=s.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield s
    finally:
        s.shutdown()
        thread.join()
        s.server_close()


def url(s):
    return f"http://127.0.0.1:{s.server_address[1]}"


ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("TELLERD_")}
ENVIRONMENT.update(TELLERD_CONTROL_SOCKET="/nonexistent/control.sock", HOME="/nonexistent", LC_ALL="C.UTF-8")


def ctl(*args, stdin="", env=None):
    """Runs tellerctl; returns (exit status, stdout, stderr)."""
    run = subprocess.run([TELLERCTL, *args], input=stdin.encode(), capture_output=True, timeout=WAIT_S,
                         env=dict(ENVIRONMENT, **(env or {})), check=False)
    return run.returncode, run.stdout.decode(errors="surrogateescape"), run.stderr.decode()


def sse(text):
    return (200, "text/event-stream", text)


def test_chat_prints_the_stream_and_sends_what_the_flags_say():
    with server({"/v1/chat/completions": sse(chat_stream("Hello", ", \u00fc", "\n"))}) as s:
        code, out, err = ctl("--url", url(s) + "/", "chat", "--system", "Be brief.", "--max-tokens", "9", "--temperature",
                             "0.5", "--stop", "X", "--stop", "Y", "--seed", "7", "what", "is", "ls?")
        assert (code, out, err) == (0, "Hello, \u00fc\n\n", ""), (code, out, err)
        _, _, _, body = s.requests[-1]
        assert json.loads(body) == {
            "model": "m1", "stream": True, "max_tokens": 9, "temperature": 0.5, "stop": ["X", "Y"], "seed": 7,
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "what is ls?"}]}, body


def test_a_prompt_may_come_from_stdin():
    with server({"/v1/completions": sse(TEXT_CHUNK % ('" upon"', "null") + TEXT_CHUNK % ('""', '"length"') + DONE)}) as s:
        code, out, err = ctl("--url", url(s), "complete", "--model", "m2", stdin="Once\n")
        assert (code, out) == (0, " upon\n") and "cut" in err, (code, out, err)
        assert json.loads(s.requests[-1][3]) == {"model": "m2", "stream": True, "prompt": "Once"}
        assert len(s.requests) == 1
        assert ctl("--url", url(s), "complete", "-", stdin="a b")[0] == 0
        assert json.loads(s.requests[-1][3])["prompt"] == "a b"


def test_a_stream_that_breaks_off_is_an_error():
    with server({"/v1/chat/completions": sse(CHUNK % ('"Hel"', "null"))}) as s:
        code, out, err = ctl("--url", url(s), "chat", "hi")
        assert (code, out) == (4, "Hel\n") and "broke off" in err, (code, out, err)


def test_an_error_event_is_shown():
    stream = CHUNK % ('"Hel"', "null") + 'data: {"error":{"message":"the server is shutting down"}}\n\n'
    with server({"/v1/chat/completions": sse(stream)}) as s:
        code, out, err = ctl("--url", url(s), "chat", "hi")
        assert (code, out) == (1, "Hel\n") and "shutting down" in err, (code, out, err)


def test_junk_in_a_stream_is_an_error():
    with server({"/v1/chat/completions": sse("data: {]\n\n")}) as s:
        code, out, err = ctl("--url", url(s), "chat", "hi")
        assert (code, out) == (1, "") and "no JSON" in err


def test_refusals_are_shown_with_message_and_code():
    error = '{"error":{"message":"too many requests are waiting","code":"rate_limit_exceeded"}}'
    with server({"/v1/chat/completions": (429, "application/json", error), "/v1/completions": (500, "text/html", "<p>")}) as s:
        code, out, err = ctl("--url", url(s), "chat", "hi")
        assert (code, out) == (1, "")
        assert err == "tellerctl: the server says: too many requests are waiting (429 rate_limit_exceeded)\n", err
        code, _, err = ctl("--url", url(s), "complete", "hi")
        assert code == 1 and "status 500" in err


def test_no_server_is_told_apart():
    with server() as s:
        gone = url(s)
    code, out, err = ctl("--url", gone, "chat", "hi")
    assert (code, out) == (3, "") and "cannot reach" in err
    assert ctl("drain")[0] == 3
    assert ctl("--socket", "/nonexistent", "status")[0] == 3


def test_keys_come_from_a_file_or_the_environment():
    with server() as s, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "key")
        for content, key in (("# mine\n\nalice  sk-1 \r\n", "sk-1"), ("sk-2", "sk-2"), ("\tbob\tsk-3\n", "sk-3")):
            with open(path, "w") as f:
                f.write(content)
            assert ctl("--url", url(s), "--key-file", path, "models")[0] == 0
            assert s.requests[-1][2]["Authorization"] == f"Bearer {key}", s.requests[-1][2]
        assert ctl("--url", url(s), "models", env={"TELLERD_API_KEY": "sk-env"})[0] == 0
        assert s.requests[-1][2]["Authorization"] == "Bearer sk-env"
        assert ctl("models", env={"TELLERD_URL": url(s)})[0] == 0
        assert "Authorization" not in s.requests[-1][2]
        n = len(s.requests)
        for content in ("# none\n", "sk\x01\n"):
            with open(path, "w") as f:
                f.write(content)
            assert ctl("--url", url(s), "--key-file", path, "models")[0] == 2
        assert ctl("--url", url(s), "models", env={"TELLERD_API_KEY": "a\r\nX-Evil: 1"})[0] == 2
        assert len(s.requests) == n


def test_models_and_status():
    with server({"/readyz": (200, "application/json", '{"status":"ok"}')}) as s:
        assert ctl("--url", url(s), "models")[:2] == (0, "m1\t512 tokens\nm2\n")
        code, out, _ = ctl("--url", url(s), "models", "--json")
        assert code == 0 and json.loads(out)["data"][1]["id"] == "m2"
        code, out, _ = ctl("--url", url(s), "status")
        assert code == 0 and out.split() == ["status", "ok"], out


def test_the_control_socket():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c")
        actions = {
            "/control/status": (200, "application/json", '{"state":"ready","running":2,"share":0.5,"idle":false}'),
            "/control/drain": (200, "application/json", '{"status":"draining"}'),
            "/control/reload": (500, "application/json", '{"error":{"message":"t.conf:2:1: unknown key","code":"bad_configuration"}}'),
        }
        with server(actions, unix=path) as s:
            code, out, _ = ctl("status", env={"TELLERD_CONTROL_SOCKET": path})
            assert code == 0 and out.split() == ["state", "ready", "running", "2", "share", "0.5", "idle", "false"], out
            assert ctl("--socket", path, "drain")[:2] == (0, "draining\n")
            assert s.requests[-1][:2] == ("POST", "/control/drain")
            code, out, err = ctl("--socket", path, "reload")
            assert (code, out) == (1, "") and "t.conf:2:1" in err


def test_wrong_usage():
    for args in ((), ("frob",), ("--frob", "status"), ("status", "x"), ("chat", "--temperature", "warm", "hi"),
                 ("chat", "--frob", "hi"), ("complete", "--seed")):
        code, out, err = ctl("--url", "http://127.0.0.1:1", *args)
        assert (code, out) == (2, "") and err, (args, code, out)
    code, out, _ = ctl("--help")
    assert code == 0 and "complete" in out
    with server() as s:
        assert ctl("--url", url(s), "complete", b"\xff".decode(errors="surrogateescape"))[0] == 2


def slow(handler):
    """Sends a little, then waits for the client to leave."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write((CHUNK % ('"Hel"', "null")).encode())
    handler.wfile.flush()
    readable, _, _ = select.select([handler.connection], [], [], WAIT_S)
    handler.server.left = bool(readable) and handler.connection.recv(1) == b""
    handler.close_connection = True


def test_ctrl_c_ends_the_answer():
    with server({"/v1/chat/completions": slow}) as s:
        s.left = None
        process = subprocess.Popen([TELLERCTL, "--url", url(s), "chat", "hi"], stdout=subprocess.PIPE, env=ENVIRONMENT,
                                   stdin=subprocess.DEVNULL)
        assert os.read(process.stdout.fileno(), 3) == b"Hel"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=WAIT_S) == 130
        process.stdout.close()
        wait_for(lambda: s.left, "the server to see the client leave")


class Terminal:
    """tellerctl on a terminal of its own."""

    def __init__(self, *args, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(TELLERCTL, [TELLERCTL, *args], dict(ENVIRONMENT, TERM="dumb", **(env or {})))
        self.seen = b""

    def wait_for(self, text, seconds=None):
        """Reads until text was seen; returns what came up to and with it."""
        deadline = time.monotonic() + (seconds or WAIT_S)
        while text.encode() not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    raise AssertionError(f"ended with {self.seen!r}") from None
        head, self.seen = self.seen.split(text.encode(), 1)
        return head.decode(errors="replace") + text

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self, keys=None):
        """The exit status; reads what is left.  keys are typed now and again: a ^D that comes before the editor has taken the terminal is text; ^U takes it away."""
        deadline = time.monotonic() + WAIT_S
        while True:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"did not end; it showed {self.seen!r}")
            try:
                if keys:
                    self.type(keys)
                block = os.read(self.fd, 65536) if select.select([self.fd], [], [], 0.5)[0] else None
            except OSError:
                block = b""
            if block == b"":
                break
            self.seen += block or b""
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_conversation_remembers_and_starts_over():
    with server({"/v1/chat/completions": sse(chat_stream("Yes."))}) as s, tempfile.TemporaryDirectory() as folder:
        history = os.path.join(folder, "history")
        t = Terminal("--url", url(s), "chat", "--history", history)
        t.wait_for("> ")
        t.type("one\r")
        t.wait_for("Yes.")
        t.wait_for("> ")
        t.type("two\r")
        t.wait_for("Yes.")
        roles = [(m["role"], m["content"]) for m in json.loads(s.requests[-1][3])["messages"]]
        assert roles == [("user", "one"), ("assistant", "Yes."), ("user", "two")], roles
        t.wait_for("> ")
        t.type("/reset\r")
        t.wait_for("> ")
        t.type("three\r")
        t.wait_for("Yes.")
        assert len(json.loads(s.requests[-1][3])["messages"]) == 1
        t.wait_for("> ")
        t.type("/quit\r")
        assert t.end() == 0
        if os.path.exists(history):  # with libedit
            assert os.stat(history).st_mode & 0o077 == 0
            with open(history) as f:
                assert "three" in f.read()


def test_ctrl_c_in_a_conversation_cuts_the_answer_only():
    with server({"/v1/chat/completions": slow}) as s:
        t = Terminal("--url", url(s), "chat", "--no-history")
        t.wait_for("> ")
        t.type("one\r")
        t.wait_for("Hel")
        t.type("\x03")
        t.wait_for("> ")
        s.actions["/v1/chat/completions"] = sse(chat_stream("Fine."))
        t.type("two\r")
        t.wait_for("Fine.")
        messages = json.loads(s.requests[-1][3])["messages"]
        assert [m["content"] for m in messages] == ["one", "Hel", "two"], messages
        t.wait_for("> ")
        assert t.end("\x15\x04") == 0


def test_a_refused_question_leaves_the_conversation():
    error = (429, "application/json", '{"error":{"message":"too many requests are waiting"}}')
    with server({"/v1/chat/completions": error}) as s:
        t = Terminal("--url", url(s), "chat", "--no-history")
        t.wait_for("> ")
        t.type("one\r")
        t.wait_for("too many requests")
        t.wait_for("> ")
        s.actions["/v1/chat/completions"] = sse(chat_stream("Fine."))
        t.type("two\r")
        t.wait_for("Fine.")
        assert len(json.loads(s.requests[-1][3])["messages"]) == 1
        t.wait_for("> ")
        assert t.end("\x15\x04") == 0


def test_a_model_cannot_send_escape_sequences_to_a_terminal():
    nasty = "a\x1b]0;owned\x07b\u009b31mc\rd\te"
    with server({"/v1/chat/completions": sse(chat_stream(nasty))}) as s:
        t = Terminal("--url", url(s), "chat", "hi")
        assert t.end() == 0
        text = t.seen.decode()
        assert "a\ufffd]0;owned\ufffdb\ufffd31mc\ufffdd\te" in text, text
        assert ctl("--url", url(s), "chat", "hi")[1] == nasty + "\n"


if not os.path.exists(TELLERCTL):
    raise SystemExit(print("1..0 # SKIP tellerctl is not built (no libcurl)"))
run_tests(globals())
