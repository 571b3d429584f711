"""Certain intervals in compiled code; see certain.pxd. Names and order of operations are sluicegate.bounds'."""

from libc.math cimport INFINITY, ceil, fabs, floor, isnan, nextafter
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sluicegate.engines.answers cimport K_COUNT, K_FIRST, K_LAST, K_MAX, K_MEAN, K_MIN, K_SUM, Cut, Output
from sluicegate.engines.program cimport H_COUNT, H_O_FIRST, Slot

cdef extern from "certain_lanes.h" nogil:
    ctypedef struct Lines "certain_lines":  # three straight lines: each its value at c = 0 and its slope
        double at[3]
        double slope[3]
    ctypedef struct Beside "certain_beside":
        double total
        double least
        double greatest
        double base_total
        double base_least
        double base_greatest
        double readings
        double size
        double magnitude
        double center
        double low
        double high

    void certain_inside(const Beside* b, int n, double* lows, double* highs)
    void certain_reach(
        const Beside* b, int n, const double* newest, const double* lows, const double* highs, double* below, double* above)
    void certain_means(
        const Lines* of_, int n, const double* sums, double readings, double c, double falls, int again, double* out)
    void certain_mean_intervals(
        const Beside* b, int n, const double* lows, const double* highs, double* value, double* low, double* high)
    void certain_sums(
        const Beside* b, const Lines* lines, int n, double c, double falls, const double* newest, const double* lows,
        const double* highs, double* value, double* low, double* high)
    void certain_minima(const double* within, int n, const double* lows, double* value, double* low, double* high)
    void certain_maxima(const double* within, int n, const double* highs, double* value, double* low, double* high)
    void certain_even(const double* within, int n, double rises, double* value, double* low, double* high)

cdef double EPSILON = 2.220446049250313e-16

ctypedef struct Part:  # what the cut bucket may add
    int64_t least
    int64_t most
    double sum_low
    double sum_high
    double raw_low  # of x, not of x − center
    double raw_high
    double n_in
    double s_in
    double n_any
    double s_any
    double low
    double high
    double min_high
    double max_low
    int64_t size
    double magnitude

ctypedef struct Corners:
    int n
    double c[8]


cdef bint has_interval(int kind) noexcept nogil:
    return (
        kind == K_COUNT or kind == K_SUM or kind == K_MEAN or kind == K_MIN or kind == K_MAX or kind == K_FIRST
        or kind == K_LAST
    )


cdef inline double lesser(double a, double b) noexcept nogil:
    return b if b < a else a


cdef inline double larger(double a, double b) noexcept nogil:
    return b if b > a else a


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
    if o.kind == K_LAST or (whole and o.kind != K_SUM and o.kind != K_MEAN):
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
        elif o.kind == K_MIN:
            found.low.f = lesser(inside.low, larger(part.low, beyond(o.low, o.low_ends, -1, leaf, where)))
            found.high.f = lesser(inside.low, part.min_high)
        else:
            found.high.f = larger(inside.high, lesser(part.high, beyond(o.high, o.high_ends, 1, leaf, where)))
            found.low.f = larger(inside.high, part.max_low)
    return found


cdef Slot clamp(int kind, Slot value, const Interval* within) noexcept nogil:
    """The value moved into its interval."""
    if kind == K_COUNT:
        value.i = min(max(value.i, within.low.i), within.high.i)
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


# a stretch: the same for many readings at once


cdef int64_t alike(const Output* o, const Slot* leaf, int64_t c) noexcept nogil:
    """For how many readings that keep c, c − 1, … of the leaf's the same is known of what they keep."""
    cdef int64_t extreme = 0
    if o.kind == K_COUNT or o.kind == K_LAST:
        return c
    if o.kind == K_MIN or o.kind == K_MAX:
        extreme = leaf[H_O_FIRST].i + leaf[H_COUNT].i - leaf[(o.low if o.kind == K_MIN else o.high) + 4].i
    return max(1, c - 1 if c < extreme else c + 1 - max(extreme, 2))


cdef void intervals(const Output* o, const Stretch* s, double* value, double* low, double* high) noexcept nogil:
    cdef Part part
    cdef Beside beside
    cdef int n = <int> s.n
    if o.kind == K_LAST or (s.whole and o.kind != K_SUM and o.kind != K_MEAN):
        memcpy(low, value, n * sizeof(double))
        memcpy(high, value, n * sizeof(double))
    elif o.kind == K_COUNT or o.kind == K_FIRST:
        even_intervals(o, s, value, low, high)
    else:
        part = nothing() if s.whole else known_part(o, s.leaf, s.where, s.center) if s.falls else cut_part(o, s.leaf, s.where, s.center)
        beside = what_is_beside(o, s, &part)
        certain_inside(&beside, n, s.lows, s.highs)
        if o.kind == K_SUM:
            sum_intervals(s, &part, &beside, value, low, high)
        elif o.kind == K_MEAN:
            mean_intervals(s, &part, &beside, value, low, high)
        else:
            extreme_intervals(o, s, &part, value, low, high)


cdef void even_intervals(const Output* o, const Stretch* s, double* value, double* low, double* high) noexcept nogil:
    cdef double within[2]
    if o.kind == K_COUNT:
        within[0], within[1] = <double> (s.inside + s.where.least), <double> (s.inside + s.where.most)
    else:
        within[0] = s.leaf[o.last if s.where.most == 1 else o.low].f
        within[1] = s.leaf[o.last if s.where.most == 1 else o.high].f
    certain_even(within, <int> s.n, o.kind == K_COUNT and not s.falls, value, low, high)


cdef void extreme_intervals(
    const Output* o, const Stretch* s, const Part* part, double* value, double* low, double* high
) noexcept nogil:
    cdef double within[2]
    if o.kind == K_MIN:
        within[0] = larger(part.low, beyond(o.low, o.low_ends, -1, s.leaf, s.where))
        within[1] = part.min_high
        certain_minima(within, <int> s.n, s.lows, value, low, high)
    else:
        within[0] = part.max_low
        within[1] = lesser(part.high, beyond(o.high, o.high_ends, 1, s.leaf, s.where))
        certain_maxima(within, <int> s.n, s.highs, value, low, high)


cdef Beside what_is_beside(const Output* o, const Stretch* s, const Part* part) noexcept nogil:
    cdef Beside b
    b.total = -0.0 if s.outer == NULL or o.prefix < 0 else s.outer[o.prefix].f  # −0.0 adds nothing, not even a sign
    b.base_total = -0.0 if s.base == NULL or o.prefix < 0 else s.base[o.prefix].f
    b.least = INFINITY if s.outer == NULL else s.outer[o.low].f
    b.greatest = -INFINITY if s.outer == NULL else s.outer[o.high].f
    b.base_least = INFINITY if s.base == NULL else s.base[o.low].f
    b.base_greatest = -INFINITY if s.base == NULL else s.base[o.high].f
    b.readings, b.size, b.magnitude = <double> s.inside, <double> part.size, larger(part.magnitude, fabs(s.center))
    b.center, b.low, b.high = s.center, part.low, part.high
    return b


cdef void sum_intervals(
    const Stretch* s, const Part* part, const Beside* b, double* value, double* low, double* high
) noexcept nogil:
    cdef Lines lines[2]
    cdef double c = <double> s.where.most
    if s.falls:
        lines[0], lines[1] = pooled(part, s.center, False), pooled(part, s.center, True)
    else:
        lines[0], lines[1], c = level(added(part, s.center, False)), level(added(part, s.center, True)), 0.0
    certain_sums(b, lines, <int> s.n, c, s.falls, s.totals, s.lows, s.highs, value, low, high)


cdef Lines level(double at) noexcept nogil:
    cdef Lines lines
    lines.at[0] = lines.at[1] = lines.at[2] = at
    lines.slope[0] = lines.slope[1] = lines.slope[2] = 0.0
    return lines


cdef double added(const Part* part, double center, bint above) noexcept nogil:
    """What the cut adds to a sum of x at the least; `above`: at the most, upside down."""
    cdef Lines lines = pooled(part, center, above)
    cdef Corners corners = corners_of(&lines, part.least, part.most)
    if above:
        return -lesser(part.raw_high, -least_of(&lines, &corners, -center))
    return larger(part.raw_low, least_of(&lines, &corners, center))


cdef void mean_intervals(
    const Stretch* s, const Part* part, const Beside* b, double* value, double* low, double* high
) noexcept nogil:
    certain_reach(b, <int> s.n, s.totals, s.lows, s.highs, s.below, s.above)
    least_means(s, part, False, s.below, low)
    least_means(s, part, True, s.above, high)
    certain_mean_intervals(b, <int> s.n, s.lows, s.highs, value, low, high)


cdef void least_means(const Stretch* s, const Part* part, bint above, const double* sums, double* out) noexcept nogil:
    cdef Lines lines = pooled(part, s.center, above)
    cdef Corners corners = corners_of(&lines, part.least, part.most)
    cdef int k
    for k in range(corners.n):
        certain_means(&lines, <int> s.n, sums, <double> s.inside, corners.c[k], s.falls, k > 0, out)
