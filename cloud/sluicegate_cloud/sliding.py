"""Sliding totals and extremes over a dense axis by van Herk's blocks: no subtraction, so no drift.

Source: van Herk (1992), Gil and Werman (1993), over the frames of paper Hazelcast ("Combining Frames"). A window of
`width` positions is a suffix of one block of `width` and a prefix of the next. A row over several positions joins
a suffix at its first and a prefix at its last position if both lie in one block; `bridging` rows, which cross a
block's edge, are for the caller to add one by one (for ordered buckets about one for each block).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud import compiled
from sluicegate_cloud.grid import Floats, Ints

Array = NDArray[Any]
Moments = tuple[Any, ...]
Merge = Callable[[Moments, Moments], Moments]


@dataclass(frozen=True)
class Slide:
    """How rows that cover positions `first … last` stand to windows of `width` that begin at 0 … `size` − 1.

    `at`: where they begin instead, ascending, if not there; `single`: so many rows come first that cover one position
    each, no two the same.
    """

    first: Ints
    last: Ints
    width: int
    size: int
    at: Ints | None = None
    single: int = 0

    @property
    def bridging(self) -> NDArray[np.bool_]:
        """Rows that cross the edge of a block."""
        return np.not_equal(self.first // self.width, self.last // self.width)

    @cached_property
    def windows(self) -> Ints:
        """Where each window begins."""
        return np.arange(self.size) if self.at is None else self.at

    @cached_property
    def _kept(self) -> tuple[slice | NDArray[np.bool_], Ints, Ints]:
        """The rows that do not bridge, and where they stand."""
        if self.single == self.first.size:
            return slice(None), self.first, self.last
        rows = ~self.bridging
        return rows, self.first[rows], self.last[rows]

    def fold(self, values: Array, operation: np.ufunc, neutral: float) -> Array:
        """`operation` over the rows wholly inside each window and not bridging; shape (size,), dtype of `values`."""
        rows, first, last = self._kept
        values = values[rows]
        if compiled.COMPILED and self.size:
            return np.asarray(compiled.fold(first, last, values, self.windows, self.width, operation, neutral))
        ends = self._blocks(last, values, operation, neutral)
        begins = ends if self.single == self.first.size else self._blocks(first, values, operation, neutral)
        suffix = operation.accumulate(begins[:, ::-1], axis=1)[:, ::-1].reshape(-1)
        prefix = operation.accumulate(ends, axis=1).reshape(-1)
        return np.asarray(operation(suffix[self.windows], self._right(prefix, neutral)))

    def _right(self, prefix: Array, neutral: float) -> Array:
        """What the next block adds to each window; nothing where the window is a block."""
        at = self.windows
        return np.where(at % self.width == 0, np.asarray(neutral, prefix.dtype), prefix[at + (self.width - 1)])

    def fold_squares(self, n: Floats, total: Floats, squares: Floats) -> Moments:
        """(n, total, Σ (x − mean)²) of the rows wholly inside each window and not bridging; merged as Chan does."""
        rows, first, last = self._kept
        kept = n[rows], total[rows], squares[rows]
        if compiled.COMPILED and self.size:
            return compiled.fold_squares(first, last, kept, self.windows, self.width)
        suffix, prefix = (self._moments(at, *kept) for at in (first, last))
        return self._joined(suffix, prefix, (0.0, 0.0, 0.0), _merged_moments)

    def fold_occurrences(self, values: Floats, counts: tuple[Floats, Floats]) -> Moments:
        """(least value, two counts of it) of the rows wholly inside each window and not bridging; (∞, 0, 0): none."""
        rows, first, last = self._kept
        kept = values[rows], counts[0][rows], counts[1][rows]
        if compiled.COMPILED and self.size:
            return compiled.fold_occurrences(first, last, kept, self.windows, self.width)
        suffix, prefix = (self._occurrences(at, *kept) for at in (first, last))
        return self._joined(suffix, prefix, (np.inf, 0.0, 0.0), _merged_occurrences)

    def _moments(self, at: Ints, n: Floats, total: Floats, squares: Floats) -> Moments:
        count, added = (self._blocks(at, of, np.add, 0.0) for of in (n, total))
        mean = np.divide(added, count, out=np.zeros_like(added), where=count > 0).reshape(-1)
        apart = total / n - mean[at]
        return count, added, self._blocks(at, squares + n * apart * apart, np.add, 0.0)

    def _occurrences(self, at: Ints, values: Floats, low: Floats, high: Floats) -> Moments:
        least = self._blocks(at, values, np.minimum, np.inf)
        same = least.reshape(-1)[at] == values
        return least, *(self._blocks(at[same], count[same], np.add, 0.0, 0) for count in (low, high))

    def _joined(self, suffix: Moments, prefix: Moments, neutral: tuple[float, float, float], merged: Merge) -> Moments:
        """van Herk with any associative merge: a block's suffixes and the next one's prefixes, a column at a time."""
        for i in range(1, self.width):
            _set(prefix, i, merged(_get(prefix, i - 1), _get(prefix, i)))
            _set(suffix, -i - 1, merged(_get(suffix, -i - 1), _get(suffix, -i)))
        right = [self._right(of.reshape(-1), none) for of, none in zip(prefix, neutral, strict=True)]
        return merged(tuple(of.reshape(-1)[self.windows] for of in suffix), tuple(right))

    def _blocks(self, at: Ints, values: Array, operation: np.ufunc, neutral: float, single: int | None = None) -> Array:
        begin = int(self.windows[-1]) + 1 if self.size else 1
        blocks = -(-(begin + self.width) // self.width)
        dense = np.full(blocks * self.width, neutral, dtype=values.dtype)
        single = self.single if single is None else single
        dense[at[:single]] = values[:single]
        if single < at.size:
            operation.at(dense, at[single:], values[single:])
        return dense.reshape(blocks, self.width)


def add_at(target: Array, at: Ints, values: Array) -> None:
    """`target[at] += values`, repeated positions summed in order."""
    np.add.at(target, at, values)


def least_at(target: Floats, at: Ints, values: Floats) -> None:
    """`target[at] = min(target[at], values)`, repeated positions allowed."""
    np.minimum.at(target, at, values)


def greatest_at(target: Floats, at: Ints, values: Floats) -> None:
    """`target[at] = max(target[at], values)`, repeated positions allowed."""
    np.maximum.at(target, at, values)


def _get(moments: Moments, column: int) -> Moments:
    return tuple(of[:, column] for of in moments)


def _set(moments: Moments, column: int, values: Moments) -> None:
    for of, value in zip(moments, values, strict=True):
        of[:, column] = value


def _merged_moments(a: Moments, b: Moments) -> Moments:
    """Chan, Golub and LeVeque (1979); a side of no readings adds nothing."""
    (n, total, squares), (m, added, more) = a, b
    both = (n > 0) & (m > 0)
    apart = np.where(both, added / np.where(m > 0, m, 1.0) - total / np.where(n > 0, n, 1.0), 0.0)
    return n + m, total + added, squares + more + apart * apart * (n * (m / np.maximum(n + m, 1.0)))


def _merged_occurrences(a: Moments, b: Moments) -> Moments:
    least = np.minimum(a[0], b[0])
    low, high = (np.where(a[0] == least, a[i], 0.0) + np.where(b[0] == least, b[i], 0.0) for i in (1, 2))
    return least, low, high
