"""The hop histogram by its definition: where the readings stand to predicted evictions (A2MTA, II-C)."""

from __future__ import annotations

import struct
from enum import IntEnum
from math import ceil, floor, sqrt

from told_statistics import normal_quantile, student_quantile

from sluicegate.constants import HOP_DOUBT

LEAST_SIZES = 3
LEAST_SAMPLE = 30
MOST_SIZES = 256


class HopVerdict(IntEnum):
    """What becomes of a reading: it joins the block, opens a bucket, or another histogram decides."""

    JOIN = 0
    OPEN = 1
    OTHER = 2


class HopRule:
    """Sizes of past evictions, the last known boundary, and the next predicted zone of boundaries.

    A boundary b is the ordinal of the first reading that stays. A zone first … last are the readings around one
    predicted boundary that must not share a block's bucket: where b may be low … high, low − 1 … high, so that a single
    stands on each side of the cut.
    """

    def __init__(self, confidence: float, mean: float, deviation: float) -> None:
        """`mean`, `deviation`: the hint; mean 0: none."""
        self._confidence, self._hint = confidence, (mean, deviation)
        self._mean, self._spread, self._n = mean, normal_quantile(confidence) * deviation, 0
        self._sizes: list[float] = []  # oldest first
        self.boundary = self._next = 0
        self._k, self.first, self.last = 0, 0, 0
        self.failures = 0
        self._known, self._pending = 0, 0  # the last certain boundary, and the sizes since then that are taken at worst
        self._least = self._most = 0  # what the first of them may be
        self._usual = 0.0  # the mean before it
        self._predict()

    def verdict(self, ordinal: int) -> HopVerdict:
        """Where the next reading stands; `ordinal` is its own."""
        if self._mean == 0.0:
            return HopVerdict.OTHER
        if ordinal == self.first or ordinal == self.last + 1:
            return HopVerdict.OPEN
        return HopVerdict.OTHER if self.first < ordinal <= self.last else HopVerdict.JOIN

    def took(self, ordinal: int) -> None:
        """Note a reading: past a zone and the reading that opens the block after it, the next zone counts."""
        self._next = ordinal + 1
        if self._mean > 0.0:
            self._advance()

    def _advance(self) -> None:
        while self.last + 1 < self._next:
            self._k += 1
            self._place()

    def _predict(self) -> None:
        """Place the zone that the next reading stands before or in."""
        if self._mean == 0.0:
            return
        self._k = max(1, int((self._next - self.boundary) / self._mean))
        self._place()
        self._advance()

    def _place(self) -> None:
        k = float(self._k)
        middle = self.boundary + k * self._mean
        half = self._spread * sqrt(k + k * k / self._n if self._n else k)
        self.first, self.last = floor(middle - half) - 1, ceil(middle + half)

    def evicted(self, start: int, uncertain: int) -> None:
        """The window now begins at ordinal `start`, or up to `uncertain` readings later, within its oldest bucket."""
        if self._pending and not uncertain:
            self._resolve(start)
            return
        least, most = start - self.boundary, start + uncertain - self.boundary
        if most < 1:
            return
        least = max(least, 1)
        if uncertain:
            self._doubt(least, most)
        size = self._farther(float(least), float(most)) if uncertain else least
        self.boundary += int(size)
        self._known = self._known if uncertain else self.boundary
        self._sizes = [*self._sizes[-MOST_SIZES + 1 :], float(size)]
        self._resample()
        self._predict()

    def _doubt(self, least: int, most: int) -> None:
        """Note that a size is taken at its worst."""
        self.failures += 1
        self._pending += 1
        if self._pending == 1:
            self._least, self._most, self._usual = least, most, self._mean

    def _resolve(self, start: int) -> None:
        """A certain boundary again: what left since the last one is known, and replaces the sizes taken at worst.

        It was as many evictions as fit the usual size, those that cut a bucket once more unseen among them. The first
        keeps what is certain of it, so that each miss widens the zone.
        """
        total, pending = start - self._known, min(self._pending, len(self._sizes))
        if total < 1:
            return
        usual = int(min(total / self._usual + 0.5, MOST_SIZES)) if self._usual > 0.0 else 0
        n = max(usual, self._pending + 1)
        first = min(max(total / n, float(self._least)), float(self._most))
        sizes = [first] + [(total - first) / (n - 1)] * min(n - 1, MOST_SIZES)
        self._sizes = [*self._sizes[: len(self._sizes) - pending], *sizes][-MOST_SIZES:]
        self.boundary, self._known, self._pending = start, start, 0
        self._resample()
        self._predict()

    def _farther(self, least: float, most: float) -> float:
        """The possible size farther from the mean: the paper's worst case."""
        return least if abs(least - self._mean) > abs(most - self._mean) else most

    def _resample(self) -> None:
        held = len(self._sizes)
        if held < LEAST_SIZES:
            return
        fitting = int((self._next - self.boundary) / self._mean) if self._mean > 0.0 else 0
        n = min(held, max(LEAST_SAMPLE, fitting))
        total = squares = 0.0
        for size in self._sizes[held - n :]:
            total += size
        self._mean = total / n
        for size in self._sizes[held - n :]:
            squares += (size - self._mean) * (size - self._mean)
        self._n = n
        self._spread = student_quantile(self._confidence, n - 1) * sqrt(squares / (n - 1)) if squares > 0.0 else 0.0

    def state(self) -> bytes:
        """What a restart needs, 8 bytes little-endian each; a fixed length."""
        held = self._sizes + [0.0] * (MOST_SIZES - len(self._sizes))
        numbers = (self.boundary, self._next, self._k, self.first, self.last, self.failures, self._n, len(self._sizes))
        doubt = (self._known, self._pending, self._least, self._most, self._usual)
        return struct.pack(f"<8q2d{MOST_SIZES}d4qd", *numbers, self._mean, self._spread, *held, *doubt)

    def load(self, data: bytes) -> None:
        """Take over a state of this length, or of an older one, where nothing is in doubt.

        Raises ValueError for numbers that cannot be.
        """
        *numbers, held, mean, spread = struct.unpack_from("<8q2d", data)
        if (
            not 0 <= held <= MOST_SIZES
            or not 0 <= numbers[6] <= held
            or not 0.0 <= mean <= 2.0**62
            or not spread >= 0.0
        ):
            raise ValueError(f"{held} eviction sizes of mean {mean}, expected at most {MOST_SIZES}")
        self.boundary, self._next, self._k, self.first, self.last, self.failures, self._n = numbers
        self._mean, self._spread = mean, spread
        self._sizes = list(struct.unpack_from(f"<{held}d", data, 80))
        doubt = (self.boundary, 0, 0, 0, 0.0)
        if len(data) == self.size:
            doubt = struct.unpack_from("<4qd", data, self.size - HOP_DOUBT)
        if not 0 <= doubt[1] <= self.failures or not doubt[4] >= 0.0:
            raise ValueError(f"{doubt[1]} eviction sizes in doubt, expected at most the {self.failures} failures")
        self._known, self._pending, self._least, self._most, self._usual = doubt

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return 80 + 8 * MOST_SIZES + HOP_DOUBT
