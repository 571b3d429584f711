"""Between which values a window's variance certainly lies when its edge cuts a bucket; see variance.pxd.

Of the readings wholly inside count C, mean μ and squared deviations M₂ are known; the cut part adds c readings of mean
ν and squared deviations q, so the window's are M₂ + q + (C·c/N)·(ν − μ)², N = C + c. Not less than 0, q obeys

    q ≤ c·(M − ν)·(ν − m)                        values in [m, M]; a little less, as c is whole
    q ≤ M₂ᴮ − (n·c/(n − c))·(ν − μᴮ)²            a single cut bucket: its own n, mean and deviations
    q ≥ the same − (n − c)·(M − m)²/4            what the readings left out can have of them

(the last two: the readings left out have a mean that differs from ν as well). All are quadratics of ν, so the greatest
is at an end of ν's range, at a vertex, or, for the lesser of two, at the vertex of a mixture. ν's range comes from the
lines of `sums`. Many counts are taken in at most 64 geometric runs, each with its worse end. All is relative
to the center; what rounding may have done is added: a mean is wrong by less than 4·N·ε·D, D the greatest |x − center|,
and M₂ by a few times that times the spread, for each level of a merge.
"""

from libc.math cimport INFINITY, NAN, fabs, floor, isfinite, log2, nextafter, pow, sqrt
from libc.stdint cimport int64_t

from sluicegate.answers.results cimport K_STD, Output, View
from sluicegate.answers.sums cimport Ends, Lines, Part, fixed, lines_of, part_of
from sluicegate.partials.program cimport Slot, greatest as larger, least as lesser

cdef enum:
    RUNS = 64
    FEW = 8  # counts so low that a whole number of readings at each end says more

cdef double EPSILON = 2.220446049250313e-16
cdef double TINY = 5e-324
cdef double SQUARED = 1e150  # beyond it squares of differences may overflow

ctypedef struct Deviations:  # of known readings; the mean is of x − center
    double n
    double mean
    double m2
    double low
    double high

ctypedef struct Problem:  # all that the bounds read; every value is relative to the mean of what is inside
    Deviations inside
    Deviations bucket  # the cut one
    double low
    double high
    Lines below
    Lines above
    double sum_error
    double mean_error
    double m2_error

ctypedef struct Quadratic:
    double a
    double b
    double c


cdef Ends variance_interval(const Output* o, const View* v, double center, bint* exact) noexcept nogil:
    cdef Deviations inside = known_of(o, v.total if v.whole else v.rest)
    cdef Deviations bucket = known_of(o, NULL if v.whole else v.leaf)
    cdef Part part = part_of(o, v, center)
    cdef Ends ends = variance_ends(&inside, &part, center, &bucket, o.ddof, exact)
    if o.kind == K_STD and ends.low == ends.low:
        ends.low = larger(0.0, nextafter(sqrt(ends.low), 0.0))
        ends.high = nextafter(sqrt(ends.high), INFINITY)
    return ends


cdef Deviations known_of(const Output* o, const Slot* partial) noexcept nogil:
    cdef Deviations known
    known.n = known.mean = known.m2 = 0.0
    known.low, known.high = INFINITY, -INFINITY
    if partial != NULL:
        known.n, known.mean, known.m2 = partial[o.moments].f, partial[o.moments + 1].f, partial[o.moments + 2].f
        known.low, known.high = partial[o.low].f, partial[o.high].f
    return known


cdef Ends ends_of(double low, double high) noexcept nogil:
    cdef Ends ends
    ends.low, ends.high = low, high
    return ends


cdef Ends variance_ends(
    const Deviations* inside, const Part* part, double center, const Deviations* bucket, int ddof, bint* exact
) noexcept nogil:
    cdef int64_t first = max(part.least, ddof + 1 - <int64_t> inside.n)
    cdef double slack = 0.0
    cdef Problem p
    cdef Ends found
    exact[0] = True
    if first > part.most:
        return ends_of(NAN, NAN)
    exact[0] = part.most == 0 or is_known(part, <int64_t> bucket.n)
    if larger(larger(farthest(inside.low, inside.high), farthest(part.low, part.high)), larger(
            farthest(bucket.low, bucket.high), fabs(center))) > SQUARED:
        exact[0] = False
        return ends_of(0.0, INFINITY)
    p = problem_of(inside, part, center, bucket, &slack)
    found = of_runs(&p, first, part.most, ddof)
    if not (isfinite(found.low) and isfinite(found.high)):  # no count seems possible, or a number overflowed
        found = ends_of(0.0, INFINITY)
    found.low = lesser(found.low, found.high)  # where nothing but rounding is between them
    slack += 64 * EPSILON * found.high + (inside.n + part.size) * 4 * TINY
    found.low = larger(0.0, nextafter(found.low - slack, -INFINITY)) if found.high < INFINITY else 0.0
    found.high = nextafter(found.high + slack, INFINITY)
    return found


cdef bint is_known(const Part* part, int64_t size) noexcept nogil:
    """Whether what a bucket of `size` adds is its last reading, or all but its first."""
    return fixed(part) and (part.least == 1 or part.least == size - 1)


cdef double farthest(double low, double high) noexcept nogil:
    """The greatest magnitude; 0 of nothing."""
    return larger(fabs(low), fabs(high)) if isfinite(low) and isfinite(high) else 0.0


cdef Ends of_runs(const Problem* p, int64_t first, int64_t last, int ddof) noexcept nogil:
    """The counts one by one where they are few, else in geometric runs."""
    cdef Ends found = ends_of(INFINITY, -INFINITY), ends
    cdef int64_t start = first, end
    cdef int left = RUNS
    while start <= last:
        end = start
        if left < last - start + 1 and start > 0:
            end = <int64_t> (start * pow((<double> (last + 1)) / (<double> start), 1.0 / left))
        end = last if left == 1 else min(max(end, start), last)
        ends = of_run(p, start, end, ddof)
        found.low, found.high = lesser(found.low, ends.low), larger(found.high, ends.high)
        start, left = end + 1, left - 1
    return found


cdef Problem problem_of(
    const Deviations* inside, const Part* part, double center, const Deviations* bucket, double* slack
) noexcept nogil:
    cdef double n = inside.n + part.size, least = INFINITY, greatest = -INFINITY, reach, error
    cdef Problem p
    if inside.n:
        least, greatest = inside.low - center, inside.high - center
    if part.most:
        least, greatest = lesser(least, bucket.low - center), larger(greatest, bucket.high - center)
    reach = larger(fabs(least), fabs(greatest))
    error = 4.0 * n * EPSILON * reach
    slack[0] = log2(n + 1) * (16.0 * error * (greatest - least) + 16.0 * error * error)
    p.mean_error, p.m2_error = error, n * slack[0]
    move(&p, inside, part, center, bucket, reach)
    return p


cdef void move(
    Problem* p, const Deviations* inside, const Part* part, double center, const Deviations* bucket, double reach
) noexcept nogil:
    """Everything relative to the mean of what is inside, so that squares stay as small as the spread."""
    cdef double origin = inside.mean if inside.n else part.low - center, pad = 4.0 * EPSILON * reach
    cdef int k
    p.inside, p.bucket = inside[0], bucket[0]
    p.inside.mean, p.bucket.mean = 0.0, bucket.mean - origin
    p.low, p.high = part.low - center - origin - pad, part.high - center - origin + pad
    p.below, p.above = lines_of(part, center, False), lines_of(part, center, True)
    for k in range(3):
        p.below.slope[k] = p.below.slope[k] - origin
        p.above.slope[k] = p.above.slope[k] + origin
    p.sum_error = 4.0 * part.size * part.size * EPSILON * reach


cdef Ends of_run(const Problem* p, int64_t first, int64_t last, int ddof) noexcept nogil:
    """Least and greatest variance with first … last added readings; (+inf, −inf) where that cannot be."""
    cdef double n = p.inside.n, m2 = p.inside.m2, apart, weight, low, high
    cdef Ends mean
    if last == 0:
        return ends_of(m2 / (n - ddof), m2 / (n - ddof))
    mean = means(p, first, last)
    if mean.low > mean.high:
        return ends_of(INFINITY, -INFINITY)
    apart = larger(larger(0.0, mean.low - p.inside.mean), p.inside.mean - mean.high)
    weight = lesser(weight_of(n, first), weight_of(n, last))
    low = m2 / (n + last) + weight * apart * apart
    low = larger(low, least_of(p, first, mean) if first == last else 0.0) * ((n + last) / (n + last - ddof))
    high = greatest_of(p, first, last, first, mean)
    if first < last:
        high = larger(high, greatest_of(p, first, last, last, mean))
    return ends_of(low, high * ((n + first) / (n + first - ddof)))


cdef double weight_of(double n, double c) noexcept nogil:
    """What (ν − μ)² counts in the variance."""
    return n * c / ((n + c) * (n + c))


cdef Ends means(const Problem* p, int64_t first, int64_t last) noexcept nogil:
    """Between which values the mean of first … last added readings lies."""
    cdef double least = of_lines(&p.below, p.sum_error, first, last) - p.mean_error
    cdef double most = p.mean_error - of_lines(&p.above, p.sum_error, first, last), share, reach
    least, most = larger(p.low, least), lesser(p.high, most)
    if first < p.bucket.n:
        share = (p.bucket.n - first) / (p.bucket.n * first)
        reach = sqrt((p.bucket.m2 + p.m2_error) * share) * (1 + 1e-9) + 2.0 * p.mean_error
        least, most = larger(least, p.bucket.mean - reach), lesser(most, p.bucket.mean + reach)
    return ends_of(least, most)


cdef double of_lines(const Lines* l, double error, double first, double last) noexcept nogil:
    cdef double found = of_line(l, 0, error, first, last)
    found = larger(found, of_line(l, 1, error, first, last))
    return larger(found, of_line(l, 2, error, first, last))


cdef inline double of_line(const Lines* l, int k, double error, double first, double last) noexcept nogil:
    return lesser((l.at[k] - error) / first, (l.at[k] - error) / last) + l.slope[k]


cdef double least_of(const Problem* p, int64_t c, Ends mean) noexcept nogil:
    """The least variance (ddof 0) of one count, by what the readings left out can have of the bucket's deviations."""
    cdef double n = p.inside.n, size = p.bucket.n, total = n + c, out = size - c, reach, others, bend, known
    cdef Quadratic own
    if c >= size:
        return 0.0
    reach = p.bucket.high - p.bucket.low
    others = out * (reach * reach) / 4.0 if out > 1 else 0.0
    bend = size * c / out
    known = p.inside.m2 + p.bucket.m2 - others - blur(p, bend)
    own = square(-bend / total, p.bucket.mean, known / total)
    return -highest(negated(add(own, square(weight_of(n, c), p.inside.mean, 0.0))), mean)


cdef double blur(const Problem* p, double bend) noexcept nogil:
    """What rounding may have done to M₂ᴮ − bend·(ν − μᴮ)², where that is not negative."""
    cdef double own = p.bucket.m2 + p.m2_error
    return p.m2_error + 2.0 * p.mean_error * sqrt(bend * own) + bend * p.mean_error * p.mean_error


cdef double greatest_of(const Problem* p, int64_t first, int64_t last, int64_t c, Ends mean) noexcept nogil:
    """The greatest variance (ddof 0) over ν in `mean`, of c readings where values are the limit."""
    cdef double n = p.inside.n, m2 = p.inside.m2, size = p.bucket.n, bend = 0.0, total = n + first, high
    cdef Quadratic apart = square(weight_of(n, lesser(larger(n, first), last)), p.inside.mean, 0.0)
    cdef Quadratic by_value = add(square(0.0, 0.0, m2 / (n + c)), within(c / (n + c), p.low, p.high)), by_bucket
    by_value = add(by_value, apart)
    if first < size:
        bend = size * first / (size - first)
    by_bucket = add(square(-bend / total, p.bucket.mean, (m2 + p.bucket.m2 + blur(p, bend)) / total), apart)
    high = lesser(highest(by_value, mean), highest(by_bucket, mean))
    high = lesser(high, of_mixtures(by_value, by_bucket, mean))
    return lesser(high, greatest_whole(p, c, mean)) if first == last and last <= FEW else high


cdef double of_mixtures(Quadratic a, Quadratic b, Ends mean) noexcept nogil:
    """The least of the mixtures whose vertex lies where a and b cross."""
    cdef double k = a.a - b.a, slope = a.b - b.b, at = a.c - b.c, root
    if k == 0.0:
        return of_mixture(a, b, -at / slope, mean) if slope != 0.0 else INFINITY
    root = sqrt(larger(slope * slope - 4.0 * k * at, 0.0))
    at = of_mixture(a, b, (-slope - root) / (2.0 * k), mean)
    return lesser(at, of_mixture(a, b, (-slope + root) / (2.0 * k), mean))


cdef double of_mixture(Quadratic a, Quadratic b, double nu, Ends mean) noexcept nogil:
    cdef double slope_a = 2.0 * a.a * nu + a.b, slope_b = 2.0 * b.a * nu + b.b, share, rest
    cdef Quadratic mixed
    if not (mean.low <= nu <= mean.high and slope_a != slope_b):
        return INFINITY
    share = slope_b / (slope_b - slope_a)
    if not 0.0 < share < 1.0:
        return INFINITY
    rest = 1.0 - share
    mixed.a, mixed.b, mixed.c = share * a.a + rest * b.a, share * a.b + rest * b.b, share * a.c + rest * b.c
    return highest(mixed, mean)


cdef double greatest_whole(const Problem* p, int64_t c, Ends mean) noexcept nogil:
    """The same for one count, which is whole: between the means i·M + (c − i)·m the deviations sag."""
    cdef double n = p.inside.n, spread = p.high - p.low, apart = mean.low - p.inside.mean, best, found
    if not spread > 0.0:
        return (p.inside.m2 + n * c / (n + c) * (apart * apart)) / (n + c)
    best = ((p.high + p.low) * (n + c) / 2 - n * p.inside.mean) / c
    found = larger(with_mean(p, c, mean.low), with_mean(p, c, mean.high))
    found = larger(found, beside(p, c, mean.low, mean))
    found = larger(found, beside(p, c, best, mean))
    return larger(found, beside(p, c, mean.high, mean))


cdef double beside(const Problem* p, int64_t c, double nu, Ends mean) noexcept nogil:
    """The greatest with a whole number of readings at one end, the mean near ν."""
    cdef double spread = p.high - p.low, found = -INFINITY, at, step
    cdef int j
    step = floor(c * (lesser(larger(nu, mean.low), mean.high) - p.low) / spread)
    for j in range(-1, 3):
        at = p.low + (step + j) * spread / c
        if mean.low <= at <= mean.high:
            found = larger(found, with_mean(p, c, at))
    return found


cdef double with_mean(const Problem* p, int64_t c, double nu) noexcept nogil:
    cdef double n = p.inside.n, spread = p.high - p.low, u = c * (nu - p.low) / spread, f = u - floor(u), apart
    cdef double own = spread * spread * (floor(u) + f * f - u * u / c)
    apart = nu - p.inside.mean
    return (p.inside.m2 + larger(own, 0.0) + n * c / (n + c) * (apart * apart)) / (n + c)


cdef inline Quadratic quadratic(double a, double b, double c) noexcept nogil:
    cdef Quadratic q
    q.a, q.b, q.c = a, b, c
    return q


cdef inline Quadratic square(double k, double center, double at) noexcept nogil:
    """k·(ν − center)² + at."""
    return quadratic(k, -2.0 * k * center, k * center * center + at)


cdef inline Quadratic within(double k, double low, double high) noexcept nogil:
    """k·(high − ν)·(ν − low)."""
    return quadratic(-k, k * (low + high), -k * low * high)


cdef inline Quadratic add(Quadratic p, Quadratic q) noexcept nogil:
    return quadratic(p.a + q.a, p.b + q.b, p.c + q.c)


cdef inline Quadratic negated(Quadratic q) noexcept nogil:
    return quadratic(-q.a, -q.b, -q.c)


cdef inline double value_at(Quadratic q, double nu) noexcept nogil:
    return (q.a * nu + q.b) * nu + q.c


cdef double highest(Quadratic q, Ends mean) noexcept nogil:
    """The greatest value over `mean`: at an end or at the vertex."""
    cdef double vertex = -q.b / (2.0 * q.a) if q.a < 0.0 else mean.low
    return larger(
        larger(value_at(q, mean.low), value_at(q, mean.high)), value_at(q, lesser(larger(vertex, mean.low), mean.high))
    )
