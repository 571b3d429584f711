"""What a partial is in compiled code, and the operation on it: a small program of components over 8-byte slots.

`combine(p, out, a, b)`: a's readings precede b's; `out` may be a or b. It is associative up to rounding, and neither
allocates nor needs the GIL. The twin is sluicegate.reference.program (of buckets
tests/native/twins/program.py); the numbers of the operations are sluicegate.monoids.layout.Op.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sluicegate.partials.wide cimport BINS, COMPILED, COUNTS, TOTAL, Extra, Slot, combine_wide, deduct_wide, lift_wide
from sluicegate.histograms._statistics cimport Moments, c_merge

ctypedef struct Step:
    int op
    int dimension
    int slot

ctypedef struct Program:
    int width
    int steps
    int dimensions
    int alone  # the operation of a partial of one slot, −1 where there are more
    Step* step
    Extra* extra  # one a step, NULL where no component has options of its own

cdef enum:  # sluicegate.monoids.layout.Op
    SUM = 0
    MIN = 1
    MAX = 2
    ARGMIN = 3
    ARGMAX = 4
    FIRST = 5
    LAST = 6
    PREFIX = 7
    LOW = 8
    HIGH = 9
    ORDERED = 10
    COUNT = 11
    T_FIRST = 12
    T_LAST = 13
    O_FIRST = 14
    SAMPLE = 15
    MOMENTS = 16
    LOG_SUM = 17
    LOG_PREFIX = 18
    LOW_COUNT = 19
    HIGH_COUNT = 20
    LOW_ENDS = 21
    HIGH_ENDS = 22
    WIDE = 23  # from here on: sluicegate.partials.wide

cdef enum:  # the slots of a partial that has a header
    H_COUNT = 0
    H_T_FIRST = 1
    H_T_LAST = 2
    H_O_FIRST = 3
    H_ORDERED = 4
    HEADED = 4  # components of a header after ORDERED


cdef inline int slots_of_step(int op) noexcept nogil:
    """Of an operation before WIDE."""
    if op == LOW or op == HIGH:
        return 5
    if op == PREFIX or SAMPLE <= op <= MOMENTS or op == LOG_PREFIX or op >= LOW_ENDS:
        return 3 if op < WIDE else 0
    return 2 if op == ARGMIN or op == ARGMAX or op == LOW_COUNT or op == HIGH_COUNT else 1


cdef inline void copy(const Program* p, Slot* out, const Slot* a) noexcept nogil:
    """A partial as it is; most are one slot, for which a call to memcpy costs more than the rest of an insertion."""
    if p.width == 1:
        out[0] = a[0]
    else:
        memcpy(out, a, p.width * sizeof(Slot))


cdef inline double least(double a, double b) noexcept nogil:
    return b if b < a else a


cdef inline double greatest(double a, double b) noexcept nogil:
    return b if b > a else a


cdef inline void lift(
    const Program* p, Slot* out, const double* values, int64_t time, int64_t ordinal, const double* centers
) noexcept nogil:
    """One reading as a partial."""
    cdef int k, op
    cdef Slot* s
    for k in range(p.steps):
        op = p.step[k].op
        s = out + p.step[k].slot
        if op <= MAX or op == FIRST or op == LAST:
            s.f = values[p.step[k].dimension]
        elif op == ARGMIN or op == ARGMAX:
            s[0].f = values[p.step[k].dimension]
            s[1].i = time
        elif op == PREFIX:
            s[0].f = values[p.step[k].dimension] - centers[p.step[k].dimension]
            s[1].f = INFINITY
            s[2].f = -INFINITY
        elif op == LOW or op == HIGH:
            s[0].f = values[p.step[k].dimension]
            s[1].i = time
            s[2].i = time
            s[3].i = ordinal
            s[4].i = ordinal
        elif op == T_FIRST or op == T_LAST:
            s.i = time
        elif op == O_FIRST:
            s.i = ordinal
        elif op == SAMPLE:
            s[0].f = s[1].f = s[2].f = 0.0
        elif op >= WIDE:
            lift_wide(op, p.extra + k, s, values, p.step[k].dimension, time, ordinal)
        elif op >= MOMENTS:
            lift_more(op, s, values[p.step[k].dimension], centers[p.step[k].dimension])
        else:
            s.i = 1


cdef inline void lift_more(int op, Slot* s, double x, double center) noexcept nogil:
    if op == MOMENTS:
        s[0].f = 1.0
        s[1].f = x - center
        s[2].f = 0.0
    elif op == LOG_SUM:
        s.f = log(x)
    elif op == LOG_PREFIX:
        s[0].f = log(x) - log_of(center)
        s[1].f = INFINITY
        s[2].f = -INFINITY
    else:
        s[0].f = x
        if op <= HIGH_COUNT:
            s[1].i = 1
        else:
            s[1].f = s[2].f = INFINITY if op == LOW_ENDS else -INFINITY


cdef inline double log_of(double center) noexcept nogil:
    """Where logarithms are taken around: 0 for a center that has none."""
    return log(center) if center > 0.0 else 0.0


cdef inline void combine_arg(Slot* o, const Slot* a, const Slot* b, bint b_wins) noexcept nogil:
    cdef const Slot* won = b if b_wins else a
    o[0], o[1].i = won[0], min(a[1].i, b[1].i) if a[0].f == b[0].f else won[1].i


cdef inline void combine_prefix(Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    cdef double total = a[0].f
    cdef double low = least(least(a[1].f, total), total + b[1].f)
    cdef double high = greatest(greatest(a[2].f, total), total + b[2].f)
    o[0].f = total + b[0].f
    o[1].f = low
    o[2].f = high


cdef inline void combine_extreme(Slot* o, const Slot* a, const Slot* b, bint b_wins) noexcept nogil:
    """Which side wins is as good as chance: it chooses an address, not a way through the code."""
    cdef const Slot* won
    cdef Slot value, first, last, o_first, o_last
    if a[0].f == b[0].f:
        first.i = b[1].i if b[1].i < a[1].i else a[1].i
        last.i = b[2].i if b[2].i > a[2].i else a[2].i
        value, o_first, o_last = a[0], a[3], b[4]
    else:
        won = b if b_wins else a
        value, first, last, o_first, o_last = won[0], won[1], won[2], won[3], won[4]
    o[0], o[1], o[2], o[3], o[4] = value, first, last, o_first, o_last


cdef inline void combine_header(Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """Count, times, first ordinal and order at once: `o` may be a or b."""
    cdef int64_t count = a[H_COUNT].i + b[H_COUNT].i, ordinal = a[H_O_FIRST].i
    cdef int64_t first = b[H_T_FIRST].i if b[H_T_FIRST].i < a[H_T_FIRST].i else a[H_T_FIRST].i
    cdef int64_t last = b[H_T_LAST].i if b[H_T_LAST].i > a[H_T_LAST].i else a[H_T_LAST].i
    o[H_ORDERED].i = (a[H_ORDERED].i == 1) & (b[H_ORDERED].i == 1) & (b[H_T_FIRST].i >= a[H_T_LAST].i)
    o[H_COUNT].i, o[H_T_FIRST].i, o[H_T_LAST].i, o[H_O_FIRST].i = count, first, last, ordinal


cdef inline void combine_count(Slot* o, const Slot* a, const Slot* b, bint b_wins) noexcept nogil:
    cdef const Slot* won = b if b_wins else a
    o[0], o[1].i = won[0], a[1].i + b[1].i if a[0].f == b[0].f else won[1].i


cdef inline void combine_ends(Slot* o, const Slot* a, const Slot* b, double sign) noexcept nogil:
    """Extreme, and the extremes before its first and after its last occurrence; sign −1 for minima."""
    cdef double first = sign * a[0].f, second = sign * b[0].f
    cdef double before = a[1].f, after = b[2].f, top = a[0].f
    if first > second:
        after = sign * greatest(sign * a[2].f, second)
    elif first < second:
        before = sign * greatest(first, sign * b[1].f)
        top = b[0].f
    o[0].f = top
    o[1].f = before
    o[2].f = after


cdef inline void combine_sample(Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """Most readings carry no sample: then nothing is computed."""
    cdef Moments both = (<const Moments*> a)[0]
    if b.f != 0.0:
        c_merge(&both, <const Moments*> b)
    (<Moments*> o)[0] = both


cdef inline void combine_more(int op, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    if op == LOG_SUM:
        o.f = a.f + b.f
    elif op == LOG_PREFIX:
        combine_prefix(o, a, b)
    elif op == LOW_COUNT:
        combine_count(o, a, b, b[0].f < a[0].f)
    elif op == HIGH_COUNT:
        combine_count(o, a, b, b[0].f > a[0].f)
    else:
        combine_ends(o, a, b, -1.0 if op == LOW_ENDS else 1.0)


cdef inline void combine_steps(const Program* p, Slot* out, const Slot* a, const Slot* b) noexcept nogil:
    """Component by component; of a header ORDERED comes first and the other four follow it."""
    cdef int k = 0, op, s
    while k < p.steps:
        op = p.step[k].op
        s = p.step[k].slot
        if op == PREFIX:
            combine_prefix(out + s, a + s, b + s)
        elif op == LOW:
            combine_extreme(out + s, a + s, b + s, b[s].f < a[s].f)
        elif op == HIGH:
            combine_extreme(out + s, a + s, b + s, b[s].f > a[s].f)
        elif op == FIRST or op == O_FIRST:
            out[s] = a[s]
        elif op == LAST:
            out[s] = b[s]
        elif op == ORDERED:
            combine_header(out, a, b)
            k += HEADED
        elif op == SUM:
            out[s].f = a[s].f + b[s].f
        elif op == MIN:
            out[s].f = least(a[s].f, b[s].f)
        elif op == MAX:
            out[s].f = greatest(a[s].f, b[s].f)
        elif op == ARGMIN:
            combine_arg(out + s, a + s, b + s, b[s].f < a[s].f)
        elif op == ARGMAX:
            combine_arg(out + s, a + s, b + s, b[s].f > a[s].f)
        elif op == COUNT:
            out[s].i = a[s].i + b[s].i
        elif op == T_FIRST:
            out[s].i = b[s].i if b[s].i < a[s].i else a[s].i
        elif op == T_LAST:
            out[s].i = b[s].i if b[s].i > a[s].i else a[s].i
        elif op == SAMPLE or op == MOMENTS:
            combine_sample(out + s, a + s, b + s)
        elif op >= WIDE:
            combine_wide(op, p.extra + k, out + s, a + s, b + s)
        else:
            combine_more(op, out + s, a + s, b + s)
        k += 1


cdef inline void combine(const Program* p, Slot* out, const Slot* a, const Slot* b) noexcept nogil:
    """The monoid's operation; a partial of one sum or one extreme takes the short way."""
    if p.alone == SUM:
        out.f = a.f + b.f
    elif p.alone == MAX:
        out.f = greatest(a.f, b.f)
    elif p.alone == MIN:
        out.f = least(a.f, b.f)
    else:
        combine_steps(p, out, a, b)


cdef inline bint invertible(const Program* p) noexcept nogil:
    """Whether what is oldest can be deducted from a total; sluicegate.monoids.layout.invertible."""
    cdef int k, op
    for k in range(p.steps):
        op = p.step[k].op
        if op == COMPILED:
            if p.extra[k].deduct == NULL:
                return False
        elif op not in (SUM, COUNT, LAST, T_LAST, MOMENTS, LOG_SUM, BINS, TOTAL, COUNTS):
            return False
    return True


cdef inline void deduct_moments(Slot* o, const Slot* total, const Slot* oldest) noexcept nogil:
    """The inverse of Chan's formula; what has overflowed stays so."""
    cdef double n = total[0].f - oldest[0].f, delta = oldest[1].f - total[1].f, mean
    if n <= 0.0:
        o[0].f = o[1].f = o[2].f = 0.0
        return
    mean = total[1].f - delta * (oldest[0].f / n)
    if total[2].f != INFINITY:
        o[2].f = greatest(0.0, total[2].f - oldest[2].f - delta * (oldest[1].f - mean) * oldest[0].f)
    else:
        o[2].f = INFINITY
    o[1].f = mean
    o[0].f = n


cdef inline void deduct(const Program* p, Slot* out, const Slot* total, const Slot* oldest) noexcept nogil:
    """What combine(oldest, rest) = total gives for rest, where `invertible`; a greatest time stays (times go
    forward)."""
    cdef int k, op, s
    for k in range(p.steps):
        op = p.step[k].op
        s = p.step[k].slot
        if op == SUM or op == LOG_SUM:
            out[s].f = total[s].f - oldest[s].f
        elif op == COUNT:
            out[s].i = total[s].i - oldest[s].i
        elif op == MOMENTS:
            deduct_moments(out + s, total + s, oldest + s)
        elif op >= WIDE:
            deduct_wide(op, p.extra + k, out + s, total + s, oldest + s)
        else:
            out[s] = total[s]
