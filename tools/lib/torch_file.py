"""Reads what torch.save() and tiktoken wrote, without torch or tiktoken, and without running anything that the file asks for.

A .pt file is a zip archive: PREFIX/data.pkl is a pickle in which each tensor refers to a storage by key, PREFIX/data/KEY are
the storage's bytes. The unpicklers below know the few names that a state dict needs and refuse all others.
"""

import collections
import pickle
import zipfile

import numpy as np

from . import quant

STORAGES = {"FloatStorage": "F32", "HalfStorage": "F16", "BFloat16Storage": "BF16"}


class Storage:
    """A storage's key and its numbers as float32."""

    def __init__(self, key, values):
        self.key, self.values = key, values


class Array:
    """A tensor: values (float32) and the key of the storage that it lies in, equal for tied tensors."""

    def __init__(self, values, key):
        self.values, self.key = values, key


def rebuild_tensor(storage, offset, size, stride, *_):
    flat = storage.values[offset:]
    if any(n < 0 for n in size) or len(size) != len(stride):
        raise ValueError("a tensor has an impossible shape")
    last = sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else -1
    if offset < 0 or min(stride, default=0) < 0 or last >= len(flat):
        raise ValueError("a tensor reaches beyond its storage")
    view = np.lib.stride_tricks.as_strided(flat, size, [4 * s for s in stride], writeable=False)
    return Array(np.ascontiguousarray(view), storage.key)


def rebuild_parameter(data, *_):
    return data


class StateUnpickler(pickle.Unpickler):
    """A state dict; archive holds the storages."""

    NAMES = {
        ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
        ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
        ("collections", "OrderedDict"): collections.OrderedDict,
    }

    def __init__(self, file, archive, prefix):
        super().__init__(file)
        self.archive, self.prefix, self.storages = archive, prefix, {}

    def find_class(self, module, name):
        if module == "torch" and name in STORAGES:
            return name
        if (module, name) not in self.NAMES:
            raise ValueError(f"the checkpoint asks for {module}.{name}, which a state dict does not need")
        return self.NAMES[module, name]

    def persistent_load(self, reference):
        kind, storage_type, key = reference[:3]
        if kind != "storage" or storage_type not in STORAGES:
            raise ValueError("the checkpoint refers to something that is no storage")
        if key not in self.storages:
            raw = np.frombuffer(self.archive.read(f"{self.prefix}/data/{key}"), np.uint8)
            size = quant.TYPES[STORAGES[storage_type]][2]
            values = quant.dequantise(STORAGES[storage_type], raw.reshape(-1, size), np.float32).reshape(-1)
            self.storages[key] = Storage(key, values)
        return self.storages[key]


def read_state(path):
    """name -> Array of a state dict that torch.save() wrote (torch 1.6 or later)."""
    with zipfile.ZipFile(path) as archive:
        pickles = [n for n in archive.namelist() if n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError(f"{path}: not a checkpoint of torch.save()")
        prefix = pickles[0].removesuffix("/data.pkl")
        with archive.open(pickles[0]) as file:
            state = StateUnpickler(file, archive, prefix).load()
    if not isinstance(state, dict) or not all(isinstance(v, Array) for v in state.values()):
        raise ValueError(f"{path}: not a plain state dict")
    return {name.removeprefix("_orig_mod."): v for name, v in state.items()}


class Encoding:
    """What tiktoken.Encoding keeps of itself in a pickle: pat_str, mergeable_ranks, special_tokens."""

    def __setstate__(self, state):
        self.__dict__.update(state)


class EncodingUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) not in (("tiktoken.core", "Encoding"), ("tiktoken", "Encoding")):
            raise ValueError(f"the tokenizer asks for {module}.{name}, which a tiktoken encoding does not need")
        return Encoding


def read_encoding(path):
    with open(path, "rb") as file:
        encoding = EncodingUnpickler(file).load()
    if not isinstance(encoding, Encoding) or not hasattr(encoding, "mergeable_ranks"):
        raise ValueError(f"{path}: not a tiktoken encoding with its own ranks")
    return encoding
