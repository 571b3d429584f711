"""Where readings stand to predicted evictions (A2MTA, II-C), and how the histograms of a window decide together.

A reading at a predicted boundary: the sum-like or max-like histogram decides, or it stays single. Between boundaries it
joins. Without a prediction the sum-like or max-like histogram decides alone. By their definitions the rules stand in
tests/native/histograms.
"""
cimport cython
from libc.math cimport ceil, fabs, floor, sqrt
from libc.string cimport memmove

import struct

from sluicegate.histograms._statistics cimport c_student_quantile
from sluicegate.histograms._values cimport MaxRule, SumRule, peaks_join, sums_join, sums_took

from sluicegate.constants import HOP_DOUBT as _DOUBT_BYTES

cdef int _LEAST_SIZES = 3
cdef int _LEAST_SAMPLE = 30
cdef int _DOUBT = _DOUBT_BYTES

_head = struct.Struct("<3q2B")


@cython.final
cdef class HopRule:
    """Sizes of past evictions, the last known boundary, and the next predicted zone of boundaries."""

    def __cinit__(self, double confidence, double z, double mean, double deviation):
        self.confidence, self.z, self.mean = confidence, z, mean
        self.spread = z * deviation
        self.predict()

    cdef int verdict(self, int64_t ordinal) noexcept nogil:
        """Where the next reading stands: 0 joins the block, 1 opens a bucket, 2 another histogram decides."""
        if self.mean == 0.0:
            return OTHER
        if ordinal == self.first or ordinal == self.last + 1:
            return OPEN
        return OTHER if self.first < ordinal and ordinal <= self.last else JOIN

    cdef void took(self, int64_t ordinal) noexcept nogil:
        """Note a reading."""
        self.following = ordinal + 1
        if self.mean > 0.0:
            self.advance()

    cdef void advance(self) noexcept nogil:
        while self.last + 1 < self.following:
            self.k += 1
            self.place()

    cdef void predict(self) noexcept nogil:
        if self.mean == 0.0:
            return
        self.k = max(1, <int64_t> (<double> (self.following - self.boundary) / self.mean))
        self.place()
        self.advance()

    cdef void place(self) noexcept nogil:
        cdef double k = <double> self.k
        cdef double middle = self.boundary + k * self.mean
        cdef double half = self.spread * sqrt(k + k * k / self.n if self.n else k)
        self.first, self.last = <int64_t> floor(middle - half) - 1, <int64_t> ceil(middle + half)

    cdef void evicted(self, int64_t start, int64_t uncertain) noexcept nogil:
        """The window now begins at ordinal `start`, or up to `uncertain` readings later, within its oldest bucket."""
        cdef int64_t least = start - self.boundary, most = start + uncertain - self.boundary, size
        if self.pending and not uncertain:
            self.resolve(start)
            return
        if most < 1:
            return
        least = max(least, 1)
        size = least
        if uncertain:
            self.doubt(least, most)
            if not fabs(least - self.mean) > fabs(most - self.mean):
                size = most
        self.boundary += size
        if not uncertain:
            self.known = self.boundary
        self.note(<double> size)
        self.resample()
        self.predict()

    cdef void doubt(self, int64_t least, int64_t most) noexcept nogil:
        self.failures += 1
        self.pending += 1
        if self.pending == 1:
            self.least, self.most, self.usual = least, most, self.mean

    cdef void resolve(self, int64_t start) noexcept nogil:
        """A certain boundary again: what left since the last one replaces the sizes taken at worst.

        It was as many evictions as fit the usual size, those that cut a bucket once more unseen among them. The first
        keeps what is certain of it, so that each miss widens the zone.
        """
        cdef int64_t total = start - self.known, n = 0, i
        cdef double first, even
        if total < 1:
            return
        if self.usual > 0.0:
            n = <int64_t> min(<double> total / self.usual + 0.5, <double> MOST_SIZES)
        n = max(n, self.pending + 1)
        first = min(max(<double> total / n, <double> self.least), <double> self.most)
        even = (total - first) / (n - 1)
        self.held -= <int> min(self.pending, self.held)
        self.note(first)
        for i in range(min(n - 1, MOST_SIZES)):
            self.note(even)
        self.boundary = self.known = start
        self.pending = 0
        self.resample()
        self.predict()

    cdef void note(self, double size) noexcept nogil:
        if self.held == MOST_SIZES:
            memmove(self.sizes, self.sizes + 1, (MOST_SIZES - 1) * sizeof(double))
            self.held -= 1
        self.sizes[self.held] = size
        self.held += 1

    cdef void resample(self) noexcept nogil:
        cdef double total = 0.0, squares = 0.0
        cdef int64_t fitting = 0
        cdef int i, n
        if self.held < _LEAST_SIZES:
            return
        if self.mean > 0.0:
            fitting = <int64_t> (<double> (self.following - self.boundary) / self.mean)
        n = <int> min(self.held, max(_LEAST_SAMPLE, fitting))
        for i in range(self.held - n, self.held):
            total += self.sizes[i]
        self.mean = total / n
        for i in range(self.held - n, self.held):
            squares += (self.sizes[i] - self.mean) * (self.sizes[i] - self.mean)
        self.n = n
        self.spread = 0.0
        if squares > 0.0:
            self.spread = c_student_quantile(self.confidence, self.z, n - 1) * sqrt(squares / (n - 1))

    # for Python

    def state(self):
        """What a restart needs, 8 bytes little-endian each; a fixed length."""
        cdef int i
        held = [self.sizes[i] for i in range(self.held)] + [0.0] * (MOST_SIZES - self.held)
        numbers = (self.boundary, self.following, self.k, self.first, self.last, self.failures, self.n, self.held)
        doubt = (self.known, self.pending, self.least, self.most, self.usual)
        return struct.pack(f"<8q2d{MOST_SIZES}d4qd", *numbers, self.mean, self.spread, *held, *doubt)

    def load(self, bytes data not None):
        """Take over a state of this length, or of an older one, where nothing is in doubt.

        Raises ValueError for numbers that cannot be.
        """
        cdef int i
        *numbers, held, mean, spread = struct.unpack_from("<8q2d", data)
        if not 0 <= numbers[6] <= held <= MOST_SIZES or not 0.0 <= mean <= 2.0**62 or not spread >= 0.0:
            raise ValueError(f"{held} eviction sizes of mean {mean}, expected at most {MOST_SIZES}")
        self.boundary, self.following, self.k, self.first, self.last, self.failures, self.n = numbers
        self.held, self.mean, self.spread = held, mean, spread
        for i, size in enumerate(struct.unpack_from(f"<{MOST_SIZES}d", data, 80)):
            self.sizes[i] = size
        doubt = (self.boundary, 0, 0, 0, 0.0)
        if len(data) == self.size:
            doubt = struct.unpack_from("<4qd", data, self.size - _DOUBT)
        if not 0 <= doubt[1] <= self.failures or not doubt[4] >= 0.0:
            raise ValueError(f"{doubt[1]} eviction sizes in doubt, expected at most the {self.failures} failures")
        self.known, self.pending, self.least, self.most, self.usual = doubt

    @property
    def size(self):
        """Bytes of a state."""
        return 80 + 8 * MOST_SIZES + _DOUBT


@cython.final
cdef class Rules:
    """What a window's core asks for each reading; any part may be absent (None), not all."""

    def __cinit__(self, sums, most, hop, int64_t refresh):
        """As `composition.Deciding` has them."""
        self.sums, self.most = None if sums is None else SumRule(*sums), None if most is None else MaxRule(*most)
        self.hop, self.refresh_every = None if hop is None else HopRule(*hop), refresh
        self.has_sums, self.has_most, self.has_hop = sums is not None, most is not None, hop is not None
        self.due_at = 0 if self.has_sums else 1LL << 62

    cdef void refresh(self, int64_t ordinal) noexcept nogil:
        """Take the limits anew."""
        cdef int64_t count = ordinal - self.start
        if not self.has_sums:
            return
        self.sums.refresh(count, self.full)
        self.due_at = ordinal + min(max(count >> 6, 1), self.refresh_every)
        self.sampling = self.full

    cdef bint joins(self, const double* values, int64_t ordinal) noexcept nogil:
        cdef int verdict = self.hop.verdict(ordinal) if self.has_hop else OTHER
        if verdict != OTHER:
            return verdict == JOIN
        if self.has_sums:
            return sums_join(self.sums.sums, self.sums.m, self.sums.n, values)
        return self.has_most and peaks_join(self.most.peaks, self.most.m, self.most.paper, values)

    cdef void took(self, const double* values, int64_t ordinal, bint joined) noexcept nogil:
        self.sampling = False
        if self.has_sums:
            sums_took(self.sums.sums, self.sums.m, values, joined)
            self.sums.n = self.sums.n + 1 if joined else 1
        if self.has_most:
            self.most.took(values, joined, ordinal + 1 - self.start)
        if self.has_hop:
            self.hop.took(ordinal)

    cdef void settled(self, int64_t start, int64_t uncertain) noexcept nogil:
        """The window begins at ordinal `start`, or up to `uncertain` readings later where the policy does not tell."""
        if start <= self.start:
            return
        self.start, self.full = start, True
        if self.has_hop:
            self.hop.evicted(start, uncertain)

    cdef void coarsened(self) noexcept nogil:
        """Buckets were merged pairwise, the newest one too."""
        if self.has_sums:
            self.sums.coarsened()
        if self.has_most:
            self.most.coarsened()

    # for Python

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
