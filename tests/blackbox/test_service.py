"""The daemon as a service: sockets that the service manager opens, tellerctl on the control socket and on the API."""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile

import harness
from harness import BUILDDIR, TELLERCTL, WAIT_S, Daemon, Skip, run_tests, tiny_model, wait_for

MODEL = tiny_model("bank-third")
SCRIPTED = os.path.join(BUILDDIR, "tests", "support", "scripted_tellerd")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("TELLERD_")}
ENVIRONMENT.update(TELLERD_CONFIG="/dev/null", TELLERD_SCRIPT="{}", LC_ALL="C.UTF-8")
harness.TELLERD = SCRIPTED


def ctl(*args, **env):
    if not os.path.exists(TELLERCTL):
        raise Skip("tellerctl is not built")
    run = subprocess.run([TELLERCTL, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S,
                         env=dict(ENVIRONMENT, **env), check=False)
    return run.returncode, run.stdout.decode(), run.stderr.decode()


def scripted(*args, **kwargs):
    return Daemon(MODEL, *args, env=dict(TELLERD_SCRIPT="{}"), **kwargs)


# moves the descriptors to 3, 4, ... and becomes the daemon, whose process id $LISTEN_PID must name
AS_THE_MANAGER = """import os, sys
for i, fd in enumerate(map(int, sys.argv[1].split(","))):
    os.dup2(fd, 3 + i)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


@contextlib.contextmanager
def activated(sockets, *args):
    """A daemon that inherits the sockets [(name, socket)] from descriptor 3 on, as systemd hands them over."""
    with tempfile.NamedTemporaryFile() as log:
        descriptors = [s.fileno() for _, s in sockets]
        environment = dict(ENVIRONMENT, LISTEN_FDS=str(len(sockets)), LISTEN_FDNAMES=":".join(name for name, _ in sockets))
        command = [sys.executable, "-c", AS_THE_MANAGER, ",".join(map(str, descriptors)), SCRIPTED, "--model", MODEL, *args]
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, pass_fds=descriptors,
                                   env=environment)

        def text():
            with open(log.name, errors="replace") as f:
                return f.read()
        try:
            yield process, text
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(timeout=WAIT_S)


def listening(host):
    """A listening socket with a descriptor above those that it may be moved to."""
    s = socket.create_server((host, 0))
    high = os.dup(s.fileno())
    while high < 20:
        high = os.dup(high)
    copy = socket.socket(fileno=high)
    s.close()
    return copy


def ask(port, path):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as s:
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            data = b""
            while block := s.recv(65536):
                data += block
            return int(data.split()[1]) if data else 0
    except ConnectionError:
        return 0


def test_sockets_of_the_service_manager_are_served_by_name():
    with listening("127.0.0.1") as api, listening("127.0.0.1") as metrics:
        with activated([("metrics", metrics), ("api", api)]) as (process, log):
            port, metrics_port = api.getsockname()[1], metrics.getsockname()[1]
            wait_for(lambda: process.poll() is not None or ask(port, "/readyz") == 200, "readiness")
            assert process.poll() is None, log()
            assert ask(port, "/v1/models") == 200
            assert ask(metrics_port, "/metrics") == 200
            assert ask(metrics_port, "/v1/models") == 404
            assert ":8000" not in log(), log()
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=WAIT_S) == 0, log()


def test_an_open_socket_of_the_service_manager_needs_keys():
    with listening("0.0.0.0") as api, activated([("api", api)]) as (process, log):
        assert process.wait(timeout=WAIT_S) == 78, log()
        assert "api-keys-file" in log()
    with listening("0.0.0.0") as api, tempfile.NamedTemporaryFile("w") as keys, tempfile.NamedTemporaryFile("w") as conf:
        keys.write("alice sk-0123456789abcdef\n")
        keys.flush()
        conf.write(f"[auth]\napi-keys-file = {keys.name}\n")
        conf.flush()
        with activated([("api", api)], "--config", conf.name) as (process, log):
            port = api.getsockname()[1]
            wait_for(lambda: process.poll() is not None or ask(port, "/readyz") == 200, "readiness")
            assert ask(port, "/v1/models") == 401
            conf.truncate(0)
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: "reload.failed" in log(), "the refusal of a reload without keys")
            assert ask(port, "/v1/models") == 401


def test_a_descriptor_that_is_no_listening_socket_is_refused():
    with open("/dev/null", "rb") as null:
        high = os.dup(null.fileno())
        while high < 20:
            high = os.dup(high)
        with os.fdopen(high, "rb") as file, activated([("api", file)]) as (process, log):
            assert process.wait(timeout=WAIT_S) == 78, log()
            assert "no listening stream socket" in log(), log()


def test_tellerctl_asks_and_drains():
    with scripted(control=True) as d:
        code, out, err = ctl("--socket", d.control_path, "status")
        assert code == 0, err
        status = dict(line.split(None, 1) for line in out.splitlines())
        assert status["state"] == "ready" and status["running"] == "0", status
        model = d.get("/v1/models").json["data"][0]
        assert ctl("--url", d.address, "models")[:2] == (0, f"{model['id']}\t{model['max_model_len']} tokens\n")
        code, out, err = ctl("--url", d.address, "complete", "--max-tokens", "3", "a b")
        assert code == 0 and out.endswith("\n"), (code, out, err)
        assert ctl("--url", d.address, "complete", "--max-tokens", "-3", "a b")[0] == 1
        assert ctl("--socket", d.control_path, "drain")[:2] == (0, "draining\n")
        assert d.process.wait(timeout=WAIT_S) == 0, d.log()
        assert ctl("--socket", d.control_path, "status")[0] == 3


def test_tellerctl_reload_says_what_is_wrong():
    with tempfile.NamedTemporaryFile("w") as conf:
        conf.write("[limits]\nmax-queued = 5\n")
        conf.flush()
        with scripted("--config", conf.name, control=True) as d:
            assert ctl("--socket", d.control_path, "reload")[:2] == (0, "reloaded\n")
            conf.write("max-queud = 6\n")
            conf.flush()
            code, out, err = ctl("--socket", d.control_path, "reload")
            assert (code, out) == (1, "") and "did you mean max-queued?" in err, (code, out, err)
            assert d.metric("tellerd_config_last_reload_successful") == 0
            assert d.get("/readyz").status == 200


run_tests(globals())
