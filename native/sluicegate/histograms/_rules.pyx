# cython: language_level=3
"""How the histograms of a window decide together; the readable twin is sluicegate.reference.histograms.rules."""
cimport cython
from cpython.array cimport array
from libc.stdint cimport int64_t

import struct

from sluicegate.histograms._hop cimport JOIN, OTHER, HopRule
from sluicegate.histograms._max_like cimport MaxRule, peaks_join
from sluicegate.histograms._sum_like cimport SumRule, sums_join, sums_took

from sluicegate.constants import HOP_DOUBT as _DOUBT

_head = struct.Struct("<3q2B")


@cython.final
cdef class Rules:
    """What a window's core asks for each reading; any part may be absent (None), not all."""

    def __cinit__(self, SumRule sums, MaxRule most, HopRule hop, int64_t refresh):
        self.sums, self.most, self.hop, self.refresh_every = sums, most, hop, refresh
        self.has_sums, self.has_most, self.has_hop = sums is not None, most is not None, hop is not None
        self.due_at = 0 if self.has_sums else 1LL << 62

    cdef void c_refresh(self, int64_t ordinal) noexcept nogil:
        cdef int64_t count = ordinal - self.start
        self.sums.c_refresh(count, self.full)
        self.due_at = ordinal + min(max(count >> 6, 1), self.refresh_every)
        self.sampling = self.full

    cdef bint c_joins(self, const double* values, int64_t ordinal) noexcept nogil:
        cdef int verdict = self.hop.c_verdict(ordinal) if self.has_hop else OTHER
        if verdict != OTHER:
            return verdict == JOIN
        if self.has_sums:
            return sums_join(self.sums.sums, self.sums.m, self.sums.n, values)
        return self.has_most and peaks_join(self.most.peaks, self.most.m, self.most.paper, values)

    cdef void c_took(self, const double* values, int64_t ordinal, bint joined) noexcept nogil:
        self.sampling = False
        if self.has_sums:
            sums_took(self.sums.sums, self.sums.m, values, joined)
            self.sums.n = self.sums.n + 1 if joined else 1
        if self.has_most:
            self.most.c_took(values, joined, ordinal + 1 - self.start)
        if self.has_hop:
            self.hop.c_took(ordinal)

    cdef void c_settled(self, int64_t start, int64_t uncertain) noexcept nogil:
        if start <= self.start:
            return
        self.start, self.full = start, True
        if self.has_hop:
            self.hop.c_evicted(start, uncertain)

    cdef void c_coarsened(self) noexcept nogil:
        if self.has_sums:
            self.sums.c_coarsened()
        if self.has_most:
            self.most.c_coarsened()

    # for Python

    @property
    def controls(self):
        """The number of sums under control: each needs a result and a sample when a refresh is due."""
        return self.sums.m if self.has_sums else 0

    @property
    def sampling(self):
        """Whether the next reading carries the current results as a sample."""
        return bool(self.sampling)

    def due(self, int64_t ordinal):
        """Whether limits are to be taken anew before this reading."""
        return ordinal >= self.due_at

    def refresh(self, int64_t ordinal):
        """Take the limits anew."""
        if self.has_sums:
            self.c_refresh(ordinal)

    def joins(self, values, int64_t ordinal):
        """Whether the newest bucket takes this reading; nothing is changed."""
        cdef array x = array("d", values)
        return self.c_joins(x.data.as_doubles, ordinal)

    def took(self, values, int64_t ordinal, bint joined):
        """Note that the reading joined the newest bucket, or opened one."""
        cdef array x = array("d", values)
        self.c_took(x.data.as_doubles, ordinal, joined)

    def settled(self, int64_t start, int64_t uncertain):
        """The window begins at ordinal `start`, or up to `uncertain` readings later where the policy does not tell."""
        self.c_settled(start, uncertain)

    def coarsened(self):
        """Buckets were merged pairwise, the newest one too."""
        self.c_coarsened()

    def state(self):
        """What a restart needs: of fixed length, little-endian."""
        due = self.due_at if self.has_sums else 0
        head = _head.pack(self.start, due, 0, self.full, self.sampling)
        return head + b"".join([part.state() for part in (self.sums, self.most, self.hop) if part is not None])

    def load(self, bytes data not None):
        """Continue from a state. Raises ValueError for another length, or numbers that cannot be."""
        if len(data) not in (self.size, self.size - (_DOUBT if self.hop is not None else 0)):
            raise ValueError(f"histograms' state of {len(data)} bytes, expected {self.size}")
        self.start, due, _, self.full, self.sampling = _head.unpack_from(data)
        self.due_at = due if self.has_sums else 1LL << 62
        at = _head.size
        for part in (self.sums, self.most, self.hop):
            if part is not None:
                part.load(data[at : at + part.size])
                at += part.size

    @property
    def size(self):
        """Bytes of a state."""
        return _head.size + sum([part.size for part in (self.sums, self.most, self.hop) if part is not None])
