#!/usr/bin/env python3
"""tools/lib/quant.py: known bit patterns by hand, decoding against loops written straight from the layouts, error bounds."""

import struct
import sys
from pathlib import Path

import tap

np = tap.import_numpy()
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from lib import quant  # noqa: E402

HALF = {0.0: 0x0000, 0.25: 0x3400, 0.5: 0x3800, 1.0: 0x3C00, -1.0: 0xBC00, 2.0: 0x4000}


def half(x):
    return struct.pack("<H", HALF[x])


def decode(name, data):
    return quant.dequantise(name, np.frombuffer(data, np.uint8)).tolist()


def expect(name, label, data, wanted):
    """wanted: {element: value}; the numbers that the block must hold there."""
    got = decode(name, data)
    bad = {i: (got[i], x) for i, x in wanted.items() if got[i] != x}
    tap.ok(len(data) == quant.TYPES[name][2] and not bad, f"{name}: {label}", f"(got, wanted) {bad}" if bad else "")


# -- by hand ------------------------------------------------------------------------------------------------------


def test_plain():
    tap.ok(quant.quantise("F32", [1.0]).tobytes() == b"\x00\x00\x80\x3f", "F32: 1.0 is 3f800000, little-endian")
    tap.ok(quant.quantise("F16", [1.0]).tobytes() == b"\x00\x3c", "F16: 1.0 is 3c00")
    tap.ok(quant.quantise("BF16", [-2.0]).tobytes() == b"\x00\xc0", "BF16: -2.0 is c000")
    ties = quant.bf16_bits(np.array([0x3F808000, 0x3F818000, 0x3F808001], np.uint32).view(np.float32))
    tap.ok(ties.tolist() == [0x3F80, 0x3F82, 0x3F81], "BF16: ties go to the even neighbour")


def test_32():
    codes = bytes([0, 255, 127, 128]) + bytes(28)
    expect("Q8_0", "signed codes times d", half(0.5) + codes, {0: 0.0, 1: -0.5, 2: 63.5, 3: -64.0, 31: 0.0})
    nibbles = bytearray(16)
    nibbles[0], nibbles[3] = 0xF0, 0x2A
    expect("Q4_0", "low half first, high half 16 later, less 8", half(1.0) + bytes(nibbles),
           {0: -8, 16: 7, 3: 2, 19: -6, 1: -8})
    expect("Q4_1", "d q + m", half(0.25) + half(-1.0) + bytes(nibbles), {0: -1.0, 16: 2.75, 3: 1.5, 19: -0.5})
    high = struct.pack("<I", 1 << 0 | 1 << 19 | 1 << 31)
    expect("Q5_0", "bit j of the word is bit 4 of number j, less 16", half(1.0) + high + bytes(nibbles),
           {0: 0, 16: -1, 3: -6, 19: 2, 31: 0, 30: -16})
    expect("Q5_1", "d q + m with the fifth bit", half(0.25) + half(-1.0) + high + bytes(nibbles),
           {0: 3.0, 16: 2.75, 3: 1.5, 19: 3.5, 31: 3.0, 30: -1.0})


def test_k():
    # Scales 1..8 and minima 1, 0, ... with group 5 above 15, so that the split fields are used.
    scales = bytearray(12)
    scales[0] = 1                       # scale 0 = 1
    scales[1] = 2 | 2 << 6              # scale 1 = 2; upper bits of scale 5: 2 << 4
    scales[4] = 3                       # minimum 0 = 3
    scales[5] = 1 << 6                  # upper bits of minimum 5: 1 << 4
    scales[9] = 5 | 7 << 4              # scale 5 = 32 + 5, minimum 5 = 16 + 7
    codes = bytearray(128)
    codes[0] = 0x21                     # group 0 number 0: 1; group 1 number 0: 2
    codes[64 + 31] = 0xC0               # group 4 number 31: 0; group 5 number 31: 12
    expect("Q4_K", "d scale q - dmin min, packed 6-bit fields", half(0.5) + half(2.0) + bytes(scales) + bytes(codes),
           {0: 0.5 - 6.0, 1: -6.0, 32: 2.0, 33: 0.0, 5 * 32 + 31: 0.5 * 37 * 12 - 2 * 23, 5 * 32: -46.0, 64: 0.0})
    high = bytearray(32)
    high[0] = 1                         # group 0 number 0: + 16
    high[31] = 1 << 5                   # group 5 number 31: + 16
    expect("Q5_K", "bit g of byte l is bit 4 of number l of group g",
           half(0.5) + half(2.0) + bytes(scales) + bytes(high) + bytes(codes),
           {0: 0.5 * 17 - 6.0, 32: 2.0, 5 * 32 + 31: 0.5 * 37 * 28 - 46, 5 * 32: -46.0})
    low, high, scales = bytearray(128), bytearray(64), bytearray(16)
    low[0] = 0x31                       # number 0: 1; number 64: 3
    low[32 + 5] = 0x0F                  # number 37: 15; number 101: 0
    high[0] = 0b10_00_00_01             # number 0: + 16; number 96: + 32
    high[5] = 0b00_00_11_00             # number 37: + 48
    low[64], high[32] = 0x07, 0b11      # second half, number 128: 55
    for i in range(16):
        scales[i] = 256 - 2 if i == 4 else i + 1
    expect("Q6_K", "four low bits, two high bits, a signed scale for 16 numbers",
           bytes(low) + bytes(high) + bytes(scales) + half(0.5),
           {0: 0.5 * 1 * (17 - 32), 37: 0.5 * 3 * (63 - 32), 64: 0.5 * -2 * (3 - 32), 96: 0.5 * 7 * (32 - 32),
            101: 0.5 * 7 * -32, 128: 0.5 * 9 * (55 - 32), 255: 0.5 * 16 * -32})


# -- by loops -----------------------------------------------------------------------------------------------------


def f16_at(b, i):
    return struct.unpack_from("<e", b, i)[0]


def loop_32(name, b):
    d = f16_at(b, 0)
    m = f16_at(b, 2) if name in ("Q4_1", "Q5_1") else 0.0
    at = 4 if name in ("Q4_1", "Q5_1") else 2
    word = 0
    if name in ("Q5_0", "Q5_1"):
        word = struct.unpack_from("<I", b, at)[0]
        at += 4
    shift = {"Q4_0": 8, "Q5_0": 16}.get(name, 0)
    out = []
    for i in range(32):
        if name == "Q8_0":
            q = struct.unpack_from("b", b, 2 + i)[0]
        else:
            q = (b[at + i % 16] >> (4 * (i // 16))) & 15
            q |= (word >> i & 1) << 4
        out.append(d * (q - shift) + m)
    return out


def loop_k(name, b):
    d, dmin, s = f16_at(b, 0), f16_at(b, 2), b[4:16]
    out = []
    for i in range(256):
        group, l = divmod(i, 32)
        if group < 4:
            scale, least = s[group] & 63, s[group + 4] & 63
        else:
            scale = s[group + 4] & 15 | s[group - 4] >> 6 << 4
            least = s[group + 4] >> 4 | s[group] >> 6 << 4
        codes = 16 if name == "Q4_K" else 48
        q = b[codes + group // 2 * 32 + l] >> (4 * (group % 2)) & 15
        if name == "Q5_K":
            q |= (b[16 + l] >> group & 1) << 4
        out.append(d * scale * q - dmin * least)
    return out


def loop_q6_k(b):
    d = f16_at(b, 208)
    out = []
    for i in range(256):
        half_block, j = divmod(i, 128)
        part, l = divmod(j, 32)
        q = b[half_block * 64 + part % 2 * 32 + l] >> (4 * (part // 2)) & 15
        q |= (b[128 + half_block * 32 + l] >> (2 * part) & 3) << 4
        scale = struct.unpack_from("b", b, 192 + i // 16)[0]
        out.append(d * scale * (q - 32))
    return out


def test_loops():
    rng = np.random.default_rng(1)
    for name, (_, block, size) in quant.TYPES.items():
        if block == 1:
            continue
        raw = rng.integers(0, 256, (20, size), dtype=np.uint8)
        scales = np.float16(rng.uniform(-2, 2, (20, 2)))  # no infinities in the scale fields
        at = 208 if name == "Q6_K" else 0
        width = 4 if name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else 2
        raw[:, at : at + width] = np.ascontiguousarray(scales[:, : width // 2]).view(np.uint8)
        loop = {256: loop_k, 32: loop_32}[block]
        wanted = [loop_q6_k(r.tobytes()) if name == "Q6_K" else loop(name, r.tobytes()) for r in raw]
        worst = np.abs(quant.dequantise(name, raw) - np.array(wanted)).max()
        tap.ok(worst < 1e-12, f"{name}: decoding random blocks agrees with the layout's loops", f"{worst:.1e}")


# -- bounds -------------------------------------------------------------------------------------------------------


def test_bounds():
    """Rounding errors of a normal row, in parts of its spread: about half a step of each type."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((64, 512)).astype(np.float32)
    x[0] = 0.0
    x[1] = 3.0
    x[2] = np.abs(x[2])
    x[3] *= 1e-2
    allowed = {"F32": 0, "F16": 3e-4, "BF16": 2.1e-3, "Q8_0": 7e-3, "Q4_0": 0.13, "Q4_1": 0.11, "Q5_0": 0.065, "Q5_1": 0.05,
               "Q4_K": 0.11, "Q5_K": 0.055, "Q6_K": 0.025}
    for name, limit in allowed.items():
        y = quant.dequantise(name, quant.quantise(name, x))
        error = np.sqrt(np.mean((y - x) ** 2, axis=1))
        size = np.sqrt(np.mean(x.astype(np.float64) ** 2, axis=1)) + 1e-30
        share = (error / size)[1:].max()
        tap.ok(share <= limit and error[0] == 0, f"{name}: the error of a row stays in bounds, zeros stay zero", f"{share:.1e}")


def main():
    test_plain()
    test_32()
    test_k()
    test_loops()
    test_bounds()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
