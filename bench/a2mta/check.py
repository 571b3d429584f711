"""Holds a window's answers to the exact ones: how far off, how often exact, whether each interval holds the truth."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sluicegate as sg

Values = NDArray[np.float64]
SAME = 1e-12  # of the result: nothing but rounding
SHARES = 10  # bins a decade, from 10^-12 to 1
BINS = np.logspace(-12, 0, 12 * SHARES + 1)
EVERY = 16  # of the values enter the distribution
GROUP = 16  # pieces: the second is timed, now that the first has brought the window into the cache; 14 give intervals


class Timed:
    """A window that is only timed: in each group of pieces the second, after the first."""

    def __init__(self, window: sg.Window) -> None:
        """Of the readings between the pieces it takes none."""
        self.window = window
        self.each: list[float] = []  # ns a reading of each piece, with its result

    def take(self, name: str, pieces: Values) -> list[Any]:
        """Two pieces, with their results."""
        middle = len(pieces) // 2
        first = self.window.insert_many(pieces[:middle])[name]
        start = time.thread_time_ns()
        second = self.window.insert_many(pieces[middle:])[name]
        self.each.append((time.thread_time_ns() - start) / max(len(pieces) - middle, 1))
        return [first, second]

    def ns(self) -> dict[str, float]:
        """Percentiles, without the first quarter."""
        return {str(part): float(np.percentile(self.each[len(self.each) // 4 :], part)) for part in (10, 50, 90)}


class Followed(Timed):
    """One window that takes the stream in blocks, and what is known of its answers so far."""

    def __init__(
        self, window: sg.Window, name: str, limit: tuple[float, float] | None, asked: int, *, certain: bool = True
    ) -> None:
        """`limit`: (share, absolute); `asked`: readings a piece; `certain`: whether it is asked for its intervals."""
        super().__init__(window)
        self.name, self.limit, self.asked, self.certain = name, limit, asked, certain
        self.checked = self.same = self.over = self.changes = self.same_changes = self.withheld = 0
        self.questions = self.outside = 0
        self.greatest = self.widths = self.errors = 0.0
        self.bins = np.zeros(len(BINS) + 1, dtype=np.int64)
        self._last = np.nan
        self._room = np.empty((3, 0))

    def take_block(self, values: Values, exact: Values, beside: list[Timed]) -> None:
        """The next readings; the windows beside it take them in turns with it."""
        if self._room.shape[1] < len(values):
            self._room = np.empty((3, len(values)))
        found, low, high = self._room[:, : len(values)]
        for at in range(0, len(values), GROUP * self.asked):
            end = min(at + 2 * self.asked, len(values))
            pieces, between = values[at:end], values[end : at + GROUP * self.asked]
            found[at:end] = np.concatenate(self.take(self.name, pieces))
            low[at:end], high[at:end] = exact[at:end], exact[at:end]
            for each in beside:
                each.take(self.name, pieces)
            self._rest(between, *(column[end : end + len(between)] for column in (found, low, high)))
        self._compare(found, exact)
        if self.certain:
            self._ask(found, low, high, exact)

    def _rest(self, between: Values, found: Values, low: Values, high: Values) -> None:
        if not self.certain:
            found[:] = self.window.insert_many(between)[self.name]
            return
        column = self.window.insert_many(between, bounds=True)[self.name]
        found[:], low[:], high[:] = column.value, column.low, column.high
        self.questions += len(between)

    def _ask(self, found: Values, low: Values, high: Values, exact: Values) -> None:
        self.outside += len(exact) - int(np.count_nonzero((low <= exact) & (exact <= high)))
        self.widths += float((high - low).sum())
        self.errors += float(np.nansum(np.abs(found - exact)[low < high]))  # of what was asked, and is not withheld

    def _compare(self, found: Values, exact: Values) -> None:
        given = ~np.isnan(found)
        self.withheld += len(found) - int(np.count_nonzero(given))
        off, size = np.abs(found - exact), np.abs(exact)
        same = off <= SAME * size
        self.checked += len(found)
        self.same += int(np.count_nonzero(same))
        if self.limit is not None:
            share, absolute = self.limit
            self.over += int(np.count_nonzero(off > (share * size + absolute) * (1 + SAME) + SAME * size))
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.where(same | ~given, 0.0, off / size)
        self.greatest = max(self.greatest, float(error.max()))
        self.bins += np.bincount(np.searchsorted(BINS, error[given][::EVERY]), minlength=len(self.bins))
        changed = np.diff(exact, prepend=self._last) != 0
        self.changes += int(np.count_nonzero(changed))
        self.same_changes += int(np.count_nonzero(changed & same))
        self._last = exact[-1]

    def row(self) -> dict[str, Any]:
        """What was found, in %: see the columns of `tables`."""
        return {
            "checked": self.checked, "exact": 100.0 * self.same / self.checked, "greatest": 100.0 * self.greatest,
            "exact of changes": 100.0 * self.same_changes / max(self.changes, 1), "over the limit": self.over,
            "withheld": 100.0 * self.withheld / self.checked,
            "asked": self.questions, "outside": self.outside, "widths": self.widths / max(self.questions, 1),
            "errors": self.errors / max(self.questions, 1), "held": len(self.window),
            "distribution": self.bins.tolist(), "ns": self.ns(),
        }  # fmt: skip
