#!/usr/bin/env python3
"""Compares the C tokenizer with the published ones: split patterns with PyPI regex, whole encodings with PyPI tokenizers and
sentencepiece, on seeded random Unicode, tricky lists and text of this machine.

    tests/oracle/tokenizer_oracle.py [--cli BUILD/tests/oracle/tokenizer_cli] [--only PART]...

Parts: splits, bpe, spm, unigram, smollm2 (skipped unless tools/fetch-model smollm2 was run). Vocabularies are trained here, and
each is written as GGUF and, in the form its own library gives, as a Hugging Face directory. Equality is exact, token by token.
The exit code is 0 when all agree. Speaks TAP. Takes about 20 seconds.

Code points that the installed libutf8proc does not know are left out: the libraries differ in their Unicode versions, and a
newer version only ever adds.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]

import fetch_model  # noqa: E402
import tap  # noqa: E402

try:
    import regex
    import tokenizer_models as models
except ModuleNotFoundError as missing:
    tap.skip_all(f"{missing.name} is not installed (tests/requirements.txt)")
from tokenizer_texts import Texts  # noqa: E402

SEED = 20260602
N_SPLIT_TEXTS = 3000
N_TEXTS = 500
GPT2 = regex.compile(models.GPT2)
PATTERNS = {name: regex.compile(pattern) for name, pattern in models.PATTERNS.items()}


class Cli:
    def __init__(self, path):
        self.path = path

    def lines(self, args, requests):
        """The answers to a list of requests."""
        text = "".join(json.dumps(r) + "\n" for r in requests)
        done = subprocess.run([self.path, *args], input=text, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{self.path} {' '.join(map(str, args))}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def unassigned(self):
        done = subprocess.run([self.path, "--unassigned"], capture_output=True, text=True, check=True)
        codes = set()
        for line in done.stdout.splitlines():
            first, last = map(int, line.split())
            codes.update(range(first, last + 1))
        return codes


def compare(what, texts, ours, theirs):
    """One TAP line for two lists with one entry a text; the first difference is shown."""
    problem = "" if len(ours) == len(theirs) else f"{len(ours)} answers for {len(theirs)} texts"
    for text, a, b in zip(texts, ours, theirs):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            problem = f"text {ascii(text)[:300]} at {at}: ours {a[max(0, at - 3):at + 8]}, theirs {b[max(0, at - 3):at + 8]}"
            break
    tap.ok(not problem, f"{what} ({len(texts)} texts, {sum(map(len, theirs))} pieces)", problem)


# -- splits -------------------------------------------------------------------------------------------------------


def split_reference(name, text):
    if name != "smollm":
        return PATTERNS[name].findall(text)
    pieces = []
    for part in regex.split(r"(\p{N})", text):
        pieces += GPT2.findall(part)
    return pieces


def check_splits(cli, texts):
    for name in [*PATTERNS, "smollm"]:
        # Which class a character has is the same question for all of them: two ask it of every character.
        step = 1 if name in ("gpt2", "llama3") else 16
        groups = {
            "every code point in context" if step == 1 else f"every {step}th code point in context": texts.every_code_point(step),
            "random text": texts.random_texts(N_SPLIT_TEXTS),
            "tricky text": texts.tricky(),
        }
        for what, group in groups.items():
            ours = [r["lengths"] for r in cli.lines(["--split", name], [{"text": t} for t in group])]
            theirs = []
            for text in group:
                pieces = split_reference(name, text)
                assert "".join(pieces) == text, (name, text)
                theirs.append([len(p.encode()) for p in pieces])
            compare(f"split {name}: {what}", group, ours, theirs)


# -- whole encodings ----------------------------------------------------------------------------------------------


def ids_of(cli, path, texts, trusted):
    return cli.lines([path], [{"text": t, "trusted": [[0, len(t.encode())]] if trusted else []} for t in texts])


def check_model(cli, what, paths, texts, plain, special, round_trip=None):
    """plain, special: the reference's ids of one text, with special tokens as text and as tokens (None: not compared)."""
    for path in paths:
        form = "GGUF" if path.suffix == ".gguf" else "directory"
        for trusted, reference in ((False, plain), (True, special)):
            if reference is None:
                continue
            answers = ids_of(cli, path, texts, trusted)
            title = f"{what}, {form}, special tokens {'found' if trusted else 'as text'}"
            compare(title, texts, [a.get("ids", a) for a in answers], [reference(t) for t in texts])
            if round_trip and not trusted:
                compare(f"{what}, {form}: decoding gives the text", texts, [bytes.fromhex(a["bytes"]) for a in answers],
                               [round_trip(t).encode() for t in texts])


def hf_encode(tokenizer, specials_as_text):
    """The ids that the library gives. It reads special tokens in the text, or, when told to, spells them."""
    def encode(text):
        tokenizer.encode_special_tokens = specials_as_text
        return tokenizer.encode(text, add_special_tokens=False).ids
    return encode


def check_bpe(cli, texts, folder):
    everything = texts.encodings(N_TEXTS)
    for family in models.BPE_FAMILIES:
        model = models.train_bpe(family, texts.training())
        paths = models.write(folder, f"bpe-{family}", model)
        normal = (lambda t: unicodedata.normalize("NFC", t)) if family == "qwen2" else (lambda t: t)
        group = [t for t in everything if not (family == "qwen2" and texts.is_newer_than_python(t))]
        check_model(cli, f"byte-level BPE, {family}", paths, group, hf_encode(model.hf, True), hf_encode(model.hf, False), normal)


def check_spm(cli, texts, folder):
    everything = texts.encodings(N_TEXTS)
    for name in models.SPM_MODELS:
        model = models.train_spm(name, texts.training())
        path = models.write_gguf(folder, name, model)
        check_model(cli, f"SentencePiece BPE, {name}, against sentencepiece", [path], everything, model.sp.encode, None)
        if model.hf:
            paths = [path, models.write_hf(folder, name, model)]
            check_model(cli, f"SentencePiece BPE, {name}, against tokenizers", paths, everything, hf_encode(model.hf, True),
                        hf_encode(model.hf, False))


def check_metaspace(cli, texts, folder):
    for name in models.METASPACE_MODELS:
        model = models.train_metaspace(name, texts.training())
        paths = [models.write_hf(folder, name, model)]
        check_model(cli, f"BPE over characters, {name}", paths, texts.encodings(N_TEXTS), hf_encode(model.hf, True),
                    hf_encode(model.hf, False))


def check_sums(cli, what, path, texts, model):
    """As check_model; but cuts with the same sum of scores count as equal, which sentencepiece, adding in single precision, tells
    apart by its rounding (a long run of one letter: the same tokens in any order)."""
    ours = [a["ids"] for a in ids_of(cli, path, texts, False)]
    theirs = [model.sp.encode(t) for t in texts]

    def total(ids):
        return sum(model.scores[i] for i in ids)

    theirs = [a if a != b and sorted(a) == sorted(b) and abs(total(a) - total(b)) < 1e-9 * abs(total(a)) else b
              for a, b in zip(ours, theirs)]
    compare(what, texts, ours, theirs)


def check_unigram(cli, texts, folder):
    for name in models.UNIGRAM_MODELS:
        model = models.train_unigram(name, texts.training())
        path = models.write_gguf(folder, name, model)
        everything = texts.encodings(N_TEXTS)
        check_sums(cli, f"unigram, {name}, against sentencepiece", path, everything, model)
        # tokenizers finds control and byte tokens in ordinary text, where they may never come from
        no_bytes = [t for t in everything if "<0x" not in t]
        group = [t for t in no_bytes if not any(s in t for s in model.specials)]
        paths = [models.write_hf(folder, name, model)]
        check_model(cli, f"unigram, {name}, against tokenizers", paths, group, hf_encode(model.hf, True), None)
        check_model(cli, f"unigram, {name}, against tokenizers", paths, no_bytes, None, hf_encode(model.hf, False))
        models.set_metaspace(model, True)
        paths = [models.write_hf(folder, name + "-cut", model)]
        check_model(cli, f"unigram, {name}, against tokenizers that cuts at each space", paths, group, hf_encode(model.hf, True), None)
        models.set_metaspace(model, not models.UNIGRAM_MODELS[name]["allow_whitespace_only_pieces"])
        # the file's flags differ there: tokenizers puts no mark before a space
        group = [t for t in group if not t.startswith((" ", "\u2581"))]
        check_model(cli, f"unigram, {name}, against tokenizers", [path], group, hf_encode(model.hf, True), None)


def check_smollm2(cli, texts):
    path = fetch_model.cache_folder() / fetch_model.MODELS["smollm2"]["file"]
    if not path.exists():
        tap.skip("SmolLM2's own vocabulary", "tools/fetch-model smollm2 was not run")
        return
    hf = models.hf_of_gguf_bpe(path)
    check_model(cli, "SmolLM2's own vocabulary", [path], texts.encodings(2 * N_TEXTS), hf_encode(hf, True), hf_encode(hf, False),
                lambda t: t)


def main():
    parser = argparse.ArgumentParser(description="Compares the tokenizer with published ones.")
    built = Path(os.environ.get("BUILDDIR", ".")) / "tests/oracle/tokenizer_cli"
    parser.add_argument("--cli", default=built, type=Path, help="the program (default: $BUILDDIR/tests/oracle/tokenizer_cli)")
    parser.add_argument("--only", action="append", choices=["splits", "bpe", "spm", "unigram", "smollm2"])
    args = parser.parse_args()
    cli = Cli(args.cli.resolve())
    texts = Texts(random.Random(SEED), cli.unassigned())
    parts = {
        "splits": lambda folder: check_splits(cli, texts),
        "bpe": lambda folder: check_bpe(cli, texts, folder),
        "spm": lambda folder: (check_spm(cli, texts, folder), check_metaspace(cli, texts, folder)),
        "unigram": lambda folder: check_unigram(cli, texts, folder),
        "smollm2": lambda folder: check_smollm2(cli, texts),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only or parts:
            parts[name](Path(folder))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
