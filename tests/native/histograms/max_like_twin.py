"""The max-like histogram by its definition: may a reading become the window's extreme (A2MTA, II-B)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import inf

from told_statistics import fit_gev, paper_range, recommended_range

from sluicegate.histograms.max_like import WatchedExtreme

MAXIMA = 30
LEAST_MAXIMA = 5
LEAST_AUTOMATIC = 64


class MaxRule:
    """The last block maxima of each extreme, the range of candidates, and the open bucket's greatest value."""

    def __init__(self, extremes: Sequence[WatchedExtreme], block: int, confidence: float, paper: bool) -> None:
        """`block` 0: automatic."""
        self.extremes, self._block, self._confidence, self._paper = tuple(extremes), block, confidence, paper
        m = len(self.extremes)
        self.ranges: list[tuple[float, float]] = [(-inf, inf)] * m
        self._opened, self._heights = [inf] * m, [-inf] * m  # the open bucket's greatest value; the open block's
        self._maxima: list[list[float]] = [[] for _ in range(m)]  # oldest first
        self._size, self._n, self._longest = block or LEAST_AUTOMATIC, 0, 0
        self.fits = 0

    def joins(self, values: Sequence[float]) -> bool:
        """Whether the reading is no candidate of any extreme, or hides what the open bucket holds."""
        for j, extreme in enumerate(self.extremes):
            x = extreme.sign * values[extreme.dimension]
            low, high = self.ranges[j]
            if low <= x <= high and not self._hides(j, x):
                return False
        return True

    def _hides(self, j: int, x: float) -> bool:
        """The open bucket's readings can no longer become the extreme once x is behind them."""
        if self._paper:
            return False
        return x > self._opened[j] if self.extremes[j].strict else x >= self._opened[j]

    def took(self, values: Sequence[float], joined: bool, count: int) -> None:
        """Note a reading and the window's count; a block that ends refits the range."""
        for j, extreme in enumerate(self.extremes):
            x = extreme.sign * values[extreme.dimension]
            self._opened[j] = max(self._opened[j], x) if joined else x
            self._heights[j] = max(self._heights[j], x)
        self._n += 1
        self._longest = max(self._longest, count)
        if self._n >= self._size:
            self._end_block()

    def _end_block(self) -> None:
        for j in range(len(self.extremes)):
            self._maxima[j] = [*self._maxima[j][-MAXIMA + 1 :], self._heights[j]]
            self._heights[j] = -inf
            if len(self._maxima[j]) >= LEAST_MAXIMA:
                fit = fit_gev(self._maxima[j])
                self.ranges[j] = (paper_range if self._paper else recommended_range)(fit, self._confidence)
                self.fits += 1
        self._n = 0
        if not self._block:
            self._size = max(LEAST_AUTOMATIC, self._longest // MAXIMA)

    def coarsened(self) -> None:
        """The open bucket was merged with its neighbour: its greatest value is not known, so no candidate joins it."""
        self._opened = [inf] * len(self.extremes)

    def state(self) -> bytes:
        """What a restart needs, 8 bytes little-endian each."""
        parts = [struct.pack("<4q", self._size, self._n, self._longest, self.fits)]
        for j, maxima in enumerate(self._maxima):
            held = maxima + [0.0] * (MAXIMA - len(maxima))
            parts.append(struct.pack("<4dq30d", *self.ranges[j], self._opened[j], self._heights[j], len(maxima), *held))
        return b"".join(parts)

    def load(self, data: bytes) -> None:
        """Take over a state of this length. Raises ValueError for numbers that cannot be."""
        self._size, self._n, self._longest, self.fits = struct.unpack_from("<4q", data)
        for j in range(len(self.extremes)):
            low, high, opened, height, held, *maxima = struct.unpack_from("<4dq30d", data, 32 + 280 * j)
            if not 0 <= held <= MAXIMA:
                raise ValueError(f"{held} block maxima, expected at most {MAXIMA}")
            self.ranges[j], self._opened[j], self._heights[j] = (low, high), opened, height
            self._maxima[j] = maxima[:held]

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return 32 + 280 * len(self.extremes)
