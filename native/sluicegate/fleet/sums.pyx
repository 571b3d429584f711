"""What the readings of cut buckets that are inside a window sum to, and their squares: from the lines of `cuts.cut`.

The compiled twin of `sluicegate_cloud.bounds` and `sluicegate_cloud.estimates.spread`; the same operations in the same
order.
"""

from libc.math cimport INFINITY, fabs, fmax, fmin, isfinite
from libc.stdint cimport int64_t

from sluicegate.fleet.cuts cimport Bucket, higher, within

cdef enum:
    CANDIDATES = 8  # counts at which the greatest of four lines may be least


cdef void envelope(const double* at, const double* slope, double off, double around, double sign, double c0, double c1,
                   double* counts, double* highest) noexcept nogil:
    """Counts at which the greatest of four lines may be least, and how great it is there.

    Convex in the count: at an end or where two lines cross. `sign` −1: of the lines' negatives.
    """
    cdef double[4] a, s
    cdef double c, best
    cdef int i, j, k = 2
    for i in range(4):
        a[i], s[i] = sign * at[i], sign * (slope[i] - around + (off if i == 3 else 0.0))
    counts[0], counts[1] = c0, c1
    for i in range(4):
        for j in range(i + 1, 4):
            c = (a[j] - a[i]) / (s[i] - s[j])
            counts[k] = fmin(fmax(c, c0), c1) if isfinite(c) else c0
            k += 1
    for k in range(CANDIDATES):
        c, best = counts[k], -INFINITY
        for i in range(4):
            best = higher(best, a[i] + s[i] * c)
        highest[k] = best


def sums(
    const double[:, ::1] lines, const int64_t[::1] count_low, const int64_t[::1] count_high, const int64_t[::1] window,
    const double[::1] around, double[::1] low, double[::1] high, double[::1] raw_low, double[::1] raw_high,
):
    """Least and greatest Σ (x − around[window]) and Σ x of the readings inside, over every count that is possible.

    Raises ValueError for arrays of other lengths.
    """
    cdef int64_t pairs = lines.shape[0], i
    cdef double[8] counts, highest
    cdef double c0, c1
    check(pairs, count_low, count_high, window, around, (low, high, raw_low, raw_high))
    with nogil:
        for i in range(pairs):
            c0, c1 = count_low[i], count_high[i]
            low[i] = least_of(&lines[i, 0], 0, around[window[i]], 1, c0, c1)
            high[i] = -least_of(&lines[i, 0], 8, around[window[i]], -1, c0, c1)
            raw_low[i] = least_of(&lines[i, 0], 0, 0.0, 1, c0, c1)
            raw_high[i] = -least_of(&lines[i, 0], 8, 0.0, -1, c0, c1)


cdef check(int64_t pairs, count_low, count_high, window, around, out):
    if {len(of) for of in (count_low, count_high, window, *out)} - {pairs}:
        raise ValueError("the arrays of the pairs are not of one length")
    within(window, len(around))


cdef double least_of(const double* lines, int begin, double around, double sign, double c0, double c1) noexcept nogil:
    cdef double[8] counts, highest
    cdef double best = INFINITY
    cdef int k
    envelope(lines + begin, lines + begin + 4, lines[16 if begin == 0 else 17], around, sign, c0, c1, counts, highest)
    for k in range(CANDIDATES):
        best = -higher(-best, -highest[k])
    return best


def offs(
    const int64_t[:, ::1] records, const int64_t[::1] row, const int64_t[::1] start, int64_t length,
    const double[:, ::1] lines, const int64_t[::1] count_low, const int64_t[::1] count_high,
    const int64_t[::1] window, const double[::1] around, const double[::1] near, double[::1] low, double[::1] high,
):
    """Least and greatest Σ ((x − around)² − near) of the readings inside; see `sluicegate_cloud.estimates.spread`.

    Raises ValueError for arrays of other lengths.
    """
    cdef int64_t pairs = lines.shape[0], i, w
    check(pairs, count_low, count_high, window, around, (low, high, row, start))
    if records.shape[1] * 8 != sizeof(Bucket) or near.shape[0] != around.shape[0]:
        raise ValueError("offs: the arrays are not of one length")
    within(row, records.shape[0])
    with nogil:
        for i in range(pairs):
            w = window[i]
            offs_of(<const Bucket*> &records[row[i], 0], start[i], start[i] + length, &lines[i, 0],
                    count_low[i], count_high[i], around[w], near[w], &low[i], &high[i])


cdef struct Ends:
    double count, total, squares


cdef struct Tilt:
    double weight, each, whole


cdef void offs_of(
    const Bucket* b, int64_t start, int64_t end, const double* lines, double c0, double c1, double ref, double near,
    double* low, double* high
) noexcept nogil:
    cdef double[8] below_c, below, above_c, above
    cdef double n = b.n, total, mean, least = b.low - ref, greatest = b.high - ref
    cdef Ends inside, outside, rest
    total = b.total + n * (b.center - ref)
    mean = total / n
    known_ends(b, start, end, ref, &inside, &outside)
    envelope(lines, lines + 4, lines[16], ref, 1, c0, c1, below_c, below)
    envelope(lines + 8, lines + 12, lines[17], ref, -1, c0, c1, above_c, above)
    rest.count, rest.total = n - outside.count, total - outside.total
    rest.squares = b.m2_low + mean * total - outside.squares
    low[0] = greatest_of(least + greatest, -(least * greatest), &rest, mean, &inside, near, 1,
                         below_c, below, above_c, above, c0, c1)
    rest.squares = b.m2_high + mean * total - outside.squares
    high[0] = -greatest_of(least + greatest, -(least * greatest), &inside, mean, &rest, near, -1,
                           below_c, below, above_c, above, c0, c1)


cdef void known_ends(
    const Bucket* b, int64_t start, int64_t end, double around, Ends* inside, Ends* outside
) noexcept nogil:
    """Of the first and last readings known to be inside, and of those known to be outside."""
    cdef double x
    cdef int k
    inside.count, inside.total, inside.squares = 0, 0, 0
    outside.count, outside.total, outside.squares = 0, 0, 0
    if not (b.flags & 1) or b.doubt != 0:
        return
    for k in range(2):
        x = (b.x_last if k else b.x_first) - around
        if start <= (b.t_last if k else b.t_first) < end:
            inside.count += 1
            inside.total += x
            inside.squares += x * x
        else:
            outside.count += 1
            outside.total += x
            outside.squares += x * x


cdef double greatest_of(
    double slope, double minus_product, const Ends* chord_of, double mean, const Ends* tangents_of, double near,
    double sign, const double* below_c, const double* below, const double* above_c, const double* above,
    double c0, double c1
) noexcept nogil:
    """The greatest of the least of the chord, three tangents and halfway between: each is certain, so is the best.

    `sign` −1: of their negatives, whose greatest is the least of them.
    """
    cdef Tilt chord = tilted(slope, minus_product, chord_of, near), tangent, half
    cdef double best = least_tilted(&chord, sign, below_c, below, above_c, above, c0, c1), t
    cdef int k
    for k in range(3):
        t = mean * k / 2
        tangent = tilted(2 * t, -t * t, tangents_of, near)
        half.weight = (chord.weight + tangent.weight) / 2
        half.each = (chord.each + tangent.each) / 2
        half.whole = (chord.whole + tangent.whole) / 2
        best = higher(best, least_tilted(&tangent, sign, below_c, below, above_c, above, c0, c1))
        best = higher(best, least_tilted(&half, sign, below_c, below, above_c, above, c0, c1))
    return best


cdef Tilt tilted(double weight, double each, const Ends* known, double near) noexcept nogil:
    """Σ (weight · (x − ref) + each − near) inside, with the squares of the `known` ones in place of theirs."""
    cdef Tilt out
    out.weight, out.each = weight, each - near
    out.whole = known.squares - weight * known.total - each * known.count
    return out


cdef double least_tilted(
    const Tilt* of, double sign, const double* below_c, const double* below, const double* above_c,
    const double* above, double c0, double c1
) noexcept nogil:
    """The least whole + Σ (weight · (x − ref) + each) of the readings inside."""
    cdef double weight = sign * of.weight, each = sign * of.each, whole = sign * of.whole, size = fabs(weight)
    cdef double best = INFINITY
    cdef const double* counts = below_c if weight > 0 else above_c
    cdef const double* highest = below if weight > 0 else above
    cdef int k
    if size == 0:
        return whole + fmin(each * c0, each * c1)
    for k in range(CANDIDATES):
        best = -higher(-best, -(size * highest[k] + each * counts[k]))
    return whole + best
