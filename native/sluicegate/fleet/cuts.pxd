"""What is known of a bucket that a window's edge cuts, as `cuts.FIELDS` has it, for what is taken from it."""

from libc.math cimport isnan
from libc.stdint cimport int64_t


cdef struct Bucket:
    int64_t first, n, t_first, t_last
    double total, pre_low, pre_high, low
    int64_t low_t_first, low_t_last, low_o_first, low_o_last
    double high
    int64_t high_t_first, high_t_last, high_o_first, high_o_last
    double x_first, x_last
    int64_t flags
    double m2, low_pre, low_suf, high_pre, high_suf
    int64_t doubt
    double center, m2_low, m2_high


# raises ValueError where one of `places` is not in an array of that size
cdef within(const int64_t[::1] places, int64_t size)


cdef inline double higher(double a, double b) noexcept nogil:
    """NaN where one is: nothing is known then."""
    return a if a > b or isnan(a) else b
