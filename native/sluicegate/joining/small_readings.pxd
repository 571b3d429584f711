"""A reading becomes a small bucket, or joins one: as `lift` and `fold`, of the layouts that `combine_bucket` knows.

In a small bucket every other reading is an extreme: what a reading changes is chosen, not jumped to. The same bits.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

from sluicegate.partials.program cimport (
    H_COUNT, H_O_FIRST, H_ORDERED, H_T_FIRST, H_T_LAST, HIGH_ENDS, MAX_BUCKET, SUM_BUCKET, Program, Slot, chosen, fold, fold_more, greatest,
    least, lift, mask,
)


cdef inline void lift_extreme(Slot* s, double x, int64_t time, int64_t ordinal) noexcept nogil:
    s[0].f = x
    s[1].i = s[2].i = time
    s[3].i = s[4].i = ordinal


cdef inline void lift_small(
    const Program* p, Slot* o, const double* values, int64_t time, int64_t ordinal, const double* centers
) noexcept nogil:
    """As `lift`, of the layouts that `combine_bucket` knows."""
    cdef double x = values[0]
    cdef int s
    if not p.bucket:
        lift(p, o, values, time, ordinal, centers)
        return
    o[H_COUNT].i, o[H_T_FIRST].i, o[H_T_LAST].i, o[H_O_FIRST].i, o[H_ORDERED].i = 1, time, time, ordinal, 1
    if p.bucket == SUM_BUCKET:
        o[5].f, o[6].f, o[7].f = x - centers[0], INFINITY, -INFINITY
        lift_extreme(o + 8, x, time, ordinal)
        lift_extreme(o + 13, x, time, ordinal)
        o[18].f = o[19].f = x
        for s in range(20, p.width):
            o[s].f = 0.0
    else:
        lift_extreme(o + 5, x, time, ordinal)
        lift_extreme(o + 10, x, time, ordinal)
        o[15].f = o[16].f = x
        o[17].f, o[18].f, o[19].f = x, -INFINITY, -INFINITY


cdef inline void join_late(Slot* s, int64_t wins, double x, int64_t time, int64_t ordinal) noexcept nogil:
    """As `fold_extreme` of a reading that is not late, each slot chosen by itself: in a small bucket every other is an extreme."""
    cdef int64_t reaches = wins | mask(s[0].f == x)
    cdef Slot value
    value.f = x
    s[0].i, s[1].i, s[3].i = chosen(wins, s[0].i, value.i), chosen(wins, s[1].i, time), chosen(wins, s[3].i, ordinal)
    s[2].i, s[4].i = chosen(reaches, s[2].i, time), chosen(reaches, s[4].i, ordinal)


cdef inline void fold_small(
    const Program* p, Slot* o, const double* values, int64_t time, int64_t ordinal, const double* centers
) noexcept nogil:
    """As `fold`, of the same layouts."""
    cdef double x = values[0], total
    cdef Slot* s = o + (8 if p.bucket == SUM_BUCKET else 5)
    if not p.bucket or time < o[H_T_LAST].i:
        fold(p, o, values, time, ordinal, centers)
        return
    o[H_T_LAST].i = time
    o[H_COUNT].i += 1
    join_late(s, mask(x < s[0].f), x, time, ordinal)
    join_late(s + 5, mask(x > s[5].f), x, time, ordinal)
    s[11].f = x
    if p.bucket == MAX_BUCKET:
        fold_more(HIGH_ENDS, s + 12, x, 0.0)
        return
    total = o[5].f
    o[6].f, o[7].f = least(o[6].f, total), greatest(o[7].f, total)
    o[5].f = total + (x - centers[0])
