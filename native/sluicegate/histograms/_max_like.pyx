# cython: language_level=3
"""Whether a reading may become the window's extreme (A2MTA, II-B); the twin: reference.histograms.max_like."""
cimport cython
from cpython.array cimport array
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove

import struct

from sluicegate.histograms._statistics cimport Gev, c_fit_gev, c_paper_range, c_recommended_range
from sluicegate.histograms.max_like import WatchedExtreme

cdef int _LEAST_MAXIMA = 5
cdef int64_t _LEAST_AUTOMATIC = 64


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

    cdef void c_took(self, const double* values, bint joined, int64_t count) noexcept nogil:
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

    cdef void c_coarsened(self) noexcept nogil:
        cdef int j
        for j in range(self.m):
            self.peaks[j].opened = INFINITY

    # for Python

    @property
    def extremes(self):
        """The extremes that are kept."""
        cdef int j
        return tuple([
            WatchedExtreme(self.peaks[j].dimension, self.peaks[j].sign, bool(self.peaks[j].strict))
            for j in range(self.m)
        ])

    @property
    def ranges(self):
        """The candidates of each extreme, as sign · value."""
        cdef int j
        return [(self.peaks[j].low, self.peaks[j].high) for j in range(self.m)]

    def joins(self, values):
        """Whether the reading is no candidate of any extreme, or hides what the open bucket holds."""
        cdef array x = array("d", values)
        return peaks_join(self.peaks, self.m, self.paper, x.data.as_doubles)

    def took(self, values, bint joined, int64_t count):
        """Note a reading and the window's count; a block that ends refits the range."""
        cdef array x = array("d", values)
        self.c_took(x.data.as_doubles, joined, count)

    def coarsened(self):
        """The open bucket was merged with its neighbour: no candidate joins it."""
        self.c_coarsened()

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

