"""Certain intervals in compiled code; see certain.pxd. Names and order of operations are sluicegate.bounds.sums'."""

from libc.math cimport INFINITY, ceil, fabs, floor, isnan, nextafter
from libc.stdint cimport int64_t

from sluicegate.answers.results cimport (
    K_COUNT, K_FIRST, K_LAST, K_MAX, K_MEAN, K_MIN, K_RANGE, K_SUM, Cut, Output, may_lack,
)
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Slot

cdef extern from "interval_lanes.h" nogil:
    double certain_apart_least(double a, double b)
    double certain_apart_most(double a, double b)

cdef double EPSILON = 2.220446049250313e-16


cdef bint has_interval(int kind) noexcept nogil:
    return (
        kind == K_COUNT or kind == K_SUM or kind == K_MEAN or kind == K_MIN or kind == K_MAX or kind == K_FIRST
        or kind == K_LAST or kind == K_RANGE
    )


cdef Inside inside_of(const Output* o, const Slot* partial) noexcept nogil:
    cdef Inside inside
    inside.n, inside.total, inside.low, inside.high = 0, 0.0, INFINITY, -INFINITY
    if partial == NULL:
        return inside
    inside.n = partial[H_COUNT].i
    if o.prefix >= 0:
        inside.total = partial[o.prefix].f
    if o.low >= 0:
        inside.low, inside.high = partial[o.low].f, partial[o.high].f
    return inside


cdef Interval interval(
    const Output* o, Slot value, const Inside* inside, const Slot* leaf, Cut where, double center
) noexcept nogil:
    cdef bint whole = where.least == leaf[H_COUNT].i
    cdef Interval found
    cdef Part part
    found.low = found.high = value
    if o.kind == K_LAST or (whole and not rounds(o.kind)):
        return found
    if o.kind == K_COUNT:
        found.low.i, found.high.i = inside.n + where.least, inside.n + where.most
    elif o.kind == K_FIRST:
        found.low.f = leaf[o.last if where.most == 1 else o.low].f
        found.high.f = leaf[o.last if where.most == 1 else o.high].f
    else:
        part = nothing() if whole else cut_part(o, leaf, where, center)
        if o.kind == K_SUM:
            found.low.f, found.high.f = sum_low(inside, &part, center), sum_high(inside, &part, center)
        elif o.kind == K_MEAN:
            mean_interval(inside, &part, center, &found.low.f, &found.high.f)
        else:
            extreme_interval(o, inside, &part, leaf, where, &found)
    return found


cdef void extreme_interval(
    const Output* o, const Inside* inside, const Part* part, const Slot* leaf, Cut where, Interval* found
) noexcept nogil:
    cdef Span low = lowest_of(o, part, leaf, where), high = highest_of(o, part, leaf, where)
    low.least, low.most = lesser(inside.low, low.least), lesser(inside.low, low.most)
    high.least, high.most = larger(inside.high, high.least), larger(inside.high, high.most)
    if o.kind == K_MIN:
        found.low.f, found.high.f = low.least, low.most
    elif o.kind == K_MAX:
        found.low.f, found.high.f = high.least, high.most
    else:
        found.low.f, found.high.f = certain_apart_least(high.least, low.most), certain_apart_most(high.most, low.least)


cdef Span lowest_of(const Output* o, const Part* part, const Slot* leaf, Cut where) noexcept nogil:
    """Between which values the least reading of the cut lies."""
    cdef Span span
    span.least, span.most = part.low, part.min_high
    if part.most and o.kind != K_MAX:
        span.least = larger(part.low, beyond(o.low, o.low_ends, -1, leaf, where))
    return span


cdef Span highest_of(const Output* o, const Part* part, const Slot* leaf, Cut where) noexcept nogil:
    cdef Span span
    span.least, span.most = part.max_low, part.high
    if part.most and o.kind != K_MIN:
        span.most = lesser(part.high, beyond(o.high, o.high_ends, 1, leaf, where))
    return span


cdef Slot clamp(int kind, Slot value, const Interval* within) noexcept nogil:
    """The value moved into its interval."""
    if kind == K_COUNT:
        value.i = min(max(value.i, within.low.i), within.high.i)
    elif may_lack(kind) and isnan(value.f):
        value = within.low
    else:
        value.f = lesser(larger(value.f, within.low.f), within.high.f)
    return value


cdef double beyond(int own, int ends, int sign, const Slot* leaf, Cut where) noexcept nogil:
    """What no reading of the suffix exceeds: bounds_extremes.extreme_of_run."""
    if ends < 0:
        return sign * INFINITY
    if leaf[own + 4].i < leaf[H_O_FIRST].i + leaf[H_COUNT].i - where.most:
        return leaf[ends + 2].f
    return leaf[own].f


cdef Part nothing() noexcept nogil:
    cdef Part p
    p.least = p.most = p.size = 0
    p.sum_low = p.sum_high = p.raw_low = p.raw_high = 0.0
    p.n_in = p.s_in = p.n_any = p.s_any = p.magnitude = 0.0
    p.low = p.min_high = INFINITY
    p.high = p.max_low = -INFINITY
    return p


cdef Part known_part(const Output* o, const Slot* leaf, Cut where, double center) noexcept nogil:
    """Of the newest `least` to `most` of the leaf's readings, one at least and not all for certain; sums by prefixes alone."""
    cdef int64_t n = leaf[H_COUNT].i, kept = leaf[H_O_FIRST].i + n - where.least
    cdef double total = 0.0, below = -INFINITY, above = INFINITY
    cdef double low = leaf[o.low].f, high = leaf[o.high].f, last = leaf[o.last].f
    cdef bint out = where.most < n
    cdef Part p
    if o.prefix >= 0:
        total, below, above = leaf[o.prefix].f, leaf[o.prefix + 1].f, leaf[o.prefix + 2].f
    p.least, p.most, p.size, p.magnitude = where.least, where.most, n, larger(fabs(low), fabs(high))
    p.min_high = low if leaf[o.low + 4].i >= kept else last
    p.max_low = high if leaf[o.high + 4].i >= kept else last
    if not out:  # nothing may be cut off
        below, above = lesser(0.0, below), larger(0.0, above)
    p.sum_low, p.sum_high = total - above, total - below
    p.n_in, p.s_in = 1.0, last - center
    p.n_any, p.s_any = <double> (n - out), total - (leaf[o.first].f - center) if out else total
    if where.most == 1:
        low = high = last
        p.n_any, p.s_any = p.n_in, p.s_in
    p.low, p.high = low, high
    return p


cdef Part cut_part(const Output* o, const Slot* leaf, Cut where, double center) noexcept nogil:
    """bounds.run: the same, its sums by all that is known."""
    cdef Part p = known_part(o, leaf, where, center)
    cdef Lines lines
    cdef Corners corners
    if o.prefix < 0:
        return p
    lines = lines_below(p.sum_low, &p, p.low - center, p.high - center)
    corners = corners_of(&lines, p.least, p.most)
    p.sum_low, p.raw_low = least_of(&lines, &corners, 0.0), least_of(&lines, &corners, center)
    lines = lines_above(p.sum_high, &p, p.low - center, p.high - center)
    corners = corners_of(&lines, p.least, p.most)
    p.sum_high, p.raw_high = -least_of(&lines, &corners, 0.0), -least_of(&lines, &corners, -center)
    return p


cdef Lines lines_below(double s_low, const Part* p, double low, double high) noexcept nogil:
    """Below the added sum as a function of c."""
    cdef Lines lines
    lines.at[0], lines.slope[0] = s_low, 0.0
    lines.at[1], lines.slope[1] = p.s_in - p.n_in * low, low
    lines.at[2], lines.slope[2] = p.s_any - p.n_any * high, high
    return lines


cdef Lines lines_above(double s_high, const Part* p, double low, double high) noexcept nogil:
    """Above it, upside down: `lines_below` of all negated."""
    cdef Lines lines
    lines.at[0], lines.slope[0] = -s_high, 0.0
    lines.at[1], lines.slope[1] = -p.s_in - p.n_in * -high, -high
    lines.at[2], lines.slope[2] = -p.s_any - p.n_any * -low, -low
    return lines


cdef Corners corners_of(const Lines* l, int64_t least, int64_t most) noexcept nogil:
    """The least and greatest count, and where two lines cross, rounded both ways."""
    cdef Corners corners
    corners.n, corners.c[0] = 1, <double> least
    if least == most:
        return corners
    corners.n, corners.c[1] = 2, <double> most
    cross(&corners, l.at[1] - l.at[0], l.slope[0] - l.slope[1])
    cross(&corners, l.at[2] - l.at[0], l.slope[0] - l.slope[2])
    cross(&corners, l.at[2] - l.at[1], l.slope[1] - l.slope[2])
    return corners


cdef void cross(Corners* corners, double rise, double run) noexcept nogil:
    cdef double c
    if run == 0.0:
        return
    c = rise / run
    if corners.c[0] < c and c < corners.c[1]:
        corners.c[corners.n], corners.c[corners.n + 1] = floor(c), ceil(c)
        corners.n += 2


cdef inline double highest(const Lines* l, double c) noexcept nogil:
    return larger(larger(l.at[0] + l.slope[0] * c, l.at[1] + l.slope[1] * c), l.at[2] + l.slope[2] * c)


cdef double least_of(const Lines* l, const Corners* corners, double slope) noexcept nogil:
    """The least over c of the greatest line at c, all lines tilted by `slope`."""
    cdef double found = highest(l, corners.c[0]) + slope * corners.c[0]
    cdef int k
    for k in range(1, corners.n):
        found = lesser(found, highest(l, corners.c[k]) + slope * corners.c[k])
    return found


cdef double least_mean(double n, double total, const Lines* l, const Corners* corners) noexcept nogil:
    cdef double found = (total + highest(l, corners.c[0])) / (n + corners.c[0])
    cdef int k
    for k in range(1, corners.n):
        found = lesser(found, (total + highest(l, corners.c[k])) / (n + corners.c[k]))
    return found


cdef Lines pooled(const Part* p, double center, bint above) noexcept nogil:
    cdef double low = 0.0, high = 0.0
    if p.most:
        low, high = p.low - center, p.high - center
    return lines_above(p.sum_high, p, low, high) if above else lines_below(p.sum_low, p, low, high)


cdef double slack(const Inside* inside, const Part* part, double center) noexcept nogil:
    """What rounding may have done to a sum over every reading touched."""
    cdef double readings = <double> (inside.n + part.size), magnitude = larger(part.magnitude, fabs(center))
    if inside.n:
        magnitude = larger(larger(magnitude, fabs(inside.low)), fabs(inside.high))
    return 4.0 * readings * EPSILON * readings * magnitude


cdef inline double outward(double x, double way) noexcept nogil:
    """Rounded outward; no bound where a sum overflowed."""
    return way if isnan(x) else nextafter(x, way)


cdef double sum_low(const Inside* inside, const Part* part, double center) noexcept nogil:
    cdef double base = inside.total + inside.n * center
    cdef Lines lines = pooled(part, center, False)
    cdef Corners corners = corners_of(&lines, part.least, part.most)
    return outward(base + larger(part.raw_low, least_of(&lines, &corners, center)) - slack(inside, part, center), -INFINITY)


cdef double sum_high(const Inside* inside, const Part* part, double center) noexcept nogil:
    cdef double base = inside.total + inside.n * center
    cdef Lines lines = pooled(part, center, True)
    cdef Corners corners = corners_of(&lines, part.least, part.most)
    return outward(base + lesser(part.raw_high, -least_of(&lines, &corners, -center)) + slack(inside, part, center), INFINITY)


cdef void mean_interval(
    const Inside* inside, const Part* part, double center, double* low, double* high
) noexcept nogil:
    cdef double wide = slack(inside, part, center), n = <double> inside.n, ulps
    cdef double least = lesser(inside.low, part.low), greatest = larger(inside.high, part.high)
    cdef Lines lines = pooled(part, center, False)
    cdef Corners corners = corners_of(&lines, part.least, part.most)
    low[0] = center + least_mean(n, inside.total - wide, &lines, &corners)
    lines = pooled(part, center, True)
    corners = corners_of(&lines, part.least, part.most)
    high[0] = center - least_mean(n, -inside.total - wide, &lines, &corners)
    ulps = 4 * EPSILON * larger(larger(fabs(least), fabs(greatest)), fabs(center))
    low[0] = outward(larger(low[0], least) - ulps, -INFINITY)
    high[0] = outward(lesser(high[0], greatest) + ulps, INFINITY)
