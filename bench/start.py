#!/usr/bin/env python3
"""Time from exec to ready, and memory when idle, of a server: ours by default, any other by its command line.

    bench/start.py --model MODEL.gguf                                    # build/dev/src/... or --tellerd PATH
    bench/start.py --url http://127.0.0.1:{port}/health -- llama-server -m MODEL.gguf --port {port} -t 2

{port} stands for a free port of this run. Ready is the first answer 200; it is asked for every millisecond. After
--settle seconds without a request the memory is read: resident, and how much of it is anonymous (the rest is files,
which the kernel can drop). Files named by --warm (our own model always) are read first, so that the page cache is warm.
Prints a line of JSON: medians, and each run. Python's standard library only.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from urllib.parse import urlsplit

POLL_SECONDS = 0.001
READ_PIECE = 1 << 20


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_ready(host, port, path):
    """Whether GET path is answered 200; a refused or broken connection is a no."""
    try:
        with socket.create_connection((host, port), timeout=5) as s:
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return b" 200 " in s.recv(64).split(b"\r\n")[0]
    except OSError:
        return False


def memory(pid):
    """Bytes: resident, anonymous of it, and the peak."""
    fields = {}
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            name, _, value = line.partition(":")
            fields[name] = value.split()
    def kib(name):
        return int(fields[name][0]) * 1024
    return {"rss": kib("VmRSS"), "anonymous": kib("RssAnon"), "peak": kib("VmHWM")}


def one_run(args, command):
    port = free_port()
    url = urlsplit(args.url.replace("{port}", str(port)))
    command = [part.replace("{port}", str(port)) for part in command]
    with open(args.log or os.devnull, "ab") as log:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while not is_ready(url.hostname, url.port or 80, url.path or "/"):
                if child.poll() is not None:
                    raise SystemExit(f"start: the server ended with {child.returncode}; see its output with --log FILE")
                if time.perf_counter() - start > args.limit:
                    raise SystemExit(f"start: not ready within {args.limit} s")
                time.sleep(POLL_SECONDS)
            ready = time.perf_counter() - start
            time.sleep(args.settle)
            return {"ready_ms": round(1e3 * ready, 1), **memory(child.pid)}
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(args.limit)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()


def our_command(args):
    binary = args.tellerd or shutil.which("tellerd")
    if not binary or not args.model:
        raise SystemExit("start: give --tellerd PATH and --model FILE, or --url URL -- COMMAND")
    args.url = args.url or "http://127.0.0.1:{port}/readyz"
    return [binary, "--model", args.model, "--listen", "127.0.0.1:{port}", "--threads", str(args.threads), *args.option]


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--tellerd", help="our daemon (default: the one in PATH)")
    parser.add_argument("--model", help="model for our daemon")
    parser.add_argument("--threads", type=int, default=2, help="threads of our daemon")
    parser.add_argument("--option", action="append", default=[], help="one more argument for our daemon, e.g. --option=--kv-cache-bytes=64M")
    parser.add_argument("--url", help="what answers 200 when ready")
    parser.add_argument("--warm", action="append", default=[], help="file to read before the first run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--settle", type=float, default=0.5, help="seconds between ready and reading the memory")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a start or an end may take")
    parser.add_argument("--log", help="file that takes the server's output")
    parser.add_argument("command", nargs="*", help="another server, after --")
    return parser.parse_args()


def main():
    args = read_arguments()
    command = args.command or our_command(args)
    if not args.url:
        raise SystemExit("start: a command needs --url")
    for path in args.warm + ([args.model] if args.model else []):
        with open(path, "rb") as f:
            while f.read(READ_PIECE):
                pass
    runs = [one_run(args, command) for _ in range(args.runs)]
    result = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    print(json.dumps({"command": command, **result, "best_ms": min(run["ready_ms"] for run in runs), "runs": runs}))


if __name__ == "__main__":
    sys.exit(main())
