"""What a window answers; see results.pxd."""

from libc.math cimport INFINITY, NAN, exp, fabs, floor

from sluicegate.partials.program cimport (
    H_COUNT, H_O_FIRST, H_ORDERED, H_T_FIRST, H_T_LAST, HIGH, LOW, Program, Slot, greatest, least, log_of,
)
from sluicegate.partials.comoments cimport correlation_of, covariance_of, intercept_of, slope_of
from sluicegate.partials.wide cimport R_BEST, number_of_distinct
from sluicegate.histograms._statistics cimport Moments, c_merge

cdef double LITTLE = 0.0078125, SEEN = 3.0, LEAST_TAKEN = 0.125, MOST_TAKEN = 0.875  # as the twin


cdef Cut cut_leaf(const Program* p, const Slot* leaf, int policy, int64_t cutoff, int64_t evicted) noexcept nogil:
    """How many of the oldest leaf's newest readings are inside."""
    cdef int64_t n = leaf[H_COUNT].i, end = leaf[H_O_FIRST].i + leaf[H_COUNT].i - 1
    cdef double share
    cdef Cut where
    where.most = min(n, end - evicted)
    where.least = where.most
    where.taken = where.most
    if policy == CUSTOM:
        where.least = 1
    if policy != BY_TIME or leaf[H_T_FIRST].i > cutoff:
        return where
    where.least = 1
    narrow(p, leaf, cutoff, end, &where)
    share = (<double> (leaf[H_T_LAST].i - cutoff)) / (<double> (leaf[H_T_LAST].i - leaf[H_T_FIRST].i))
    where.taken = min(max(<int64_t> (n * share + 0.5), where.least), where.most)
    return where


cdef void narrow(const Program* p, const Slot* leaf, int64_t cutoff, int64_t end, Cut* where) noexcept nogil:
    """Narrow the count by the readings whose time and ordinal the bucket knows: its first, and its extremes."""
    cdef bint ordered = leaf[H_ORDERED].i == 1
    cdef const Slot* s
    cdef int k
    if ordered:
        where.most = min(where.most, leaf[H_COUNT].i - 1)
    for k in range(p.steps):
        if p.step[k].op != LOW and p.step[k].op != HIGH:
            continue
        s = leaf + p.step[k].slot
        if s[2].i > cutoff:
            where.least = max(where.least, end - (s[3].i if s[1].i > cutoff else s[4].i) + 1)
        if ordered and s[1].i <= cutoff:
            where.most = min(where.most, end - (s[4].i if s[2].i <= cutoff else s[3].i))


cdef Slot exact_answer(const Output* o, const Slot* total, int64_t leaves) noexcept nogil:
    """A window of single readings, not empty."""
    cdef Slot out
    if o.kind == K_COUNT:
        out.i = leaves
    elif o.kind == K_MEAN:
        out.f = total[o.slot].f / leaves
    elif o.kind == K_VARIANCE or o.kind == K_STD:
        out.f = spread(o, <const Moments*> (total + o.slot))
    elif o.kind == K_GEOMETRIC:
        out.f = exp(total[o.slot].f / leaves)
    elif o.kind == K_RANGE:
        out.f = total[o.second].f - total[o.slot].f
    elif o.kind >= K_RATE:
        out = wide_answer(o, total, leaves)
    else:
        out = total[o.slot + (is_time(o.kind) or counts_extreme(o.kind))]
    return out


cdef Slot wide_answer(const Output* o, const Slot* total, int64_t leaves) noexcept nogil:
    """The number that stands for the answer; NaN where it is none."""
    cdef const Slot* s = total + o.slot
    cdef Slot out
    out.f = NAN
    if o.kind == K_RATE:
        if s[3].i > s[1].i:
            out.f = (s[2].f - s[0].f) / <double> (s[3].i - s[1].i) * o.per
    elif o.kind == K_FREQUENCY:
        if s[1].i > s[0].i:
            out.f = <double> (leaves - 1) / <double> (s[1].i - s[0].i) * o.per
    elif o.kind == K_TIME_WEIGHTED:
        if s[5].i == 0:
            out.f = s[4].f if s[3].i == s[2].i else (s[0].f + s[1].f) / <double> (s[3].i - s[2].i)
    elif o.kind == K_LONGEST_RUN:
        out = s[R_BEST]
    elif o.kind == K_DISTINCT:
        out.f = number_of_distinct(o.extra, s)
    elif o.kind == K_SLOPE:
        out.f = slope_of(s, o.per)
    elif o.kind == K_INTERCEPT:
        out.f = intercept_of(s, o.at_last)
    elif o.kind == K_COVARIANCE:
        out.f = covariance_of(s, o.ddof)
    elif o.kind == K_CORRELATION:
        out.f = correlation_of(s)
    elif o.kind == K_COMPILED:
        out.f = o.extra.lower(s)
    return out


cdef Slot bucket_answer(const Output* o, const View* v, double center) noexcept nogil:
    cdef Slot none
    if o.kind >= K_RATE:  # sluicegate.bounds.told has it
        none.f = NAN
        return none
    if o.kind == K_GEOMETRIC:
        center = log_of(center)
    if v.where.taken == v.leaf[H_COUNT].i and v.where.least == v.where.taken:
        return whole(o, v.total, center)
    return partly(o, v, center)


cdef Slot whole(const Output* o, const Slot* total, double center) noexcept nogil:
    cdef Slot out
    if o.kind == K_COUNT:
        out.i = total[H_COUNT].i
    elif o.kind == K_SUM:
        out.f = center * total[H_COUNT].i + total[o.prefix].f
    elif o.kind == K_MEAN:
        out.f = center + total[o.prefix].f / total[H_COUNT].i
    elif o.kind == K_FIRST:
        out = total[o.first]
    elif o.kind == K_LAST:
        out = total[o.last]
    elif o.kind == K_MIN or o.kind == K_ARGMIN:
        out = total[o.low + is_time(o.kind)]
    elif o.kind == K_MAX or o.kind == K_ARGMAX:
        out = total[o.high + is_time(o.kind)]
    elif o.kind == K_GEOMETRIC:
        out.f = exp(center + total[o.prefix].f / total[H_COUNT].i)
    elif o.kind == K_RANGE:
        out.f = total[o.high].f - total[o.low].f
    elif o.kind == K_MIN_COUNT:
        out = total[o.low_count + 1]
    elif o.kind == K_MAX_COUNT:
        out = total[o.high_count + 1]
    else:
        out.f = spread(o, <const Moments*> (total + o.moments))
    return out


cdef Slot partly(const Output* o, const View* v, double center) noexcept nogil:
    cdef int64_t inside = 0 if v.rest == NULL else v.rest[H_COUNT].i
    cdef Slot out
    if o.kind == K_COUNT:
        out.i = inside + v.where.taken
    elif o.kind == K_SUM or o.kind == K_MEAN:
        out.f = partial_sum(o, v, center, inside)
    elif o.kind == K_GEOMETRIC:
        out.f = exp(partial_sum(o, v, center, inside))
    elif o.kind == K_VARIANCE or o.kind == K_STD:
        out.f = partial_spread(o, v, center)
    elif o.kind == K_RANGE:
        out.f = extreme(o, v, K_MAX, o.high, 1.0).f - extreme(o, v, K_MIN, o.low, -1.0).f
    elif o.kind == K_MIN_COUNT:
        out.i = occurrences(o, v, o.low, o.low_count, -1.0)
    elif o.kind == K_MAX_COUNT:
        out.i = occurrences(o, v, o.high, o.high_count, 1.0)
    elif o.kind == K_LAST:
        out = v.total[o.last]
    elif o.kind == K_FIRST:
        out = v.leaf[o.last if v.where.taken == 1 else o.first]
    elif o.kind == K_MIN or o.kind == K_ARGMIN:
        out = extreme(o, v, o.kind, o.low, -1.0)
    else:
        out = extreme(o, v, o.kind, o.high, 1.0)
    return out


cdef double partial_sum(const Output* o, const View* v, double center, int64_t inside) noexcept nogil:
    """Sum or mean with the cut leaf's count and sum interpolated, then moved to what the leaf allows."""
    cdef int64_t c = 0
    cdef double s = cut_sum(o, v, center, &c)
    s = (0.0 if v.rest == NULL else v.rest[o.prefix].f) + s
    return center * (inside + c) + s if o.kind == K_SUM else center + s / (inside + c)


cdef double cut_sum(const Output* o, const View* v, double center, int64_t* count) noexcept nogil:
    """Sum of x − center and count taken from the cut leaf."""
    cdef int64_t c = v.where.taken
    cdef Sums sums = known_sums(o, v.leaf, v.where, center)
    if gap(&sums, c) > 0:
        c = possible(&sums, v.where)
    count[0] = c
    return least(greatest(v.leaf[o.prefix].f * c / sums.n, lower(&sums, c)), upper(&sums, c))


cdef double partial_spread(const Output* o, const View* v, double center) noexcept nogil:
    """The moments of the rest, and of the suffix taken: its share of the leaf's deviations, no more than possible."""
    cdef int64_t c = 0
    cdef double s = cut_sum(o, v, center, &c)
    cdef double low = v.leaf[o.low].f - center, high = v.leaf[o.high].f - center
    cdef Moments taken, all
    taken.n = c
    taken.mean = s / c
    taken.m2 = v.leaf[o.moments + 2].f * c / v.leaf[H_COUNT].i
    taken.m2 = greatest(0.0, least(taken.m2, most_deviation(c, taken.mean, low, high)))
    all.n = 0.0
    if v.rest != NULL:
        all = (<const Moments*> (v.rest + o.moments))[0]
    c_merge(&all, &taken)
    return spread(o, &all)


cdef double most_deviation(double c, double mean, double low, double high) noexcept nogil:
    """The greatest sum of squared deviations of c values in low … high of this mean: all but one at the ends."""
    cdef double u, j, f
    if not high > low:
        return 0.0
    u = c * ((least(greatest(mean, low), high) - low) / (high - low))
    j = floor(u)
    f = u - j
    return (high - low) * (high - low) * (j + f * f - (j + f) * (j + f) / c)


cdef Sums known_sums(const Output* o, const Slot* leaf, Cut where, double center) noexcept nogil:
    cdef double total = leaf[o.prefix].f
    cdef Sums sums
    sums.n = leaf[H_COUNT].i
    sums.first_is_out = where.most < sums.n
    sums.low = total - leaf[o.prefix + 2].f
    sums.high = total - leaf[o.prefix + 1].f
    if not sums.first_is_out:
        sums.low = least(sums.low, total)
        sums.high = greatest(sums.high, total)
    sums.least = measured(o, leaf[o.low].f) - center
    sums.most = measured(o, leaf[o.high].f) - center
    sums.last = measured(o, leaf[o.last].f) - center
    sums.others = total - (measured(o, leaf[o.first].f) - center)
    return sums


cdef double lower(const Sums* sums, int64_t c) noexcept nogil:
    cdef double bound = greatest(sums.low, sums.last + (c - 1) * sums.least)
    return greatest(bound, sums.others - (sums.n - 1 - c) * sums.most) if sums.first_is_out else bound


cdef double upper(const Sums* sums, int64_t c) noexcept nogil:
    cdef double bound = least(sums.high, sums.last + (c - 1) * sums.most)
    return least(bound, sums.others - (sums.n - 1 - c) * sums.least) if sums.first_is_out else bound


cdef double gap(const Sums* sums, int64_t c) noexcept nogil:
    """Convex in c; no more than 0 where c readings are possible."""
    return lower(sums, c) - upper(sums, c)


cdef int64_t possible(const Sums* sums, Cut where) noexcept nogil:
    """The count with the least gap: one that is possible, since the true one is."""
    cdef int64_t low = where.least, high = where.most, middle
    while low < high:
        middle = (low + high) >> 1
        if gap(sums, middle) <= gap(sums, middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


cdef inline double of_a_wave(double share) noexcept nogil:
    """How deep a wave as long as the window falls over a share of its readings, at most, as a part of its own depth.

    A sine falls by sin(π · share) of it around its steepest place; the parabola lies just above, up to half a wave.
    """
    cdef double x = least(share, 0.5)
    return 4.0 * x * (1.0 - x)


cdef double cut_extreme(const Output* o, const View* v, double sign, double others) noexcept nogil:
    """The extreme of `others` and of what is left of the cut leaf, between what is certain and what is possible.

    Without a limit of buckets, or where next to nothing is in doubt, it is the likelier end: the leaf's extreme if the
    estimate takes its place to be inside, or the greatest of what follows while at least half of that is inside (as
    likely as not), or the last reading. Where more is, and the leaf may be a slope down to its opposite extreme, as
    much of the way is taken as of what follows the extreme is inside; also in half of the window's readings or more,
    which hold whole waves or many steps. What is steeper than any wave as long as the window, or of which most is not
    seen, may be a step at a place that nothing tells: the middle, off by half at most.
    """
    cdef const Slot* leaf = v.leaf
    cdef Cut where = v.where
    cdef int own = o.high if sign > 0 else o.low, ends = o.high_ends if sign > 0 else o.low_ends
    cdef int64_t end = leaf[H_O_FIRST].i + leaf[H_COUNT].i, place = leaf[own + 4].i, behind = end - 1 - place
    cdef double last = leaf[o.last].f, after = leaf[ends + 2].f, likely, way, share
    cdef double low = beyond(sign, leaf[own].f if place >= end - where.least else last, others)
    cdef double high = beyond(sign, leaf[own].f if place >= end - where.most else after, others)
    cdef double depth = fabs(high - leaf[o.low if sign > 0 else o.high].f)
    cdef double spread = v.total[o.high].f - v.total[o.low].f  # the window's
    if v.limit and fabs(high - low) > LITTLE * (spread / <double> v.limit):
        way = 0.5
        share = <double> behind / <double> v.total[H_COUNT].i
        if depth <= spread * of_a_wave(share) and (depth <= SEEN * fabs(high - low) or share >= 0.5):
            way = least(greatest((<double> where.taken) / (<double> behind), LEAST_TAKEN), MOST_TAKEN)
        return low + way * (high - low)
    likely = leaf[own].f if place >= end - where.taken else after if 2 * where.taken >= behind else last
    return beyond(sign, likely, others)


cdef inline double beyond(double sign, double x, double y) noexcept nogil:
    return x if sign * x > sign * y else y


cdef Slot extreme(const Output* o, const View* v, int kind, int own, double sign) noexcept nogil:
    """The cut leaf's extreme where a place of it is certainly inside, else the last reading, which is.

    Where the time is not asked for and what follows the extreme is known: as `cut_extreme`.
    """
    cdef const Slot* leaf = v.leaf
    cdef const Slot* rest = v.rest
    cdef int64_t end = leaf[H_O_FIRST].i + leaf[H_COUNT].i, kept = end - v.where.least
    cdef int ends = o.high_ends if sign > 0 else o.low_ends
    cdef Slot value, time
    value = leaf[o.last]
    time = leaf[H_T_LAST]
    if ends >= 0 and not is_time(kind):
        value.f = cut_extreme(o, v, sign, -sign * INFINITY if rest == NULL else rest[own].f)
        return value
    if leaf[own + 4].i >= kept:
        value = leaf[own]
        time = leaf[own + 1 if leaf[own + 3].i >= kept else own + 2]
    if rest != NULL and not sign * value.f > sign * rest[own].f:
        if value.f != rest[own].f or rest[own + 1].i < time.i:
            time = rest[own + 1]
        value = rest[own]
    return time if is_time(kind) else value


cdef int64_t occurrences(const Output* o, const View* v, int own, int counted, double sign) noexcept nogil:
    """How often the extreme occurs: the share of the leaf's that is taken, at least one where it is known inside."""
    cdef const Slot* leaf = v.leaf
    cdef const Slot* rest = v.rest
    cdef int64_t n = leaf[H_COUNT].i, kept = leaf[H_O_FIRST].i + n - v.where.least, times = 1
    cdef double value = leaf[o.last].f
    if leaf[own + 4].i >= kept:
        value = leaf[own].f
        times = leaf[counted + 1].i
        if leaf[own + 3].i < kept:
            times = max(1, (times * v.where.taken + (n >> 1)) // n)
    if rest == NULL or sign * value > sign * rest[own].f:
        return times
    return rest[counted + 1].i + (times if value == rest[own].f else 0)
