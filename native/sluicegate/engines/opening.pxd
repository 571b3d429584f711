"""A bucket whose readings are known when it is opened: lifted all at once, in registers, with what it adds up to after each.

The same bits as the first lifted and the others folded in. Only of the layout SUM_BUCKET, and of readings whose times do not go back.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t

from sluicegate.engines.program cimport H_COUNT, H_O_FIRST, H_ORDERED, H_T_FIRST, H_T_LAST, Program, Slot, chosen, greatest, least, mask
from sluicegate.histograms._sum_like cimport Sum

ctypedef struct Reached:
    double value
    int64_t first  # times
    int64_t last
    int64_t o_first  # ordinals
    int64_t o_last


cdef inline void begin(Reached* e, double x, int64_t time, int64_t ordinal) noexcept nogil:
    e.value = x
    e.first = e.last = time
    e.o_first = e.o_last = ordinal


cdef inline void reach(Reached* e, double value, int64_t wins, int64_t same, int64_t time, int64_t ordinal) noexcept nogil:
    """As `fold_extreme`, each field chosen by itself: in a small bucket every other reading is an extreme."""
    e.value = value
    e.first, e.o_first = chosen(wins, e.first, time), chosen(wins, e.o_first, ordinal)
    e.last, e.o_last = chosen(wins | same, e.last, time), chosen(wins | same, e.o_last, ordinal)


cdef inline void put_reached(Slot* o, const Reached* e) noexcept nogil:
    o[0].f = e.value
    o[1].i, o[2].i, o[3].i, o[4].i = e.first, e.last, e.o_first, e.o_last


cdef inline int64_t lift_bucket(
    const Program* p, Slot* o, Sum* ruling, const double* x, const int64_t* times, int64_t ordinal, int64_t most, double center,
    double* totals,
) noexcept nogil:
    """How many readings it takes, `most` at most: all, or as the only sum that rules allows, which takes note of them.

    One loop: how often it runs is guessed wrong once.
    """
    cdef double total = x[0] - center, before = INFINITY, above = -INFINITY
    cdef double low_sum = INFINITY, high_sum = -INFINITY, sum = x[0], least_sum = 0.0, most_sum = 0.0, following = 0.0
    cdef double allowed = ruling.limit if ruling != NULL else 0.0
    cdef int64_t first = ordinal if times == NULL else times[0], time = first, i = 1
    cdef Reached low, high
    cdef int s
    begin(&low, x[0], first, ordinal)
    begin(&high, x[0], first, ordinal)
    totals[0] = total
    while i < most:
        if ruling != NULL:
            least_sum, most_sum, following = least(low_sum, sum), greatest(high_sum, sum), sum + x[i]
            if not (fabs(least_sum) <= allowed and fabs(most_sum) <= allowed and fabs(following - least_sum) <= allowed
                    and fabs(following - most_sum) <= allowed and most_sum - least_sum <= allowed):
                break
            low_sum, high_sum, sum = least_sum, most_sum, following
        time = ordinal + i if times == NULL else times[i]
        before, above = least(before, total), greatest(above, total)
        total = total + (x[i] - center)
        totals[i] = total
        reach(&low, least(low.value, x[i]), mask(x[i] < low.value), mask(x[i] == low.value), time, ordinal + i)
        reach(&high, greatest(high.value, x[i]), mask(x[i] > high.value), mask(x[i] == high.value), time, ordinal + i)
        i += 1
    if ruling != NULL:
        ruling.low, ruling.high, ruling.sum = low_sum, high_sum, sum
    o[H_COUNT].i, o[H_T_FIRST].i, o[H_T_LAST].i, o[H_O_FIRST].i, o[H_ORDERED].i = i, first, time, ordinal, 1
    o[5].f, o[6].f, o[7].f = total, before, above
    put_reached(o + 8, &low)
    put_reached(o + 13, &high)
    o[18].f, o[19].f = x[0], x[i - 1]
    for s in range(20, p.width):
        o[s].f = 0.0
    return i
