"""The greatest variance that what is known of a window allows; the twin is `sluicegate_cloud.estimates.spread`."""

from libc.math cimport INFINITY, NAN, isfinite
from libc.stdint cimport int64_t

from sluicegate.fleet.cuts cimport higher

cdef extern from "math.h":
    double pow(double, double) noexcept nogil

cdef struct Known:
    double n, mean, squares, least, greatest, part_low, part_high


def greatest(
    const int64_t[::1] n, const double[::1] mean, const double[::1] squares, const double[::1] least,
    const double[::1] most, const double[::1] part_low, const double[::1] part_high, const int64_t[::1] count_low,
    const int64_t[::1] count_high, int segments, double[::1] out,
):
    """Of each window: `n`, `mean`, `squares` of the readings inside, and what the cut buckets may add to them.

    `least` … `most`: their values, relative as `mean` is; `part_low` … `part_high`: their sum. Ranges of counts are
    bounded by their worse ends, `segments` of them. Raises ValueError for arrays of other lengths.
    """
    cdef int64_t i, windows = n.shape[0]
    cdef Known of
    if not (mean.shape[0] == squares.shape[0] == least.shape[0] == most.shape[0] == part_low.shape[0]
            == part_high.shape[0] == count_low.shape[0] == count_high.shape[0] == out.shape[0] == windows):
        raise ValueError("greatest: the arrays are not of one length")
    with nogil:
        for i in range(windows):
            of = Known(n[i], mean[i], squares[i], least[i], most[i], part_low[i], part_high[i])
            out[i] = greatest_of(&of, count_low[i], count_high[i], segments)


cdef double greatest_of(const Known* of, double low, double high, int segments) noexcept nogil:
    cdef double fewest = higher(low, 1.0 if of.n == 0 and high > 0 else 0.0)
    cdef double best = -INFINITY, begin = of.n + fewest, most = of.n + high, end, ratio, found
    cdef int i
    if most <= 0:
        return NAN
    if high == 0:
        return of.squares / begin
    ratio = pow(most / begin, 1.0 / segments)
    for i in range(segments):
        end = most if i == segments - 1 else -higher(-(begin * ratio), -most)
        found = segment(of, begin, higher(end, begin))
        best = found if found > best else best
        begin = end
    return INFINITY if best == -INFINITY else best


cdef double segment(const Known* of, double begin, double end) noexcept nogil:
    """No variance of begin … end readings is greater."""
    cdef double share = (end - of.n) / end
    cdef double pull = of.n / begin * share
    cdef double c0 = higher(begin - of.n, 1.0), c1 = higher(end - of.n, 1.0)
    cdef double low = higher(of.least, -higher(-(of.part_low / c0), -(of.part_low / c1)))
    cdef double high = -higher(-of.greatest, -higher(of.part_high / c0, of.part_high / c1))
    cdef double turn = (share * (of.least + of.greatest) / 2 - pull * of.mean) / (share - pull), swap
    if low > high:
        swap = low
        low = high
        high = swap
    turn = turn if isfinite(turn) else low
    turn = -higher(-higher(turn, low), -high)
    return of.squares / begin + higher(
        higher(spread(of, share, pull, low), spread(of, share, pull, high)), spread(of, share, pull, turn)
    )


cdef inline double spread(const Known* of, double share, double pull, double v) noexcept nogil:
    return share * (of.greatest - v) * (v - of.least) + pull * ((v - of.mean) * (v - of.mean))
