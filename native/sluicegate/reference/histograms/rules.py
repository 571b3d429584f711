"""The readable twin of sluicegate.histograms._rules: how the histograms of a window decide together.

A reading at a predicted boundary: the sum-like or max-like histogram decides, or it stays single. Between boundaries it
joins. Without a prediction the sum-like or max-like histogram decides alone. The constrained footprint stands above all
of this, in the window's core.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sluicegate.constants import HOP_DOUBT
from sluicegate.reference.histograms.hop import HopRule, HopVerdict
from sluicegate.reference.histograms.max_like import MaxRule
from sluicegate.reference.histograms.sum_like import SumRule

_HEAD = struct.Struct("<3q2B")


class Rules:
    """What a window's core asks for each reading; any part may be absent (None), not all.

    Before a reading: `due`, and if so `results` and `samples` are filled and `refresh` called. Then `joins` (as often
    as needed), `took` once, and `settled` after evictions.
    """

    def __init__(self, sums: SumRule | None, most: MaxRule | None, hop: HopRule | None, refresh: int) -> None:
        self.sums, self.most, self.hop, self._refresh = sums, most, hop, refresh
        self.start = self._due = 0
        self._full = self.sampling = False

    @property
    def controls(self) -> int:
        """The number of sums under control: each needs a result and a sample when a refresh is due."""
        return len(self.sums.controls) if self.sums else 0

    def due(self, ordinal: int) -> bool:
        """Whether limits are to be taken anew before this reading."""
        return self.sums is not None and ordinal >= self._due

    def refresh(self, ordinal: int) -> None:
        """Take the limits anew; `sampling` says whether the reading of this ordinal carries the results."""
        if self.sums is None:
            return
        count = ordinal - self.start
        self.sums.refresh(count, self._full)
        self._due = ordinal + min(max(count >> 6, 1), self._refresh)
        self.sampling = self._full

    def joins(self, values: Sequence[float], ordinal: int) -> bool:
        """Whether the newest bucket takes this reading; nothing is changed."""
        verdict = self.hop.verdict(ordinal) if self.hop else HopVerdict.OTHER
        if verdict != HopVerdict.OTHER:
            return verdict == HopVerdict.JOIN
        if self.sums is not None:
            return self.sums.joins(values)
        return self.most.joins(values) if self.most is not None else False

    def took(self, values: Sequence[float], ordinal: int, joined: bool) -> None:
        """Note that the reading joined the newest bucket, or opened one."""
        self.sampling = False
        if self.sums is not None:
            self.sums.took(values, joined)
        if self.most is not None:
            self.most.took(values, joined, ordinal + 1 - self.start)
        if self.hop is not None:
            self.hop.took(ordinal)

    def settled(self, start: int, uncertain: int) -> None:
        """The window now begins at ordinal `start`, or up to `uncertain` readings later (not told by the policy)."""
        if start <= self.start:
            return
        self.start, self._full = start, True
        if self.hop is not None:
            self.hop.evicted(start, uncertain)

    def coarsened(self) -> None:
        """Buckets were merged pairwise, the newest one too."""
        if self.sums is not None:
            self.sums.coarsened()
        if self.most is not None:
            self.most.coarsened()

    def state(self) -> bytes:
        """What a restart needs: of fixed length, little-endian."""
        head = _HEAD.pack(self.start, self._due, 0, self._full, self.sampling)
        return head + b"".join(part.state() for part in (self.sums, self.most, self.hop) if part is not None)

    def load(self, data: bytes) -> None:
        """Continue from a state. Raises ValueError for another length, or numbers that cannot be."""
        if len(data) not in (self.size, self.size - (HOP_DOUBT if self.hop is not None else 0)):
            raise ValueError(f"histograms' state of {len(data)} bytes, expected {self.size}")
        self.start, self._due, _, full, sampling = _HEAD.unpack_from(data)
        self._full, self.sampling = bool(full), bool(sampling)
        at = _HEAD.size
        for part in (self.sums, self.most, self.hop):
            if part is not None:
                part.load(data[at : at + part.size])
                at += part.size

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return _HEAD.size + sum(part.size for part in (self.sums, self.most, self.hop) if part is not None)
