"""HyperLogLog: what is kept of a set of values, how many they are, and the sketch as Apache DataSketches stores it.

A set is a sorted list of coupons (`hashing.coupon`) while it is small, then 2^lg_k registers of a byte: a function of
the set alone, so that merging is associative to the bit. Sources: Flajolet et al. 2007; the estimate of registers is
Ertl's improved raw estimator (2017, Algorithm 6), which needs no tables; the bytes are HLL_8 sketches of family 7,
serial version 1, read by `hll_sketch_estimate` of Spark and by the package datasketches.
"""

from __future__ import annotations

import struct
from math import inf, log, sqrt

REGISTERS = -1  # in place of the number of coupons
_Q = 62  # registers are at most _Q + 1


def most_coupons(lg_k: int) -> int:
    """As many coupons as a sketch of the format lists before it has registers."""
    return 3 << (lg_k - 5)


def standard_error(lg_k: int) -> float:
    """The relative standard error of an estimate from registers."""
    return float(1.04 / sqrt(1 << lg_k))


def answer(lg_k: int, count: int, area: bytes) -> tuple[float, float, int, bytes]:
    """Estimate, relative standard error, the certain least, and the sketch; `count` −1: the area holds registers."""
    if count == REGISTERS:
        registers = area[: 1 << lg_k]
        least = len(registers) - registers.count(0)
        return estimate(lg_k, registers), standard_error(lg_k), least, _registers(lg_k, registers)
    return float(count), 0.0, count, _coupons(lg_k, area[: 4 * count])


def estimate(lg_k: int, registers: bytes) -> float:
    """How many values the registers tell of."""
    m = float(1 << lg_k)
    counts = [registers.count(value) for value in range(_Q + 2)]
    z = m * _tau((m - counts[_Q + 1]) / m)
    for value in range(_Q, 0, -1):
        z = 0.5 * (z + counts[value])
    z += m * _sigma(counts[0] / m)
    return 0.5 / log(2.0) * m * m / z


def _sigma(x: float) -> float:
    if x == 1.0:
        return inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z, before = 1.0, 1.0 - x, -1.0
    while z != before:
        x = sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) * (1.0 - x) * y
    return z / 3.0


_LIST, _SET, _HLL = 2, 3, 10  # integers of preamble
_EMPTY, _COMPACT, _UNORDERED = 4, 8, 16
_HLL_8 = 2 << 2


def _coupons(lg_k: int, coupons: bytes) -> bytes:
    """A sketch in list mode (up to 7 coupons) or set mode."""
    count = len(coupons) // 4
    if count < 8:
        flags = _COMPACT | (0 if count else _EMPTY)
        return bytes([_LIST, 1, 7, lg_k, 3, flags, count, _HLL_8]) + coupons
    lg_array = 5
    while 4 * count > 3 << lg_array:
        lg_array += 1
    return bytes([_SET, 1, 7, lg_k, lg_array, _COMPACT, 0, _HLL_8 | 1]) + struct.pack("<I", count) + coupons


def _registers(lg_k: int, registers: bytes) -> bytes:
    """A sketch in HLL mode; out of order, so that readers estimate from the registers, not from a history."""
    low = sum(registers.count(value) * 2.0**-value for value in range(32))
    high = sum(registers.count(value) * 2.0**-value for value in range(32, 64))
    head = bytes([_HLL, 1, 7, lg_k, 0, _COMPACT | _UNORDERED, 0, _HLL_8 | 2])
    return head + struct.pack("<dddII", 0.0, low, high, registers.count(0), 0) + registers
