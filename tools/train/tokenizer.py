#!/usr/bin/env python3
"""Train the byte-level BPE (SmolLM2's splitting: single digits, GPT-2 pattern) and encode text and chats with it."""

import argparse
import itertools
import json
import os
import re

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import qa

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END_OF_TEXT, IM_START, IM_END = 0, 1, 2
CHAT_TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def plain(text):
    """A page as training text: indentation and blank lines say little to a small model."""
    lines = [re.sub(r"\s+", " ", x).strip() for x in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


class Codec:
    def __init__(self, path):
        self.tok = Tokenizer.from_file(path)
        self.cache = {}

    def text(self, s):
        ids = self.cache.get(s)
        if ids is None:
            ids = self.tok.encode(s, add_special_tokens=False).ids
            if len(s) < 200 and len(self.cache) < 100000:
                self.cache[s] = ids
        return ids

    def chat(self, messages, generate=False):
        """(ids, role of each id): 2 answer, 1 question, 0 markup. Text and special tokens are encoded apart."""
        ids, kinds = [], []

        def put(new, kind):
            ids.extend(new)
            kinds.extend([kind] * len(new))

        for role, content in messages:
            put([IM_START] + self.text(role) + self.text("\n"), 0)
            put(self.text(content), 2 if role == "assistant" else 1)
            put([IM_END], 2 if role == "assistant" else 0)
            put(self.text("\n"), 0)
        if generate:
            put([IM_START] + self.text("assistant") + self.text("\n"), 0)
        return ids, kinds

    def decode(self, ids):
        return self.tok.decode(ids, skip_special_tokens=True)


def corpus(data, facts):
    for page in qa.load_pages(os.path.join(data, "pages.jsonl")):
        yield plain(page["text"])[:6000]
    for chat in itertools.islice(qa.conversations(facts, 7), 30000):
        for _, text in chat:
            yield text


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--data", required=True)
    ap.add_argument("--vocab", type=int, default=4096)
    args = ap.parse_args()
    with open(os.path.join(args.data, "facts.json")) as f:
        facts = json.load(f)
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=args.vocab,
        special_tokens=SPECIAL,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tok.train_from_iterator(corpus(args.data, facts), trainer)
    tok.save(os.path.join(args.data, "tokenizer.json"))
    print("vocabulary %d" % tok.get_vocab_size())


if __name__ == "__main__":
    main()
