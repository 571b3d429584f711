"""Holds a window's answers to the exact ones: how far off, how often exact, whether intervals hold the truth."""

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


class Followed:
    """One window that takes the stream in pieces, and what is known of its answers so far."""

    def __init__(self, window: sg.Window, name: str, limit: float | None, asked: int, *, certain: bool = True) -> None:
        """`asked`: readings a piece; `certain`: whether the window is asked for its interval after each."""
        self.certain = certain
        self.window, self.name, self.limit, self.asked = window, name, limit, asked
        self.checked = self.same = self.over = self.changes = self.same_changes = 0
        self.questions = self.outside = 0
        self.greatest = self.widths = self.errors = 0.0
        self.bins = np.zeros(len(BINS) + 1, dtype=np.int64)
        self.each: list[float] = []  # ns a reading of each piece
        self._last = np.nan

    def take(self, values: Values, exact: Values) -> None:
        """The next readings, a piece at a time: at the end of each the window is asked for its certain interval."""
        found = np.empty(len(values))
        for at in range(0, len(values), self.asked):
            piece = values[at : at + self.asked]
            start = time.thread_time_ns()
            results = self.window.insert_many(piece)
            self.each.append((time.thread_time_ns() - start) / len(piece))
            found[at : at + len(piece)] = results[self.name]
            if self.certain:
                self._ask(float(exact[at + len(piece) - 1]))
        self._compare(found, exact)

    def _ask(self, exact: float) -> None:
        value, low, high, _ = self.window.query(bounds=True)[self.name]
        self.questions += 1
        self.outside += not low <= exact <= high
        self.widths += high - low
        self.errors += abs(value - exact)

    def _compare(self, found: Values, exact: Values) -> None:
        off, size = np.abs(found - exact), np.abs(exact)
        same = off <= SAME * size
        self.checked += len(found)
        self.same += int(same.sum())
        if self.limit is not None:
            self.over += int((off > self.limit * size * (1 + SAME) + SAME * size).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(same, 0.0, off / size)
        self.greatest = max(self.greatest, float(share.max()))
        self.bins += np.bincount(np.searchsorted(BINS, share[::EVERY]), minlength=len(self.bins))
        changed = np.diff(exact, prepend=self._last) != 0
        self.changes += int(changed.sum())
        self.same_changes += int((changed & same).sum())
        self._last = exact[-1]

    def row(self) -> dict[str, Any]:
        """What was found, in %: see the columns of `tables`."""
        return {
            "checked": self.checked, "exact": 100.0 * self.same / self.checked, "greatest": 100.0 * self.greatest,
            "exact of changes": 100.0 * self.same_changes / max(self.changes, 1), "over the limit": self.over,
            "asked": self.questions, "outside": self.outside, "widths": self.widths / max(self.questions, 1),
            "errors": self.errors / max(self.questions, 1), "held": len(self.window),
            "distribution": self.bins.tolist(),
            "ns": {str(part): float(np.percentile(self.each[len(self.each) // 4 :], part)) for part in (10, 50, 90)},
        }  # fmt: skip
