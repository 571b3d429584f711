"""The exact answer after each reading, by methods of their own: prefix sums, and van Herk's blocks.

Whole numbers below 2^27 sum up exactly; others in long double, whose rounding is far below what is compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Begins = Callable[[int, int], NDArray[np.int64]]


def newest(window: int) -> Begins:
    """Where a window of the newest readings begins after each of the readings first … last − 1."""
    return lambda first, last: np.maximum(np.arange(first, last) - window + 1, 0)


def hopping(at: NDArray[np.int64], to: NDArray[np.int64]) -> Begins:
    """Where a window begins that moves to `to` at the readings `at`."""
    moved = np.concatenate([[0], to])
    return lambda first, last: moved[np.searchsorted(at, np.arange(first, last), side="right")]


class Means:
    """Means of windows whose begin never goes back; memory: a prefix sum for each reading of the window."""

    def __init__(self, begins: Begins) -> None:
        self.begins, self.seen = begins, 0
        self._kept, self._sums = 0, np.zeros(1, dtype=np.longdouble)  # the sum of what precedes reading _kept + i

    def after(self, values: Values) -> Values:
        """The mean after each of the next readings."""
        first, last = self.seen, self.seen + len(values)
        self._sums = np.concatenate([self._sums, self._sums[-1] + np.cumsum(values, dtype=np.longdouble)])
        begin = self.begins(first, last)
        ends = np.arange(first + 1, last + 1)
        out = (self._sums[ends - self._kept] - self._sums[begin - self._kept]) / (ends - begin)
        self._sums, self._kept, self.seen = self._sums[begin[-1] - self._kept :].copy(), int(begin[-1]), last
        return out.astype(np.float64)


class Maxima:
    """Greatest of the newest readings. Source: van Herk (1992): a suffix of one block, a prefix of the next."""

    def __init__(self, window: int) -> None:
        self.window, self.seen = window, 0
        self._suffix, self._prefix = np.full(window, -np.inf), -np.inf
        self._block: list[Values] = []

    def after(self, values: Values) -> Values:
        """The maximum after each of the next readings."""
        out, at = [], 0
        while at < len(values):
            place = self.seen % self.window
            piece = values[at : at + self.window - place]
            out.append(self._within(piece, place))
            at += len(piece)
            self.seen += len(piece)
            if self.seen % self.window == 0:
                block = np.concatenate(self._block)
                self._suffix = np.maximum.accumulate(block[::-1])[::-1]
                self._prefix, self._block = -np.inf, []
        return np.concatenate(out)

    def _within(self, piece: Values, place: int) -> Values:
        prefix = np.maximum(np.maximum.accumulate(piece), self._prefix)
        self._prefix = prefix[-1]
        self._block.append(piece.copy())
        older = np.append(self._suffix, -np.inf)[place + 1 : place + 1 + len(piece)]
        return np.asarray(np.maximum(prefix, older))
