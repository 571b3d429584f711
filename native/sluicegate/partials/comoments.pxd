"""Moments of two quantities together, time and value (LINE) or two dimensions (PAIR), merged as Chan, Golub & LeVeque.

Means count from the partial's own least time and own first values, so that neither 10^9 + small nor years after 1970
cost digits. The twin is sluicegate.monoids.comoments, with the same bits.
"""

from libc.math cimport INFINITY, NAN, isfinite, sqrt
from libc.stdint cimport int64_t

from sluicegate.partials.wide cimport Slot

cdef enum:  # the slots of a line: values over time
    L_COUNT = 0  # a float
    L_FIRST = 1  # least and greatest time
    L_LAST = 2
    L_ORIGIN = 3  # the first value
    L_TIME = 4  # mean of time less the least, of value less the first
    L_VALUE = 5
    L_TIMES = 6  # Σ of squared deviations of times, of values, and Σ of their products
    L_VALUES = 7
    L_BOTH = 8

cdef enum:  # the slots of a pair of dimensions: x and y
    P_COUNT = 0
    P_X = 1  # first values
    P_Y = 2
    P_MEAN_X = 3  # means less them
    P_MEAN_Y = 4
    P_XX = 5
    P_YY = 6
    P_XY = 7


cdef inline void lift_line(Slot* s, double x, int64_t time) noexcept nogil:
    s[L_COUNT].f = 1.0
    s[L_FIRST].i = s[L_LAST].i = time
    s[L_ORIGIN].f = x
    s[L_TIME].f = s[L_VALUE].f = s[L_TIMES].f = s[L_VALUES].f = s[L_BOTH].f = 0.0


cdef inline void lift_pair(Slot* s, double x, double y) noexcept nogil:
    s[P_COUNT].f, s[P_X].f, s[P_Y].f = 1.0, x, y
    s[P_MEAN_X].f = s[P_MEAN_Y].f = s[P_XX].f = s[P_YY].f = s[P_XY].f = 0.0


cdef inline void combine_line(Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """Either may hold the earlier times; `o` may be a or b."""
    cdef int64_t first = min(a[L_FIRST].i, b[L_FIRST].i), last = max(a[L_LAST].i, b[L_LAST].i)
    cdef double n = a[L_COUNT].f + b[L_COUNT].f, share = b[L_COUNT].f / n, both = a[L_COUNT].f * share
    cdef double mean = a[L_TIME].f + <double> (a[L_FIRST].i - first)
    cdef double dt = (b[L_TIME].f + <double> (b[L_FIRST].i - first)) - mean
    cdef double dx = (b[L_ORIGIN].f - a[L_ORIGIN].f) + (b[L_VALUE].f - a[L_VALUE].f)
    cdef double times = (a[L_TIMES].f + b[L_TIMES].f) + dt * dt * both
    cdef double values = (a[L_VALUES].f + b[L_VALUES].f) + dx * dx * both
    cdef double products = (a[L_BOTH].f + b[L_BOTH].f) + dt * dx * both
    o[L_ORIGIN], o[L_VALUE].f = a[L_ORIGIN], a[L_VALUE].f + dx * share
    o[L_COUNT].f, o[L_TIME].f = n, mean + dt * share
    o[L_FIRST].i, o[L_LAST].i = first, last
    o[L_TIMES].f, o[L_VALUES].f, o[L_BOTH].f = times, values, products


cdef inline void combine_pair(Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    cdef double n = a[P_COUNT].f + b[P_COUNT].f, share = b[P_COUNT].f / n, both = a[P_COUNT].f * share
    cdef double dx = (b[P_X].f - a[P_X].f) + (b[P_MEAN_X].f - a[P_MEAN_X].f)
    cdef double dy = (b[P_Y].f - a[P_Y].f) + (b[P_MEAN_Y].f - a[P_MEAN_Y].f)
    cdef double xx = (a[P_XX].f + b[P_XX].f) + dx * dx * both
    cdef double yy = (a[P_YY].f + b[P_YY].f) + dy * dy * both
    cdef double xy = (a[P_XY].f + b[P_XY].f) + dx * dy * both
    o[P_X], o[P_Y] = a[P_X], a[P_Y]
    o[P_MEAN_X].f, o[P_MEAN_Y].f = a[P_MEAN_X].f + dx * share, a[P_MEAN_Y].f + dy * share
    o[P_COUNT].f, o[P_XX].f, o[P_YY].f, o[P_XY].f = n, xx, yy, xy


cdef inline double finite(double x) noexcept nogil:
    """NaN, no result, for what is beyond float64."""
    return x if isfinite(x) else NAN


cdef inline double slope_of(const Slot* s, double per) noexcept nogil:
    return finite(s[L_BOTH].f / s[L_TIMES].f * per) if s[L_TIMES].f > 0.0 else NAN


cdef inline double intercept_of(const Slot* s, bint at_last) noexcept nogil:
    """The line's value at the least or the greatest time."""
    cdef double when = <double> (s[L_LAST].i - s[L_FIRST].i) if at_last else 0.0
    if not s[L_TIMES].f > 0.0:
        return NAN
    return finite(s[L_ORIGIN].f + (s[L_VALUE].f + s[L_BOTH].f / s[L_TIMES].f * (when - s[L_TIME].f)))


cdef inline double covariance_of(const Slot* s, int ddof) noexcept nogil:
    return finite(s[P_XY].f / (s[P_COUNT].f - ddof)) if s[P_COUNT].f > ddof else NAN


cdef inline double correlation_of(const Slot* s) noexcept nogil:
    cdef double r
    if not (0.0 < s[P_XX].f < INFINITY and 0.0 < s[P_YY].f < INFINITY):
        return NAN
    r = finite(s[P_XY].f / (sqrt(s[P_XX].f) * sqrt(s[P_YY].f)))
    return 1.0 if r > 1.0 else -1.0 if r < -1.0 else r
