"""A run of readings folded into a partial component by component: the same bits as one reading after the other, in a fraction of the time.

The readings follow all that the partial holds, and their times do not go back among themselves. Nothing is allocated.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t

from sluicegate.partials.wide cimport BINS, fold_bins
from sluicegate.partials.program cimport (
    COUNT, FIRST, H_T_LAST, HIGH, HIGH_ENDS, LAST, LOG_PREFIX, LOW, LOW_ENDS, MOMENTS, O_FIRST, ORDERED, PREFIX, SAMPLE, T_FIRST,
    T_LAST, WIDE, Program, Slot, combine_steps, fold_more, greatest, least, lift, log_of,
)

cdef enum:
    CHUNK = 32

ctypedef struct Run:
    const double* values  # n rows of `dimensions`
    const int64_t* times  # NULL: the ordinals
    int64_t n
    int64_t ordinal  # of the first
    const double* centers
    Slot* one  # room for a partial
    double* totals  # of the first dimension, after each reading; NULL: not asked for


cdef inline int64_t time_of(const Run* r, int64_t i) noexcept nogil:
    return r.ordinal + i if r.times == NULL else r.times[i]


cdef inline void fold_prefix(const Run* r, Slot* s, const double* x, int step, double center) noexcept nogil:
    cdef double total = s[0].f, low = s[1].f, high = s[2].f
    cdef int64_t i
    if r.totals != NULL and x == r.values:
        for i in range(r.n):
            low = least(low, total)
            high = greatest(high, total)
            total += x[i * step] - center
            r.totals[i] = total
        s[0].f, s[1].f, s[2].f = total, low, high
        return
    for i in range(r.n):
        low = least(low, total)
        high = greatest(high, total)
        total += x[i * step] - center
    s[0].f, s[1].f, s[2].f = total, low, high


cdef inline double extreme_of(const double* x, bint low) noexcept nogil:
    """Of CHUNK values: four side by side, so that none waits for another."""
    cdef double a = x[0], b = x[1], c = x[2], d = x[3]
    cdef int i
    for i in range(4, CHUNK, 4):
        if low:
            a, b, c, d = least(a, x[i]), least(b, x[i + 1]), least(c, x[i + 2]), least(d, x[i + 3])
        else:
            a, b, c, d = greatest(a, x[i]), greatest(b, x[i + 1]), greatest(c, x[i + 2]), greatest(d, x[i + 3])
    return least(least(a, b), least(c, d)) if low else greatest(greatest(a, b), greatest(c, d))


cdef inline void fold_chunks_extreme(const Run* r, Slot* s, const double* x, int64_t n, bint low) noexcept nogil:
    """Whole chunks: their extreme first, then where it stands first and last."""
    cdef double best = s[0].f, found
    cdef int64_t first = -1, last = -1, i = 0
    while i < n:
        found = extreme_of(x + i, low)
        if found < best if low else found > best:
            best, first, last = found, i, i
        elif found == best:
            last = i
        i += CHUNK
    if last < 0:
        return
    last += CHUNK - 1
    while x[last] != best:
        last -= 1
    if first >= 0:
        while x[first] != best:
            first += 1
        s[0].f, s[3].i = x[first], r.ordinal + first  # of zeros the first one's sign
        s[1].i, s[2].i = time_of(r, first), time_of(r, last)
    else:
        s[2].i = max(s[2].i, time_of(r, last))  # times do not go back
    s[4].i = r.ordinal + last


cdef inline void fold_run_extreme(const Run* r, Slot* s, const double* x, int step, bint low) noexcept nogil:
    cdef double best
    cdef int64_t i = 0, time
    if step == 1:
        i = r.n - r.n % CHUNK
        fold_chunks_extreme(r, s, x, i, low)
    best = s[0].f
    while i < r.n:
        if x[i * step] > best if low else x[i * step] < best:
            i += 1
            continue
        time = time_of(r, i)
        if x[i * step] == best:
            s[1].i = min(s[1].i, time)
            s[2].i = max(s[2].i, time)
        else:
            best = s[0].f = x[i * step]
            s[1].i = s[2].i = time
            s[3].i = r.ordinal + i
        s[4].i = r.ordinal + i
        i += 1


cdef inline void fold_ends(const Run* r, Slot* s, const double* x, int step, bint low) noexcept nogil:
    """An extreme and what stands before its first and after its last place."""
    cdef double best = s[0].f, before = s[1].f, after = s[2].f, nothing = INFINITY if low else -INFINITY, value
    cdef int64_t i
    for i in range(r.n):
        value = x[i * step]
        if value == best:
            after = nothing
        elif value < best if low else value > best:
            before, best, after = best, value, nothing
        elif value < after if low else value > after:
            after = value
    s[0].f, s[1].f, s[2].f = best, before, after


cdef inline void fold_moments(const Run* r, Slot* s, const double* x, int step, double center) noexcept nogil:
    """As c_merge with one reading after the other; a share depends on the count alone, so no division waits for another."""
    cdef double n = s[0].f, mean = s[1].f, squares = s[2].f, delta, share
    cdef int64_t i
    for i in range(r.n):
        share = 1.0 / (n + 1.0)
        delta = x[i * step] - center - mean
        mean = mean + delta * share
        squares = squares + delta * delta * n * share
        n += 1.0
    s[0].f, s[1].f, s[2].f = n, mean, squares


cdef inline void fold_logs(const Run* r, Slot* s, const double* x, int step, double center) noexcept nogil:
    """As fold_prefix, of logarithms; the center's is taken once."""
    cdef double total = s[0].f, low = s[1].f, high = s[2].f, around = log_of(center)
    cdef int64_t i
    for i in range(r.n):
        low = least(low, total)
        high = greatest(high, total)
        total += log(x[i * step]) - around
    s[0].f, s[1].f, s[2].f = total, low, high


cdef inline void fold_one_by_one(
    const Run* r, Slot* s, int op, const double* x, int step, double center
) noexcept nogil:
    cdef int64_t i
    for i in range(r.n):
        fold_more(op, s, x[i * step], center)


cdef inline void fold_each(const Program* p, const Run* r, Slot* into, int k) noexcept nogil:
    """Any other component: lifted and combined reading by reading."""
    cdef Program only = p[0]
    cdef int64_t i
    only.steps, only.step, only.extra = 1, p.step + k, p.extra + k
    for i in range(r.n):
        lift(&only, r.one, r.values + i * p.dimensions, time_of(r, i), r.ordinal + i, r.centers)
        combine_steps(&only, into, into, r.one)


cdef inline void fold_run(const Program* p, const Run* r, Slot* into) noexcept nogil:
    """Fold the whole run into a partial; readings of a run carry no sample."""
    cdef int k, op
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
        elif op == LOW_ENDS or op == HIGH_ENDS:
            fold_ends(r, s, x, p.dimensions, op == LOW_ENDS)
        elif op == MOMENTS:
            fold_moments(r, s, x, p.dimensions, r.centers[p.step[k].dimension])
        elif op == LOG_PREFIX:
            fold_logs(r, s, x, p.dimensions, r.centers[p.step[k].dimension])
        elif op == BINS:
            fold_bins(p.extra + k, s, x, p.dimensions, r.n)
        elif op >= WIDE:
            fold_each(p, r, into, k)
        elif op >= MOMENTS:
            fold_one_by_one(r, s, op, x, p.dimensions, r.centers[p.step[k].dimension])
        elif op != FIRST and op != O_FIRST and op != SAMPLE:
            fold_each(p, r, into, k)
