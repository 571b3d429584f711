"""KLL: quantiles within a stated error from a few hundred values, mergeable, in the bytes of Apache DataSketches.

Source: Karnin, Lang & Liberty, Optimal Quantile Approximation in Streams (2016), with the level sizes (2/3 each),
lazy compaction and format of family 15 in Apache DataSketches, so that Spark's kll_sketch functions read what is kept.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise, zip_longest
from math import inf
from typing import NamedTuple

from sluicegate.monoids import hashing

LEAST_K, MOST_K = 8, 4096
_NARROWEST = 8  # values a level may hold at least
MOST_LEVELS = 32  # of a sketch of fixed width: 2^31 · k readings
MOST_BUCKETED_K = 256


class Quantiles(NamedTuple):
    """What a KLL sketch knows of `n` values: the least and the greatest exactly, others by levels of weight 2^level."""

    k: int
    n: int
    low: float
    high: float
    levels: tuple[tuple[float, ...], ...]  # each sorted
    doubt: int = 0  # of the n values so many may have left the window already: those of a bucket that its edge cuts

    @property
    def error(self) -> float:
        """By how much of the readings a rank may be wrong, at 99 % confidence; 0.0 while every value is kept.

        `cut` comes on top where the window's edge cuts a bucket.
        """
        return 0.0 if len(self.levels) < 2 else float(2.296 / self.k**0.9723)

    @property
    def cut(self) -> float:
        """By how much a rank may be wrong besides, certainly no more: the share of values that may have left."""
        return self.doubt / self.n if self.n else 0.0

    def quantile(self, rank: float) -> float | None:
        """The least kept value of which at least `rank` (0 to 1) of the values are no greater; None for no values."""
        if not 0.0 <= rank <= 1.0:
            raise ValueError(f"quantile({rank!r}): expected a rank from 0 to 1")
        if self.n == 0 or rank in (0.0, 1.0):
            return (self.high if rank == 1.0 else self.low) if self.n else None
        weight = 0
        for value, each in sorted((x, 1 << height) for height, level in enumerate(self.levels) for x in level):
            weight += each
            if weight >= rank * self.n:  # rounded as Spark and DataSketches do: 0.55 · 700 is more than 385
                return value
        return self.high

    def rank(self, value: float) -> float | None:
        """The share of values that are no greater than this one; None for no values."""
        if self.n == 0:
            return None
        return sum(bisect_right(level, value) << height for height, level in enumerate(self.levels)) / self.n

    @property
    def sketch(self) -> bytes:
        """A compact kll_doubles sketch: serial version 1, or 2 for a single value."""
        if self.n < 2:
            preamble, version, flags = (2, 2, 4 | 2) if self.n else (2, 1, 1)
            return self._head(preamble, version, flags) + struct.pack(f"<{self.n}d", *([self.low] * self.n))
        start = most_values(self.k, len(self.levels)) - sum(map(len, self.levels))
        starts = [start + sum(map(len, self.levels[:height])) for height in range(len(self.levels))]
        flat = [value for level in self.levels for value in level]
        return b"".join([
            self._head(5, 1, 2), struct.pack("<QHBB", self.n, self.k, len(self.levels), 0),
            struct.pack(f"<{len(starts)}I", *starts), struct.pack(f"<{2 + len(flat)}d", self.low, self.high, *flat),
        ])  # fmt: skip

    def _head(self, preamble: int, version: int, flags: int) -> bytes:
        return struct.pack("<4BHBB", preamble, version, 15, flags, self.k, _NARROWEST, 0)


@dataclass(frozen=True, slots=True)
class Kll:
    """The monoid of KLL sketches of one k."""

    k: int

    def lift(self, value: float, time: int) -> Quantiles:
        """A sketch of one value."""
        value += 0.0  # −0.0 as 0.0
        return Quantiles(self.k, 1, value, value, ((value,),))

    def combine(self, a: Quantiles, b: Quantiles) -> Quantiles:
        """Level by level; where there are too many values, every other one of a level goes up with twice the weight."""
        pairs = zip_longest(a.levels, b.levels, fillvalue=())
        levels = [list(x) if not y else list(y) if not x else sorted(x + y) for x, y in pairs]
        if sum(map(len, levels)) >= most_values(self.k, len(levels)):
            _compress(self.k, levels, a.n + b.n)
        least, greatest = min(a.low, b.low), max(a.high, b.high)
        return Quantiles(self.k, a.n + b.n, least, greatest, tuple(map(tuple, levels)))

    def lower(self, partial: Quantiles) -> Quantiles:
        """The sketch answers itself."""
        return partial

    @property
    def neutral(self) -> Quantiles:
        """A sketch of no values."""
        return Quantiles(self.k, 0, inf, -inf, ())


def _compress(k: int, levels: list[list[float]], n: int) -> None:
    """From the lowest level up, compact each that is full, while there are more values than there is room for."""
    count, height = sum(map(len, levels)), 0
    while height < len(levels):
        level = levels[height]
        full = count >= most_values(k, len(levels)) and len(level) >= _room(k, len(levels), height)
        if full and height + 1 < MOST_LEVELS:
            if height + 1 == len(levels):
                levels.append([])
            count -= len(level) // 2
            stays, up = _halved(level, _coin(level, n, height))
            levels[height], levels[height + 1] = stays, sorted(levels[height + 1] + up)
        height += 1


def _coin(level: list[float], n: int, height: int) -> int:
    """Two bits that follow from what is merged, and look as if tossed: the same in every run and on every machine."""
    first, last = (hashing.bits(x) for x in (level[0], level[-1]))
    return hashing.mix(hashing.mix(first + n) + last + height) & 3


def _halved(level: list[float], coin: int) -> tuple[list[float], list[float]]:
    """Every second value of pairs, beginning by a coin; an odd one stays behind, at either end by a coin."""
    odd = len(level) % 2
    left = odd and coin >> 1
    stays = [level[0] if left else level[-1]] if odd else []
    pairs = level[1:] if left else level[: len(level) - odd]
    return stays, pairs[coin & 1 :: 2]


@lru_cache(maxsize=4096)
def _room(k: int, levels: int, height: int) -> int:
    """Values that a level may hold: k · (2/3)^depth, at least 8; rounded as the format's readers do."""
    depth = levels - height - 1
    if depth > 30:
        return max(_NARROWEST, _two_thirds(_two_thirds(k, depth // 2), depth - depth // 2))
    return max(_NARROWEST, _two_thirds(k, depth))


def _two_thirds(k: int, depth: int) -> int:
    return int((k << 1 << depth) // 3**depth + 1) >> 1


@lru_cache(maxsize=4096)
def most_values(k: int, levels: int) -> int:
    """Values that a sketch of so many levels may hold."""
    return sum(_room(k, levels, height) for height in range(levels))


def as_slots(sketch: Quantiles, width: int) -> list[float | int]:
    """A sketch as the slots of a partial (`layout.Op.KLL`)."""
    sizes = [len(level) for level in sketch.levels]
    flat = [value for level in sketch.levels for value in level]
    padding = [0] * (MOST_LEVELS - len(sizes))
    head = [sketch.n, len(sizes), sketch.low, sketch.high, *sizes, *padding]
    return [*head, *flat, *([0.0] * (width - len(head) - len(flat)))]


def of_slots(k: int, slots: Sequence[float | int]) -> Quantiles:
    """The same back; of what a damaged partial says no more than it has room for."""
    n, count, low, high = slots[:4]
    sizes = [max(0, int(size)) for size in slots[4 : 4 + min(max(int(count), 1), MOST_LEVELS)]]
    ends = list(accumulate(sizes, initial=4 + MOST_LEVELS))
    levels = tuple(tuple(float(x) for x in slots[begin:end]) for begin, end in pairwise(ends))
    return Quantiles(k, int(n), float(low), float(high), levels)
