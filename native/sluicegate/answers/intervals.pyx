"""Certain intervals in compiled code; see intervals.pxd.

The oldest bucket of a window is the only one the edge can cut, and what is left of it is a run of its newest readings,
also where its times go back: a window is a FIFO. A bucket keeps its extreme with its first and last place, how often
it occurs, and what stands before its first and after its last occurrence: the least that decides most cuts.
"""

from libc.math cimport INFINITY, exp, isnan, nextafter
from libc.stdint cimport int64_t

from sluicegate.answers.results cimport (
    K_ARGMAX, K_COUNT, K_FIRST, K_GEOMETRIC, K_LAST, K_MAX, K_MAX_COUNT, K_MEAN, K_MIN, K_RANGE, K_RATE, K_STD, K_SUM,
    K_VARIANCE, Output, View, is_time, is_whole, may_lack,
)
from sluicegate.answers.sums cimport Ends, Inside, Part, fixed, inside_of, mean_interval, part_of, sum_interval
from sluicegate.answers.variance cimport variance_interval
from sluicegate.partials.program cimport (
    H_COUNT, H_O_FIRST, H_ORDERED, H_T_FIRST, H_T_LAST, Slot, greatest as larger, least as lesser, log_of,
)

ctypedef struct Range:
    int64_t low
    int64_t high


cdef Interval interval(const Output* o, const View* v, Slot value, double center) noexcept nogil:
    """Between which values the exact result lies; the result itself where nothing is uncertain."""
    cdef Interval found
    cdef Ends ends
    found.low, found.high, found.exact = value, value, True
    if o.kind >= K_RATE or o.kind == K_LAST or (v.whole and not rounds(o.kind)):
        return found
    if is_whole(o.kind):
        whole_number(o, v, &found)
        return found
    if o.kind == K_FIRST:
        ends = first(o, v)
        if v.late:  # the first may be one of those that came late
            ends.low, ends.high = lesser(ends.low, v.total[o.low].f), larger(ends.high, v.total[o.high].f)
    elif o.kind == K_VARIANCE or o.kind == K_STD:
        ends = variance_interval(o, v, center, &found.exact)
    elif o.kind == K_SUM or o.kind == K_MEAN or o.kind == K_GEOMETRIC:
        ends = of_sums(o, v, center, &found.exact)
    else:
        ends = extreme(o, v, center, &found.exact)
    if o.kind == K_FIRST or o.kind == K_MIN or o.kind == K_MAX:
        found.exact = ends.low == ends.high
    found.low.f, found.high.f = ends.low, ends.high
    return found


cdef inline bint rounds(int kind) noexcept nogil:
    """Whether it is uncertain by rounding where nothing is cut."""
    return (
        kind == K_SUM or kind == K_MEAN or kind == K_RANGE or kind == K_VARIANCE or kind == K_STD
        or kind == K_GEOMETRIC
    )


cdef Slot clamp(const Output* o, Slot value, const Interval* within) noexcept nogil:
    """The value moved into its interval."""
    if is_whole(o.kind):
        value.i = min(max(value.i, within.low.i), within.high.i)
    elif may_lack(o.kind) and isnan(value.f):
        value = within.low
    else:
        value.f = lesser(larger(value.f, within.low.f), within.high.f)
    return value


cdef void whole_number(const Output* o, const View* v, Interval* found) noexcept nogil:
    cdef int64_t inside
    cdef Range between
    if o.kind == K_COUNT:
        inside = 0 if v.rest == NULL else v.rest[H_COUNT].i
        between = Range(inside + v.where.least, inside + v.where.most)
    elif is_time(o.kind):
        between = time_of_extreme(v, o.high if o.kind == K_ARGMAX else o.low, 1.0 if o.kind == K_ARGMAX else -1.0)
    elif o.kind == K_MAX_COUNT:
        between = occurrences(o, v, o.high, o.high_count, o.high_ends, 1.0)
    else:
        between = occurrences(o, v, o.low, o.low_count, o.low_ends, -1.0)
    found.low.i, found.high.i, found.exact = between.low, between.high, between.low == between.high


cdef Ends first(const Output* o, const View* v) noexcept nogil:
    """The oldest reading of the cut bucket that is inside: the last where it is the only one, else any."""
    if v.where.most == 1:
        return Ends(v.leaf[o.last].f, v.leaf[o.last].f)
    return Ends(v.leaf[o.low].f, v.leaf[o.high].f)


# sums and means

cdef Ends of_sums(const Output* o, const View* v, double center, bint* exact) noexcept nogil:
    cdef Inside inside = inside_of(o, v.total if v.whole else v.rest)
    cdef Part part
    cdef Ends ends
    if o.kind == K_GEOMETRIC:
        center = log_of(center)
    part = part_of(o, v, center)
    exact[0] = fixed(&part)
    if o.kind == K_SUM:
        return sum_interval(&inside, &part, center)
    ends = mean_interval(&inside, &part, center)
    return exponential(ends) if o.kind == K_GEOMETRIC else ends


cdef Ends exponential(Ends ends) noexcept nogil:
    """exp is right to an ulp, here and in the value: four of them outward."""
    cdef double low = exp(ends.low) * (1 - 9e-16), high = exp(ends.high) * (1 + 9e-16)
    return Ends(larger(0.0, nextafter(low, -INFINITY)), nextafter(high, INFINITY))


# extremes

cdef Ends extreme(const Output* o, const View* v, double center, bint* exact) noexcept nogil:
    """The least and the greatest value, and how far they are apart."""
    cdef Inside inside = inside_of(o, v.total if v.whole else v.rest)
    cdef Part part = part_of(o, v, center)
    cdef Ends low = Ends(part.low, part.min_high), high = Ends(part.max_low, part.high)
    if not v.whole and o.kind != K_MAX:
        low.low = larger(low.low, extreme_of_run(v, o.low, o.low_ends, -INFINITY))
    if not v.whole and o.kind != K_MIN:
        high.high = lesser(high.high, extreme_of_run(v, o.high, o.high_ends, INFINITY))
    low = Ends(lesser(inside.low, low.low), lesser(inside.low, low.high))
    high = Ends(larger(inside.high, high.low), larger(inside.high, high.high))
    if o.kind != K_RANGE:
        return low if o.kind == K_MIN else high
    exact[0] = low.low == low.high and high.low == high.high
    return Ends(larger(0.0, difference(high.low, low.high).low), difference(high.high, low.low).high)


cdef double extreme_of_run(const View* v, int own, int ends, double unknown) noexcept nogil:
    """What no reading of the cut bucket's part exceeds."""
    if ends < 0:
        return unknown
    if v.leaf[own + 4].i < v.leaf[H_O_FIRST].i + v.leaf[H_COUNT].i - v.where.most:
        return v.leaf[ends + 2].f
    return v.leaf[own].f


cdef Ends difference(double a, double b) noexcept nogil:
    """Two floats that a − b lies between; the same one twice where it is a float itself."""
    cdef double d = a - b, back, lost
    back = d - a
    lost = (a - (d - back)) - (b + back)  # Knuth's TwoSum: d + lost = a − b
    return Ends(nextafter(d, -INFINITY) if lost < 0.0 else d, nextafter(d, INFINITY) if lost > 0.0 else d)


cdef Range time_of_extreme(const View* v, int own, double sign) noexcept nogil:
    """The least time at which the extreme occurs, over the whole buckets and the cut one."""
    cdef const Slot* s = v.leaf + own
    cdef const Slot* rest = NULL if v.rest == NULL else v.rest + own
    cdef int64_t end = v.leaf[H_O_FIRST].i + v.leaf[H_COUNT].i, begin = v.leaf[H_T_FIRST].i
    cdef bint sure = s[3].i >= end - v.where.least, out = s[4].i < end - v.where.least
    cdef Range found
    if rest != NULL and (sign * rest.f > sign * s.f or (rest.f == s.f and s[4].i < end - v.where.most)):
        return Range(rest[1].i, rest[1].i)
    if v.leaf[H_ORDERED].i:
        begin = max(begin, v.cutoff + 1)
    found = Range(s[1].i, s[1].i) if sure else Range(max(s[1].i, begin), s[2].i)
    if out:
        found = Range(begin, v.leaf[H_T_LAST].i)
    if rest != NULL and (out or rest.f == s.f):
        return Range(min(found.low, rest[1].i), max(found.high, rest[1].i) if out else min(found.high, rest[1].i))
    return found


cdef Range occurrences(const Output* o, const View* v, int own, int counted, int ends, double sign) noexcept nogil:
    """How often the extreme occurs, of the whole buckets and the cut one."""
    cdef const Slot* s = v.leaf + own
    cdef const Slot* inside = NULL if v.rest == NULL else v.rest + counted
    cdef int64_t end = v.leaf[H_O_FIRST].i + v.leaf[H_COUNT].i, place = s[4].i, times = v.leaf[counted + 1].i
    cdef int64_t start = end - v.where.most, latest = end - v.where.least
    cdef Range kept, out
    if place >= start:  # the last one may be inside
        kept.low = max(1, times - max(0, min(latest, place) - s[3].i))
        kept.high = times if start <= s[3].i else min(times - 1, place - start + 1)
        kept = joined(inside, s.f, kept, sign)
        if place >= latest:
            return kept
    out = without(inside, v.leaf[o.last].f, v.leaf[ends + 2].f, end - max(start, place + 1), sign)
    return Range(min(kept.low, out.low), max(kept.high, out.high)) if place >= start else out


cdef Range joined(const Slot* inside, double value, Range times, double sign) noexcept nogil:
    """The extreme of both, where the cut bucket's part has its own so often."""
    if inside == NULL or sign * value > sign * inside.f:
        return times
    if value != inside.f:
        return Range(inside[1].i, inside[1].i)
    return Range(inside[1].i + times.low, inside[1].i + times.high)


cdef Range without(const Slot* inside, double last, double after, int64_t most, double sign) noexcept nogil:
    """The same where every occurrence is outside: at most `most` readings follow, the last one is known."""
    if most == 1:
        return joined(inside, last, Range(1, 1), sign)
    if inside == NULL or sign * last > sign * inside.f:
        return Range(1, most)
    if sign * after < sign * inside.f:
        return Range(inside[1].i, inside[1].i)
    if after == inside.f:
        return Range(inside[1].i + (last == inside.f), inside[1].i + most)
    return Range(1, inside[1].i + most)
