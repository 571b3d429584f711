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
    """Means of windows of at most `most` readings whose begin never goes back; of each reading a prefix sum is kept."""

    def __init__(self, begins: Begins, most: int, block: int) -> None:
        """`block`: the most readings that come at a time."""
        self.begins, self.seen, self._size = begins, 0, most + block + 1
        self._sums = np.zeros(self._size, dtype=np.longdouble)  # of all that precedes reading i, at i modulo the size

    @property
    def bytes(self) -> int:
        """What is held of the window."""
        return self._sums.nbytes

    def after(self, values: Values) -> Values:
        """The mean after each of the next readings."""
        first, last = self.seen, self.seen + len(values)
        ends = np.arange(first + 1, last + 1)
        sums = np.cumsum(values, dtype=np.longdouble)
        sums += self._sums[first % self._size]
        self._sums[ends % self._size] = sums
        begin = self.begins(first, last)
        sums -= self._sums[begin % self._size]
        self.seen = last
        return (sums / (ends - begin)).astype(np.float64)


class Maxima:
    """Greatest of the newest readings. Source: van Herk (1992): a suffix of one block, a prefix of the next."""

    def __init__(self, window: int) -> None:
        self.window, self.seen = window, 0
        self._suffix, self._prefix = np.full(window + 1, -np.inf), -np.inf
        self._block = np.empty(window)

    @property
    def bytes(self) -> int:
        """What is held of the window."""
        return self._suffix.nbytes + self._block.nbytes

    def after(self, values: Values) -> Values:
        """The maximum after each of the next readings."""
        out, at = np.empty(len(values)), 0
        while at < len(values):
            place = self.seen % self.window
            piece = values[at : at + self.window - place]
            out[at : at + len(piece)] = self._within(piece, place)
            at += len(piece)
            self.seen += len(piece)
            if self.seen % self.window == 0:
                np.maximum.accumulate(self._block[::-1], out=self._suffix[:-1][::-1])
                self._prefix = -np.inf
        return out

    def _within(self, piece: Values, place: int) -> Values:
        prefix = np.maximum(np.maximum.accumulate(piece), self._prefix)
        self._prefix = prefix[-1]
        self._block[place : place + len(piece)] = piece
        return np.asarray(np.maximum(prefix, self._suffix[place + 1 : place + 1 + len(piece)]))
