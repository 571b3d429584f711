"""Sliding totals and extremes over a dense axis by van Herk's blocks: no subtraction, so no drift.

Source: van Herk (1992), Gil and Werman (1993), over the frames of paper Hazelcast ("Combining Frames"). A window of
`width` positions is a suffix of one block of `width` and a prefix of the next. A row over several positions joins
a suffix at its first and a prefix at its last position if both lie in one block; `bridging` rows, which cross a
block's edge, are for the caller to add one by one (for ordered buckets about one for each block).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.grid import Floats, Ints

Array = NDArray[Any]


@dataclass(frozen=True)
class Slide:
    """How rows that cover positions `first … last` stand to windows of `width` that begin at 0 … `size` − 1."""

    first: Ints
    last: Ints
    width: int
    size: int

    @property
    def bridging(self) -> NDArray[np.bool_]:
        """Rows that cross the edge of a block."""
        return np.not_equal(self.first // self.width, self.last // self.width)

    def fold(self, values: Array, operation: np.ufunc, neutral: float) -> Array:
        """`operation` over the rows wholly inside each window and not bridging; shape (size,), dtype of `values`."""
        rows = ~self.bridging
        suffix = self._blocks(self.first[rows], values[rows], operation, neutral)[:, ::-1]
        suffix = operation.accumulate(suffix, axis=1)[:, ::-1].reshape(-1)
        prefix = self._blocks(self.last[rows], values[rows], operation, neutral)
        prefix = operation.accumulate(prefix, axis=1).reshape(-1)
        at = np.arange(self.size)
        right = np.where(at % self.width == 0, np.asarray(neutral, values.dtype), prefix[at + self.width - 1])
        return np.asarray(operation(suffix[at], right))

    def _blocks(self, at: Ints, values: Array, operation: np.ufunc, neutral: float) -> Array:
        blocks = -(-(self.size + self.width) // self.width)
        dense = np.full(blocks * self.width, neutral, dtype=values.dtype)
        operation.at(dense, at, values)
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
