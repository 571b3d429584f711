"""Whether numbers may enter a window: a batch is looked through whole before any reading does."""

from libc.math cimport NAN, fabs
from libc.stdint cimport int64_t, uint64_t

from sluicegate.constants import LARGEST as _LARGEST
from sluicegate.constants import LATEST as _LATEST

cdef enum:
    AT_ONCE = 512  # numbers looked at together: without a branch the compiler takes several in a step

cdef double MAGNITUDE = _LARGEST
cdef int64_t TIMES = _LATEST


def first_refused(const double[::1] values not None):
    """Index of the first value that is not finite or whose magnitude exceeds 2^960; −1 where all may enter."""
    cdef Py_ssize_t count = values.shape[0], i
    if not count:
        return -1
    with nogil:
        i = first_not_entering(&values[0], count)
    return i


cdef int64_t first_not_entering(const double* values, int64_t count) noexcept nogil:
    cdef int64_t i = 0
    while count - i > AT_ONCE and all_enter(values + i, AT_ONCE, MAGNITUDE):
        i += AT_ONCE
    while i < count and fabs(values[i]) <= MAGNITUDE:
        i += 1
    return i if i < count else -1


cdef inline bint all_enter(const double* values, int64_t n, double most) noexcept nogil:
    cdef int64_t refused = 0, i
    for i in range(n):
        refused |= not fabs(values[i]) <= most
    return not refused


def first_not_positive(const double[::1] values not None, int64_t dimensions, int64_t dimension):
    """Index of the first row whose value of this dimension is not greater than 0; −1 where there is none."""
    cdef int64_t i
    for i in range(values.shape[0] // dimensions):
        if not values[i * dimensions + dimension] > 0.0:
            return i
    return -1


def first_late(const int64_t[::1] times not None):
    """Index of the first time beyond ±2^61 µs; −1 where all may enter."""
    cdef Py_ssize_t count = times.shape[0], i
    if not count:
        return -1
    with nogil:
        i = first_beyond(&times[0], count)
    return i


cdef int64_t first_beyond(const int64_t* times, int64_t count) noexcept nogil:
    cdef int64_t i = 0
    while count - i > AT_ONCE and all_near(<const uint64_t*> times + i, AT_ONCE):
        i += AT_ONCE
    while i < count and -TIMES <= times[i] <= TIMES:
        i += 1
    return i if i < count else -1


cdef inline bint all_near(const uint64_t* times, int64_t n) noexcept nogil:
    """Whether all are from -2^61 to 2^61 - 1."""
    cdef uint64_t found = 0
    cdef int64_t i
    for i in range(n):
        found |= times[i] + (<uint64_t> 1 << 61)
    return not found >> 62


def withhold(
    double[::1] value not None, const double[::1] low not None, const double[::1] high not None, double error,
    double atol,
):
    """NaN in place of each value that is not certainly within error · |exact| + atol of an exact one in low … high."""
    cdef Py_ssize_t n = value.shape[0], i
    if low.shape[0] != n or high.shape[0] != n:
        raise ValueError(f"withhold: columns of {n}, {low.shape[0]} and {high.shape[0]} values")
    for i in range(n):
        if not keeps(value[i], low[i], high[i], error, atol):
            value[i] = NAN


cdef bint keeps(double x, double low, double high, double error, double atol) noexcept:
    if fabs(x - low) > error * fabs(low) + atol or fabs(x - high) > error * fabs(high) + atol:
        return False
    return not (low < 0.0 < high and fabs(x) > atol)
