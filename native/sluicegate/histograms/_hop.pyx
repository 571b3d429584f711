# cython: language_level=3
"""Where the readings stand to predicted evictions (A2MTA, II-C), compiled; the twin: reference.histograms.hop."""
cimport cython
from libc.math cimport ceil, fabs, floor, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memmove

import struct

from sluicegate.histograms._statistics cimport c_normal_quantile, c_student_quantile

from sluicegate.constants import HOP_DOUBT as _DOUBT_BYTES

cdef int _LEAST_SIZES = 3
cdef int _LEAST_SAMPLE = 30
cdef int _DOUBT = _DOUBT_BYTES


@cython.final
cdef class HopRule:
    """Sizes of past evictions, the last known boundary, and the next predicted zone of boundaries."""

    def __cinit__(self, double confidence, double mean, double deviation):
        self.confidence, self.mean = confidence, mean
        self.spread = c_normal_quantile(0.5 + confidence / 2.0) * deviation
        self.predict()

    cdef int c_verdict(self, int64_t ordinal) noexcept nogil:
        if self.mean == 0.0:
            return OTHER
        if ordinal == self.first or ordinal == self.last + 1:
            return OPEN
        return OTHER if self.first < ordinal and ordinal <= self.last else JOIN

    cdef void c_took(self, int64_t ordinal) noexcept nogil:
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

    cdef void c_evicted(self, int64_t start, int64_t uncertain) noexcept nogil:
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
        """A certain boundary again: what left since the last one replaces the sizes taken at worst; see the twin."""
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
        self.spread = c_student_quantile(self.confidence, n - 1) * sqrt(squares / (n - 1)) if squares > 0.0 else 0.0

    # for Python

    def verdict(self, int64_t ordinal):
        """Where the next reading stands: 0 joins the block, 1 opens a bucket, 2 another histogram decides."""
        return self.c_verdict(ordinal)

    def took(self, int64_t ordinal):
        """Note a reading."""
        self.c_took(ordinal)

    def evicted(self, int64_t start, int64_t uncertain):
        """The window now begins at ordinal `start`, or up to `uncertain` readings later, within its oldest bucket."""
        self.c_evicted(start, uncertain)

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
