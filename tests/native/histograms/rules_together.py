"""How the histograms of a window decide together, by its definition, over any rules of single histograms."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Self

from hop_twin import HopRule
from max_like_twin import MaxRule
from sum_like_twin import SumRule

from sluicegate.constants import HOP_DOUBT
from sluicegate.histograms.composition import Deciding

HEAD = struct.Struct("<3q2B")
JOIN, OPEN, OTHER = 0, 1, 2


class Together:
    """At a predicted boundary the sum-like or max-like histogram decides, or the reading stays single; else it joins.

    Without a prediction the sum-like or max-like histogram decides alone. Any part may be None, not all.
    """

    def __init__(self, sums: Any, most: Any, hop: Any, refresh: int) -> None:
        self.sums, self.most, self.hop, self._refresh = sums, most, hop, refresh
        self.start = self._due = 0
        self._full = self.sampling = False

    @classmethod
    def of(cls, deciding: Deciding) -> Self:
        """The rules that a composition asks for."""
        sums, most, hop, refresh = deciding
        return cls(
            None if sums is None else SumRule(*sums[:2]),
            None if most is None else MaxRule(*most),
            None if hop is None else HopRule(hop[0], *hop[2:]),
            refresh,
        )

    @property
    def controls(self) -> int:
        """The number of sums under control."""
        return 0 if self.sums is None else len(self.sums.controls)

    def due(self, ordinal: int) -> bool:
        """Limits are taken anew every 64th of the window, and every `refresh` readings at the least."""
        return self.sums is not None and ordinal >= self._due

    def refresh(self, ordinal: int) -> None:
        """From the sample of past results once anything has left."""
        count = ordinal - self.start
        self.sums.refresh(count, self._full)
        self._due = ordinal + min(max(count >> 6, 1), self._refresh)
        self.sampling = self._full

    def joins(self, values: Sequence[float], ordinal: int) -> bool:
        """Whether the newest bucket takes the reading."""
        verdict = self.hop.verdict(ordinal) if self.hop else OTHER
        if verdict != OTHER:
            return bool(verdict == JOIN)
        decides = self.sums if self.sums is not None else self.most
        return decides is not None and bool(decides.joins(values))

    def took(self, values: Sequence[float], ordinal: int, joined: bool) -> None:
        """Every part hears of a reading."""
        self.sampling = False
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

    @property
    def _parts(self) -> list[Any]:
        return [part for part in (self.sums, self.most, self.hop) if part is not None]

    def state(self) -> bytes:
        """What a restart needs: of fixed length, little-endian."""
        head = HEAD.pack(self.start, self._due, 0, self._full, self.sampling)
        return head + b"".join(part.state() for part in self._parts)

    def load(self, data: bytes) -> None:
        """Continue from a state, also from one that says nothing of doubt. Raises ValueError for another length."""
        if len(data) not in (self.size, self.size - (HOP_DOUBT if self.hop is not None else 0)):
            raise ValueError(f"histograms' state of {len(data)} bytes, expected {self.size}")
        self.start, self._due, _, full, sampling = HEAD.unpack_from(data)
        self._full, self.sampling = bool(full), bool(sampling)
        at = HEAD.size
        for part in self._parts:
            part.load(data[at : at + part.size])
            at += part.size

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return HEAD.size + sum(part.size for part in self._parts)
