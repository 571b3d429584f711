"""A bucket whose readings are known when it is opened: lifted all at once, in registers, with what it adds up to after each.

The same bits as the first lifted and the others folded in. Only of the layout SUM_BUCKET, and of readings whose times do not go back.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sluicegate.partials.program cimport (
    H_COUNT, H_O_FIRST, H_ORDERED, H_T_FIRST, H_T_LAST, Program, Slot, chosen, combine_header, combine_prefix, combine_sample,
    extend_extreme, greatest, join_extreme, join_sample, least, mask,
)
from sluicegate.histograms._sum_like cimport Sum

ctypedef struct Reached:
    double value
    int64_t first  # of the bucket's readings
    int64_t last


cdef inline void begin(Reached* e, double x) noexcept nogil:
    e.value = x
    e.first = e.last = 0


cdef inline void reach(Reached* e, double value, int64_t wins, int64_t reaches, int64_t i) noexcept nogil:
    """As `fold_extreme`, each field chosen by itself: in a small bucket every other reading is an extreme."""
    e.value = value
    e.first, e.last = chosen(wins, e.first, i), chosen(reaches, e.last, i)


cdef inline void put_reached(Slot* o, const Reached* e, const int64_t* times, int64_t ordinal) noexcept nogil:
    o[0].f = e.value
    o[1].i = o[3].i = ordinal + e.first
    o[2].i = o[4].i = ordinal + e.last
    if times != NULL:
        o[1].i, o[2].i = times[e.first], times[e.last]


cdef inline void put_readings(
    const Program* p, Slot* o, const double* x, const int64_t* times, int64_t ordinal, int64_t n, double total, double before, double above
) noexcept nogil:
    """All of a bucket but its extremes."""
    cdef int s
    o[H_COUNT].i, o[H_T_FIRST].i, o[H_T_LAST].i, o[H_O_FIRST].i, o[H_ORDERED].i = n, ordinal, ordinal + n - 1, ordinal, 1
    if times != NULL:
        o[H_T_FIRST].i, o[H_T_LAST].i = times[0], times[n - 1]
    o[5].f, o[6].f, o[7].f = total, before, above
    o[18].f, o[19].f = x[0], x[n - 1]
    if p.width == 26:
        for s in range(20, 26):
            o[s].f = 0.0
        return
    for s in range(20, p.width):
        o[s].f = 0.0


cdef inline void lift_pair(
    const Program* p, Slot* o, const double* x, const int64_t* times, int64_t ordinal, double center, double* totals
) noexcept nogil:
    """`lift_bucket` of two readings: which is the lesser is all that there is to find out."""
    cdef double before = x[0] - center, total = before + (x[1] - center)
    cdef Reached low, high
    totals[0], totals[1] = before, total
    low.value, low.first, low.last = least(x[0], x[1]), x[1] < x[0], x[1] <= x[0]
    high.value, high.first, high.last = greatest(x[0], x[1]), x[1] > x[0], x[1] >= x[0]
    put_readings(p, o, x, times, ordinal, 2, total, before, before)
    put_reached(o + 8, &low, times, ordinal)
    put_reached(o + 13, &high, times, ordinal)


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
    cdef int64_t i = 1
    cdef Reached low, high
    begin(&low, x[0])
    begin(&high, x[0])
    totals[0] = total
    while i < most:
        if ruling != NULL:
            least_sum, most_sum, following = least(low_sum, sum), greatest(high_sum, sum), sum + x[i]
            if not (fabs(least_sum) <= allowed and fabs(most_sum) <= allowed and fabs(following - least_sum) <= allowed
                    and fabs(following - most_sum) <= allowed and most_sum - least_sum <= allowed):
                break
            low_sum, high_sum, sum = least_sum, most_sum, following
        before, above = least(before, total), greatest(above, total)
        total = total + (x[i] - center)
        totals[i] = total
        reach(&low, least(low.value, x[i]), mask(x[i] < low.value), mask(x[i] <= low.value), i)
        reach(&high, greatest(high.value, x[i]), mask(x[i] > high.value), mask(x[i] >= high.value), i)
        i += 1
    if ruling != NULL:
        ruling.low, ruling.high, ruling.sum = low_sum, high_sum, sum
    put_readings(p, o, x, times, ordinal, i, total, before, above)
    put_reached(o + 8, &low, times, ordinal)
    put_reached(o + 13, &high, times, ordinal)
    return i


cdef inline void combine_sums(const Program* p, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """As `combine_bucket` of this layout; hardly a bucket carries samples of its sums, and where none does they are copied at once."""
    cdef int s = 20
    combine_header(o, a, b)
    combine_prefix(o + 5, a + 5, b + 5)
    join_extreme(o + 8, a + 8, b + 8, mask(b[8].f < a[8].f))
    join_extreme(o + 13, a + 13, b + 13, mask(b[13].f > a[13].f))
    o[18], o[19] = a[18], b[19]
    if p.width == 26 and not (a[20].i | a[23].i | b[20].i | b[23].i):
        memcpy(o + 20, a + 20, 6 * sizeof(Slot))
        return
    while s < p.width:
        join_sample(o + s, a + s, b + s)
        s += 3


cdef inline void append_sums(const Program* p, Slot* o, const Slot* b, int64_t n, double* totals) noexcept nogil:
    """As `append_closed` of this layout, of n buckets behind each other; the sum after each. What is read of o again stays at hand."""
    cdef int64_t count = o[H_COUNT].i, first = o[H_T_FIRST].i, last = o[H_T_LAST].i, ordered = o[H_ORDERED].i == 1, k
    cdef double total = o[5].f, before = o[6].f, above = o[7].f
    cdef int s
    for k in range(n):
        ordered &= (b[H_ORDERED].i == 1) & (b[H_T_FIRST].i >= last)
        count, first, last = count + b[H_COUNT].i, min(first, b[H_T_FIRST].i), max(last, b[H_T_LAST].i)
        before, above = least(least(before, total), total + b[6].f), greatest(greatest(above, total), total + b[7].f)
        total = total + b[5].f
        totals[k] = total
        extend_extreme(o + 8, b + 8, b[8].f < o[8].f)
        extend_extreme(o + 13, b + 13, b[13].f > o[13].f)
        o[19] = b[19]
        s = 20
        while s < p.width:
            combine_sample(o + s, o + s, b + s)
            s += 3
        b += p.width
    o[H_COUNT].i, o[H_T_FIRST].i, o[H_T_LAST].i, o[H_ORDERED].i = count, first, last, ordered
    o[5].f, o[6].f, o[7].f = total, before, above
