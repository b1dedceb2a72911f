"""Vocabularies for tests/oracle/tokenizer_oracle.py: trained by the published libraries, written for tellerd.

A model is a namespace: what tools/lib/tiny_write.py takes as a vocabulary (kind, pre, tokens, types, scores, merges, ...), and
the reference tokenizers: hf (PyPI tokenizers), sp (PyPI sentencepiece).
"""

import io
import json
from types import SimpleNamespace

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers import models as hf_models

from lib import gguf, tiny_specs, tiny_weights, tiny_write

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MARK = "\u2581"
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_TOKENS = ["<tool>", "<tool>>", "[[", "[[["]
VOCAB_SIZE = 1500

# The patterns as published. PATTERNS are those that one pattern describes; SmolLM2 cuts out digits first, then splits as GPT-2.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PATTERNS = {
    "gpt2": GPT2,
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "nanochat": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
}
BPE_FAMILIES = ["gpt-2", "llama-bpe", "qwen2", "smollm", "nanochat"]
WHOLE_TOKENS = {"llama-bpe", "nanochat"}  # take a pre-token that is a token without merging

# A vocabulary that tokenizers trains over characters: (fuse_unk, Metaspace's prepend_scheme and split)
METASPACE_MODELS = {"metaspace-first": (False, "first", True), "metaspace-always": (True, "always", False)}
# name: what differs from the trainer's common options; hf: whether tokenizers' form of it is made too
SPM_MODELS = {
    "spm-bytes": {"byte_fallback": True, "hf": True},
    "spm-unknown": {"byte_fallback": False, "add_dummy_prefix": False},
    "spm-across": {"byte_fallback": True, "split_by_whitespace": False},
}
# tokenizers cuts at every space mark (as T5 does) or nowhere; only where no token has two marks is the first the same
UNIGRAM_MODELS = {
    "unigram-unknown": {"byte_fallback": False, "allow_whitespace_only_pieces": False},
    "unigram-bytes": {"byte_fallback": True, "allow_whitespace_only_pieces": True},
}


# -- byte-level BPE -----------------------------------------------------------------------------------------------


def bpe_pre_tokenizer(family):
    if family == "gpt-2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if family == "smollm":
        first = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([first, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    split = pre_tokenizers.Split(Regex(PATTERNS[{"llama-bpe": "llama3"}.get(family, family)]), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train_bpe(family, texts):
    hf = Tokenizer(hf_models.BPE(ignore_merges=family in WHOLE_TOKENS))
    hf.pre_tokenizer = bpe_pre_tokenizer(family)
    hf.decoder = decoders.ByteLevel()
    if family == "qwen2":
        hf.normalizer = normalizers.NFC()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    hf.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=VOCAB_SIZE, initial_alphabet=alphabet, special_tokens=SPECIALS,
                                                      show_progress=False))
    hf.add_tokens([AddedToken(t, normalized=False) for t in USER_TOKENS])
    return bpe_model(hf, family)


def bpe_model(hf, family):
    description = json.loads(hf.to_str())
    merges = [tuple(m) for m in description["model"]["merges"]]
    tokens = [hf.id_to_token(i) for i in range(hf.get_vocab_size())]
    types = [CONTROL if t in SPECIALS else USER_DEFINED if t in USER_TOKENS else NORMAL for t in tokens]
    ids = {t: i for i, t in enumerate(tokens)}
    return SimpleNamespace(
        hf=hf, hf_json=description, kind="gpt2", pre=family, tokens=tokens, types=types, scores=None, merges=merges,
        bos=ids["<|im_start|>"], eos=ids["<|im_end|>"], unk=None, pad=ids["<|endoftext|>"], add_bos=False, add_eos=False,
        add_space_prefix=False, specials=SPECIALS,
    )


def hf_of_gguf_bpe(path):
    """The vocabulary of a GGUF file of the smollm kind, in tokenizers."""
    meta = gguf.read(path).meta
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    merges = [tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]
    hf = Tokenizer(hf_models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    hf.pre_tokenizer = bpe_pre_tokenizer(meta["tokenizer.ggml.pre"])
    hf.add_special_tokens([t for t, kind in zip(tokens, types) if kind == CONTROL])
    return hf


# -- SentencePiece ------------------------------------------------------------------------------------------------


def train_sp(model_type, texts, options):
    lines = [line for text in texts for line in text.replace("\x00", "").split("\n") if line.strip()]
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, model_type=model_type, vocab_size=VOCAB_SIZE, character_coverage=0.999,
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        control_symbols=["<|im_start|>", "<|im_end|>"], num_threads=1, minloglevel=2, **options)
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())


def sp_model(sp, kind, add_prefix):
    n = sp.get_piece_size()
    tests = ((sp.is_unknown, UNKNOWN), (sp.is_control, CONTROL), (sp.is_byte, BYTE), (sp.is_unused, UNUSED))
    types = [next((kind for is_kind, kind in tests if is_kind(i)), NORMAL) for i in range(n)]
    tokens = [sp.id_to_piece(i) for i in range(n)]
    return SimpleNamespace(
        sp=sp, hf=None, kind=kind, pre="default", tokens=tokens, types=types, scores=[sp.get_score(i) for i in range(n)], merges=None,
        bos=sp.bos_id(), eos=sp.eos_id(), unk=sp.unk_id(), pad=sp.eos_id(), add_bos=False, add_eos=False, add_space_prefix=add_prefix,
        specials=[t for t, kind in zip(tokens, types) if kind in (CONTROL, UNKNOWN)],
    )


def add_specials(model):
    model.hf.add_special_tokens([AddedToken(t, normalized=False) for t in model.specials])
    model.hf_json = json.loads(model.hf.to_str())


def train_spm(name, texts):
    options = {"allow_whitespace_only_pieces": True} | SPM_MODELS[name]
    with_hf = options.pop("hf", False)
    model = sp_model(train_sp("bpe", texts, options), "llama", options.get("add_dummy_prefix", True))
    if with_hf:
        merges = all_merges(model)
        vocab = {t: i for i, t in enumerate(model.tokens)}
        model.hf = Tokenizer(hf_models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        model.hf.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
        model.hf.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                              decoders.Strip(" ", 1, 0)])
        add_specials(model)
    return model


def all_merges(model):
    """Every way to cut a token into two, best score first: how transformers converts such a vocabulary."""
    ids = {t: i for i, (t, kind) in enumerate(zip(model.tokens, model.types)) if kind == NORMAL}
    merges = []
    for token in sorted(ids, key=lambda t: -model.scores[ids[t]]):
        halves = [(token[:i], token[i:]) for i in range(1, len(token))]
        merges += sorted(((a, b) for a, b in halves if a in ids and b in ids), key=lambda h: (ids[h[0]], ids[h[1]]))
    return merges


def train_metaspace(name, texts):
    fuse, scheme, cuts = METASPACE_MODELS[name]
    hf = Tokenizer(hf_models.BPE(unk_token="<unk>", fuse_unk=fuse))
    hf.pre_tokenizer = pre_tokenizers.Metaspace(MARK, scheme, split=cuts)
    hf.decoder = decoders.Metaspace(MARK, scheme, split=cuts)
    specials = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    hf.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=VOCAB_SIZE, limit_alphabet=120, special_tokens=specials,
                                                      show_progress=False))
    hf.add_tokens([AddedToken(t, normalized=False) for t in USER_TOKENS])
    tokens = [hf.id_to_token(i) for i in range(hf.get_vocab_size())]
    return SimpleNamespace(hf=hf, hf_json=json.loads(hf.to_str()), kind="llama", tokens=tokens, bos=1, eos=2, unk=0, pad=2,
                           add_bos=False, specials=specials)


def train_unigram(name, texts):
    options = UNIGRAM_MODELS[name]
    model = sp_model(train_sp("unigram", texts, options), "t5", True)
    pieces = list(zip(model.tokens, model.scores))
    model.hf = Tokenizer(hf_models.Unigram(pieces, model.unk, byte_fallback=options["byte_fallback"]))
    set_metaspace(model, not options["allow_whitespace_only_pieces"])
    add_specials(model)
    return model


def set_metaspace(model, cuts):
    model.hf.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "always", split=cuts)
    model.hf.decoder = decoders.Metaspace(MARK, "always", split=cuts)
    model.hf_json = json.loads(model.hf.to_str())


# -- files --------------------------------------------------------------------------------------------------------


def spec_for(model, name):
    """The smallest model that holds the vocabulary."""
    spec = SimpleNamespace(**vars(tiny_specs.specs()["llama"]))
    spec.name, spec.rows, spec.hf = name, len(model.tokens), "F32"
    spec.L, spec.C, spec.H, spec.K, spec.D, spec.F, spec.value, spec.source_layer = 1, 32, 1, 1, 32, 32, "r", [0]
    spec.rope_dims = spec.D
    return spec


def write_gguf(folder, name, model):
    spec = spec_for(model, name)
    path = folder / f"{name}.gguf"
    tiny_write.write_gguf(path, spec, tiny_weights.make(spec), model)
    return path


def write_hf(folder, name, model):
    spec = spec_for(model, name)
    path = folder / f"{name}-hf"
    tiny_write.write_hf(path, spec, tiny_weights.make(spec), model, model.hf_json)
    return path


def write(folder, name, model):
    return [write_gguf(folder, name, model), write_hf(folder, name, model)]
