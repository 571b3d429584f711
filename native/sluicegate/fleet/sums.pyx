"""What the readings of cut buckets that are inside a window sum to, and their squares: from the lines of `cuts.cut`.

The compiled twin of `sluicegate_cloud.bounds` and `sluicegate_cloud.estimates.spread`; the same operations in the same
order.
"""

from libc.math cimport NAN, fabs, fmin, isnan
from libc.stdint cimport int64_t

from sluicegate.fleet.cuts cimport Bucket, higher, within

cdef enum:
    CANDIDATES = 8  # counts at which the greatest of four lines may be least


cdef struct Lines:
    double[4] at, slope
    bint known


cdef inline void lines_of(
    const double* at, const double* slope, double off, double around, double sign, Lines* out
) noexcept nogil:
    """The lines' slopes less `around`; `sign` −1: of the lines' negatives. Of NaN nothing is known."""
    cdef int i
    out.known = True
    for i in range(4):
        out.at[i], out.slope[i] = sign * at[i], sign * (slope[i] - around + (off if i == 3 else 0.0))
        out.known = out.known and not isnan(out.at[i]) and not isnan(out.slope[i])


cdef inline void turns(const Lines* of, double c0, double c1, double* counts) noexcept nogil:
    """Counts at which the greatest of the lines may be least: convex in it, so at an end or where two of them cross."""
    cdef double[CANDIDATES] over, apart
    cdef double c
    cdef int i, j, k = 2
    for i in range(4):
        for j in range(i + 1, 4):
            over[k], apart[k] = of.at[j] - of.at[i], of.slope[i] - of.slope[j]
            k += 1
    counts[0], counts[1] = c0, c1
    for k in range(2, CANDIDATES):
        c = over[k] / apart[k]
        c = c if c > c0 else c0  # where two lines never cross, too
        counts[k] = c if c < c1 else c1


cdef inline void heights(const Lines* of, const double* counts, double* highest) noexcept nogil:
    """How great the greatest of the lines is at each of the counts."""
    cdef double value
    cdef int i, k
    for k in range(CANDIDATES):
        highest[k] = of.at[0] + of.slope[0] * counts[k] if of.known else NAN
    for i in range(1, 4 if of.known else 1):
        for k in range(CANDIDATES):
            value = of.at[i] + of.slope[i] * counts[k]
            highest[k] = highest[k] if highest[k] > value else value


cdef void envelope(const double* at, const double* slope, double off, double around, double sign, double c0, double c1,
                   double* counts, double* highest) noexcept nogil:
    cdef Lines lines
    lines_of(at, slope, off, around, sign, &lines)
    turns(&lines, c0, c1, counts)
    heights(&lines, counts, highest)


def sums(
    const double[:, ::1] lines, const int64_t[::1] count_low, const int64_t[::1] count_high, const int64_t[::1] window,
    const double[::1] around, double[::1] low, double[::1] high, double[::1] raw_low, double[::1] raw_high,
):
    """Least and greatest Σ (x − around[window]) and Σ x of the readings inside, over every count that is possible.

    Raises ValueError for arrays of other lengths.
    """
    cdef int64_t pairs = lines.shape[0], i
    cdef double c0, c1
    check(pairs, count_low, count_high, window, around, (low, high, raw_low, raw_high))
    with nogil:
        for i in range(pairs):
            c0, c1 = count_low[i], count_high[i]
            sums_of(&lines[i, 0], lines[i, 16], around[window[i]], 1, c0, c1, &low[i], &raw_low[i])
            sums_of(&lines[i, 8], lines[i, 17], around[window[i]], -1, c0, c1, &high[i], &raw_high[i])


cdef check(int64_t pairs, count_low, count_high, window, around, out):
    if {len(of) for of in (count_low, count_high, window, *out)} - {pairs}:
        raise ValueError("the arrays of the pairs are not of one length")
    within(window, len(around))


cdef void sums_of(
    const double* lines, double off, double around, double sign, double c0, double c1, double* relative, double* raw
) noexcept nogil:
    """Where lines cross is the same around 0, and sharper near the values."""
    cdef double[CANDIDATES] counts, highest
    cdef Lines of
    envelope(lines, lines + 4, off, around, sign, c0, c1, counts, highest)
    relative[0] = sign * least_in(highest)
    lines_of(lines, lines + 4, off, 0.0, sign, &of)
    heights(&of, counts, highest)
    raw[0] = sign * least_in(highest)


cdef inline double least_in(const double* values) noexcept nogil:
    """NaN where one is."""
    cdef double[4] pair
    cdef int k
    for k in range(4):
        pair[k] = lower(values[k], values[k + 4])
    return lower(lower(pair[0], pair[1]), lower(pair[2], pair[3]))


cdef inline double lower(double a, double b) noexcept nogil:
    return a if a < b or isnan(a) else b


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
    cdef double[CANDIDATES] below_c, below, above_c, above
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
    cdef double[CANDIDATES] values
    cdef const double* counts = below_c if weight > 0 else above_c
    cdef const double* highest = below if weight > 0 else above
    cdef int k
    if size == 0:
        return whole + fmin(each * c0, each * c1)
    for k in range(CANDIDATES):
        values[k] = size * highest[k] + each * counts[k]
    return whole + least_in(values)
