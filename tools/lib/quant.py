"""Weight types of GGUF files: float arrays to blocks of bytes and back.

quantise(name, x) takes a float array whose last axis is a whole number of blocks and gives the bytes (uint8, last axis
in bytes). dequantise(name, raw, dtype) is its inverse: exactly the number that the format defines, in float64 unless
told otherwise. Quantising is round to nearest with the plain choice of scale; it does not search for better scales.

Every type is a block of `block` numbers in `size` bytes. Element order inside the blocks is the format's.
"""

import numpy as np

# name: (number in the file, numbers a block, bytes a block)
TYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "BF16": (30, 1, 2),
}
NAMES = {number: name for name, (number, _, _) in TYPES.items()}


def row_bytes(name, n):
    """Bytes of a row of n numbers."""
    _, block, size = TYPES[name]
    if n % block:
        raise ValueError(f"{name}: a row of {n} numbers is no multiple of {block}")
    return n // block * size


def quantise(name, x):
    """x float [..., n] -> uint8 [..., row_bytes(n)]."""
    x = np.ascontiguousarray(x, np.float32)
    _, block, size = TYPES[name]
    out = row_bytes(name, x.shape[-1])
    raw = ENCODE[name](x.reshape(-1, block))
    return np.ascontiguousarray(raw).reshape(*x.shape[:-1], out)


def dequantise(name, raw, dtype=np.float64):
    """raw uint8 [..., row_bytes(n)] -> dtype [..., n]."""
    _, block, size = TYPES[name]
    raw = np.ascontiguousarray(raw, np.uint8)
    blocks = raw.reshape(-1, size)
    x = DECODE[name](blocks)
    return x.astype(dtype).reshape(*raw.shape[:-1], raw.shape[-1] // size * block)


# -- plain numbers ------------------------------------------------------------------------------------------------


def bf16_bits(x):
    """float32 -> uint16, round to nearest, ties to even. Finite numbers only."""
    u = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_value(bits):
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def plain_encode(dtype):
    return lambda x: x.astype(dtype).view(np.uint8).reshape(len(x), -1)


def plain_decode(dtype):
    return lambda b: b.reshape(-1).view(dtype).reshape(len(b), -1)


def half(column):
    """[blocks, 1] float -> bytes of f16."""
    return np.ascontiguousarray(column, "<f2").view(np.uint8).reshape(len(column), -1)


def half_value(b):
    """[blocks, 2] bytes -> float64 [blocks, 1]."""
    return np.ascontiguousarray(b).view("<f2").astype(np.float64)


def inverse(d):
    """1/d, or 0 where d is 0."""
    return np.divide(1.0, d, out=np.zeros_like(d, np.float64), where=d != 0)


def rounded(x, low, high):
    return np.clip(np.rint(x), low, high).astype(np.int64)


# -- 32 numbers a block -------------------------------------------------------------------------------------------


def signed_scale(x, levels):
    """d such that the number of greatest magnitude becomes -levels: [blocks, 1] f16-rounded float64."""
    at = np.abs(x).argmax(1)
    top = x[np.arange(len(x)), at].astype(np.float64)
    return np.float16(top / -levels).astype(np.float64)[:, None]


def range_scale(x, levels):
    """d, m such that m + d*0 .. m + d*levels spans the block: two [blocks, 1] f16-rounded float64."""
    low = x.min(1).astype(np.float64)
    high = x.max(1).astype(np.float64)
    d = np.float16((high - low) / levels).astype(np.float64)[:, None]
    m = np.float16(low).astype(np.float64)[:, None]
    return d, m


def nibbles(q):
    """q [blocks, 32] of 0..15 -> [blocks, 16]: byte i holds number i (low half) and number i + 16 (high half)."""
    return (q[:, :16] | q[:, 16:] << 4).astype(np.uint8)


def nibbles_value(b):
    return np.concatenate([b & 15, b >> 4], 1).astype(np.int64)


def fifth_bits(q):
    """q [blocks, 32] of 0..31 -> [blocks, 4]: bit j of the little-endian word is bit 4 of number j."""
    return np.packbits((q >> 4 & 1).astype(np.uint8), axis=1, bitorder="little")


def fifth_bits_value(b):
    return np.unpackbits(np.ascontiguousarray(b), axis=1, bitorder="little").astype(np.int64) << 4


def q8_0_encode(x):
    d = np.float16(np.abs(x).max(1) / np.float32(127)).astype(np.float64)[:, None]
    q = rounded(x * inverse(d), -127, 127).astype(np.int8)
    return np.concatenate([half(d), q.view(np.uint8)], 1)


def q8_0_decode(b):
    return half_value(b[:, :2]) * np.ascontiguousarray(b[:, 2:]).view(np.int8)


def q4_0_encode(x):
    d = signed_scale(x, 8)
    return np.concatenate([half(d), nibbles(rounded(x * inverse(d) + 8, 0, 15))], 1)


def q4_0_decode(b):
    return half_value(b[:, :2]) * (nibbles_value(b[:, 2:]) - 8)


def q4_1_encode(x):
    d, m = range_scale(x, 15)
    return np.concatenate([half(d), half(m), nibbles(rounded((x - m) * inverse(d), 0, 15))], 1)


def q4_1_decode(b):
    return half_value(b[:, :2]) * nibbles_value(b[:, 4:]) + half_value(b[:, 2:4])


def q5_0_encode(x):
    d = signed_scale(x, 16)
    q = rounded(x * inverse(d) + 16, 0, 31)
    return np.concatenate([half(d), fifth_bits(q), nibbles(q & 15)], 1)


def q5_0_decode(b):
    q = nibbles_value(b[:, 6:]) | fifth_bits_value(b[:, 2:6])
    return half_value(b[:, :2]) * (q - 16)


def q5_1_encode(x):
    d, m = range_scale(x, 31)
    q = rounded((x - m) * inverse(d), 0, 31)
    return np.concatenate([half(d), half(m), fifth_bits(q), nibbles(q & 15)], 1)


def q5_1_decode(b):
    q = nibbles_value(b[:, 8:]) | fifth_bits_value(b[:, 4:8])
    return half_value(b[:, :2]) * q + half_value(b[:, 2:4])


# -- 256 numbers a block ------------------------------------------------------------------------------------------
# Q4_K and Q5_K: 8 groups of 32; group g is d*scale[g]*q - dmin*min[g], scale and min 6 bits each in 12 bytes.


def pack_scales(scale, least):
    """scale, least [blocks, 8] of 0..63 -> [blocks, 12]."""
    head = scale[:, :4] | (scale[:, 4:] >> 4) << 6
    middle = least[:, :4] | (least[:, 4:] >> 4) << 6
    tail = scale[:, 4:] & 15 | (least[:, 4:] & 15) << 4
    return np.concatenate([head, middle, tail], 1).astype(np.uint8)


def unpack_scales(b):
    b = b.astype(np.int64)
    head, middle, tail = b[:, :4], b[:, 4:8], b[:, 8:]
    scale = np.concatenate([head & 63, tail & 15 | (head >> 6) << 4], 1)
    least = np.concatenate([middle & 63, tail >> 4 | (middle >> 6) << 4], 1)
    return scale, least


def group_ranges(x, levels):
    """x [blocks, 256] -> d, dmin [blocks, 1], scale, least, q [blocks, 8(, 32)] of a Q4_K or Q5_K block."""
    groups = x.reshape(len(x), 8, 32).astype(np.float64)
    low = np.minimum(groups.min(2), 0)
    step = (groups.max(2) - low) / levels
    d = np.float16(step.max(1, keepdims=True) / 63).astype(np.float64)
    dmin = np.float16(-low.min(1, keepdims=True) / 63).astype(np.float64)
    scale = rounded(step * inverse(d), 0, 63)
    least = rounded(-low * inverse(dmin), 0, 63)
    q = rounded((groups + (dmin * least)[:, :, None]) * inverse(d * scale)[:, :, None], 0, levels)
    return d, dmin, scale, least, q


def pair_nibbles(q):
    """q [blocks, 8, 32] of 0..15 -> [blocks, 128]: 32 bytes a pair of groups, even group in the low halves."""
    return (q[:, 0::2] | q[:, 1::2] << 4).astype(np.uint8).reshape(len(q), 128)


def pair_nibbles_value(b):
    b = b.reshape(len(b), 4, 32).astype(np.int64)
    return np.stack([b & 15, b >> 4], 2).reshape(len(b), 8, 32)


def k_value(b, q):
    """The numbers of a Q4_K or Q5_K block from its head (16 bytes) and q [blocks, 8, 32]."""
    d, dmin = half_value(b[:, :2]), half_value(b[:, 2:4])
    scale, least = unpack_scales(b[:, 4:16])
    return ((d * scale)[:, :, None] * q - (dmin * least)[:, :, None]).reshape(len(b), 256)


def q4_k_encode(x):
    d, dmin, scale, least, q = group_ranges(x, 15)
    return np.concatenate([half(d), half(dmin), pack_scales(scale, least), pair_nibbles(q)], 1)


def q4_k_decode(b):
    return k_value(b, pair_nibbles_value(b[:, 16:]))


def q5_k_encode(x):
    d, dmin, scale, least, q = group_ranges(x, 31)
    group = np.arange(8)[None, :, None]
    high = ((q >> 4) << group).sum(1).astype(np.uint8)
    return np.concatenate([half(d), half(dmin), pack_scales(scale, least), high, pair_nibbles(q & 15)], 1)


def q5_k_decode(b):
    group = np.arange(8)[None, :, None]
    high = b[:, None, 16:48].astype(np.int64) >> group & 1
    return k_value(b, pair_nibbles_value(b[:, 48:]) | high << 4)


# Q6_K: 16 groups of 16 with an 8-bit scale each: d*scale*(q - 32). Two halves of 128 numbers; in a half, number
# 32*part + l has its low 4 bits in ql[32*(part & 1) + l] (low half for parts 0, 1) and its top 2 in qh[l] >> 2*part.


def q6_k_encode(x):
    groups = x.reshape(len(x), 16, 16).astype(np.float64)
    at = np.abs(groups).argmax(2)[:, :, None]
    step = np.take_along_axis(groups, at, 2)[:, :, 0] / -32
    widest = np.abs(step).argmax(1)[:, None]
    d = np.float16(np.take_along_axis(step, widest, 1) / -128).astype(np.float64)
    scale = rounded(step * inverse(d), -128, 127)
    q = rounded(groups * inverse(d * scale)[:, :, None] + 32, 0, 63).reshape(len(x), 2, 4, 32)
    low = (q[:, :, :2] & 15 | (q[:, :, 2:] & 15) << 4).reshape(len(x), 128)
    part = np.arange(4)[None, None, :, None]
    high = ((q >> 4) << 2 * part).sum(2).reshape(len(x), 64)
    return np.concatenate([low.astype(np.uint8), high.astype(np.uint8), scale.astype(np.int8).view(np.uint8), half(d)], 1)


def q6_k_decode(b):
    low = b[:, :128].reshape(len(b), 2, 2, 32).astype(np.int64)
    low = np.concatenate([low & 15, low >> 4], 2)
    part = np.arange(4)[None, None, :, None]
    high = b[:, 128:192].reshape(len(b), 2, 1, 32).astype(np.int64) >> 2 * part & 3
    scale = np.ascontiguousarray(b[:, 192:208]).view(np.int8).astype(np.float64)
    step = half_value(b[:, 208:210]) * scale
    q = (low | high << 4).reshape(len(b), 16, 16) - 32
    return (step[:, :, None] * q).reshape(len(b), 256)


ENCODE = {
    "F32": plain_encode("<f4"),
    "F16": plain_encode("<f2"),
    "BF16": lambda x: bf16_bits(x).view(np.uint8).reshape(len(x), -1),
    "Q8_0": q8_0_encode,
    "Q4_0": q4_0_encode,
    "Q4_1": q4_1_encode,
    "Q5_0": q5_0_encode,
    "Q5_1": q5_1_encode,
    "Q4_K": q4_k_encode,
    "Q5_K": q5_k_encode,
    "Q6_K": q6_k_encode,
}
DECODE = {
    "F32": plain_decode("<f4"),
    "F16": plain_decode("<f2"),
    "BF16": lambda b: bf16_value(b.reshape(-1).view("<u2")).reshape(len(b), -1),
    "Q8_0": q8_0_decode,
    "Q4_0": q4_0_decode,
    "Q4_1": q4_1_decode,
    "Q5_0": q5_0_decode,
    "Q5_1": q5_1_decode,
    "Q4_K": q4_k_decode,
    "Q5_K": q5_k_decode,
    "Q6_K": q6_k_decode,
}
