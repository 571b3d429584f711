"""Folds the rows of frames that lie wholly inside each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.grid import Columns, Floats, Ints, expand_ranges
from sluicegate_cloud.sliding import Slide, add_at


@dataclass(frozen=True)
class Place:
    """A run of windows that are answered together.

    `first`: the frame in which each begins; `frames`: these, and those behind that the last of them cover; `at`: their
    positions (`grid.block_positions`), less a whole number of blocks.
    """

    first: Ints
    frames: Ints
    at: Ints
    width: int


@dataclass(frozen=True)
class Inside:
    """Some of the rows; `pairs`: (row, window) where a row crosses a block's edge, so that no block holds it."""

    rows: Columns
    slide: Slide
    pairs: tuple[Ints, Ints]

    @classmethod
    def of(cls, rows: Columns, single: int, place: Place) -> Inside:
        """`rows`, all of whose frames are the place's; the first `single` are of one frame each, no two of the same."""
        width, size = place.width, place.first.size
        begins = np.searchsorted(place.frames, rows["first_frame"])
        ends = begins if single == begins.size else np.searchsorted(place.frames, rows["last_frame"])
        slide = Slide(place.at[begins], place.at[ends], width, size, place.at[:size], single)
        if single == begins.size:
            return cls(rows, slide, (begins[:0], begins[:0]))
        bridging = np.flatnonzero(slide.bridging)
        since = np.searchsorted(place.first, rows["last_frame"][bridging] - width + 1)
        pair, at = expand_ranges(since, np.minimum(begins[bridging], size - 1))
        return cls(rows, slide, (bridging[pair], at))

    def fold(self, values: NDArray[Any], operation: np.ufunc, neutral: float) -> NDArray[Any]:
        """`operation` over the values of the rows inside each window."""
        out = self.slide.fold(values, operation, neutral)
        row, at = self.pairs
        if row.size:
            operation.at(out, at, values[row])
        return out

    def count(self) -> Floats:
        """Readings in each window."""
        return self.fold(self.rows["n"].astype(np.float64), np.add, 0.0)

    def totals(self) -> Floats:
        """What each row adds to Σ (x − base of its stream)."""
        rows = self.rows
        return np.asarray(rows["total"] + rows["n"] * (rows["center"] - rows["base"]))

    def total(self) -> Floats:
        """Σ (x − base of the stream) of the readings in each window."""
        return self.fold(self.totals(), np.add, 0.0)

    def squares(self) -> Floats:
        """Σ (x − mean)² of each window's rows, around the mean of all of them, each with its `m2_low`."""
        rows, (row, at) = self.rows, self.pairs
        n, total = rows["n"].astype(np.float64), self.totals()
        count, added, squares = self.slide.fold_squares(n, total, rows["m2_low"])
        n_all, total_all = count.copy(), added.copy()
        add_at(n_all, at, n[row])
        add_at(total_all, at, total[row])
        mean = np.divide(total_all, n_all, out=np.zeros_like(n_all), where=n_all > 0)
        apart = np.divide(added, count, out=mean.copy(), where=count > 0) - mean
        out = squares + count * apart * apart
        off = total[row] / n[row] - mean[at]
        add_at(out, at, rows["m2_low"][row] + n[row] * off * off)
        return np.asarray(out)
