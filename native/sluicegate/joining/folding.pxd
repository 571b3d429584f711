"""A run of readings folded into a partial component by component: the same bits as one after the other, in less time.

The readings follow all that the partial holds, and their times do not go back among themselves. Nothing is allocated.
"""

from libc.stdint cimport int64_t

from sluicegate.histograms._statistics cimport Moments, c_merge
from sluicegate.partials.wide cimport BINS, fold_bins
from sluicegate.partials.program cimport (
    COUNT, FIRST, H_T_LAST, HIGH, LAST, LOW, MOMENTS, O_FIRST, ORDERED, PREFIX, SAMPLE, T_FIRST, T_LAST, WIDE, Program,
    Slot, combine_more, combine_steps, greatest, least, lift, lift_more,
)

ctypedef struct Run:
    const double* values  # n rows of `dimensions`
    const int64_t* times  # NULL: the ordinals
    int64_t n
    int64_t ordinal  # of the first
    const double* centers
    Slot* one  # room for a partial


cdef inline int64_t time_of(const Run* r, int64_t i) noexcept nogil:
    return r.ordinal + i if r.times == NULL else r.times[i]


cdef inline void fold_prefix(const Run* r, Slot* s, const double* x, int step, double center) noexcept nogil:
    cdef double total = s[0].f, low = s[1].f, high = s[2].f
    cdef int64_t i
    for i in range(r.n):
        low = least(low, total)
        high = greatest(high, total)
        total += x[i * step] - center
    s[0].f, s[1].f, s[2].f = total, low, high


cdef inline void fold_extreme(Slot* s, bint wins, double x, int64_t time, int64_t ordinal) noexcept nogil:
    if wins:
        s[0].f = x
        s[1].i = time
        s[2].i = time
        s[3].i = ordinal
        s[4].i = ordinal
    elif s[0].f == x:
        if time < s[1].i:
            s[1].i = time
        if time > s[2].i:
            s[2].i = time
        s[4].i = ordinal


cdef inline void fold_more(int op, Slot* s, double x, double center) noexcept nogil:
    cdef Slot reading[3]
    lift_more(op, reading, x, center)
    if op == MOMENTS:
        c_merge(<Moments*> s, <const Moments*> reading)
    else:
        combine_more(op, s, s, reading)


cdef inline void fold_run_extreme(const Run* r, Slot* s, const double* x, int step, bint low) noexcept nogil:
    cdef double best = s[0].f
    cdef int64_t i
    for i in range(r.n):
        if x[i * step] > best if low else x[i * step] < best:
            continue
        fold_extreme(s, x[i * step] != best, x[i * step], time_of(r, i), r.ordinal + i)
        best = s[0].f


cdef inline void fold_each(const Program* p, const Run* r, Slot* into, int k) noexcept nogil:
    """A component that has no loop of its own: lifted and combined reading by reading."""
    cdef Program only = p[0]
    cdef int64_t i
    only.steps, only.step, only.extra = 1, p.step + k, p.extra + k
    for i in range(r.n):
        lift(&only, r.one, r.values + i * p.dimensions, time_of(r, i), r.ordinal + i, r.centers)
        combine_steps(&only, into, into, r.one)


cdef inline void fold_run(const Program* p, const Run* r, Slot* into) noexcept nogil:
    """Fold the whole run into a partial; readings of a run carry no sample."""
    cdef int k, op
    cdef int64_t i
    cdef const double* x
    cdef Slot* s
    for k in range(p.steps):
        op = p.step[k].op
        s = into + p.step[k].slot
        x = r.values + p.step[k].dimension
        if op == PREFIX:
            fold_prefix(r, s, x, p.dimensions, r.centers[p.step[k].dimension])
        elif op == LOW or op == HIGH:
            fold_run_extreme(r, s, x, p.dimensions, op == LOW)
        elif op == LAST:
            s.f = x[(r.n - 1) * p.dimensions]
        elif op == COUNT:
            s.i += r.n
        elif op == T_FIRST:
            s.i = min(s.i, time_of(r, 0))
        elif op == T_LAST:
            s.i = max(s.i, time_of(r, r.n - 1))
        elif op == ORDERED:  # before the header's times change
            s.i = s.i == 1 and time_of(r, 0) >= into[H_T_LAST].i
        elif op == BINS:
            fold_bins(p.extra + k, s, x, p.dimensions, r.n)
        elif MOMENTS <= op < WIDE:
            for i in range(r.n):
                fold_more(op, s, x[i * p.dimensions], r.centers[p.step[k].dimension])
        elif op != FIRST and op != O_FIRST and op != SAMPLE:
            fold_each(p, r, into, k)
