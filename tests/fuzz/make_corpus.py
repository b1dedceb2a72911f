#!/usr/bin/env python3
"""Writes the corpora of the model-file fuzz targets (gguf, safetensors, hf_config, tokenizer_json), small and committed.

    tests/fuzz/make_corpus.py            writes tests/fuzz/corpus/<target>/*

One sound file of each kind, and the damages of the case list that a mutator would take long to find. The standard library
is enough.
"""

import json
import struct
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def save(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


# -- GGUF ---------------------------------------------------------------------------------------------------------


def text(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def u32(v):
    return struct.pack("<II", U32, v)


def f32(v):
    return struct.pack("<If", F32, v)


def string(v):
    return struct.pack("<I", STRING) + text(v)


def boolean(v):
    return struct.pack("<IB", BOOL, v)


def array(kind, items):
    forms = {STRING: text, U32: lambda v: struct.pack("<I", v), I32: lambda v: struct.pack("<i", v),
             F32: lambda v: struct.pack("<f", v), BOOL: lambda v: struct.pack("<B", v)}
    return struct.pack("<IIQ", ARRAY, kind, len(items)) + b"".join(forms[kind](v) for v in items)


def gguf_keys(arch, layers, kind):
    a = arch + "."
    tokens = {"gpt2": ["a", "b", "ab", "<s>"], "llama": ["<unk>", "\u2581", "a", "\u2581a"], "t5": ["<unk>", "a", "\u2581a", "</s>"]}[kind]
    types = {"gpt2": [1, 1, 1, 3], "llama": [2, 1, 1, 1], "t5": [2, 1, 1, 3]}[kind]
    keys = {
        "general.architecture": string(arch), "general.name": string("seed"),
        a + "block_count": u32(layers), a + "context_length": u32(16), a + "embedding_length": u32(32),
        a + "feed_forward_length": u32(1), a + "attention.head_count": u32(1), a + "attention.head_count_kv": u32(1),
        a + "attention.layer_norm_rms_epsilon": f32(1e-5), a + "rope.freq_base": f32(10000.0), a + "vocab_size": u32(4),
        "tokenizer.ggml.model": string(kind), "tokenizer.ggml.pre": string("gpt-2"),
        "tokenizer.ggml.tokens": array(STRING, tokens), "tokenizer.ggml.token_type": array(I32, types),
        "tokenizer.ggml.eos_token_id": u32(3), "tokenizer.ggml.add_bos_token": boolean(0),
        "tokenizer.chat_template": string("{{ messages[0].content }}"),
    }
    if kind == "gpt2":
        keys["tokenizer.ggml.merges"] = array(STRING, ["a b"])
    else:
        keys["tokenizer.ggml.scores"] = array(F32, [0.0, -1.0, -2.0, -3.0])
        keys["tokenizer.ggml.unknown_token_id"] = u32(0)
    if arch == "nanochat":
        keys |= {a + "attention.qk_scale": f32(1.2), a + "final_logit_softcapping": f32(15.0), a + "smear.channels": u32(24)}
    return keys


def bank_keys(a):
    return {
        a + "attention.value_source": array(STRING, ["residual+bank", "bank"]), a + "value_bank.rows": u32(5),
        a + "value_bank.source_layer": array(U32, [0, 0]), a + "value_bank.sink_row": u32(4),
        a + "value_bank.gate": string("sigmoid"), a + "value_bank.gate_channels": u32(12), a + "value_bank.gate_scale": f32(3.0),
        a + "attention.sliding_window": u32(4), a + "attention.sliding_window_pattern": array(BOOL, [1, 0]),
    }


def gguf(keys, tensors, alignment=32, n_keys=None, n_tensors=None, version=3):
    """tensors: (name, dims innermost first, type, bytes)."""
    def padded(data):
        return data + bytes(-len(data) % alignment)

    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if n_tensors is None else n_tensors,
                                 len(keys) if n_keys is None else n_keys)
    head += b"".join(text(key) + value for key, value in keys.items())
    data = b""
    for name, dims, kind, raw in tensors:
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
        data += padded(raw)
    return padded(head) + data


EMBED = ("token_embd.weight", [32, 4], 2, bytes(72))  # Q4_0: 4 rows of 18 bytes


def write_gguf():
    for arch in ("llama", "qwen2", "qwen3", "nanochat"):
        save("gguf", f"sound-{arch}", gguf(gguf_keys(arch, 1, "gpt2"), [EMBED]))
    for kind in ("llama", "t5"):
        save("gguf", f"sound-vocab-{kind}", gguf(gguf_keys("llama", 1, kind), [EMBED]))
    bank = [EMBED, ("blk.0.attn_v_bank.weight", [32, 5], 8, bytes(170)),
            ("blk.1.attn_v_bank.gamma", [1], 0, struct.pack("<f", 2.5)),
            ("rope_freqs.weight", [16], 0, struct.pack("<16f", *[1.0] * 16))]
    sound = gguf_keys("llama", 2, "gpt2")
    save("gguf", "sound-bank", gguf(sound | bank_keys("llama."), bank))
    save("gguf", "sound-version-2", gguf(sound, [EMBED], version=2))
    save("gguf", "sound-alignment", gguf(sound | {"general.alignment": u32(8)}, [EMBED], 8))
    save("gguf", "counts", gguf({}, [], n_keys=1 << 62, n_tensors=1 << 60))
    save("gguf", "nested-arrays", gguf({"k": struct.pack("<IIQ", ARRAY, ARRAY, 1) * 20}, []))
    save("gguf", "array-wraps", gguf({"k": struct.pack("<IIQ", ARRAY, 10, 1 << 61)}, []))
    save("gguf", "string-beyond", gguf({"k": struct.pack("<IQ", STRING, 1 << 40)}, []))
    for alignment in (0, 3, 24, 1 << 31):
        save("gguf", f"alignment-{alignment}", gguf(sound | {"general.alignment": u32(alignment)}, [EMBED]))
    for i, dims in enumerate([[1 << 32, 1 << 32], [(1 << 63) - 1, 2], [32, (1 << 42) + 1], [0, 4], [], [32] * 5, [32] * 4]):
        save("gguf", f"dims-{i}", gguf(sound, [("token_embd.weight", dims, 0, bytes(128))]))
    save("gguf", "cut", gguf(sound, [EMBED])[:-40])
    save("gguf", "value-types", gguf(sound | {"llama.block_count": f32(2.0)}, [EMBED]))
    save("gguf", "no-heads", gguf(sound | {"llama.attention.head_count": u32(0)}, [EMBED]))


# -- safetensors --------------------------------------------------------------------------------------------------


def safetensors(header, data=b"", length=None):
    body = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(body) if length is None else length) + body + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write_safetensors():
    sound = {"__metadata__": {"format": "pt"}, "b": tensor("BF16", [2, 1], 16, 20), "a": tensor("F32", [4], 0, 16),
             "s": tensor("F32", [], 20, 24), "e": tensor("F16", [0, 3], 24, 24)}
    save("safetensors", "sound", safetensors(sound, bytes(24)))
    save("safetensors", "sound-spaces", safetensors(json.dumps(sound).encode() + b"   ", bytes(24)))
    save("safetensors", "sound-empty", safetensors({}))
    for i, length in enumerate([(1 << 64) - 1, (1 << 64) - 5, 101000000, 0, 1]):
        save("safetensors", f"length-{i}", safetensors(sound, bytes(24), length))
    for i, entry in enumerate([5, [], {}, tensor("F7", [1], 0, 4), tensor("F32", [1 << 33, 1 << 33], 0, 4),
                               tensor("F32", [-1], 0, 4), tensor("F32", [1], 4, 0), tensor("F32", [1], -4, 0),
                               tensor("F32", [1], 0.5, 4), tensor("F32", [2], 0, 4), tensor("F32", [1], 0, 400)]):
        save("safetensors", f"entry-{i}", safetensors({"a": entry}, bytes(4)))
    save("safetensors", "overlap", safetensors({"a": tensor("F32", [1], 0, 4), "b": tensor("F32", [1], 2, 6)}, bytes(6)))
    save("safetensors", "hole", safetensors({"a": tensor("F32", [1], 0, 4), "b": tensor("F32", [1], 8, 12)}, bytes(12)))
    save("safetensors", "deep", safetensors(b'{"a":' + b"[" * 300 + b"]" * 300 + b"}"))
    save("safetensors", "short", b"\x02\0\0")


# -- config.json --------------------------------------------------------------------------------------------------


def write_config():
    sound = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 2,
             "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "hidden_act": "silu",
             "tie_word_embeddings": True, "rope_theta": 500000.0}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 32}
    bank = {"value_source": ["residual+bank", "bank"], "rows": 9, "source_layer": [1, 1], "sink_row": 8, "gate": "sigmoid",
            "gate_channels": 12, "gate_scale": 3.0}
    variants = {
        "llama": {}, "llama3": {"rope_scaling": llama3}, "parameters": {"rope_parameters": llama3 | {"rope_theta": 1e4}},
        "linear": {"rope_scaling": {"type": "linear", "factor": 4}}, "mistral": {"model_type": "mistral", "sliding_window": 16},
        "qwen2": {"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 1},
        "qwen3": {"model_type": "qwen3", "head_dim": 128, "layer_types": ["full_attention", "sliding_attention"]},
        "nanochat": {"model_type": "nanochat", "hidden_act": "relu2", "qk_scale": 1.2, "final_logit_softcapping": 15.0,
                     "smear_channels": 24, "sliding_window": 4, "sliding_window_pattern": [True, False]},
        "bank": {"value_bank": bank}, "yarn": {"rope_scaling": {"rope_type": "yarn"}}, "no-heads": {"num_attention_heads": 0},
        "huge": {"num_hidden_layers": 1 << 31, "hidden_size": 1 << 40}, "types": {"num_hidden_layers": "2"},
    }
    for name, changes in variants.items():
        save("hf_config", name, json.dumps(sound | changes, indent=1))
    save("hf_config", "broken", '{"model_type": "llama", ')


# -- tokenizer.json -----------------------------------------------------------------------------------------------


def write_tokenizer():
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    added = [{"id": 4, "content": "<s>", "special": True}, {"id": 6, "content": "<tool>", "special": False}]
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                "special_tokens": {"<s>": {"ids": [4]}}}
    bpe = {"added_tokens": added, "normalizer": {"type": "NFC"}, "pre_tokenizer": byte_level, "post_processor": template,
           "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3}, "merges": ["a b"]},
           "bos_token": "<s>", "eos_token": {"content": "<tool>"}, "eos_token_id": [4, 6], "add_bos_token": True,
           "chat_template": [{"name": "default", "template": "{{ x }}"}], "temperature": 0.6, "top_k": 20}
    save("tokenizer_json", "bpe", json.dumps(bpe))
    save("tokenizer_json", "pairs", json.dumps(bpe | {"model": bpe["model"] | {"merges": [["a", "b"]], "ignore_merges": True}}))
    digits = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]}
    save("tokenizer_json", "smollm", json.dumps(bpe | {"pre_tokenizer": digits}))
    split = {"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Isolated", "invert": False}
    unknown = {"type": "Sequence", "pretokenizers": [split, byte_level | {"use_regex": False}]}
    save("tokenizer_json", "unknown-split", json.dumps(bpe | {"pre_tokenizer": unknown}))
    marks = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                                                 {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    spm = {"added_tokens": [{"id": 0, "content": "<unk>", "special": True}], "normalizer": marks, "pre_tokenizer": None,
           "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "merges": ["\u2581 a"],
                     "vocab": {"<unk>": 0, "<0x0A>": 1, "\u2581": 2, "a": 3, "\u2581a": 4}}}
    save("tokenizer_json", "spm", json.dumps(spm))
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    save("tokenizer_json", "metaspace", json.dumps(spm | {"normalizer": None, "pre_tokenizer": space}))
    unigram = {"pre_tokenizer": {"type": "Metaspace"},
               "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["\u2581a", -2]]}}
    save("tokenizer_json", "unigram", json.dumps(unigram))
    save("tokenizer_json", "bad-byte", json.dumps(spm).replace("<0x0A>", "<0x-1>"))
    save("tokenizer_json", "far-id", json.dumps(bpe).replace('"a": 0', '"a": 4194303'))
    save("tokenizer_json", "same-id", json.dumps(bpe).replace('"a": 0', '"a": 1'))
    save("tokenizer_json", "bad-merge", json.dumps(bpe).replace('"a b"', '"a  b"'))


if __name__ == "__main__":
    write_gguf()
    write_safetensors()
    write_config()
    write_tokenizer()
