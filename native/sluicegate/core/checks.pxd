"""Whether numbers may enter a window, as compiled code asks."""

from libc.stdint cimport int64_t


cdef int64_t first_not_entering(const double* values, int64_t count) noexcept nogil  # its index; −1: all may
cdef int64_t first_beyond(const int64_t* times, int64_t count) noexcept nogil  # the same of times within ±2^61
