"""How the histograms of a window decide together, by its definition, over any rules of single histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

JOIN, OPEN, OTHER = 0, 1, 2


class Together:
    """At a predicted boundary the sum-like or max-like histogram decides, or the reading stays single; else it joins.

    Without a prediction the sum-like or max-like histogram decides alone. Any part may be None, not all.
    """

    def __init__(self, sums: Any, most: Any, hop: Any, refresh: int) -> None:
        self.sums, self.most, self.hop, self._refresh = sums, most, hop, refresh
        self.start = self._due = 0
        self._full = False

    def due(self, ordinal: int) -> bool:
        """Limits are taken anew every 64th of the window, and every `refresh` readings at the least."""
        return self.sums is not None and ordinal >= self._due

    def refresh(self, ordinal: int) -> None:
        """From the sample of past results once anything has left."""
        count = ordinal - self.start
        self.sums.refresh(count, self._full)
        self._due = ordinal + min(max(count >> 6, 1), self._refresh)

    def joins(self, values: Sequence[float], ordinal: int) -> bool:
        """Whether the newest bucket takes the reading."""
        verdict = self.hop.verdict(ordinal) if self.hop else OTHER
        if verdict != OTHER:
            return bool(verdict == JOIN)
        decides = self.sums if self.sums is not None else self.most
        return decides is not None and bool(decides.joins(values))

    def took(self, values: Sequence[float], ordinal: int, joined: bool) -> None:
        """Every part hears of a reading."""
        if self.sums is not None:
            self.sums.took(values, joined)
        if self.most is not None:
            self.most.took(values, joined, ordinal + 1 - self.start)
        if self.hop is not None:
            self.hop.took(ordinal)

    def settled(self, start: int, uncertain: int) -> None:
        """The window moves forwards only."""
        if start > self.start:
            self.start, self._full = start, True
            if self.hop is not None:
                self.hop.evicted(start, uncertain)

    def coarsened(self) -> None:
        """Eviction sizes know nothing of buckets."""
        for part in (self.sums, self.most):
            if part is not None:
                part.coarsened()

    def state(self) -> bytes:
        """What its parts are restarted from."""
        return b"".join(part.state() for part in (self.sums, self.most, self.hop) if part is not None)
