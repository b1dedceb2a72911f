"""Writes a tiny model as GGUF and as a Hugging Face directory; keys and names of docs/formats.md."""

import json
import math
from pathlib import Path

import numpy as np

from . import gguf, safetensors, tiny_vocab
from .gguf import array, boolean, f32, string, u32

VALUE_SOURCES = {"r": "residual", "b": "bank", "+": "residual+bank", "x": "x0", "1": "v1"}


def rope_divisors(spec):
    """Llama 3 scaling: what each of the D/2 frequencies is divided by."""
    _, factor, low, high, original = spec.rope_scaling
    divisors = []
    for i in range(spec.D // 2):
        wavelength = 2 * math.pi * spec.rope_base ** (2 * i / spec.D)
        if wavelength < original / high:
            divisors.append(1.0)
        elif wavelength > original / low:
            divisors.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            divisors.append(1.0 / ((1.0 - smooth) / factor + smooth))
    return np.array(divisors, np.float32)


def interleaved(x, D):
    """Rows (or bias entries) of q or k from halves (i, i + D/2) to pairs (2i, 2i + 1), head by head."""
    return np.ascontiguousarray(x.reshape(-1, 2, D // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape))


# -- GGUF ---------------------------------------------------------------------------------------------------------


def gguf_meta(spec, vocab):
    a = spec.arch + "."
    meta = {
        "general.architecture": string(spec.arch),
        "general.name": string("tiny-" + spec.name),
        a + "block_count": u32(spec.L),
        a + "context_length": u32(spec.context),
        a + "embedding_length": u32(spec.C),
        a + "feed_forward_length": u32(spec.F),
        a + "attention.head_count": u32(spec.H),
        a + "attention.head_count_kv": u32(spec.K),
        a + "attention.layer_norm_rms_epsilon": f32(spec.eps),
        a + "rope.freq_base": f32(spec.rope_base),
        a + "rope.dimension_count": u32(spec.rope_dims),
        a + "vocab_size": u32(len(vocab.tokens)),
    }
    if spec.D * spec.H != spec.C:
        meta[a + "attention.key_length"] = u32(spec.D)
        meta[a + "attention.value_length"] = u32(spec.D)
    if spec.rope_scaling and spec.rope_scaling[0] == "linear":
        meta[a + "rope.scaling.type"] = string("linear")
        meta[a + "rope.scaling.factor"] = f32(spec.rope_scaling[1])
    if spec.window:
        meta[a + "attention.sliding_window"] = u32(spec.window)
        if spec.pattern:
            meta[a + "attention.sliding_window_pattern"] = array("bool", [s == "S" for s in spec.pattern])
    if spec.arch == "nanochat":
        meta[a + "attention.qk_scale"] = f32(1.2)
        meta[a + "final_logit_softcapping"] = f32(15.0)
        meta[a + "smear.channels"] = u32(24)
    return meta | gguf_bank_meta(spec, a) | gguf_vocab_meta(vocab)


def gguf_bank_meta(spec, a):
    if set(spec.value) == {"r"}:
        return {}
    rows = spec.rows + spec.extra_rows
    meta = {
        a + "attention.value_source": array("string", [VALUE_SOURCES[v] for v in spec.value]),
        a + "value_bank.rows": u32(rows),
    }
    if spec.source_layer != list(range(spec.L)):
        meta[a + "value_bank.source_layer"] = array("u32", spec.source_layer)
    if spec.sink:
        meta[a + "value_bank.sink_row"] = u32(rows - 1)
    if spec.gate != "none":
        meta[a + "value_bank.gate"] = string(spec.gate)
        meta[a + "value_bank.gate_channels"] = u32(12)
        meta[a + "value_bank.gate_scale"] = f32(3.0)
    return meta


def gguf_vocab_meta(vocab):
    t = "tokenizer.ggml."
    meta = {
        t + "model": string(vocab.kind),
        t + "pre": string(vocab.pre),
        t + "tokens": array("string", vocab.tokens),
        t + "token_type": array("i32", vocab.types),
        t + "eos_token_id": u32(vocab.eos),
        t + "padding_token_id": u32(vocab.pad),
        t + "add_bos_token": boolean(vocab.add_bos),
        t + "add_eos_token": boolean(vocab.add_eos),
        t + "add_space_prefix": boolean(vocab.add_space_prefix),
        "tokenizer.chat_template": string(tiny_vocab.CHATML),
    }
    if vocab.bos is not None:
        meta[t + "bos_token_id"] = u32(vocab.bos)
    if vocab.unk is not None:
        meta[t + "unknown_token_id"] = u32(vocab.unk)
    if vocab.scores:
        meta[t + "scores"] = array("f32", vocab.scores)
    if vocab.merges:
        meta[t + "merges"] = array("string", [f"{a} {b}" for a, b in vocab.merges])
    return meta


def gguf_tensors(spec, weights):
    tensors = []
    for name, (type_name, x) in weights.items():
        part = name.split(".")[-2] if name.startswith("blk.") else ""
        if spec.arch == "llama" and part in ("attn_q", "attn_k"):
            x = interleaved(x, spec.D)
        tensors.append((name, type_name, x))
    if spec.rope_scaling and spec.rope_scaling[0] == "llama3":
        tensors.append(("rope_freqs.weight", "F32", rope_divisors(spec)))
    return tensors


def write_gguf(path, spec, weights, vocab):
    gguf.write(path, gguf_meta(spec, vocab), gguf_tensors(spec, weights))


# -- Hugging Face -------------------------------------------------------------------------------------------------

HF_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    "smear_gate.weight": "model.smear_gate.weight",
    "smear_lambda": "model.smear_lambda",
}
HF_LAYER_NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "attn_v_bank": "self_attn.v_bank", "attn_v_gate": "self_attn.v_gate",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def hf_name(name):
    if name in HF_NAMES:
        return HF_NAMES[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{HF_LAYER_NAMES[part]}.{kind}"


def hf_config(spec, vocab):
    class_name = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "nanochat": "NanoChat"}
    config = {
        "architectures": [class_name[spec.model_type] + "ForCausalLM"],
        "model_type": spec.model_type,
        "num_hidden_layers": spec.L,
        "hidden_size": spec.C,
        "intermediate_size": spec.F,
        "num_attention_heads": spec.H,
        "num_key_value_heads": spec.K,
        "head_dim": spec.D,
        "rms_norm_eps": spec.eps,
        "rope_theta": spec.rope_base,
        "rope_scaling": None,
        "max_position_embeddings": spec.context,
        "tie_word_embeddings": spec.tied,
        "vocab_size": spec.rows,
        "attention_bias": False,
        "hidden_act": "silu",
        "torch_dtype": {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[spec.hf],
        "bos_token_id": vocab.bos,
        "eos_token_id": vocab.eos,
    }
    if spec.rope_scaling and spec.rope_scaling[0] == "linear":
        config["rope_scaling"] = {"rope_type": "linear", "factor": spec.rope_scaling[1]}
    elif spec.rope_scaling:
        _, factor, low, high, original = spec.rope_scaling
        config["rope_scaling"] = {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                                  "original_max_position_embeddings": original}
    if spec.window:
        config["sliding_window"] = spec.window
        if spec.pattern:
            config["sliding_window_pattern"] = [s == "S" for s in spec.pattern]
    if spec.model_type == "qwen2":
        config |= {"sliding_window": 8, "use_sliding_window": False, "max_window_layers": 1}
        del config["attention_bias"]
    if spec.arch == "nanochat":
        config |= {"qk_scale": 1.2, "final_logit_softcapping": 15.0, "smear_channels": 24, "hidden_act": "relu2"}
    return config | hf_bank_config(spec)


def hf_bank_config(spec):
    if set(spec.value) == {"r"}:
        return {}
    bank = {"value_source": [VALUE_SOURCES[v] for v in spec.value], "rows": spec.rows + spec.extra_rows}
    if spec.source_layer != list(range(spec.L)):
        bank["source_layer"] = spec.source_layer
    if spec.sink:
        bank["sink_row"] = bank["rows"] - 1
    if spec.gate != "none":
        bank |= {"gate": spec.gate, "gate_channels": 12, "gate_scale": 3.0}
    return {"value_bank": bank}


def hf_tokenizer_config(vocab):
    added = {str(vocab.tokens.index(t)): {"content": t, "lstrip": False, "normalized": False, "rstrip": False,
                                          "single_word": False, "special": True} for t in vocab.specials}
    config = {
        "added_tokens_decoder": added,
        "add_bos_token": vocab.add_bos,
        "bos_token": None if vocab.bos is None else vocab.tokens[vocab.bos],
        "eos_token": vocab.tokens[vocab.eos],
        "pad_token": vocab.tokens[vocab.pad],
        "unk_token": None if vocab.unk is None else vocab.tokens[vocab.unk],
        "clean_up_tokenization_spaces": False,
        "chat_template": tiny_vocab.CHATML,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return config


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_hf(folder, spec, weights, vocab, tokenizer_json):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.write_model(folder, [(hf_name(n), spec.hf, x) for n, (_, x) in weights.items()], spec.shards)
    write_json(folder / "config.json", hf_config(spec, vocab))
    write_json(folder / "tokenizer.json", tokenizer_json)
    write_json(folder / "tokenizer_config.json", hf_tokenizer_config(vocab))
    ends = [vocab.eos] if vocab.pad == vocab.eos else [vocab.eos, vocab.pad] if vocab.kind == "gpt2" else vocab.eos
    write_json(folder / "generation_config.json", {"bos_token_id": vocab.bos, "eos_token_id": ends, "pad_token_id": vocab.pad})
