"""Rows of frames wholly inside the windows of one stream, and any fold over those of each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.grid import Columns, Floats, Ints, expand_ranges
from sluicegate_cloud.sliding import Slide, add_at


@dataclass(frozen=True)
class Inside:
    """Some of a stream's rows; `pairs`: (row, window) where a row crosses a block's edge, so that no block holds it."""

    rows: Columns
    slide: Slide
    pairs: tuple[Ints, Ints]

    @classmethod
    def of(cls, rows: Columns, wanted: NDArray[np.bool_], axis: Ints, width: int) -> Inside:
        """Those of `rows` that are wanted, on the windows that begin at `axis`."""
        rows = {name: column[wanted] for name, column in rows.items()}
        first, last = (np.searchsorted(axis, rows[name]) for name in ("first_frame", "last_frame"))
        slide = Slide(first, last, width, axis.size)
        bridging = np.flatnonzero(slide.bridging)
        pair, at = expand_ranges(np.searchsorted(axis, rows["last_frame"][bridging] - width + 1), first[bridging])
        return cls(rows, slide, (bridging[pair], at))

    def fold(self, values: NDArray[Any], operation: np.ufunc, neutral: float) -> NDArray[Any]:
        """`operation` over the values of the rows inside each window."""
        out = self.slide.fold(values, operation, neutral)
        row, at = self.pairs
        operation.at(out, at, values[row])
        return out

    def count(self) -> Floats:
        """Readings in each window."""
        return self.fold(self.rows["n"].astype(np.float64), np.add, 0.0)

    def sum_around(self, around: float) -> Floats:
        """Σ (x − around) of them."""
        rows = self.rows
        return self.fold(rows["total"] + rows["n"] * (rows["center"] - around), np.add, 0.0)

    def squares(self, around: float) -> Floats:
        """Σ (x − mean)² of each window's rows, around the mean of all of them, each with its `m2_low`."""
        rows, (row, at) = self.rows, self.pairs
        n, total = rows["n"].astype(np.float64), rows["total"] + rows["n"] * (rows["center"] - around)
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
