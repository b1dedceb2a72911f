#!/usr/bin/env python3
"""Compares the template interpreter with Jinja2 in the environment of Hugging Face transformers, byte for byte.

    tests/oracle/jinja_oracle.py [--cli BUILD/tests/oracle/jinja_cli] [--only PART]... [--random N] [--seed S] [-v]

Parts: expressions, statements (jinja_snippets.py), models (jinja_models.py: templates in the style of real models, each with many
conversations), random (jinja_random.py: seeded expressions and statements), trust (what may be a trusted byte). Where Jinja2
fails, the C must fail too, and the text of raise_exception must be the same. Speaks TAP.
"""

import argparse
import copy
import datetime
import functools
import json
import os
import random
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import tap  # noqa: E402

try:
    import jinja2
    import jinja2.ext
    import jinja2.nodes
    import jinja2.sandbox
except ModuleNotFoundError:
    tap.skip_all("Jinja2 is not installed (tests/requirements.txt)")

import jinja_models  # noqa: E402
import jinja_random  # noqa: E402
import jinja_snippets  # noqa: E402

NOW = 1721999045  # some Friday, not at the turn of anything
BOS, EOS = "<s>", "</s>"
MAX_SHOWN = 12


class Raised(Exception):
    """raise_exception of a template."""


class Generation(jinja2.ext.Extension):
    """{% generation %} as transformers parses it: a call block that gives its body."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(lineno)

    def _body(self, caller):
        return caller()


def make_environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise Raised(str(message))

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(fmt):
        return datetime.datetime.fromtimestamp(NOW).strftime(fmt)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


ENV = make_environment()


@functools.lru_cache(maxsize=64)
def compiled(template):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's compiler on templates that fail
        return ENV.from_string(template)


def expected(template, context):
    """("text", text), ("raised", text) or ("error", why)."""
    try:
        return "text", compiled(template).render(**copy.deepcopy(context))  # indent on a list changes it
    except Raised as e:
        return "raised", str(e)
    except Exception as e:  # whatever a template can do wrong
        return "error", f"{type(e).__name__}: {e}"


class Cli:
    def __init__(self, path):
        self.process = subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, TZ="UTC"))

    def ask(self, request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the program ended at {request!r}")
        return json.loads(line)

    def render(self, template, context, trusted=None):
        return self.ask({"template": template, "context": context, "trusted": trusted or {}, "now": NOW})


def difference(want, got):
    """None when they agree."""
    kind, text = want
    if kind == "text" and re.search(r"0x[0-9a-f]{10}", text, re.I) or re.search("gener.tor.object", got.get("text", ""), re.I):
        return None  # a Python object with its address, which no other program prints
    if kind == "text" and "Markup(" in text:
        return None
    if "cannot be sliced" in got.get("error", ""):
        return None  # Jinja2 gives an undefined value for constants, an error for others
    if kind == "text":
        if got["ok"] and got["text"] == text:
            return None
        return f"want {text!r}, got {got.get('text', got.get('error'))!r}"
    if got["ok"]:
        return f"want {kind} {text!r}, got text {got['text']!r}"
    if kind == "raised" and (not got["raised"] or got["error"] != text[:len(got["error"])]):
        return f"want raise {text!r}, got {got['error']!r}"
    if kind == "error" and got["raised"]:
        return f"want error {text!r}, got raise {got['error']!r}"
    return None


class Part:
    """Counts one part's comparisons and gives one TAP case."""

    def __init__(self, name, verbose):
        self.name, self.verbose, self.n, self.bad = name, verbose, 0, []

    def compare(self, label, want, got):
        self.n += 1
        what = difference(want, got)
        if what:
            self.bad.append(f"{label}\n#     {what}")
        elif self.verbose and want[0] != "text":
            print(f"# {label!r}: {want[1]} | {got['error']}")

    def check(self, label, holds, what):
        self.n += 1
        if not holds:
            self.bad.append(f"{label}\n#     {what}")

    def done(self):
        for text in self.bad[:MAX_SHOWN]:
            print("# " + text)
        tap.ok(not self.bad, f"{self.name} ({self.n} comparisons)", f"{len(self.bad)} differ" if self.bad else "")


# Where the interpreter is stricter on purpose: errors at compile time, or without a meaning in a prompt.
STRICTER = {
    "s.__class__": "private names", "s['__class__']": "private names", "d.__init__": "private names",
    "d|pprint is defined": "pprint is not supported", "n.real": "numbers have no attributes here",
    "{{ [1, 2, *nums] }}": "not Jinja2 either",
    "strftime_now is defined": None, "raise_exception is defined": None,
}


def run_snippets(cli, part, templates, label=lambda t: t):
    context = jinja_snippets.CONTEXT
    for t in templates:
        part.compare(repr(label(t)), expected(t, context), cli.render(t, context))


def run_models(cli, part):
    for name, source in jinja_models.TEMPLATES.items():
        for i, context in enumerate(jinja_models.conversations()):
            context = dict(context)
            got = cli.render(source, context, {"bos_token": BOS, "eos_token": EOS})
            part.compare(f"{name}, conversation {i}", expected(source, dict(context, bos_token=BOS, eos_token=EOS)), got)


def run_random(cli, part, n, seed):
    maker = jinja_random.Maker(random.Random(seed), jinja_snippets.CONTEXT)
    for i in range(n):
        template = maker.template()
        part.compare(f"seed {seed} case {i}: {template!r}", expected(template, jinja_snippets.CONTEXT),
                     cli.render(template, jinja_snippets.CONTEXT))


def trusted_bytes(got):
    text = got["text"].encode()
    return [text[start:start + length].decode(errors="replace") for start, length in got["runs"]]


def run_trust(cli, part):
    """No operation makes a byte of a message trusted: messages hold only characters that no template or number has."""
    only = "ɐɔǝɟɓɥɯɹʇʌʍʎ\u2028\n\t "
    rng = random.Random(11)

    def text():
        return "".join(rng.choice(only) for _ in range(rng.randrange(12)))

    def shaped(v):
        if isinstance(v, str):
            return text()
        if isinstance(v, list):
            return [shaped(x) for x in v]
        if isinstance(v, dict):
            return {k: shaped(x) for k, x in v.items()}
        return v

    maker = jinja_random.Maker(random.Random(12), jinja_snippets.CONTEXT)
    templates = ["{{ " + e + " }}" for e in jinja_snippets.EXPRESSIONS] + jinja_snippets.STATEMENTS
    templates += [maker.template() for _ in range(1500)]
    templates = [t for t in templates if t.isascii()]
    for t in templates:
        got = cli.render(t, shaped(jinja_snippets.CONTEXT))
        if got["ok"]:
            leaked = [run for run in trusted_bytes(got) if set(run) & set("ɐɔǝɟɓɥɯɹʇʌʍʎƎƁƆⱯꞍƜɌɅ\u2028")]
            part.check(repr(t), not leaked, f"trusted: {leaked!r} in {got['text']!r}")
            runs = got["runs"]
            ends = [start + length for start, length in runs]
            part.check(repr(t), all(e < s for e, (s, _) in zip(ends, runs[1:])) and all(length > 0 for _, length in runs),
                       f"runs are not maximal: {runs}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", default=os.environ.get("BUILDDIR", ".") + "/tests/oracle/jinja_cli")
    parser.add_argument("--only", action="append", choices=["expressions", "statements", "models", "random", "trust"])
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20260602)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    os.environ["TZ"] = "UTC"
    if not Path(args.cli).exists():
        tap.skip_all(f"{args.cli} is not built")
    cli = Cli(args.cli)
    parts = args.only or ["expressions", "statements", "models", "random", "trust"]
    for name in parts:
        part = Part(name, args.verbose)
        if name == "expressions":
            run_snippets(cli, part, ["{{ " + e + " }}" for e in jinja_snippets.EXPRESSIONS if not STRICTER.get(e)])
        elif name == "statements":
            run_snippets(cli, part, jinja_snippets.STATEMENTS)
        elif name == "models":
            run_models(cli, part)
        elif name == "random":
            run_random(cli, part, args.random, args.seed)
        else:
            run_trust(cli, part)
        part.done()
    return tap.finish()


if __name__ == "__main__":
    time.tzset()
    sys.exit(main())
