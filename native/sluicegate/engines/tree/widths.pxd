"""What a bucket may add to a cut window's interval, in compiled code.

The readable twin is tests/native/twins/widths.py.
"""

from libc.math cimport INFINITY

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


cdef inline double reach(const Term* t, const Slot* s) noexcept nogil:
    """What one aggregate's width may be in all of the window: of an extreme what it would be at the window's own.

    Not what the window as one bucket adds after this reading: that is 0 while the last is the extreme, and a range's
    two ends were weighed a thousand times unlike each other then.
    """
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
