"""Whether a packed bucket keeps every invariant of docs/reference/format.md."""

from libc.math cimport INFINITY, isfinite, isinf, isnan
from libc.stdint cimport INT64_MAX, int64_t

import sys
from array import array

from sluicegate.constants import LARGEST as _LARGEST
from sluicegate.constants import LATEST as _LATEST

cdef double MAGNITUDE = _LARGEST
cdef int64_t TIMES = _LATEST
#: The fields that are looked at, by their place in the record.
cdef enum:
    FIRST, N, T_FIRST, T_LAST, TOTAL, PRE_LOW, PRE_HIGH, LOW, LOW_PLACES
    HIGH = 12
    HIGH_PLACES = 13
    X_FIRST = 17
    X_LAST, GAP, FLAGS, M2, LOW_N, HIGH_N, LOW_PRE, LOW_SUF, HIGH_PRE, HIGH_SUF
    LOG_TOTAL, LOG_PRE_LOW, LOG_PRE_HIGH, DOUBT, FIELDS
cdef int64_t _ORDERED = 1, _KNOWN = 3


def is_sound(const unsigned char[::1] packed):
    """Whether this record of the present length is one that folding readings may make."""
    if len(packed) != 8 * FIELDS:
        return False
    if sys.byteorder == "big":
        swapped = array("q", bytes(packed))
        swapped.byteswap()
        packed = memoryview(swapped).cast("B")
    return _is_sound(<const int64_t*> &packed[0], <const double*> &packed[0])


cdef bint _is_sound(const int64_t* i, const double* d) noexcept nogil:
    if i[N] < 1 or i[FIRST] < 0 or i[FIRST] > INT64_MAX - i[N]:
        return False
    if not (-TIMES <= i[T_FIRST] <= i[T_LAST] <= TIMES and 0 <= i[DOUBT] <= i[N] and -TIMES <= i[GAP] <= TIMES):
        return False
    if not (-MAGNITUDE <= d[LOW] <= d[X_FIRST] <= d[HIGH] <= MAGNITUDE and d[LOW] <= d[X_LAST] <= d[HIGH]):
        return False
    if i[FLAGS] & ~_KNOWN or not isfinite(d[TOTAL]) or not _has_sums(i, d) or not _has_logs(i[N], d):
        return False
    return (
        _has_extreme(i, d, d[LOW], i + LOW_PLACES, i[LOW_N])
        and _has_extreme(i, d, d[HIGH], i + HIGH_PLACES, i[HIGH_N])
        and _has_sides(i, d, -1.0, d[LOW], d[HIGH], i + LOW_PLACES, d + LOW_PRE)
        and _has_sides(i, d, 1.0, d[HIGH], d[LOW], i + HIGH_PLACES, d + HIGH_PRE)
    )


cdef bint _has_sums(const int64_t* i, const double* d) noexcept nogil:
    if i[N] > 1:
        return (-INFINITY < d[PRE_LOW] <= d[PRE_HIGH] < INFINITY and (isnan(d[M2]) or 0.0 <= d[M2] < INFINITY))
    return (
        d[PRE_LOW] == INFINITY and d[PRE_HIGH] == -INFINITY and (isnan(d[M2]) or d[M2] == 0.0)
        and i[T_FIRST] == i[T_LAST] and d[LOW] == d[HIGH] and (i[FLAGS] & _ORDERED) != 0
    )


cdef bint _has_logs(int64_t n, const double* d) noexcept nogil:
    if isnan(d[LOG_TOTAL]):
        return isnan(d[LOG_PRE_LOW]) and isnan(d[LOG_PRE_HIGH])
    if d[LOW] <= 0.0 or not isfinite(d[LOG_TOTAL]):
        return False
    if n == 1:
        return d[LOG_PRE_LOW] == INFINITY and d[LOG_PRE_HIGH] == -INFINITY
    return -INFINITY < d[LOG_PRE_LOW] <= d[LOG_PRE_HIGH] < INFINITY


cdef bint _has_extreme(
    const int64_t* i, const double* d, double value, const int64_t* places, int64_t often
) noexcept nogil:
    """`places`: earliest and latest time, first and last ordinal."""
    cdef int64_t last = i[FIRST] + i[N] - 1, apart
    if not (i[FIRST] <= places[2] <= places[3] <= last and i[T_FIRST] <= places[0] <= places[1] <= i[T_LAST]):
        return False
    if (places[2] == i[FIRST]) != (d[X_FIRST] == value) or (places[3] == last) != (d[X_LAST] == value):
        return False
    if places[2] == places[3] and places[0] != places[1]:
        return False
    apart = places[3] - places[2] + 1
    return often == -1 or (min(<int64_t> 2, apart) <= often <= apart and (d[LOW] < d[HIGH] or often == i[N]))


cdef bint _has_sides(
    const int64_t* i, const double* d, double sign, double value, double other, const int64_t* places,
    const double* sides,
) noexcept nogil:
    """`sides`: what stands before the extreme's first and after its last occurrence; NaN is not known."""
    cdef int64_t last = i[FIRST] + i[N] - 1
    return (
        _has_side(sign, value, other, sides[0], places[2] - i[FIRST], d[X_FIRST])
        and _has_side(sign, value, other, sides[1], last - places[3], d[X_LAST])
    )


cdef bint _has_side(
    double sign, double value, double other, double side, int64_t readings, double beside
) noexcept nogil:
    if isnan(side):
        return True
    if readings == 0 or isinf(side):
        return readings == 0 and side == -sign * INFINITY
    if not sign * beside <= sign * side < sign * value or sign * side < sign * other:
        return False
    return readings > 1 or side == beside
