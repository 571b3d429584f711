"""Whether a reading's values let it join the newest bucket; by definition in tests/native/histograms.

A sum is not endangered (A2MTA, II-A), and no value may become the window's extreme (II-B).
"""
cimport cython
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove

import struct

from sluicegate.histograms._statistics cimport (
    Gev, c_fit_gev, c_least_magnitude, c_paper_range, c_prediction_interval, c_recommended_range, c_student_quantile,
)

cdef double _LEAST_SAMPLE = 30.0
cdef int _LEAST_MAXIMA = 5
cdef int64_t _LEAST_AUTOMATIC = 64


@cython.final
cdef class SumRule:
    """The open bucket's prefix extremes of each controlled sum, and the limits they are held to."""

    def __cinit__(self, controls, double confidence, double z):
        cdef int j
        self.m = len(controls)
        self.sums = <Sum*> calloc(max(self.m, 1), sizeof(Sum))
        if self.sums == NULL:
            raise MemoryError("SumLike: no memory for the controls")
        for j, control in enumerate(controls):
            self.sums[j].dimension, self.sums[j].error, self.sums[j].atol, self.sums[j].mean = control
            self.sums[j].low, self.sums[j].high = INFINITY, -INFINITY
        self.confidence, self.z = confidence, z

    def __dealloc__(self):
        free(self.sums)

    cdef void coarsened(self) noexcept nogil:
        """The open bucket was merged with its neighbour: it should close."""
        cdef int j
        for j in range(self.m):
            self.sums[j].low = -INFINITY
        self.n = 1LL << 62

    cdef void refresh(self, int64_t count, bint full) noexcept nogil:
        """Take the limits anew from the sums' results and samples."""
        cdef int j
        for j in range(self.m):
            self.sums[j].limit = self.sums[j].error * self.base(j, full) + self.floor(j, count)

    cdef double base(self, int j, bint full) noexcept nogil:
        cdef Sum* s = &self.sums[j]
        cdef double low, high
        cdef int freedom
        if not full or s.sample.n < _LEAST_SAMPLE:
            return fabs(s.result)
        freedom = <int> min(s.sample.n, 1e9) - 1
        if freedom != self.freedom:
            self.freedom, self.t = freedom, c_student_quantile(self.confidence, self.z, freedom)
        c_prediction_interval(&s.sample, self.t, &low, &high)
        return c_least_magnitude(low, high)

    cdef double floor(self, int j, int64_t count) noexcept nogil:
        cdef Sum* s = &self.sums[j]
        cdef double total, n = <double> count
        if s.atol == 0.0 or s.mean < 0:
            return s.atol
        if s.dimension >= 0:
            return s.atol * n
        total = fabs(self.sums[s.mean].result)
        return s.atol * n * n / total if total > 0.0 else INFINITY

    # for Python

    def state(self):
        """What a restart needs, 8 bytes little-endian each."""
        cdef int j
        columns = [self.sums[j].limit for j in range(self.m)] + [self.sums[j].sum for j in range(self.m)]
        columns += [self.sums[j].low for j in range(self.m)] + [self.sums[j].high for j in range(self.m)]
        return struct.pack(f"<q{4 * self.m}d", self.n, *columns)

    def load(self, bytes data not None):
        """Take over a state of this length."""
        cdef int j
        self.n, *columns = struct.unpack(f"<q{4 * self.m}d", data)
        for j in range(self.m):
            self.sums[j].limit, self.sums[j].sum = columns[j], columns[self.m + j]
            self.sums[j].low, self.sums[j].high = columns[2 * self.m + j], columns[3 * self.m + j]

    @property
    def size(self):
        """Bytes of a state."""
        return 8 + 32 * self.m


@cython.final
cdef class MaxRule:
    """Each extreme's last block maxima, the range of candidates they give, and the open bucket's greatest value."""

    def __cinit__(self, extremes, int64_t block, double confidence, bint paper):
        cdef int j
        self.m = len(extremes)
        self.peaks = <Peak*> calloc(max(self.m, 1), sizeof(Peak))
        if self.peaks == NULL:
            raise MemoryError("MaxLike: no memory for the extremes")
        for j, extreme in enumerate(extremes):
            self.peaks[j].dimension, self.peaks[j].sign, self.peaks[j].strict = extreme
            self.peaks[j].low, self.peaks[j].high = -INFINITY, INFINITY
            self.peaks[j].opened, self.peaks[j].height = INFINITY, -INFINITY
        self.block, self.confidence, self.paper = block, confidence, paper
        self.block_size = block if block else _LEAST_AUTOMATIC

    def __dealloc__(self):
        free(self.peaks)

    cdef void took(self, const double* values, bint joined, int64_t count) noexcept nogil:
        peaks_took(self.peaks, self.m, values, joined)
        self.n += 1
        self.longest = max(self.longest, count)
        if self.n >= self.block_size:
            self.end_block()

    cdef void end_block(self) noexcept nogil:
        cdef Peak* p
        cdef int j
        for j in range(self.m):
            p = &self.peaks[j]
            if p.held == MAXIMA:
                memmove(p.maxima, p.maxima + 1, (MAXIMA - 1) * sizeof(double))
                p.held -= 1
            p.maxima[p.held] = p.height
            p.held += 1
            p.height = -INFINITY
            if p.held >= _LEAST_MAXIMA:
                self.refit(p)
        self.n = 0
        if self.block == 0:
            self.block_size = max(_LEAST_AUTOMATIC, self.longest // MAXIMA)

    cdef void refit(self, Peak* p) noexcept nogil:
        cdef double sorted[MAXIMA]
        cdef Gev fit
        memcpy(sorted, p.maxima, p.held * sizeof(double))
        fit = c_fit_gev(sorted, p.held)
        if self.paper:
            c_paper_range(&fit, self.confidence, &p.low, &p.high)
        else:
            c_recommended_range(&fit, self.confidence, &p.low, &p.high)
        self.fits += 1

    cdef void coarsened(self) noexcept nogil:
        """The open bucket was merged with its neighbour: no candidate joins it."""
        cdef int j
        for j in range(self.m):
            self.peaks[j].opened = INFINITY

    # for Python

    def state(self):
        """What a restart needs, 8 bytes little-endian each."""
        cdef int i, j
        cdef Peak* p
        parts = [struct.pack("<4q", self.block_size, self.n, self.longest, self.fits)]
        for j in range(self.m):
            p = &self.peaks[j]
            held = [p.maxima[i] for i in range(p.held)] + [0.0] * (MAXIMA - p.held)
            parts.append(struct.pack("<4dq30d", p.low, p.high, p.opened, p.height, p.held, *held))
        return b"".join(parts)

    def load(self, bytes data not None):
        """Take over a state of this length. Raises ValueError for numbers that cannot be."""
        cdef int i, j
        cdef Peak* p
        self.block_size, self.n, self.longest, self.fits = struct.unpack_from("<4q", data)
        for j in range(self.m):
            p = &self.peaks[j]
            low, high, opened, height, held, *maxima = struct.unpack_from("<4dq30d", data, 32 + 280 * j)
            if not 0 <= held <= MAXIMA:
                raise ValueError(f"{held} block maxima, expected at most {MAXIMA}")
            p.low, p.high, p.opened, p.height = low, high, opened, height
            p.held = held
            for i in range(held):
                p.maxima[i] = maxima[i]

    @property
    def size(self):
        """Bytes of a state."""
        return 32 + 280 * self.m

