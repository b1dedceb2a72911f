"""Starts a daemon of its own for a test and speaks HTTP to it; reports in TAP.  Standard library only."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

SRCDIR = os.environ.get("SRCDIR", os.path.join(os.path.dirname(__file__), "..", ".."))
BUILDDIR = os.environ.get("BUILDDIR", ".")
TELLERD = os.environ.get("TELLERD", os.path.join(BUILDDIR, "tellerd"))
TELLERCTL = os.environ.get("TELLERCTL", os.path.join(BUILDDIR, "tellerctl"))
sys.path.insert(0, os.path.join(SRCDIR, "tools"))
# a sanitizer build and a busy machine are slow: limits here only end what hangs
HANGS = 8  # a test that takes so many times the longest wait is ended
WAIT_S = float(os.environ.get("TELLERD_TEST_WAIT", "60"))


class Skip(Exception):
    """Raised by a test that cannot run here, with the reason."""


def wait_for(condition, what, seconds=None):
    """Polls until condition() gives something true and returns it; fails loudly when time is over."""
    deadline = time.monotonic() + (seconds or WAIT_S)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out waiting for {what}")
        time.sleep(0.01)


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Daemon:
    """One tellerd with its own port, log and temporary folder; ends with the `with` block."""

    def __init__(self, model=None, *args, env=None, listen="127.0.0.1:0", ready=True, control=False):
        self.folder = tempfile.TemporaryDirectory(prefix="tellerd-test-")
        self.log_path = os.path.join(self.folder.name, "log")
        command = [TELLERD]
        if model:
            command += ["--model", model]
        if listen:
            command += ["--listen", listen]
        self.control_path = os.path.join(self.folder.name, "control.sock")
        if control:
            command += ["--control-socket", self.control_path]
        self.command = command + [str(a) for a in args]
        environment = dict(os.environ, TELLERD_CONFIG="/dev/null")
        environment.update(env or {})
        self.log_file = open(self.log_path, "wb")
        self.process = subprocess.Popen(self.command, stdout=self.log_file, stderr=self.log_file,
                                        stdin=subprocess.DEVNULL, env=environment)
        self.port = self.address = None
        if listen:
            self.address = wait_for(self._find_address, "the listening address")
            match = re.search(r":(\d+)$", self.address)
            self.port = int(match.group(1)) if match and self.address.startswith("http") else None
        if ready:
            self.wait_ready()

    def _find_address(self):
        if self.process.poll() is not None:
            raise AssertionError(f"daemon ended with {self.process.returncode}:\n{self.log()}")
        match = re.search(r"listening address=(\S+)", self.log())
        return match and match.group(1)

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def wait_ready(self):
        wait_for(lambda: self.get("/readyz").status == 200, "readiness")

    def connect(self, timeout=None):
        if self.port is None:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(timeout or WAIT_S)
            s.connect(self.address[len("unix:"):])
            return s
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout or WAIT_S)

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port or 0, timeout=WAIT_S)
        connection.sock = self.connect()
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)

    def chat(self, content, **fields):
        body = {"messages": [{"role": "user", "content": content}], "temperature": 0}
        body.update(fields)
        return self.post("/v1/chat/completions", body)

    def complete(self, prompt, **fields):
        body = {"prompt": prompt, "temperature": 0}
        body.update(fields)
        return self.post("/v1/completions", body)

    def text(self, prompt, **fields):
        answer = self.complete(prompt, **fields)
        assert answer.status == 200, answer
        return answer.json["choices"][0]["text"]

    def stream(self, path, body, headers=None):
        """Sends a streaming request; returns an open Stream."""
        return Stream(self.connect(), path, dict(body, stream=True), headers)

    def metrics(self):
        values = {}
        for line in self.get("/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def metric(self, name):
        """Sum of all series of that name."""
        return sum(v for k, v in self.metrics().items() if k == name or k.startswith(name + "{"))

    def wait_idle(self):
        wait_for(lambda: self.metric("tellerd_requests_running") == 0 and self.metric("tellerd_requests_waiting") == 0,
                 "running and waiting gauges at 0")

    def stop(self, sig=signal.SIGTERM, seconds=None):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(seconds or WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the daemon did not stop in time")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        code = None
        try:
            code = self.stop()
        finally:
            self.log_file.close()
            log = self.log()
            self.folder.cleanup()
            well = kind in (None, Skip) or (kind is SystemExit and not value.code)
            if not well or "Sanitizer" in log or "runtime error:" in log:
                for line in log.splitlines()[-60:]:
                    print("# daemon:", line)
            if well and kind is not Skip:
                assert "Sanitizer" not in log and "runtime error:" not in log, "a sanitizer reported an error"
                assert code == 0, f"the daemon ended with {code}"


class Stream:
    """A streaming response read event by event, with the raw bytes kept."""

    def __init__(self, sock, path, body, headers=None):
        self.sock = sock
        payload = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n"
        for name, value in (headers or {}).items():
            head += f"{name}: {value}\r\n"
        self.sock.sendall(head.encode() + b"\r\n" + payload)
        self.answer = http.client.HTTPResponse(self.sock)
        self.begun = False

    def begin(self):
        self.answer.begin()
        self.begun = True
        return self.answer.status

    def events(self):
        """Yields the data of each event, comments as (None, text); ends at the end of the stream; IncompleteRead when it was cut."""
        if not self.begun:
            self.begin()
        pending = b""
        while True:
            chunk = self.answer.read1(65536) if not self.answer.isclosed() else b""
            if not chunk:
                break
            pending += chunk
            while b"\n\n" in pending:
                event, pending = pending.split(b"\n\n", 1)
                if event.startswith(b"data: "):
                    yield event[6:].decode()
                else:
                    assert event.startswith(b":"), event
        assert pending == b"", pending

    def chunks(self):
        """The JSON of all events up to [DONE], which must come last."""
        done = False
        for data in self.events():
            assert not done, "an event after [DONE]"
            if data == "[DONE]":
                done = True
            else:
                yield json.loads(data)
        assert done, "the stream ended without [DONE]"

    def text(self):
        parts = []
        for chunk in self.chunks():
            for choice in chunk["choices"]:
                parts.append(choice.get("text") or choice.get("delta", {}).get("content") or "")
        return "".join(parts)

    def close(self, reset=False):
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.answer.close()
        self.sock.close()


def raw(daemon, data, seconds=5, pieces=None):
    """Sends bytes and reads until the peer closes or nothing comes for `seconds`."""
    with daemon.connect(seconds) as s:
        for piece in pieces or [data]:
            s.sendall(piece)
        out = b""
        try:
            while True:
                got = s.recv(65536)
                if not got:
                    return out, True
                out += got
        except (TimeoutError, socket.timeout):
            return out, False


def parallel(functions):
    """Runs functions in threads; returns their results in order, raises the first exception."""
    results = [None] * len(functions)

    def run(i):
        try:
            results[i] = functions[i]()
        except BaseException as e:  # noqa: B036 - handed to the caller below
            results[i] = e

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results


_models = {}


def tiny_model(name, hf=False):
    """Path of a tiny model made by tools/make_models.py; made once for all tests of a build."""
    folder = os.path.join(BUILDDIR, "tests", "tiny-models")
    if name not in _models:
        marker = os.path.join(folder, name + ".made")
        if not os.path.exists(marker):
            os.makedirs(folder, exist_ok=True)
            subprocess.run([sys.executable, os.path.join(SRCDIR, "tools", "make_models.py"), "--out", folder, "--only", name],
                           check=True, stdout=subprocess.DEVNULL)
            open(marker, "w").close()
        _models[name] = os.path.join(folder, name + ".gguf")
    return os.path.join(folder, name) if hf else _models[name]


def run_tests(namespace):
    """Runs the functions named test_* in order of definition and prints TAP."""
    tests = [(n, f) for n, f in namespace.items() if n.startswith("test_") and callable(f)]
    print(f"1..{len(tests)}", flush=True)
    failed = 0

    def too_long(*_):
        raise AssertionError("the test hangs")

    signal.signal(signal.SIGALRM, too_long)
    for i, (name, function) in enumerate(tests, 1):
        title = name[5:].replace("_", " ")
        signal.alarm(int(WAIT_S * HANGS))
        try:
            function()
            print(f"ok {i} - {title}", flush=True)
        except Skip as reason:
            print(f"ok {i} - {title} # SKIP {reason}", flush=True)
        except BaseException:
            failed = 1
            for line in traceback.format_exc().splitlines():
                print("#", line)
            print(f"not ok {i} - {title}", flush=True)
    signal.alarm(0)
    sys.exit(failed)
