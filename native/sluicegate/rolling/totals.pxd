"""A window's total after each reading of a flat array: sum, minimum, maximum, moments."""

from libc.stdint cimport int64_t


ctypedef struct Rolling:  # where the readings before have led to
    double* front  # room for the totals of readings begin … block − 1, each up to the block, and of none
    int64_t begin
    int64_t block  # −1: there were none
    double back  # the total of the block's readings; of moments the mean
    double squares


cdef bint roll(
    int operator, const double* x, const int64_t* starts, int64_t first, int64_t n, Rolling* r, double* totals
) noexcept nogil
