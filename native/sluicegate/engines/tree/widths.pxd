"""What a bucket may add to a cut window's interval, in compiled code; the readable twin is sluicegate.reference.widths."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

from sluicegate.partials.program cimport H_COUNT, H_ORDERED, Slot, greatest, least

cdef enum:  # sluicegate.histograms.widths.Width
    W_COUNT = 0
    W_SUM = 1
    W_HIGH = 2
    W_LOW = 3
    W_RANGE = 4
    W_SQUARES = 5

ctypedef struct Term:
    int width
    int prefix
    int low
    int high
    int last
    int ends
    bint timed  # the edge is a time: times that go back inside a bucket leave any of its readings in doubt
    double scale  # what the whole window as one bucket might add, see `reach`


cdef inline bint is_extreme(const Term* t) noexcept nogil:
    return t.width == W_HIGH or t.width == W_LOW


cdef inline double nothing(const Term* t) noexcept nogil:
    """What hides no reading."""
    return INFINITY if t.width == W_LOW else -INFINITY


cdef inline double extreme(const Term* t, const Slot* s) noexcept nogil:
    return s[t.low].f if t.width == W_LOW else s[t.high].f


cdef inline double further(const Term* t, double a, double b) noexcept nogil:
    return least(a, b) if t.width == W_LOW else greatest(a, b)


cdef inline bint beyond(const Term* t, const Slot* s, double than) noexcept nogil:
    return extreme(t, s) < than if t.width == W_LOW else extreme(t, s) > than


cdef inline double width(const Term* t, const Slot* s, double behind) noexcept nogil:
    """`behind`: the extreme of all that follows the bucket in the window; what it hides is in no doubt."""
    cdef double n = <double> s[H_COUNT].i, between, reach
    cdef bint disordered = t.timed and s[H_ORDERED].i != 1
    if t.width == W_COUNT:
        return n - 1.0
    if t.width == W_SUM:
        between = greatest(s[t.prefix + 2].f - s[t.prefix + 1].f, 0.0)
        if t.low < 0:
            return between
        reach = (n - 1.0) * (s[t.high].f - s[t.low].f)
        return reach if disordered else least(between, reach)
    if t.width == W_SQUARES:
        return (n - 1.0) * ((s[t.high].f - s[t.low].f) * (s[t.high].f - s[t.low].f))
    if t.width == W_RANGE or disordered:
        return s[t.high].f - s[t.low].f
    if t.width == W_HIGH:
        return greatest((s[t.high].f if t.ends < 0 else s[t.ends + 2].f) - greatest(s[t.last].f, behind), 0.0)
    return greatest(least(s[t.last].f, behind) - (s[t.low].f if t.ends < 0 else s[t.ends + 2].f), 0.0)


cdef inline double added_of_extremes(const Term* terms, int m, const Slot* a, const Slot* b, const double* behind, double* between) noexcept nogil:
    """What both buckets as one add, where all terms are extremes and times are in order; `between`: what is behind `a`.

    All that is read of both as one follows from a few slots of theirs. Minima as maxima of the opposite: nothing is guessed.
    """
    cdef double one = 0.0, first = 0.0, second = 0.0, sign, x, y, last, hides, fall_of_first, fall
    cdef const Term* t
    cdef int k, own, after
    for k in range(m):
        t = &terms[k]
        sign = -1.0 if t.width == W_LOW else 1.0
        own = t.low if t.width == W_LOW else t.high
        after = own if t.ends < 0 else t.ends + 2
        x, y, hides = sign * a[own].f, sign * b[own].f, sign * behind[k]
        between[k] = sign * greatest(hides, y)
        if not t.scale > 0.0:
            continue
        fall_of_first, fall = sign * a[after].f, sign * b[after].f
        last = greatest(sign * b[t.last].f, hides)
        second += greatest(fall - last, 0.0) / t.scale
        first += greatest(fall_of_first - greatest(sign * a[t.last].f, greatest(hides, y)), 0.0) / t.scale
        fall_of_first = greatest(fall_of_first, y)
        one += greatest((fall_of_first if x > y else fall) - last, 0.0) / t.scale
    one *= <double> (a[H_COUNT].i + b[H_COUNT].i)
    if a[H_COUNT].i > 1:
        one -= <double> a[H_COUNT].i * first
    if b[H_COUNT].i > 1:
        one -= <double> b[H_COUNT].i * second
    return one


cdef inline double reach(const Term* t, const Slot* s) noexcept nogil:
    """See the twin."""
    return s[t.high].f - s[t.low].f if is_extreme(t) else width(t, s, 0.0)


cdef inline double weight(const Term* terms, int m, const Slot* s, const double* behind) noexcept nogil:
    """The sum of all widths in their scales, times the bucket's readings: as long as the edge stays in it."""
    cdef double total = 0.0
    cdef int k
    if s[H_COUNT].i < 2:
        return 0.0
    for k in range(m):
        if terms[k].scale > 0.0:
            total += width(&terms[k], s, behind[k]) / terms[k].scale
    return <double> s[H_COUNT].i * total
