"""GGUF v3 files: read and write.

Metadata is a dict from key to (type, value) when written; read() gives that as .typed, and the plain values as .meta. Make
the pairs with u32(), f32(), boolean(), string(), array(). Tensors have their shape outermost first here (rows, columns),
as NumPy has it; the file lists it the other way round.

    write(path, {"general.architecture": string("llama"), ...}, [("token_embd.weight", "Q8_0", weights), ...])
    model = read(path); model.meta["general.architecture"]; model.tensors["token_embd.weight"].values()
"""

import os
import struct
from types import SimpleNamespace

import numpy as np

from . import quant

MAGIC = b"GGUF"
VERSION = 3
# Scalar types of the metadata: number in the file, struct letter.
SCALARS = {
    "u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"), "f32": (6, "f"),
    "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d"),
}
KINDS = {name: number for name, (number, _) in SCALARS.items()} | {"string": 8, "array": 9}
KIND_NAMES = {number: name for name, number in KINDS.items()}


def u32(value):
    return "u32", int(value)


def f32(value):
    return "f32", float(value)


def boolean(value):
    return "bool", bool(value)


def string(value):
    return "string", value


def array(item_type, values):
    """item_type is one of the scalar names or "string"."""
    return "array", (item_type, list(values))


# -- write --------------------------------------------------------------------------------------------------------


def pack_string(s):
    data = s if isinstance(s, bytes) else s.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def pack_items(item_type, values):
    if item_type == "string":
        return b"".join(pack_string(v) for v in values)
    return struct.pack(f"<{len(values)}{SCALARS[item_type][1]}", *values)


def pack_value(kind, value):
    if kind == "array":
        item_type, values = value
        return struct.pack("<IIQ", KINDS["array"], KINDS[item_type], len(values)) + pack_items(item_type, values)
    return struct.pack("<I", KINDS[kind]) + pack_items(kind, [value])


def encoded(type_name, values):
    """The bytes of a tensor; an array of uint8 is taken as already encoded rows."""
    values = np.asarray(values)
    if values.dtype == np.uint8:
        block, size = quant.TYPES[type_name][1:]
        shape = (*values.shape[:-1], values.shape[-1] // size * block)
        return shape, np.ascontiguousarray(values)
    return values.shape, quant.quantise(type_name, values)


def write(path, meta, tensors, alignment=32):
    """Writes the file under a temporary name, then renames it. tensors: list of (name, type, array)."""
    meta = dict(meta)
    if alignment != 32:
        meta["general.alignment"] = u32(alignment)
    head = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(meta))]
    for key, (kind, value) in meta.items():
        head += [pack_string(key), pack_value(kind, value)]
    offset = 0
    bodies = []
    for name, type_name, values in tensors:
        shape, raw = encoded(type_name, values)
        dims = shape[::-1]
        head.append(pack_string(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims))
        head.append(struct.pack("<IQ", quant.TYPES[type_name][0], offset))
        bodies.append(raw.tobytes())
        offset += padded(len(bodies[-1]), alignment)
    head = b"".join(head)
    temporary = f"{path}.tmp{os.getpid()}"
    with open(temporary, "wb") as f:
        for part in [head, *bodies]:
            f.write(part + bytes(padded(len(part), alignment) - len(part)))
    os.replace(temporary, path)


def padded(n, alignment):
    return (n + alignment - 1) // alignment * alignment


# -- read ---------------------------------------------------------------------------------------------------------


class Cursor:
    """A place in the mapped file."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise ValueError("the file ends early")
        self.at += n
        return self.data[self.at - n : self.at]

    def scalar(self, letter):
        return struct.unpack("<" + letter, self.take(struct.calcsize("<" + letter)))[0]

    def string(self):
        return bytes(self.take(self.scalar("Q"))).decode("utf-8", "surrogateescape")

    def items(self, kind, count):
        if kind == "string":
            return [self.string() for _ in range(count)]
        form = f"<{count}{SCALARS[kind][1]}"
        return list(struct.unpack(form, self.take(struct.calcsize(form))))

    def typed_value(self):
        """(type, value) as write() takes it. Arrays of arrays are not supported."""
        kind = KIND_NAMES[self.scalar("I")]
        if kind != "array":
            return kind, self.items(kind, 1)[0]
        item_kind = KIND_NAMES[self.scalar("I")]
        return kind, (item_kind, self.items(item_kind, self.scalar("Q")))


class Tensor:
    """One tensor of a mapped file: shape (outermost first), type name, raw bytes [..., row bytes]."""

    def __init__(self, name, shape, type_name, raw):
        self.name, self.shape, self.type, self.raw = name, shape, type_name, raw

    def values(self, dtype=np.float64):
        return quant.dequantise(self.type, self.raw, dtype)


def read(path):
    """A namespace with .meta (key -> value), .typed (key -> (type, value)), .tensors (name -> Tensor), .version, .alignment."""
    data = np.memmap(path, np.uint8, "r")
    cursor = Cursor(data)
    if bytes(cursor.take(4)) != MAGIC:
        raise ValueError(f"{path}: not a GGUF file")
    version = cursor.scalar("I")
    n_tensors, n_meta = cursor.scalar("Q"), cursor.scalar("Q")
    typed = {}
    for _ in range(n_meta):
        key = cursor.string()
        typed[key] = cursor.typed_value()
    meta = {key: value[1] if kind == "array" else value for key, (kind, value) in typed.items()}
    infos = []
    for _ in range(n_tensors):
        name = cursor.string()
        dims = [cursor.scalar("Q") for _ in range(cursor.scalar("I"))]
        infos.append((name, tuple(dims[::-1]), cursor.scalar("I"), cursor.scalar("Q")))
    alignment = meta.get("general.alignment", 32)
    start = padded(cursor.at, alignment)
    tensors = {}
    for name, shape, number, offset in infos:
        type_name = quant.NAMES[number]
        raw_shape = (*shape[:-1], quant.row_bytes(type_name, shape[-1]))
        size = int(np.prod(raw_shape))
        raw = data[start + offset : start + offset + size].reshape(raw_shape)
        tensors[name] = Tensor(name, shape, type_name, raw)
    return SimpleNamespace(meta=meta, typed=typed, tensors=tensors, version=version, alignment=alignment)
