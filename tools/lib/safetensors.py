"""safetensors files: read and write F32, F16, BF16 tensors; one file or shards with an index.

A file is a little-endian u64 length, that many bytes of JSON {name: {dtype, shape, data_offsets}}, then the bytes.
"""

import json
import os
import struct
from pathlib import Path

import numpy as np

from . import quant

SIZES = {"F32": 4, "F16": 2, "BF16": 2}


def write(path, tensors, metadata=None):
    """tensors: list of (name, type, float array)."""
    header = {"__metadata__": metadata or {"format": "pt"}}
    bodies = []
    offset = 0
    for name, type_name, values in tensors:
        values = np.asarray(values)
        body = quant.quantise(type_name, values).tobytes()
        header[name] = {"dtype": type_name, "shape": list(values.shape), "data_offsets": [offset, offset + len(body)]}
        offset += len(body)
        bodies.append(body)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{path}.tmp{os.getpid()}"
    with open(temporary, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(bodies))
    os.replace(temporary, path)


def write_model(folder, tensors, shards=1):
    """model.safetensors, or model-0000i-of-0000n.safetensors with model.safetensors.index.json."""
    folder = Path(folder)
    if shards == 1:
        write(folder / "model.safetensors", tensors)
        return
    weight_map = {}
    per_shard = -(-len(tensors) // shards)
    for i in range(shards):
        part = tensors[i * per_shard : (i + 1) * per_shard]
        name = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        write(folder / name, part)
        weight_map.update({tensor_name: name for tensor_name, _, _ in part})
    total = sum(SIZES[t] * int(np.prod(np.shape(v))) for _, t, v in tensors)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def read(path, dtype=np.float64):
    """name -> array of one file."""
    data = np.memmap(path, np.uint8, "r")
    (size,) = struct.unpack("<Q", bytes(data[:8]))
    header = json.loads(bytes(data[8 : 8 + size]))
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        raw = data[begin:end].reshape(-1, SIZES[entry["dtype"]])
        tensors[name] = quant.dequantise(entry["dtype"], raw, dtype).reshape(entry["shape"])
    return tensors


def read_model(folder, dtype=np.float64):
    """name -> array over all shards of a model folder."""
    folder = Path(folder)
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return read(folder / "model.safetensors", dtype)
    tensors = {}
    for name in sorted(set(json.loads(index.read_text())["weight_map"].values())):
        tensors.update(read(folder / name, dtype))
    return tensors
