"""Certain intervals of many readings at once; see stretches.pxd."""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sluicegate.answers.results cimport K_COUNT, K_FIRST, K_LAST, K_MAX, K_MEAN, K_MIN, K_RANGE, K_SUM, Cut, Output
from sluicegate.answers.intervals cimport (
    Corners, Lines, Part, Span, corners_of, cut_part, highest_of, known_part, larger, least_of, lesser, lowest_of, nothing,
    pooled, rounds,
)
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Slot

cdef extern from "interval_lanes.h" nogil:
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
    void certain_ranges(
        const double* within, int n, const double* lows, const double* highs, double* value, double* low, double* high)
    void certain_even(const double* within, int n, double rises, double* value, double* low, double* high)


cdef int64_t alike(const Output* o, const Slot* leaf, int64_t c) noexcept nogil:
    """For how many readings that keep c, c − 1, … of the leaf's the same is known of what they keep."""
    cdef int64_t end = leaf[H_O_FIRST].i + leaf[H_COUNT].i, found = c
    if o.kind != K_COUNT and o.kind != K_LAST:
        found = until_one(c, 0)
    if o.kind == K_MIN or o.kind == K_RANGE:
        found = until_one(c, end - leaf[o.low + 4].i)
    if o.kind == K_MAX or o.kind == K_RANGE:
        found = min(found, until_one(c, end - leaf[o.high + 4].i))
    return found


cdef inline int64_t until_one(int64_t c, int64_t place) noexcept nogil:
    """For how many counts from c down neither only the last reading is left nor the one `place` before the end leaves."""
    return max(1, c - 1 if c < place else c + 1 - max(place, 2))


cdef void intervals(const Output* o, const Stretch* s, double* value, double* low, double* high) noexcept nogil:
    cdef Part part
    cdef Beside beside
    cdef int n = <int> s.n
    if o.kind == K_LAST or (s.whole and not rounds(o.kind)):
        memcpy(low, value, n * sizeof(double))
        memcpy(high, value, n * sizeof(double))
    elif o.kind == K_COUNT or o.kind == K_FIRST:
        even_intervals(o, s, value, low, high)
    else:
        part = part_of(o, s)
        beside = what_is_beside(o, s, &part)
        certain_inside(&beside, n, s.lows, s.highs)
        if o.kind == K_SUM:
            sum_intervals(s, &part, &beside, value, low, high)
        elif o.kind == K_MEAN:
            mean_intervals(s, &part, &beside, value, low, high)
        else:
            extreme_intervals(o, s, &part, value, low, high)


cdef Part part_of(const Output* o, const Stretch* s) noexcept nogil:
    """Where the count falls, sums by prefixes alone: the lines are the same for all of the stretch."""
    if s.whole:
        return nothing()
    if s.falls:
        return known_part(o, s.leaf, s.where, s.center)
    return cut_part(o, s.leaf, s.where, s.center)


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
    cdef Span least = lowest_of(o, part, s.leaf, s.where), greatest = highest_of(o, part, s.leaf, s.where)
    cdef double within[4]
    within[0], within[1], within[2], within[3] = least.least, least.most, greatest.least, greatest.most
    if o.kind == K_MIN:
        certain_minima(within, <int> s.n, s.lows, value, low, high)
    elif o.kind == K_MAX:
        certain_maxima(within + 2, <int> s.n, s.highs, value, low, high)
    else:
        certain_ranges(within, <int> s.n, s.lows, s.highs, value, low, high)


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
