"""MurmurHash3 x64 128 of a float64, as Apache DataSketches hashes it; the same numbers on every architecture."""

from __future__ import annotations

import struct
from collections.abc import Iterator

SEED = 9001
_MASK = 2**64 - 1
_BITS = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")


def murmur(value: float) -> tuple[int, int]:
    """Both halves of the hash of the value's eight bytes; −0.0 is hashed as 0.0."""
    (k,) = _BITS.unpack(_DOUBLE.pack(value + 0.0))
    k = k * 0x87C37B91114253D5 & _MASK
    k = (k << 31 | k >> 33) & _MASK
    a, b = (SEED ^ (k * 0x4CF5AD432745937F & _MASK)) ^ 8, SEED ^ 8
    a = (a + b) & _MASK
    b = (b + a) & _MASK
    a, b = mix(a), mix(b)
    a = (a + b) & _MASK
    return a, (b + a) & _MASK


def bits(value: float) -> int:
    """The eight bytes of a float64 as a whole number."""
    (found,) = _BITS.unpack(_DOUBLE.pack(value))
    return int(found)


def mix(k: int) -> int:
    """Each bit of the result depends on all 64 of k (Murmur's finalizer)."""
    k &= _MASK
    k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & _MASK
    k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return k ^ k >> 33


def coupon(value: float) -> int:
    """What a HyperLogLog sketch keeps of a value: 26 bits of address, and leading zeros + 1 (at most 63) above them."""
    a, b = murmur(value)
    return (min(64 - b.bit_length(), 62) + 1) << 26 | a & 0x3FFFFFF


def rows(value: float, width: int, depth: int) -> Iterator[int]:
    """The counter of each row of a count-min sketch that a value adds to, rows of `width` one after the other."""
    a, b = murmur(value)
    return (i * width + mix(a + i * b) % width for i in range(depth))


def places(value: float, bits: int, hashes: int) -> Iterator[int]:
    """The bits of a Bloom filter that a value sets (Kirsch & Mitzenmacher: two hashes give as many as are needed)."""
    a, b = murmur(value)
    return (((a + i * b) & _MASK) % bits for i in range(hashes))
