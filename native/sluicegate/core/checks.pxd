"""Whether numbers may enter a window, and room for a batch's results, as compiled code asks for them."""

from cpython cimport array
from libc.stdint cimport int64_t


cpdef array.array new_column(Py_ssize_t readings)
cdef int64_t first_not_entering(const double* values, int64_t count) noexcept nogil  # its index; −1: all may
cdef int64_t first_beyond(const int64_t* times, int64_t count) noexcept nogil  # the same of times within ±2^61
cdef int64_t step_of(const int64_t* times, int64_t count) noexcept nogil  # how far apart all are; −1: not alike
