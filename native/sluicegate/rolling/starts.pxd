"""Where a window begins after each reading of a flat array whose times never go back."""

from libc.stdint cimport int64_t


cdef void starts_by_count(int64_t count, int64_t begin, int64_t first, int64_t n, int64_t* starts) noexcept nogil
cdef void starts_by_time(
    const int64_t* times, int64_t span, int64_t begin, int64_t first, int64_t n, int64_t* starts) noexcept nogil
# of readings low … high the first that is later than `cutoff`; reading `high` is
cdef int64_t first_after(const int64_t* times, int64_t cutoff, int64_t low, int64_t high) noexcept nogil
