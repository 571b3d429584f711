"""Random numbers by counter: splitmix64's mixing of a seed, the name of a purpose and a number. Integers only."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = (1 << 64) - 1


def key(seed: int, purpose: str) -> int:
    """Where a purpose's numbers begin: 64 bits of SHA-256, so that no two purposes share theirs."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{purpose}".encode()).digest()[:8], "little")


def words(start: int, counter: Ints) -> Words:
    """64 random bits for each counter. Source: Steele, Lea and Flood (2014), "Fast Splittable Pseudorandom Number
    Generators", algorithm SplitMix64.
    """
    z = counter.astype(np.uint64)
    z *= np.uint64(_GOLDEN)
    z += np.uint64(start)
    z ^= z >> np.uint64(30)
    z *= np.uint64(_FIRST)
    z ^= z >> np.uint64(27)
    z *= np.uint64(_SECOND)
    z ^= z >> np.uint64(31)
    return z


def word(start: int, counter: int) -> int:
    """The same of one counter, in plain Python."""
    z = (counter * _GOLDEN + start) & _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


def bell(start: int, counter: Ints) -> Ints:
    """Whole numbers about 0, standard deviation 2,365, none beyond ± 8,190: four times twelve bits, summed."""
    bits = words(start, counter)
    total = (bits & np.uint64(0xFFF)).astype(np.int64)
    for shift in (12, 24, 36):
        total += ((bits >> np.uint64(shift)) & np.uint64(0xFFF)).astype(np.int64)
    return total - 8_190


def knots(start: int, counter: Ints, every: int, size: int) -> Ints:
    """Slow noise within ± `size`: random values `every` so many, straight lines between, rounded down."""
    number, within = np.divmod(counter, every)
    first, last = int(number[0]), int(number[-1]) + 2
    at = (words(start, np.arange(first, last)) >> np.uint64(33)).astype(np.int64) % (2 * size + 1) - size
    left, right = at[number - first], at[number - first + 1]
    return left + (right - left) * within // every
