"""The sum-like histogram by its definition: may a reading join without endangering a sum (A2MTA, II-A)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import inf

from told_statistics import least_magnitude, prediction_interval, student_quantile

from sluicegate.histograms.sum_like import Control
from sluicegate.reference.program import Moments

LEAST_SAMPLE = 30.0


class SumRule:
    """The open bucket's prefix extremes of each controlled sum, and the limits they are held to.

    After S is the sum so far, P∓ the least and greatest sum of a proper, non-empty prefix. What a cut may keep or drop
    wrongly is a prefix (|P∓|), a suffix (|S − P∓|), or, interpolated, a difference of two (P⁺ − P⁻).
    """

    def __init__(self, controls: Sequence[Control], confidence: float) -> None:
        self.controls, self._confidence = tuple(controls), confidence
        m = len(self.controls)
        self.limits, self.results, self.samples = [0.0] * m, [0.0] * m, [Moments()] * m
        self._sums, self._lows, self._highs = [0.0] * m, [inf] * m, [-inf] * m
        self._n = 0

    def joins(self, values: Sequence[float]) -> bool:
        """Whether the open bucket with this reading stays within every limit."""
        for j, control in enumerate(self.controls):
            if control.dimension < 0:
                if self._n > self.limits[j]:
                    return False
                continue
            low, high = min(self._lows[j], self._sums[j]), max(self._highs[j], self._sums[j])
            total = self._sums[j] + values[control.dimension]
            if max(abs(low), abs(high), abs(total - low), abs(total - high), high - low) > self.limits[j]:
                return False
        return True

    def took(self, values: Sequence[float], joined: bool) -> None:
        """Note that a reading joined the open bucket, or opened one."""
        for j, control in enumerate(self.controls):
            if control.dimension < 0:
                continue
            x = values[control.dimension]
            if joined:
                self._lows[j], self._highs[j] = min(self._lows[j], self._sums[j]), max(self._highs[j], self._sums[j])
                self._sums[j] += x
            else:
                self._sums[j], self._lows[j], self._highs[j] = x, inf, -inf
        self._n = self._n + 1 if joined else 1

    def coarsened(self) -> None:
        """The open bucket was merged with its neighbour: its prefixes are not known any more, so it should close."""
        for j in range(len(self.controls)):
            self._lows[j] = -inf
        self._n = 2**62

    def refresh(self, count: int, full: bool) -> None:
        """Take the limits anew from `results`, the current sums, and `samples`, their moments over the buckets."""
        for j, control in enumerate(self.controls):
            self.limits[j] = control.error * self._base(j, full) + self._floor(control, count)

    def _base(self, j: int, full: bool) -> float:
        sample = self.samples[j]
        if not full or sample.n < LEAST_SAMPLE:
            return abs(self.results[j])
        t = student_quantile(self._confidence, int(min(sample.n, 1e9)) - 1)
        return least_magnitude(*prediction_interval((sample.n, sample.mean, sample.m2), t))

    def _floor(self, control: Control, count: int) -> float:
        if control.atol == 0.0 or control.mean < 0:
            return control.atol
        if control.dimension >= 0:
            return control.atol * count
        total = abs(self.results[control.mean])  # of the mean's sum: c wrong readings move the mean by c·|mean| / count
        return control.atol * count * count / total if total > 0.0 else inf

    def state(self) -> bytes:
        """What a restart needs, 8 bytes little-endian each."""
        columns = (self.limits, self._sums, self._lows, self._highs)
        return struct.pack("<q", self._n) + b"".join(struct.pack(f"<{len(c)}d", *c) for c in columns)

    def load(self, data: bytes) -> None:
        """Take over a state of this length."""
        m = len(self.controls)
        (self._n,) = struct.unpack_from("<q", data)
        columns = [list(struct.unpack_from(f"<{m}d", data, 8 + 8 * m * i)) for i in range(4)]
        self.limits, self._sums, self._lows, self._highs = columns

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return 8 + 32 * len(self.controls)
