# cython: language_level=3
"""Whether a reading may join without endangering a sum (A2MTA, II-A); the twin: reference.histograms.sum_like."""
cimport cython
from cpython.array cimport array
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

import struct

from sluicegate.histograms._statistics cimport c_least_magnitude, c_prediction_interval, c_student_quantile
from sluicegate.histograms.sum_like import Control

cdef double _LEAST_SAMPLE = 30.0


@cython.final
cdef class SumRule:
    """The open bucket's prefix extremes of each controlled sum, and the limits they are held to."""

    def __cinit__(self, controls, double confidence):
        cdef int j
        self.m = len(controls)
        self.sums = <Sum*> calloc(max(self.m, 1), sizeof(Sum))
        if self.sums == NULL:
            raise MemoryError("SumLike: no memory for the controls")
        for j, control in enumerate(controls):
            self.sums[j].dimension, self.sums[j].error, self.sums[j].atol, self.sums[j].mean = control
            self.sums[j].low, self.sums[j].high = INFINITY, -INFINITY
        self.confidence = confidence

    def __dealloc__(self):
        free(self.sums)

    cdef void c_coarsened(self) noexcept nogil:
        cdef int j
        for j in range(self.m):
            self.sums[j].low = -INFINITY
        self.n = 1LL << 62

    cdef void c_refresh(self, int64_t count, bint full) noexcept nogil:
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
            self.freedom, self.t = freedom, c_student_quantile(self.confidence, freedom)
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

    @property
    def controls(self):
        """The sums under control."""
        cdef int j
        return tuple([
            Control(self.sums[j].dimension, self.sums[j].error, self.sums[j].atol, self.sums[j].mean)
            for j in range(self.m)
        ])

    @property
    def limits(self):
        """What a cut of the open bucket may cost each sum."""
        cdef int j
        return [self.sums[j].limit for j in range(self.m)]

    @property
    def results(self):
        """The current sums."""
        cdef int j
        return [self.sums[j].result for j in range(self.m)]

    @results.setter
    def results(self, values):
        cdef int j
        for j in range(self.m):
            self.sums[j].result = values[j]

    @property
    def samples(self):
        """The moments of past results."""
        cdef int j
        return [(self.sums[j].sample.n, self.sums[j].sample.mean, self.sums[j].sample.m2) for j in range(self.m)]

    @samples.setter
    def samples(self, values):
        cdef int j
        for j in range(self.m):
            self.sums[j].sample.n, self.sums[j].sample.mean, self.sums[j].sample.m2 = values[j]

    def joins(self, values):
        """Whether the open bucket with this reading stays within every limit."""
        cdef array x = array("d", values)
        return sums_join(self.sums, self.m, self.n, x.data.as_doubles)

    def took(self, values, bint joined):
        """Note that a reading joined the open bucket, or opened one."""
        cdef array x = array("d", values)
        sums_took(self.sums, self.m, x.data.as_doubles, joined)
        self.n = self.n + 1 if joined else 1

    def coarsened(self):
        """The open bucket was merged with its neighbour: it should close."""
        self.c_coarsened()

    def refresh(self, int64_t count, bint full):
        """Take the limits anew from `results` and `samples`."""
        self.c_refresh(count, full)

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
