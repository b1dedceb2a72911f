"""Vocabularies of the tiny test models: byte-level BPE, SentencePiece BPE and unigram, trained on a fixed text.

Each function gives a namespace: kind ("gpt2", "llama", "t5": tokenizer.ggml.model), pre (split pattern), tokens, types (of
docs/formats.md), scores or None, merges or None, ids bos, eos, unk, pad, flags add_bos, add_space_prefix. All of it
follows from the text below by integer arithmetic, so it is the same on every machine.
"""

import functools
import math
import re
from collections import Counter
from types import SimpleNamespace

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
END_OF_TEXT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TEXT = """The bank keeps the values and the teller serves the customers. The teller looks up each value in the bank
by its number, and the bank is the same for all the customers that wait in the line. What does the ls command do? The ls
command lists the files of a directory. The option -l of ls gives the long form, one file on each line. The cat command
writes the files to the output, one after the other. A server that answers one request at a time is a server that makes
the others wait; the better server answers them together. user assistant system user assistant system. It's what
they're for, isn't it? There were 10 files in 1999, 20 in 2001 and 128 in 2010. The keys are in the cache, the values
are in the bank, and the answer is the sum of the values that the keys have chosen."""


def byte_letters():
    """The 256 letters that byte-level BPE writes bytes with, by byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in shown]
    letters = {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}
    return [letters[b] for b in range(256)]


def train_merges(words, count):
    """The count most frequent pairs, greedily; among equals the first in text order. words: {tuple of pieces: times}."""
    merges = []
    while len(merges) < count:
        pairs = Counter()
        for pieces, times in words.items():
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        joined = Counter()
        for pieces, times in words.items():
            joined[join_pair(pieces, best)] += times
        words = joined
    return merges, words


def join_pair(pieces, pair):
    out = []
    for piece in pieces:
        if out and (out[-1], piece) == pair:
            out[-1] = [out[-1] + piece]  # a list: made in this pass, not joined again
        else:
            out.append(piece)
    return tuple(p[0] if isinstance(p, list) else p for p in out)


def byte_bpe(pre, n_merges=60, specials_first=False, add_bos=False):
    """256 bytes, n_merges joined pieces and three special tokens."""
    letters = byte_letters()
    split = re.findall(r"'[a-z]+| ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9\s]+|\s+", TEXT)
    words = Counter(tuple(letters[b] for b in word.encode()) for word in split)
    merges, _ = train_merges(words, n_merges)
    specials = [END_OF_TEXT, IM_START, IM_END]
    plain = sorted(letters) + [a + b for a, b in merges]
    tokens = specials + plain if specials_first else plain + specials
    types = [CONTROL if t in specials else NORMAL for t in tokens]
    ids = {t: i for i, t in enumerate(tokens)}
    return SimpleNamespace(
        kind="gpt2", pre=pre, tokens=tokens, types=types, scores=None, merges=merges,
        bos=ids[END_OF_TEXT if add_bos else IM_START], eos=ids[IM_END], unk=None, pad=ids[END_OF_TEXT],
        add_bos=add_bos, add_eos=False, add_space_prefix=False, specials=specials,
    )


def marked_words():
    """The text as SentencePiece sees it: words with a leading U+2581, as pieces of one letter."""
    return Counter(tuple("\u2581" + word) for word in TEXT.split())


def sentencepiece_bpe(n_merges=80):
    """Llama 2 style: <unk> <s> </s>, 256 byte tokens, joined pieces with score -rank, then letters."""
    words = marked_words()
    letters = sorted({letter for word in words for letter in word})
    merges, _ = train_merges(words, n_merges)
    pieces = [a + b for a, b in merges] + letters
    specials = ["<unk>", "<s>", "</s>"]
    tokens = specials + [f"<0x{b:02X}>" for b in range(256)] + pieces + [IM_START, IM_END]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces) + [CONTROL] * 2
    scores = [0.0] * 259 + [-float(i) for i in range(len(pieces))] + [0.0] * 2
    return SimpleNamespace(
        kind="llama", pre="default", tokens=tokens, types=types, scores=scores, merges=None,
        bos=1, eos=2, unk=0, pad=0, add_bos=True, add_eos=False, add_space_prefix=True,
        specials=[*specials, IM_START, IM_END],
    )


def unigram(n_merges=110):
    """T5 style: <pad> </s> <unk>, then pieces with the logarithm of their share in the text."""
    words = marked_words()
    merges, rest = train_merges(words, n_merges)
    counts = Counter()
    for pieces, times in rest.items():
        for piece in pieces:
            counts[piece] += 2 * times
    for word, times in words.items():
        for letter in set(word):
            counts[letter] += 1
    for a, b in merges:
        counts[a + b] += 1
    total = sum(counts.values())
    pieces = sorted(counts, key=lambda piece: (-counts[piece], piece))
    tokens = ["<pad>", "</s>", "<unk>", *pieces, IM_START, IM_END]
    types = [CONTROL, CONTROL, UNKNOWN] + [NORMAL] * len(pieces) + [CONTROL] * 2
    scores = [0.0] * 3 + [round(math.log(counts[p] / total), 4) for p in pieces] + [0.0] * 2
    return SimpleNamespace(
        kind="t5", pre="default", tokens=tokens, types=types, scores=scores, merges=None,
        bos=None, eos=1, unk=2, pad=0, add_bos=False, add_eos=False, add_space_prefix=True,
        specials=["<pad>", "</s>", "<unk>", IM_START, IM_END],
    )


@functools.cache
def make(name):
    """The vocabulary that a tiny model names; shared between models, not to be changed."""
    return {
        "gpt-2": lambda: byte_bpe("gpt-2"),
        "llama-bpe": lambda: byte_bpe("llama-bpe", n_merges=100, add_bos=True),
        "qwen2": lambda: byte_bpe("qwen2"),
        "smollm": lambda: byte_bpe("smollm", specials_first=True),
        "nanochat": lambda: byte_bpe("nanochat"),
        "llama": sentencepiece_bpe,
        "t5": unigram,
    }[name]()
