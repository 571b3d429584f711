"""Runs of slices as one bucket each, in O(log n) merges: the bucket depends on the slices alone, not on what was asked.

So a restart gives the same bits. Slices of equal length are the leaves of a tree by absolute index. Its nodes of eight
and more are kept until a slice below them changes; others, of which there are few, are merged left to right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from sluicegate.format.bucket import Bucket, merge

_KEPT, _LEVELS = 3, 20  # levels below the first are merged anew each time; no run has so many slices as 2^23


class Run(NamedTuple):
    """All readings of neighbouring slices, and the values of the first and the last of them by time."""

    bucket: Bucket
    first: float
    last: float


class _Piece(Protocol):
    """What a slice says of itself."""

    first: float
    last: float

    @property
    def bucket(self) -> Bucket:
        """Its readings."""


class Ranges:
    """Over the slices of one stream, by their start; each `unit` long, or of any length (0)."""

    def __init__(self, slices: Mapping[int, _Piece], unit: int) -> None:
        self._slices, self._unit = slices, unit
        self._nodes: dict[tuple[int, int], Run | None] = {}
        self._changed: set[int] = set()

    def change(self, start: int) -> None:
        """A slice took a reading, or is gone."""
        if self._unit:
            self._changed.add(start // self._unit)

    def run(self, start: int, end: int) -> Run:
        """The slices that begin in start … end − 1, of which there is at least one."""
        if not self._unit:
            found = _joined(self._one(each) for each in sorted(each for each in self._slices if start <= each < end))
        else:
            self._forget()
            found = self._by_nodes(start // self._unit, end // self._unit)
        if found is None:
            raise LookupError(f"no slice begins in {start} … {end - 1}")
        return found

    def _one(self, start: int) -> Run | None:
        piece = self._slices.get(start)
        return None if piece is None else Run(piece.bucket, piece.first, piece.last)

    def _forget(self) -> None:
        """Nodes above what changed."""
        above = {index >> _KEPT for index in self._changed}
        for level in range(_KEPT, _KEPT + _LEVELS):
            for index in above:
                self._nodes.pop((level, index), None)
            above = {index >> 1 for index in above}
        self._changed.clear()

    def _by_nodes(self, begin: int, end: int) -> Run | None:
        parts = []
        while begin < end:
            lowest = (begin & -begin).bit_length() - 1 if begin else 63
            level = min((end - begin).bit_length() - 1, lowest, _KEPT + _LEVELS - 1)
            parts.append(self._node(level, begin >> level))
            begin += 1 << level
        return _joined(parts)

    def _node(self, level: int, index: int) -> Run | None:
        if level < _KEPT:
            return _joined(self._one(i * self._unit) for i in range(index << level, (index + 1) << level))
        found = self._nodes.get((level, index))
        if found is None:
            found = _joined((self._node(level - 1, 2 * index), self._node(level - 1, 2 * index + 1)))
            if found is not None:
                self._nodes[level, index] = found
        return found


def _joined(parts: Iterable[Run | None]) -> Run | None:
    whole: Run | None = None
    for each in parts:
        if each is not None:
            bucket = each.bucket if whole is None else merge(whole.bucket, numbered(whole.bucket, each.bucket))
            whole = Run(bucket, each.first if whole is None else whole.first, each.last)
    return whole


def numbered(a: Bucket, b: Bucket) -> Bucket:
    """The second bucket as if its readings had followed those of the first."""
    by = a.first + a.n - b.first
    return b._replace(
        first=b.first + by, low_o_first=b.low_o_first + by, low_o_last=b.low_o_last + by,
        high_o_first=b.high_o_first + by, high_o_last=b.high_o_last + by,
    )  # fmt: skip
