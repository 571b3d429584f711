"""The error algebra of sums, compiled; see sums.pxd, and why so in tests/native/bounds/error_algebra.py, the twin."""

from libc.math cimport INFINITY, ceil, fabs, floor, isnan, nextafter

from sluicegate.answers.results cimport Output, View, measured
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Slot, greatest as larger, least as lesser

cdef double EPSILON = 2.220446049250313e-16


cdef Inside inside_of(const Output* o, const Slot* partial) noexcept nogil:
    cdef Inside inside
    inside.n, inside.total, inside.low, inside.high = 0, 0.0, INFINITY, -INFINITY
    if partial != NULL:
        inside.n = partial[H_COUNT].i
        inside.total = partial[o.prefix].f if o.prefix >= 0 else 0.0
        inside.low, inside.high = measured(o, partial[o.low].f), measured(o, partial[o.high].f)
    return inside


cdef Part part_of(const Output* o, const View* v, double center) noexcept nogil:
    """What the cut bucket may add: `run` of its newest readings; `NOTHING` where the edge cuts none."""
    cdef Part p
    cdef Lines lines
    cdef Corners corners
    if v.whole:
        return nothing()
    p = known_part(o, v, center)
    if o.prefix < 0:
        return p
    lines = lines_below(p.sum_low, &p, p.low - center, p.high - center)
    corners = corners_of(&lines, p.least, p.most)
    p.sum_low, p.raw_low = least_of(&lines, &corners, 0.0), least_of(&lines, &corners, center)
    lines = lines_above(p.sum_high, &p, p.low - center, p.high - center)
    corners = corners_of(&lines, p.least, p.most)
    p.sum_high, p.raw_high = -least_of(&lines, &corners, 0.0), -least_of(&lines, &corners, -center)
    return p


cdef Part nothing() noexcept nogil:
    cdef Part p
    p.least = p.most = p.size = 0
    p.sum_low = p.sum_high = p.raw_low = p.raw_high = 0.0
    p.n_in = p.s_in = p.n_any = p.s_any = p.magnitude = 0.0
    p.low = p.min_high = INFINITY
    p.high = p.max_low = -INFINITY
    return p


cdef Part known_part(const Output* o, const View* v, double center) noexcept nogil:
    """One reading of the bucket at least is inside and not all for certain; sums by prefixes alone."""
    cdef const Slot* leaf = v.leaf
    cdef int64_t n = leaf[H_COUNT].i, kept = leaf[H_O_FIRST].i + n - v.where.least
    cdef double total = 0.0, below = -INFINITY, above = INFINITY, last = measured(o, leaf[o.last].f)
    cdef bint out = v.where.most < n
    cdef Part p
    p.low, p.high = measured(o, leaf[o.low].f), measured(o, leaf[o.high].f)
    p.least, p.most, p.size, p.magnitude = v.where.least, v.where.most, n, larger(fabs(p.low), fabs(p.high))
    if p.most == 1:
        p.low = p.high = last
    p.min_high = p.low if leaf[o.low + 4].i >= kept else last
    p.max_low = p.high if leaf[o.high + 4].i >= kept else last
    if o.prefix >= 0:
        total, below, above = leaf[o.prefix].f, leaf[o.prefix + 1].f, leaf[o.prefix + 2].f
    if not out:  # nothing may be cut off
        below, above = lesser(0.0, below), larger(0.0, above)
    p.sum_low, p.sum_high = total - above, total - below
    p.n_in, p.s_in = 1.0, last - center
    p.n_any, p.s_any = <double> (n - out), total - (measured(o, leaf[o.first].f) - center) if out else total
    if p.most == 1:
        p.n_any, p.s_any = p.n_in, p.s_in
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


cdef Lines lines_of(const Part* p, double center, bint above) noexcept nogil:
    cdef double low = 0.0, high = 0.0
    if p.most:
        low, high = p.low - center, p.high - center
    return lines_above(p.sum_high, p, low, high) if above else lines_below(p.sum_low, p, low, high)


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


cdef double least_mean(double n, double total, const Lines* l, const Part* part) noexcept nogil:
    """The least over c of (total + the greatest line at c) / (n + c): monotone between the corners."""
    cdef Corners corners = corners_of(l, part.least, part.most)
    cdef double found = (total + highest(l, corners.c[0])) / (n + corners.c[0])
    cdef int k
    for k in range(1, corners.n):
        found = lesser(found, (total + highest(l, corners.c[k])) / (n + corners.c[k]))
    return found


cdef double least_sum(const Lines* l, const Part* part, double center) noexcept nogil:
    cdef Corners corners = corners_of(l, part.least, part.most)
    return least_of(l, &corners, center)


cdef double slack_of(const Inside* inside, const Part* part, double center) noexcept nogil:
    """What rounding may have done to a sum over every reading touched."""
    cdef double readings = <double> (inside.n + part.size), magnitude = larger(part.magnitude, fabs(center))
    if inside.n:
        magnitude = larger(larger(magnitude, fabs(inside.low)), fabs(inside.high))
    return 4.0 * readings * EPSILON * readings * magnitude


cdef Ends outward(double low, double high) noexcept nogil:
    """Rounded outward; no bound where a sum overflowed."""
    cdef Ends ends
    ends.low = -INFINITY if isnan(low) else nextafter(low, -INFINITY)
    ends.high = INFINITY if isnan(high) else nextafter(high, INFINITY)
    return ends


cdef Ends sum_interval(const Inside* inside, const Part* part, double center) noexcept nogil:
    cdef double base = inside.total + inside.n * center, slack = slack_of(inside, part, center)
    cdef Lines below = lines_of(part, center, False), above = lines_of(part, center, True)
    cdef double low = base + larger(part.raw_low, least_sum(&below, part, center))
    cdef double high = base + lesser(part.raw_high, -least_sum(&above, part, -center))
    return outward(low - slack, high + slack)


cdef Ends mean_interval(const Inside* inside, const Part* part, double center) noexcept nogil:
    cdef double slack = slack_of(inside, part, center), n = <double> inside.n
    cdef Lines below = lines_of(part, center, False), above = lines_of(part, center, True)
    cdef double low = center + least_mean(n, inside.total - slack, &below, part)
    cdef double high = center - least_mean(n, -inside.total - slack, &above, part)
    cdef double least = lesser(inside.low, part.low), greatest = larger(inside.high, part.high)
    cdef double ulps = 4 * EPSILON * larger(larger(fabs(least), fabs(greatest)), fabs(center))
    return outward(larger(low, least) - ulps, lesser(high, greatest) + ulps)
