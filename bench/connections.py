#!/usr/bin/env python3
"""Many connections at once: memory of an idle one, a burst of connects, and /health while others are silent or queued.

  bench/connections.py TELLERD MODEL [--idle 10000] [--burst 1000] [--silent 600] [--queued 200] [--seconds 5]

Starts the daemon itself, on a free port of the loopback. Prints one line of JSON:
  idle      connections that have asked once and now wait: bytes of the daemon's resident memory for each
  burst     connects begun at once: how many were answered, how many refused, seconds for all
  health    with --silent connections that never send a byte and --queued long generations running or waiting:
            milliseconds of GET /health on one connection, and the daemon's threads before and after
Both ends need descriptors: `ulimit -n` must be about twice --idle. Standard library only.
"""
import argparse, json, os, re, resource, selectors, signal, socket, subprocess, sys, tempfile, threading, time

REQUEST = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"


def status_field(pid, name):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"^{name}:\s+(\d+)", f.read(), re.M).group(1))


def resident(pid):
    """Private memory only, in bytes: pages of mapped files come and go."""
    return status_field(pid, "RssAnon") * 1024


class Daemon:
    def __init__(self, tellerd, model, *options):
        self.log = tempfile.NamedTemporaryFile(prefix="tellerd-connections-")
        self.process = subprocess.Popen([tellerd, "--model", model, "--listen", "127.0.0.1:0", *options],
                                        stdout=self.log, stderr=self.log, env=dict(os.environ, TELLERD_CONFIG="/dev/null"))
        self.pid = self.process.pid
        found = None
        while not found:
            if self.process.poll() is not None:
                sys.exit(open(self.log.name).read())
            found = re.search(r"listening address=http://127.0.0.1:(\d+)", open(self.log.name).read())
            time.sleep(0.02)
        self.address = ("127.0.0.1", int(found.group(1)))
        while b" 200 " not in self.ask(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):
            time.sleep(0.05)

    def ask(self, request):
        with socket.create_connection(self.address, timeout=30) as s:
            s.sendall(request)
            return s.recv(4096)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def measure_idle(daemon, n):
    before = resident(daemon.pid)
    held = []
    for _ in range(n):
        s = socket.create_connection(daemon.address, timeout=30)
        s.sendall(REQUEST)
        held.append(s)
    for s in held:
        assert b" 200 " in s.recv(4096)
    time.sleep(0.5)
    cpu = time.monotonic(), cpu_seconds(daemon.pid)
    after = resident(daemon.pid)
    time.sleep(2)
    share = (cpu_seconds(daemon.pid) - cpu[1]) / (time.monotonic() - cpu[0])
    for s in held:
        s.close()
    return {"connections": n, "bytes_each": round((after - before) / n), "cpu_share_while_idle": round(share, 4)}


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_burst(daemon, n):
    selector = selectors.DefaultSelector()
    start = time.monotonic()
    answered = refused = 0
    for _ in range(n):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(daemon.address)
        selector.register(s, selectors.EVENT_WRITE)
    while selector.get_map():
        for key, events in selector.select(10) or sys.exit("burst: nothing comes any more"):
            s = key.fileobj
            try:
                if events & selectors.EVENT_WRITE:
                    s.send(REQUEST)
                    selector.modify(s, selectors.EVENT_READ)
                    continue
                answered += b" 200 " in s.recv(4096)
            except OSError:
                refused += 1
            selector.unregister(s)
            s.close()
    return {"connects": n, "answered": answered, "refused": refused, "seconds": round(time.monotonic() - start, 3)}


def measure_health(daemon, n_silent, n_queued, seconds):
    threads = status_field(daemon.pid, "Threads")
    silent = [socket.create_connection(daemon.address) for _ in range(n_silent)]
    queued = []
    for i in range(n_queued):
        body = json.dumps({"prompt": f"{i} once upon a time", "max_tokens": 400, "ignore_eos": True, "stream": True}).encode()
        s = socket.create_connection(daemon.address)
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        queued.append(s)
    stop = threading.Event()

    def drain():
        selector = selectors.DefaultSelector()
        for s in queued:
            selector.register(s, selectors.EVENT_READ)
        while not stop.is_set() and selector.get_map():
            for key, _ in selector.select(0.2):
                if not key.fileobj.recv(1 << 16):
                    selector.unregister(key.fileobj)
            time.sleep(0.02)  # leaves the processors to the daemon

    reader = threading.Thread(target=drain)
    reader.start()
    times = []
    with socket.create_connection(daemon.address) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            start = time.monotonic()
            s.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b" 200 " in s.recv(4096)
            times.append(time.monotonic() - start)
            time.sleep(0.002)
    after = status_field(daemon.pid, "Threads")
    stop.set()
    reader.join()
    for s in silent + queued:
        s.close()
    times.sort()
    at = {f"p{p}_ms": round(1e3 * times[min(len(times) - 1, len(times) * p // 100)], 3) for p in (50, 90, 99)}
    return {"silent": n_silent, "queued": n_queued, "requests": len(times), **at, "max_ms": round(1e3 * times[-1], 3),
            "threads": [threads, after]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tellerd")
    parser.add_argument("model")
    parser.add_argument("--idle", type=int, default=10000)
    parser.add_argument("--burst", type=int, default=1000)
    parser.add_argument("--silent", type=int, default=600)
    parser.add_argument("--queued", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5)
    a = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    daemon = Daemon(a.tellerd, a.model, "--max-connections", str(a.idle + 2000), "--kv-cache-bytes", "64M", "--log-level", "notice",
                    "--header-timeout", "10m", "--idle-timeout", "10m")
    try:
        # the burst first: it also grows what is kept for good, so that idle connections are not charged with it
        out = {"burst": measure_burst(daemon, a.burst), "idle": measure_idle(daemon, a.idle),
               "health": measure_health(daemon, a.silent, a.queued, a.seconds)}
        print(json.dumps(out))
    finally:
        daemon.stop()


if __name__ == "__main__":
    main()
