"""The list of tiny test models. One row a model; what a row does not say is in DEFAULTS.

Letters: L layers, C channels, H query heads, K kv heads, D head size, F feed-forward.
value: one letter a layer: r residual, b bank, + residual+bank, and two that only the oracle's .source.gguf files have
(compiled into banks by tests/oracle/compile_bank.py): x = Wv rms(e_t), 1 = gamma times layer 0's value.
"""

from types import SimpleNamespace

DEFAULTS = {
    "L": 4, "C": 128, "H": 4, "K": 2, "D": 32, "F": 256,
    "rows": 320,                # embedding rows; more than the vocabulary's tokens: padding
    "tied": False,
    "type": "F32",              # of the matrices
    "embed_type": None,         # of token_embd and output; default: type
    "hf": None,                 # type of the Hugging Face twin, or None
    "shards": 1,
    "model_type": None,         # of the twin's config.json; default: arch
    "vocab": "gpt-2",
    "rope_base": 10000.0,
    "rope_dims": None,          # how many of a head's numbers turn; default: D
    "rope_scaling": None,       # None, ("linear", factor) or ("llama3", factor, low, high, original context)
    "eps": 1e-5,
    "context": 512,
    "window": None,             # W
    "pattern": None,            # one letter a layer: S window, L full; None: window in all layers
    "bias": False,              # on q, k, v
    "qk_norm": False,
    "value": None,              # default: all r
    "gammas": None,             # one a layer that reads a bank, in order; None: no gamma tensor
    "source_layer": None,       # which layer's bank a layer reads; None: its own
    "bank_type": None,          # default: type
    "extra_rows": 0,            # bank rows beyond the embedding's
    "sink": False,              # the last bank row is for position 0
    "gate": "none",
    "smear": 0.7,               # nanochat's smear lambda
}

NANOCHAT = {"vocab": "nanochat", "rope_base": 100000.0, "eps": 1.1920929e-07, "H": 2, "K": 2, "D": 64, "F": 512}
K_QUANT = {"L": 3, "C": 256, "H": 4, "K": 4, "D": 64, "F": 512, "value": "rrb", "gammas": [2.5]}
BLOCK32 = {"L": 3, "C": 128, "value": "rrb", "gammas": [2.5]}

# (name, architecture, differences from DEFAULTS)
TABLE = [
    # Families, each as GGUF and as a Hugging Face directory of the same numbers.
    ("llama", "llama", {"K": 4, "rows": 384, "tied": True, "hf": "F32"}),
    ("llama3", "llama", {"C": 256, "H": 8, "K": 2, "type": "BF16", "hf": "BF16", "shards": 3, "vocab": "llama-bpe", "rows": 384,
                         "rope_base": 500000.0, "rope_scaling": ("llama3", 8.0, 1.0, 4.0, 32)}),
    ("llama-linear", "llama", {"L": 2, "C": 96, "H": 3, "K": 1, "rope_scaling": ("linear", 4.0), "hf": "F32", "tied": True}),
    ("smollm", "llama", {"L": 3, "C": 576, "H": 9, "K": 3, "D": 64, "F": 384, "type": "Q4_1", "embed_type": "Q8_0",
                         "tied": True, "vocab": "smollm", "rope_base": 100000.0}),
    ("mistral", "llama", {"H": 4, "K": 1, "window": 16, "type": "F16", "hf": "F16", "model_type": "mistral"}),
    ("qwen2", "qwen2", {"C": 64, "H": 2, "K": 1, "rope_base": 1000000.0, "bias": True, "tied": True, "eps": 1e-6, "hf": "F32",
                        "vocab": "qwen2"}),
    ("qwen3", "qwen3", {"C": 128, "H": 4, "K": 2, "D": 64, "rope_base": 1000000.0, "qk_norm": True, "tied": True, "eps": 1e-6,
                        "type": "BF16", "hf": "BF16", "vocab": "qwen2"}),
    ("nanochat", "nanochat", NANOCHAT | {"window": 13, "pattern": "SSSL", "hf": "F32"}),
    ("rope-part", "llama", {"L": 2, "D": 64, "H": 2, "K": 1, "rope_dims": 32}),
    ("rope-part-qwen2", "qwen2", {"L": 2, "D": 64, "H": 2, "K": 1, "rope_dims": 48, "bias": True, "vocab": "qwen2"}),
    ("head128", "llama", {"L": 2, "C": 256, "H": 2, "K": 1, "D": 128}),
    # Value sources.
    ("bank-third", "llama", {"L": 6, "value": "rrrrbb", "gammas": [2.5, 12.0], "hf": "F32"}),
    ("bank-half", "llama", {"L": 6, "value": "rrrbbb", "type": "BF16", "hf": "BF16"}),
    ("bank-alternate", "llama", {"value": "rbrb", "gammas": [1.5, 11.0], "type": "F16"}),
    ("bank-all", "llama", {"L": 2, "value": "bb", "gammas": [0.5, 3.0]}),
    ("bank-plus", "llama", {"value": "rr++", "gammas": [1.5, 0.7], "hf": "F32"}),
    ("bank-gated", "llama", {"value": "r+r+", "gate": "sigmoid"}),
    ("bank-shared", "llama", {"L": 6, "value": "rrrbbb", "gammas": [1.5, 4.0, -2.0], "source_layer": [0, 1, 2, 3, 3, 3],
                              "hf": "F32"}),
    ("bank-sink", "llama", {"value": "rrbb", "gammas": [12.0, 12.0], "extra_rows": 8, "sink": True, "hf": "F32"}),
    ("bank-mixed", "qwen3", {"L": 5, "C": 128, "H": 4, "K": 2, "D": 128, "qk_norm": True, "value": "rb+rb",
                             "gammas": [2.0, 1.0, 6.0], "eps": 1e-6, "vocab": "qwen2"}),
    ("bank-qwen2", "qwen2", {"value": "rrbb", "gammas": [3.0, 1.25], "bias": True, "eps": 1e-6, "vocab": "qwen2"}),
    ("bank-window", "llama", {"value": "rbrb", "gammas": [2.0, 2.0], "window": 16, "pattern": "SSLL"}),
    ("nanochat-bank", "nanochat", NANOCHAT | {"L": 6, "window": 13, "pattern": "SSSLSL", "value": "rrrrbb",
                                              "gammas": [2.2, 10.5], "hf": "F32"}),
    ("nanochat-gated", "nanochat", NANOCHAT | {"window": 13, "pattern": "SSSL", "value": "r+r+", "gate": "sigmoid",
                                               "hf": "F32"}),
    # Weight types; the bank has the type too.
    ("type-q8_0", "llama", BLOCK32 | {"type": "Q8_0"}),
    ("type-q4_0", "llama", BLOCK32 | {"type": "Q4_0"}),
    ("type-q4_1", "llama", BLOCK32 | {"type": "Q4_1"}),
    ("type-q5_0", "llama", BLOCK32 | {"type": "Q5_0"}),
    ("type-q5_1", "llama", BLOCK32 | {"type": "Q5_1"}),
    ("type-q4_k", "llama", K_QUANT | {"type": "Q4_K"}),
    ("type-q5_k", "llama", K_QUANT | {"type": "Q5_K"}),
    ("type-q6_k", "llama", K_QUANT | {"type": "Q6_K"}),
    ("nanochat-q8_0", "nanochat", NANOCHAT | {"L": 3, "type": "Q8_0", "value": "rrb", "gammas": [10.5]}),
    # Other vocabularies.
    ("spm", "llama", {"L": 2, "C": 64, "H": 2, "K": 2, "vocab": "llama", "rows": 384, "hf": "F32"}),
    ("unigram", "llama", {"L": 2, "C": 64, "H": 2, "K": 2, "vocab": "t5", "rows": 160, "hf": "F32"}),
]

# Sources of tests/oracle/compile_bank.py, not models that tellerd reads. With no smear, layer 0's value and x0 are
# functions of the token alone.
SOURCES = [
    ("x0wv", "llama", {"L": 6, "value": "rrrrxx"}),
    ("x0wv-gamma", "llama", {"L": 6, "value": "rrrxxx", "gammas": [0.8, 3.0, 11.0]}),
    ("x0wv-nanochat", "nanochat", NANOCHAT | {"L": 6, "value": "rrrrxx", "gammas": [2.0, 10.0], "smear": 0.0}),
    ("v1", "llama", {"L": 6, "value": "rrrr11"}),
    ("v1-gamma", "llama", {"L": 6, "value": "rrr111", "gammas": [0.8, 3.0, 11.0]}),
    ("v1-every", "llama", {"L": 4, "value": "r111"}),
    ("v1-nanochat", "nanochat", NANOCHAT | {"L": 6, "value": "rrrr11", "gammas": [2.0, 10.0], "smear": 0.0}),
]


def make_spec(name, arch, differences):
    unknown = set(differences) - set(DEFAULTS)
    if unknown:
        raise ValueError(f"{name}: unknown {unknown}")
    spec = SimpleNamespace(name=name, arch=arch, **(DEFAULTS | differences))
    spec.value = spec.value or "r" * spec.L
    spec.embed_type = spec.embed_type or spec.type
    spec.bank_type = spec.bank_type or spec.type
    spec.rope_dims = spec.rope_dims or spec.D
    spec.model_type = spec.model_type or spec.arch
    spec.source_layer = spec.source_layer or list(range(spec.L))
    return spec


def specs():
    return {row[0]: make_spec(*row) for row in TABLE}


def sources():
    return {row[0]: make_spec(*row) for row in SOURCES}
