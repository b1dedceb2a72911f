"""The tokenizer.json of a tiny vocabulary, in the form that real models of its family have."""

PATTERNS = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "nanochat": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
}


def make(vocab):
    added = [{"id": vocab.tokens.index(t), "content": t, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True} for t in vocab.specials]
    parts = {"gpt2": byte_level, "llama": sentencepiece, "t5": unigram}[vocab.kind](vocab)
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added} | parts


def byte_level_step(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": use_regex}


def pre_tokenizer(pre):
    if pre == "gpt-2":
        return byte_level_step(True)
    if pre == "smollm":
        return {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level_step(True)]}
    split = {"type": "Split", "pattern": {"Regex": PATTERNS[pre]}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, byte_level_step(False)]}


def bos_template(vocab):
    """The post-processor that puts the first token in front."""
    bos = vocab.tokens[vocab.bos]
    first = {"SpecialToken": {"id": bos, "type_id": 0}}
    text = [{"Sequence": {"id": which, "type_id": i}} for i, which in enumerate("AB")]
    second = {"SpecialToken": {"id": bos, "type_id": 1}}
    return {"type": "TemplateProcessing", "single": [first, text[0]], "pair": [first, text[0], second, text[1]],
            "special_tokens": {bos: {"id": bos, "ids": [vocab.bos], "tokens": [bos]}}}


def byte_level(vocab):
    ids = {t: i for i, t in enumerate(vocab.tokens) if vocab.pre == "smollm" or t not in vocab.specials}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": vocab.pre == "llama-bpe", "vocab": ids,
             # Both forms of merges are in use: "a b" and ["a", "b"].
             "merges": [[a, b] if vocab.pre == "llama-bpe" else f"{a} {b}" for a, b in vocab.merges]}
    return {
        "normalizer": {"type": "NFC"} if vocab.pre == "qwen2" else None,
        "pre_tokenizer": pre_tokenizer(vocab.pre),
        "post_processor": bos_template(vocab) if vocab.add_bos else byte_level_step(False),
        "decoder": byte_level_step(True),
        "model": model,
    }


def sentencepiece(vocab):
    ids = {t: i for i, t in enumerate(vocab.tokens)}
    pieces = [(-score, t) for t, kind, score in zip(vocab.tokens, vocab.types, vocab.scores) if kind == 1 and len(t) > 1]
    merges = []
    for rank, piece in sorted(pieces):
        halves = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        merges += sorted(((a, b) for a, b in halves if a in ids and b in ids), key=lambda h: (ids[h[0]], ids[h[1]]))
    model = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": ids,
             "merges": [f"{a} {b}" for a, b in merges]}
    return {
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "pre_tokenizer": None,
        "post_processor": bos_template(vocab),
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": model,
    }


def unigram(vocab):
    step = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    pieces = [[t, s] for t, s in zip(vocab.tokens, vocab.scores)]
    return {
        "normalizer": None,
        "pre_tokenizer": step,
        "post_processor": None,
        "decoder": step,
        "model": {"type": "Unigram", "unk_id": vocab.unk, "vocab": pieces, "byte_fallback": False},
    }
