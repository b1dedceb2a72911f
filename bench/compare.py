#!/usr/bin/env python3
"""Our server and another in turn, A B A B, under the same load: medians, and ratios pair by pair.

    bench/compare.py --load build/bench/load --ours build/tellerd --peer PATH/llama-server \\
                     --model MODEL.gguf [--label Q8_0] [--pairs 3] [--rounds 2] [--streams 1,16,32,64] [--json FILE]
    bench/compare.py --render FILE...       # Markdown tables of such files

Each turn starts the server anew (its time to the first 200 of /health, its resident memory when idle), sends prompts
of 512 tokens one after the other with one token of answer (prefill), then 128 tokens in and 128 out at each number of
streams, then asks /health on one connection beside 600 silent connections and 200 requests. Servers get the same model
file and the same number of threads; what else they are given is in OURS and PEER, and --ours-args / --peer-args add
to it. A --json FILE that is there already gets the new pairs added, so that a long comparison can go in pieces; it is
written after each pair. Everything stays on the loopback. Ratios are ours / peer of the same pair; the median of them is shown.
Python's standard library only.
"""

import argparse
import json
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

OURS = "--model {model} --listen 127.0.0.1:{port} --threads {threads} --max-sequences 64 --max-queued 1000"
PEER = ("-m {model} --host 127.0.0.1 --port {port} -t {threads} -tb {threads} -c {context} -np 64 -fa on -b 2048 -ub 512"
        " --no-webui")
PEER_CONTEXT = 64 * 512
SILENT, QUEUED, HEALTH_SECONDS = 600, 200, 6.0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(port, path="/health"):
    """Status of a GET, 0 when nobody answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            return int(s.recv(64).split(b" ", 2)[1])
    except (OSError, IndexError, ValueError):
        return 0


def status(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise SystemExit(f"no {name} of process {pid}")


class Server:
    def __init__(self, binary, arguments, options):
        self.port = free_port()
        words = shlex.split(arguments.format(model=options.model, port=self.port, threads=options.threads,
                                             context=PEER_CONTEXT))
        began = time.perf_counter()
        self.process = subprocess.Popen([binary, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while get(self.port) != 200:
            if self.process.poll() is not None or time.perf_counter() - began > 120:
                self.process.kill()
                raise SystemExit(f"{binary} does not become ready; its command: {binary} {' '.join(words)}")
            time.sleep(0.001)
        self.ready_ms = 1e3 * (time.perf_counter() - began)
        time.sleep(0.5)
        self.idle_mib = status(self.process.pid, "VmRSS") / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def load(options, server, *arguments):
    done = subprocess.run([options.load, "--url", f"http://127.0.0.1:{server.port}", *map(str, arguments)],
                          stdout=subprocess.PIPE, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for row in rows:
        if row["errors"] and "--time-limit" not in arguments:
            print(f"  errors: {row['errors']}", file=sys.stderr)
    return rows


def health(options, server):
    """Milliseconds of GET /health on one connection beside silent ones and queued work; threads before and in it."""
    before = status(server.process.pid, "Threads")
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(SILENT)]
    work = threading.Thread(target=load, args=(options, server, "--concurrency", QUEUED, "--requests", QUEUED,
                                               "--prompt-tokens", 32, "--max-tokens", 64, "--time-limit", 2 * HEALTH_SECONDS))
    work.start()
    time.sleep(0.5)
    times, most = [], before
    end = time.perf_counter() + HEALTH_SECONDS
    s = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    while time.perf_counter() < end and work.is_alive():
        asked = time.perf_counter()
        s.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while b"}" not in answer and (piece := s.recv(4096)):
            answer += piece
        if not answer:  # some close a connection after so many requests
            s.close()
            s = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            continue
        times.append(1e3 * (time.perf_counter() - asked))
        most = max(most, status(server.process.pid, "Threads"))
        time.sleep(0.01)
    s.close()
    work.join()
    for s in silent:
        s.close()
    times.sort()
    return {"health_p50_ms": times[len(times) // 2], "health_p99_ms": times[min(len(times) - 1, len(times) * 99 // 100)],
            "threads_before": before, "threads_most": most}


def turn(options, binary, arguments, seed):
    """All figures of one start of one server, by name."""
    server = Server(binary, arguments, options)
    try:
        load(options, server, "--requests", 1, "--seed", 999)
        out = {"ready_ms": server.ready_ms, "idle_mib": server.idle_mib}
        row = load(options, server, "--requests", 6, "--prompt-tokens", 500, "--max-tokens", 1, "--seed", seed)[0]
        out["prefill_tok_s"] = row["prompt_tok_s"]
        for n in map(int, options.streams.split(",")):
            row = load(options, server, "--concurrency", n, "--requests", max(4, n * options.rounds), "--seed", seed + n)[0]
            out[f"tok_s@{n}"] = row["gen_tok_s"]
            out[f"steady_tok_s@{n}"] = row["gen_tok_s_steady"]
            for name in ("ttft_ms", "itl_ms"):
                for p in ("p50", "p99"):
                    out[f"{name[:-3]}_{p}_ms@{n}"] = row[name].get(p)
            out[f"client_cpu_s@{n}"] = row["client_cpu_s"]
        out["loaded_mib"] = status(server.process.pid, "VmRSS") / 1024
        if options.health:
            out.update(health(options, server))
        return out
    finally:
        server.stop()


def begin(options):
    """A result without pairs, or the one in the file when it is of the same servers, model and load."""
    new = {"label": options.label, "model": Path(options.model).name, "threads": options.threads,
           "streams": options.streams, "rounds": options.rounds, "date": time.strftime("%Y-%m-%d"),
           "ours": OURS + " " + options.ours_args, "peer": PEER + " " + options.peer_args, "pairs": []}
    if not options.json or not options.json.exists():
        return new
    old = json.loads(options.json.read_text())
    for key in new:
        if key != "pairs" and old.get(key) != new[key]:
            raise SystemExit(f"{options.json} is of another comparison: its {key} is {old.get(key)!r}, not {new[key]!r}")
    return old


def measure(options):
    result = begin(options)
    pairs = result["pairs"]
    for i in range(len(pairs), len(pairs) + options.pairs):
        pair = {}
        for who, binary, arguments in (("ours", options.ours, OURS + " " + options.ours_args),
                                       ("peer", options.peer, PEER + " " + options.peer_args)):
            pair[who] = turn(options, binary, arguments, 1000 * i + 7)
            print(f"pair {i + 1} {who}: " + ", ".join(f"{k} {v:.4g}" for k, v in pair[who].items() if v is not None),
                  file=sys.stderr, flush=True)
        pairs.append(pair)
        if options.json:
            options.json.write_text(json.dumps(result, indent=1) + "\n")
    return result


def render(result):
    pairs = result["pairs"]
    print(f"\n### {result['label']} ({result['date']}, {result['threads']} threads, {len(pairs)} pairs)\n")
    print("| figure | ours | peer | ours / peer, median (min - max) |\n| --- | --- | --- | --- |")
    for name in pairs[0]["ours"]:
        both = [(p["ours"].get(name), p["peer"].get(name)) for p in pairs]
        both = [(a, b) for a, b in both if a is not None and b]
        if not both or name.startswith("client"):
            continue
        ratios = [a / b for a, b in both]
        print(f"| {name} | {statistics.median(a for a, _ in both):.4g} | {statistics.median(b for _, b in both):.4g} "
              f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--render", nargs="+", metavar="FILE")
    parser.add_argument("--load", default="bench/load")
    parser.add_argument("--ours", default="./tellerd")
    parser.add_argument("--ours-args", default="")
    parser.add_argument("--peer")
    parser.add_argument("--peer-args", default="")
    parser.add_argument("--model")
    parser.add_argument("--label", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--streams", default="1,16,32,64")
    parser.add_argument("--rounds", type=int, default=2, help="requests of each stream")
    parser.add_argument("--no-health", dest="health", action="store_false")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.render:
        for name in options.render:
            render(json.loads(Path(name).read_text()))
        return
    if not options.peer or not options.model:
        parser.error("--peer and --model are needed")
    render(measure(options))


if __name__ == "__main__":
    main()
