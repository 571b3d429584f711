"""What a bucket cut by a window's edge certainly adds to it, a pair of bucket and window at a time.

The compiled twin of `sluicegate_cloud.bounds`, which says why each step is so; the same operations in the same order.
"""

from libc.math cimport INFINITY, NAN, fabs, fmax, fmin, isfinite, isnan, sqrt
from libc.stdint cimport int64_t

#: The fields of a bucket in a record, each 8 bytes, in the order in which `records` has them.
FIELDS = (
    "first", "n", "t_first", "t_last", "total", "pre_low", "pre_high", "low", "low_t_first", "low_t_last",
    "low_o_first", "low_o_last", "high", "high_t_first", "high_t_last", "high_o_first", "high_o_last", "x_first",
    "x_last", "flags", "m2", "low_pre", "low_suf", "high_pre", "high_suf", "doubt", "center", "m2_low", "m2_high",
)
#: What `cut` tells of a pair.
TOLD = ("count", "total", "min_low", "min_high", "max_low", "max_high")
#: Numbers that describe the bounds of a pair's sum: four lines below and four above, intercepts and the values that
#: slopes are taken from; then what the last slope of each is more than that. Far from 0 a sum of both would lose it.
LINES = 18

cdef enum:
    LATEST = 0x7FFFFFFFFFFFFFFF

cdef double EPSILON = 2.220446049250313e-16
cdef double ROUNDED = 1 + 1e-9
cdef double UNDER = 1e-320


cdef struct Edge:
    int64_t low, high
    double likely


cdef struct Lines:
    double at[4]
    double slope[4]
    double off


def cut(
    const int64_t[:, ::1] records, const int64_t[::1] row, const int64_t[::1] start, int64_t length,
    int64_t[::1] count_low, int64_t[::1] count_high, double[:, ::1] told, double[:, ::1] lines,
):
    """Bounds of the pairs (records[row[i]], window of `length` from start[i]).

    `records`: (buckets, FIELDS). Fills `count_low`, `count_high`, `told` (TOLD, pairs) and `lines` (pairs, LINES).
    Raises ValueError for arrays of other lengths.
    """
    cdef int64_t pairs = row.shape[0], i
    if (records.shape[1] * 8 != sizeof(Bucket) or start.shape[0] != pairs or count_low.shape[0] != pairs
            or count_high.shape[0] != pairs or told.shape[0] != len(TOLD) or told.shape[1] != pairs
            or lines.shape[0] != pairs or lines.shape[1] != LINES):
        raise ValueError("cut: the arrays are not of one length")
    within(row, records.shape[0])
    if pairs == 0:
        return
    cdef double* out[6]
    for i in range(6):
        out[i] = &told[i, 0]
    with nogil:
        for i in range(pairs):
            cut_one(<const Bucket*> &records[row[i], 0], start[i], start[i] + length,
                    &count_low[i], &count_high[i], out, i, &lines[i, 0])


cdef within(const int64_t[::1] places, int64_t size):
    """Raises ValueError where one of `places` is not in an array of that size."""
    cdef int64_t i, wrong = 0
    for i in range(places.shape[0]):
        wrong |= places[i] < 0 or places[i] >= size
    if wrong:
        raise ValueError("a pair names what is not there")


cdef void cut_one(
    const Bucket* b, int64_t start, int64_t end, int64_t* low, int64_t* high, double** out, int64_t i, double* lines
) noexcept nogil:
    cdef int64_t[6] times, ordinals
    cdef double[6] values
    cdef bint ordered = b.flags & 1
    cdef Lines below, above
    cdef double likely, guess, least, most
    cdef int k
    known_points(b, ordered, times, ordinals, values)
    likely = counts(b, ordered, times, ordinals, start, end, low, high)
    likely = fmin(fmax(likely, <double> low[0]), <double> high[0])
    out[0][i] = likely
    extremes(b, ordered, times, values, start, end, low[0], high[0], out, i)
    bound(b, ordered and b.doubt == 0, start, end, (low[0] + high[0]) / 2.0, &below, &above)
    least, most = -INFINITY, INFINITY
    for k in range(4):
        least = fmax(least, below.at[k] + (below.slope[k] - b.center + (below.off if k == 3 else 0.0)) * likely)
        most = fmin(most, above.at[k] + (above.slope[k] - b.center + (above.off if k == 3 else 0.0)) * likely)
        lines[k], lines[4 + k] = below.at[k], below.slope[k]
        lines[8 + k], lines[12 + k] = above.at[k], above.slope[k]
    lines[16], lines[17] = below.off, above.off
    guess = fmax(b.total * likely / b.n, least)
    out[1][i] = fmin(guess, most)


cdef void known_points(
    const Bucket* b, bint ordered, int64_t* times, int64_t* ordinals, double* values
) noexcept nogil:
    """Readings whose time is known: times, ordinals and values, NaN where the value is not known."""
    times[0], times[1], times[2] = b.t_first, b.low_t_first, b.low_t_last
    times[3], times[4], times[5] = b.high_t_first, b.high_t_last, b.t_last
    ordinals[0], ordinals[1], ordinals[2] = b.first, b.low_o_first, b.low_o_last
    ordinals[3], ordinals[4], ordinals[5] = b.high_o_first, b.high_o_last, b.first + b.n - 1
    values[0], values[5] = b.x_first if ordered else NAN, b.x_last if ordered else NAN
    values[1], values[2], values[3], values[4] = b.low, b.low, b.high, b.high
    cdef int k
    if b.doubt > 0:
        for k in range(6):
            values[k] = NAN


cdef double counts(
    const Bucket* b, bint ordered, const int64_t* times, const int64_t* ordinals, int64_t start, int64_t end,
    int64_t* low, int64_t* high
) noexcept nogil:
    """Least and greatest number of readings inside; the interpolated one is returned."""
    cdef Edge a, z
    cdef int64_t both, sure
    if ordered:
        edge_at(b, times, ordinals, start, &a)
        edge_at(b, times, ordinals, end, &z)
        low[0] = z.low - a.high if z.low > a.high else 0
        high[0] = z.high - a.low
    else:
        both = b.t_first < start and b.t_last >= end
        sure = extremes_inside(b, times, start, end)
        low[0] = 1 - both if 1 - both > sure else sure
        high[0] = b.n - 1 - both
    low[0] = low[0] - b.doubt if low[0] > b.doubt else 0
    return z.likely - a.likely if ordered else b.n * share(b, start, end)


cdef void edge_at(
    const Bucket* b, const int64_t* times, const int64_t* ordinals, int64_t edge, Edge* out
) noexcept nogil:
    """Least, greatest and interpolated ordinal of the first reading at or after `edge`."""
    cdef int64_t t_before = -LATEST, t_after = LATEST, low = b.first, high = b.first + b.n
    cdef int k
    cdef double part = 0
    for k in range(6):
        if times[k] < edge:
            low = ordinals[k] + 1 if ordinals[k] + 1 > low else low
            t_before = times[k] if times[k] > t_before else t_before
        else:
            high = ordinals[k] if ordinals[k] < high else high
            t_after = times[k] if times[k] < t_after else t_after
    if t_before != -LATEST and t_after != LATEST:
        part = (<double> (edge - t_before)) / (<double> (t_after - t_before))
    out.low, out.high = low, high
    out.likely = low + (high - low) * fmin(fmax(part, 0.0), 1.0)


cdef int64_t extremes_inside(const Bucket* b, const int64_t* times, int64_t start, int64_t end) noexcept nogil:
    """How many of a bucket's two extremes are certainly inside; its only value counts once."""
    cdef bint low = start <= times[1] < end or start <= times[2] < end
    cdef bint high = start <= times[3] < end or start <= times[4] < end
    return low + high if b.low < b.high else low or high


cdef double share(const Bucket* b, int64_t start, int64_t end) noexcept nogil:
    cdef int64_t upto = b.t_last if b.t_last < end else end
    cdef int64_t since = b.t_first if b.t_first > start else start
    cdef int64_t span = b.t_last - b.t_first if b.t_last > b.t_first else 1
    return fmin(fmax((<double> (upto - since)) / (<double> span), 0.0), 1.0)


cdef void extremes(
    const Bucket* b, bint ordered, const int64_t* times, const double* values, int64_t start, int64_t end,
    int64_t c0, int64_t c1, double** out, int64_t i
) noexcept nogil:
    """Possible and certain extremes; infinite where nothing is certain or possible."""
    cdef double max_low = -INFINITY, min_high = INFINITY
    cdef bint known = False
    cdef int k
    for k in range(6):
        if start <= times[k] < end and not isnan(values[k]):
            known = True
            max_low = values[k] if values[k] > max_low else max_low
            min_high = values[k] if values[k] < min_high else min_high
    if c0 > 0:
        max_low = fmax(max_low, b.low)
        min_high = fmin(min_high, b.high)
    out[3][i], out[4][i] = min_high, max_low
    if known and c1 == 1:
        out[2][i], out[5][i] = min_high, max_low
    elif c1 > 0:
        out[2][i] = beside(ordered, b.low, b.low_t_first, b.low_t_last, b.low_pre, b.low_suf, start, end)
        out[5][i] = beside(ordered, b.high, b.high_t_first, b.high_t_last, b.high_pre, b.high_suf, start, end)
    else:
        out[2][i], out[5][i] = INFINITY, -INFINITY


cdef double beside(
    bint ordered, double extreme, int64_t t_first, int64_t t_last, double pre, double suf, int64_t start, int64_t end
) noexcept nogil:
    """The extreme that is possible: the bucket's, or what its neighbours leave where all its places are outside."""
    cdef double left = extreme
    if ordered and t_first >= end:
        left = pre
    elif ordered and t_last < start:
        left = suf
    return left if isfinite(left) else extreme


cdef void bound(
    const Bucket* b, bint whole, int64_t start, int64_t end, double count, Lines* below, Lines* above
) noexcept nogil:
    """The four lines in the count that bound Σ x, less count · center in the intercepts, from below and from above."""
    cdef double center = b.center, low, high, most, rise, mean
    cdef double n_in = 0, s_in = 0, n_any = b.n, s_any = b.total
    prefixes(b, whole, start, end, &low, &high)
    if whole:
        if start <= b.t_first < end:
            n_in, s_in = n_in + 1, s_in + (b.x_first - center)
        else:
            n_any, s_any = n_any - 1, s_any - (b.x_first - center)
        if start <= b.t_last < end:
            n_in, s_in = n_in + 1, s_in + (b.x_last - center)
        else:
            n_any, s_any = n_any - 1, s_any - (b.x_last - center)
    mean = by_squares(b, count, &most, &rise)
    below.at[0], above.at[0] = low, high
    below.at[1], above.at[1] = s_in - n_in * (b.low - center), s_in - n_in * (b.high - center)
    below.at[2], above.at[2] = s_any - n_any * (b.high - center), s_any - n_any * (b.low - center)
    below.at[3], above.at[3] = -most, most
    below.slope[0], above.slope[0] = center, center
    below.slope[1], above.slope[1] = b.low, b.high
    below.slope[2], above.slope[2] = b.high, b.low
    below.slope[3], above.slope[3] = center, center
    below.off, above.off = mean - rise, mean + rise


cdef void prefixes(const Bucket* b, bint whole, int64_t start, int64_t end, double* low, double* high) noexcept nogil:
    """Interval of Σ (x − center) inside, from P⁻ and P⁺; without limits where they say nothing of a part."""
    cdef bint at_start = b.t_first < start, at_end = b.t_last >= end
    if not whole:
        low[0], high[0] = -INFINITY, INFINITY
    elif at_start and at_end:
        low[0], high[0] = b.pre_low - b.pre_high, b.pre_high - b.pre_low
    elif at_start:
        low[0], high[0] = b.total - b.pre_high, b.total - b.pre_low
    elif at_end:
        low[0], high[0] = b.pre_low, b.pre_high
    else:
        low[0], high[0] = b.total, b.total


cdef double by_squares(const Bucket* b, double count, double* most, double* rise) noexcept nogil:
    """The mean less the center; c readings sum to c · mean ± at most `most` + `rise` · c. A tangent at `count`."""
    cdef double n = b.n, mean = b.total / n, squares, at, reached, rounded
    if isnan(b.m2):
        rounded = 2 * (n + 8) * EPSILON * (fabs(b.center) + fmax(fabs(b.low), fabs(b.high)))
        squares = n * fmax(b.high - b.center - mean + rounded, 0.0) * fmax(mean - (b.low - b.center) + rounded, 0.0)
    else:
        squares = b.m2
    squares = squares * ROUNDED + n * UNDER
    at = fmin(fmax(count, 0.5), n - 0.5)
    reached = sqrt(squares * (at * (n - at) / n))
    if isfinite(reached):
        rise[0] = squares / reached * ((n - 2 * at) / (2 * n))
        most[0] = reached - rise[0] * at
    else:
        rise[0], most[0] = 0.0, INFINITY
    return mean
