"""Aggregates of fixed width beyond a number or two; see wide.pxd."""

from libc.math cimport INFINITY, log, sqrt
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from sluicegate.partials.kll cimport combine_quantiles, lift_quantiles, mixed
from sluicegate.partials.comoments cimport combine_line, combine_pair, lift_line, lift_pair

from sluicegate.monoids.compiled import MOST_SLOTS as _MOST_SLOTS
from sluicegate.monoids.fixed import MOST_TOP as _MOST_TOP
from sluicegate.monoids.layout import Op

cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define SG_BYTE(i) ((i) ^ 7)   /* byte i of a slot's integer is the same number on every machine */
    #define SG_WORD(i) ((i) ^ 1)
    #else
    #define SG_BYTE(i) (i)
    #define SG_WORD(i) (i)
    #endif
    #if defined(__GNUC__)
    #define SG_CLZ(x) ((x) ? __builtin_clzll(x) : 64)
    #else
    static int SG_CLZ(unsigned long long x) { int n = 64; while (x) { x >>= 1; n--; } return n; }
    #endif
    """
    int64_t SG_BYTE(int64_t i) nogil
    int64_t SG_WORD(int64_t i) nogil
    int SG_CLZ(uint64_t x) nogil

cdef enum:
    SLOTS = 128  # of the user's partials
    TOPS = 256
    MOST_COUPONS = 384
    LARGEST_REGISTER = 63
    REGISTERS = -1

assert SLOTS == _MOST_SLOTS and TOPS == _MOST_TOP


cdef void lift_wide(
    int op, const Extra* e, Slot* s, const double* values, int dimension, int64_t time, int64_t ordinal
) noexcept nogil:
    cdef double x = values[dimension]
    if op == RATE:
        s[0].f = s[2].f = x
        s[1].i = s[3].i = time
        return
    if op == RUN:
        lift_run(s, x, time)
        return
    if op == TOTAL:
        s[0].f, s[1].f = x, 0.0
        return
    if op == SPAN:
        s[0].i = s[1].i = time
        return
    if op == AREA:
        s[0].f = s[1].f = 0.0
        s[2].i = s[3].i = time
        s[4].f = x
        s[5].i = 0
        return
    if op == LINE:
        lift_line(s, x, time)
        return
    if op == PAIR:
        lift_pair(s, x, values[e.dimensions[1]])
        return
    memset(s, 0, e.slots * sizeof(Slot))
    if op == BINS:
        s[bin_of(e, x)].i = 1
    elif op == BLOOM:
        lift_bloom(e, s, x)
    elif op == TOP:
        s[0].i, s[1].f, s[2].i = 1, x, time
    elif op == KLL:
        lift_quantiles(s, x)
    elif op == COUNTS:
        lift_counts(e, s, x)
    elif op == DISTINCT:
        s[0].i = 1
        (<uint32_t*> (s + 1))[SG_WORD(0)] = coupon_of(x)
    else:
        lift_own(e, s, values, dimension, time, ordinal)


cdef void lift_own(
    const Extra* e, Slot* s, const double* values, int dimension, int64_t time, int64_t ordinal
) noexcept nogil:
    """The user's: its dimensions side by side."""
    cdef double row[64]
    cdef int64_t k
    if e.size < 2:
        e.lift(values + dimension, time, ordinal, s)
        return
    for k in range(e.size):
        row[k] = values[e.dimensions[k]]
    e.lift(row, time, ordinal, s)


cdef void combine_wide(int op, const Extra* e, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    cdef int64_t i
    if op == RATE:
        o[0], o[1] = a[0], a[1]
        o[2], o[3] = b[2], b[3]
    elif op == RUN:
        combine_run(o, a, b)
    elif op == TOTAL:
        combine_total(o, a, b, 1.0)
    elif op == SPAN:
        o[0].i, o[1].i = min(a[0].i, b[0].i), max(a[1].i, b[1].i)
    elif op == AREA:
        combine_area(o, a, b)
    elif op == LINE:
        combine_line(o, a, b)
    elif op == PAIR:
        combine_pair(o, a, b)
    elif op == KLL:
        combine_quantiles(e.size, e.slots, o, a, b)
    elif op == BINS or op == COUNTS:
        for i in range(e.slots):
            o[i].i = a[i].i + b[i].i
    elif op == BLOOM:
        for i in range(e.slots):
            o[i].i = a[i].i | b[i].i
    elif op == TOP:
        combine_top(e, o, a, b)
    elif op == DISTINCT:
        combine_distinct(e, o, a, b)
    else:
        combine_own(e, e.combine, o, a, b)


cdef void combine_own(const Extra* e, Combine operation, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """The user's operation never sees its result overlap what it reads."""
    cdef Slot own[SLOTS]
    memset(own, 0, e.slots * sizeof(Slot))
    operation(own, a, b)
    memcpy(o, own, e.slots * sizeof(Slot))


cdef bint deduct_wide(int op, const Extra* e, Slot* o, const Slot* total, const Slot* oldest) noexcept nogil:
    """total less its oldest part, where the operation has an inverse; else nothing, and False."""
    cdef int64_t i
    if op == TOTAL:
        combine_total(o, total, oldest, -1.0)
    elif op == BINS or op == COUNTS:
        for i in range(e.slots):
            o[i].i = total[i].i - oldest[i].i
    elif op == COMPILED and e.deduct != NULL:
        combine_own(e, e.deduct, o, total, oldest)
    else:
        return False
    return True


# a compensated sum


cdef inline void combine_total(Slot* o, const Slot* a, const Slot* b, double sign) noexcept nogil:
    """Sum and what its rounding lost, as Knuth's TwoSum tells it; errors of 2^-105 of the summands remain."""
    cdef double x = a[0].f, y = sign * b[0].f
    cdef double s = x + y, v = s - x
    cdef double lost = ((x - (s - v)) + (y - v)) + (a[1].f + sign * b[1].f)
    o[0].f = s + lost
    o[1].f = lost - (o[0].f - s)


cdef inline void combine_area(Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """a's last value holds until b's first reading; where that is earlier time went back."""
    cdef int64_t held_for = b[2].i - a[3].i, back = a[5].i + b[5].i + (held_for < 0)
    cdef Slot until[2]
    until[0].f, until[1].f = a[4].f * <double> held_for, 0.0
    combine_total(until, a, until, 1.0)
    o[2].i = a[2].i
    combine_total(o, until, b, 1.0)
    o[3], o[4] = b[3], b[4]
    o[5].i = back


# the longest run


cdef inline void lift_run(Slot* s, double x, int64_t time) noexcept nogil:
    s[R_FIRST].f = s[R_LAST].f = x
    s[R_COUNT].i = s[R_PREFIX].i = s[R_SUFFIX].i = s[R_BEST].i = 1
    s[R_OFFSET].i = 0
    s[R_BEST_FIRST].i = s[R_BEST_LAST].i = s[R_PREFIX_LAST].i = s[R_SUFFIX_FIRST].i = time


cdef void combine_run(Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """The longest of a's, the one across the border and b's; the earliest of equal ones."""
    cdef bint joined = b[R_FIRST].f > a[R_LAST].f
    cdef int64_t n = a[R_COUNT].i
    cdef Slot out[11]
    memcpy(out, a, sizeof(out))
    out[R_COUNT].i = n + b[R_COUNT].i
    out[R_LAST], out[R_SUFFIX], out[R_SUFFIX_FIRST] = b[R_LAST], b[R_SUFFIX], b[R_SUFFIX_FIRST]
    if joined:
        if a[R_PREFIX].i == n:
            out[R_PREFIX].i, out[R_PREFIX_LAST] = n + b[R_PREFIX].i, b[R_PREFIX_LAST]
        if b[R_SUFFIX].i == b[R_COUNT].i:
            out[R_SUFFIX].i, out[R_SUFFIX_FIRST] = a[R_SUFFIX].i + b[R_COUNT].i, a[R_SUFFIX_FIRST]
        if a[R_SUFFIX].i + b[R_PREFIX].i > a[R_BEST].i:
            out[R_BEST].i, out[R_OFFSET].i = a[R_SUFFIX].i + b[R_PREFIX].i, n - a[R_SUFFIX].i
            out[R_BEST_FIRST], out[R_BEST_LAST] = a[R_SUFFIX_FIRST], b[R_PREFIX_LAST]
    if b[R_BEST].i > out[R_BEST].i:
        out[R_BEST], out[R_BEST_FIRST], out[R_BEST_LAST] = b[R_BEST], b[R_BEST_FIRST], b[R_BEST_LAST]
        out[R_OFFSET].i = n + b[R_OFFSET].i
    memcpy(o, out, sizeof(out))


# bins


cdef inline int64_t bin_of(const Extra* e, double x) noexcept nogil:
    """How many edges are not above the value: 0 below the first, `size` from the last on."""
    cdef int64_t low = 0, high = e.size, middle
    while low < high:
        middle = (low + high) >> 1
        if e.edges[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


cdef void fold_bins(const Extra* e, Slot* s, const double* x, int step, int64_t n) noexcept nogil:
    """Count a run of values, `step` apart."""
    cdef int64_t i
    for i in range(n):
        s[bin_of(e, x[i * step])].i += 1


cdef inline int64_t held(const Slot* s, int64_t most) noexcept nogil:
    """How many elements a list says it has; never more than it has room for, whatever a stored partial says."""
    return 0 if s[0].i < 0 else min(s[0].i, most)


# the k greatest


cdef void combine_top(const Extra* e, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """Merge two runs in falling order; of equal values a's, which came earlier, first."""
    cdef Slot out[1 + 2 * TOPS]
    cdef int64_t i = 0, j = 0, first = held(a, e.size), second = held(b, e.size)
    cdef int64_t n = min(e.size, first + second), k
    memset(out, 0, e.slots * sizeof(Slot))
    out[0].i = n
    for k in range(n):
        if j == second or (i < first and not b[1 + 2 * j].f > a[1 + 2 * i].f):
            out[1 + 2 * k], out[2 + 2 * k] = a[1 + 2 * i], a[2 + 2 * i]
            i += 1
        else:
            out[1 + 2 * k], out[2 + 2 * k] = b[1 + 2 * j], b[2 + 2 * j]
            j += 1
    memcpy(o, out, e.slots * sizeof(Slot))


include "wide_sketches.pxi"


# what the components were told


cdef Extra* make_extra(layout) except? NULL:
    """The options of each component; NULL where none has any."""
    cdef int k, steps = len(layout.components)
    cdef Extra* extra
    if not any(component.op >= Op.RATE for component in layout.components):
        return NULL
    extra = <Extra*> calloc(steps, sizeof(Extra))
    if extra == NULL:
        raise MemoryError(f"window: no memory for {steps} components")
    try:
        for k, component in enumerate(layout.components):
            fill_one(extra + k, component)
    except BaseException:
        free_extra(extra, steps)
        raise
    return extra


cdef int fill_one(Extra* e, component) except -1:
    cdef int k
    options = component.options
    e.slots = len(component.format)
    if component.op == Op.BINS:
        e.size = len(options)
        e.edges = <double*> calloc(e.size, sizeof(double))
        if e.edges == NULL:
            raise MemoryError(f"window: no memory for {e.size} edges")
        for k in range(e.size):
            e.edges[k] = options[k]
    elif component.op == Op.BLOOM or component.op == Op.COUNTS:
        e.size, e.hashes = options
    elif component.op == Op.TOP or component.op == Op.DISTINCT or component.op == Op.KLL:
        e.size = options[0]
    elif component.op == Op.COMPILED:
        fill_own(e, options)
    elif component.op == Op.PAIR:
        fill_dimensions(e, (component.dimension, *options))
    return 0


cdef int fill_own(Extra* e, options) except -1:
    _, _, lift, combine, lower, deduct, dimensions = options
    e.lift, e.combine = <Lift> <size_t> lift, <Combine> <size_t> combine
    e.lower, e.deduct = <Lower> <size_t> lower, <Combine> <size_t> deduct
    return fill_dimensions(e, dimensions)


cdef int fill_dimensions(Extra* e, dimensions) except -1:
    cdef int k
    e.size = len(dimensions)
    e.dimensions = <int*> calloc(e.size, sizeof(int))
    if e.dimensions == NULL:
        raise MemoryError(f"window: no memory for {e.size} dimensions")
    for k in range(e.size):
        e.dimensions[k] = dimensions[k]
    return 0


cdef void free_extra(Extra* extra, int steps) noexcept:
    cdef int k
    if extra == NULL:
        return
    for k in range(steps):
        free(extra[k].edges)
        free(extra[k].dimensions)
    free(extra)
