"""What the aggregates of fixed width answer that is more than one number: named tuples, made from a partial's slots."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import e, exp
from typing import Any, NamedTuple

from sluicegate.monoids import hashing, hll, kll
from sluicegate.monoids.monoid import Monoid


class LongestRun(NamedTuple):
    """The longest run of readings that increase strictly, each next to the one before; the earliest of equal ones."""

    t_first: int
    t_last: int
    span: int  # t_last − t_first
    length: int  # readings


class Bins(NamedTuple):
    """How many values fell into each bin [edges[i], edges[i + 1]), below the first edge, and from the last edge on."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    below: int
    above: int


class Top(NamedTuple):
    """One of the greatest values, and when it was read."""

    value: float
    time: int


class DistinctCount(NamedTuple):
    """How many different values: the estimate, its relative standard error, and how many there certainly are at least.

    `error` 0.0: counted one by one (two values count as one with a probability of about count² / 2^27). `sketch`: an
    HLL_8 sketch in the format of Apache DataSketches. `cut`: as many of them may have left the window already, those of
    a bucket that its edge cuts (by the same estimate); the sketch still has them.
    """

    estimate: float
    error: float
    least: int
    sketch: bytes
    cut: float = 0.0


class CountMin(NamedTuple):
    """How often values occur among `n` readings, never told too small; `doubt` of them may have left the window."""

    width: int
    depth: int
    counts: tuple[int, ...]  # row by row
    doubt: int = 0

    @property
    def n(self) -> int:
        """The readings counted."""
        return sum(self.counts[: self.width])

    @property
    def error(self) -> float:
        """By how many `most` may be too great, but for a probability of `failure`; `doubt` comes on top."""
        return e / self.width * self.n

    @property
    def failure(self) -> float:
        """With what probability, at most, `most` is too great by more than `error`."""
        return exp(-self.depth)

    def most(self, value: float) -> int:
        """The value certainly occurs no more often than this."""
        return min(self.counts[place] for place in hashing.rows(value, self.width, self.depth))


class BloomFilter(NamedTuple):
    """A set of values of which `might_contain` never denies one that is in it."""

    bits: bytes  # bit i is bit i % 8 of byte i // 8
    hashes: int

    def might_contain(self, value: float) -> bool:
        """False: the value is certainly in none of the window's readings."""
        size = 8 * len(self.bits)
        return all(self.bits[i >> 3] >> (i & 7) & 1 for i in hashing.places(value, size, self.hashes))

    @property
    def fill(self) -> float:
        """The share of bits that are set."""
        return int.from_bytes(self.bits, "little").bit_count() / (8 * len(self.bits))

    @property
    def false_positives(self) -> float:
        """The share of values not in it that `might_contain` does not deny."""
        return float(self.fill**self.hashes)


def lowered(monoid: Monoid, slots: Sequence[Any]) -> Any:
    """The result of a composite aggregate from its component's slots."""
    if monoid.kind == "longest_run":
        return LongestRun(slots[7], slots[8], slots[8] - slots[7], slots[5])
    if monoid.kind == "histogram":
        return as_bins(monoid.options, slots)
    if monoid.kind == "top_k":
        return as_tops(slots)
    if monoid.kind == "count_min":
        return CountMin(monoid.options[0], monoid.options[1], tuple(slots))
    area = struct.pack(f"<{len(slots)}q", *slots)
    if monoid.kind == "bloom_filter":
        return BloomFilter(area, monoid.options[1])
    return DistinctCount(*hll.answer(monoid.options[0], slots[0], area[8:]))


def cut_bins(edges: tuple[float, ...], rest: Sequence[int] | None, leaf: Sequence[int], n: int, taken: int) -> Bins:
    """The bins of a window whose oldest bucket of n readings is cut: `taken` of them by each bin's share of the bucket.

    Rounded down, then one more for those that lost most, so that they add up.
    """
    counts = [count * taken // n for count in leaf]
    behind = sorted(range(len(leaf)), key=lambda i: (-(leaf[i] * taken % n), i))
    for i in behind[: taken - sum(counts)]:
        counts[i] += 1
    return as_bins(edges, [count + inside for count, inside in zip(counts, rest or (0,) * len(leaf), strict=True)])


def bounds_of_bins(
    edges: tuple[float, ...], rest: Sequence[int] | None, leaf: Sequence[int], n: int, cut: tuple[int, int]
) -> tuple[Bins, Bins]:
    """Between which counts each bin certainly lies; cut[0] to cut[1] of the oldest bucket's n readings are inside."""
    inside, (least, most) = rest or (0,) * len(leaf), cut
    low = [count + max(0, each - (n - least)) for count, each in zip(inside, leaf, strict=True)]
    return as_bins(edges, low), as_bins(
        edges, [count + min(each, most) for count, each in zip(inside, leaf, strict=True)]
    )


def as_tops(slots: Sequence[Any]) -> list[Top]:
    """The greatest values that a component keeps."""
    return [Top(slots[1 + 2 * i], slots[2 + 2 * i]) for i in range(min(slots[0], len(slots) // 2))]


def as_bins(edges: tuple[float, ...], slots: Sequence[int]) -> Bins:
    """A component's slots as the result."""
    return Bins(edges, tuple(slots[1:-1]), slots[0], slots[-1])


def as_number(value: Any) -> float:
    """A result as the number of its column; NaN where there is none."""
    if isinstance(value, LongestRun):
        return float(value.length)
    if isinstance(value, DistinctCount):
        return value.estimate
    return float(value) if isinstance(value, int | float) else float("nan")


def empty(monoid: Monoid) -> Any:
    """The result of any aggregate over no readings."""
    if monoid.kind in ("count", "sum"):
        return 0 if monoid.kind == "count" else 0.0
    if monoid.kind == "histogram":
        return Bins(monoid.options, (0,) * (len(monoid.options) - 1), 0, 0)
    if monoid.kind == "bloom_filter":
        return BloomFilter(bytes(monoid.options[0] // 8), monoid.options[1])
    if monoid.kind == "top_k":
        return []
    if monoid.kind == "distinct_count":
        return DistinctCount(*hll.answer(monoid.options[0], 0, b""))
    if monoid.kind == "count_min":
        return CountMin(monoid.options[0], monoid.options[1], (0,) * (monoid.options[0] * monoid.options[1]))
    if monoid.kind == "quantiles":
        return kll.Kll(monoid.options[0]).neutral
    return None
