"""A window's total after each reading of a flat array: sum, minimum, maximum, moments."""

from libc.stdint cimport int64_t


cdef bint roll(
    int operator, const double* x, const int64_t* starts, int64_t first, int64_t n, double* front, double* totals
) noexcept nogil
