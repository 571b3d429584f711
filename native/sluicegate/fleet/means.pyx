"""The least mean that is known of a window's components; the twin is `sluicegate_cloud.estimates.means`."""

from libc.math cimport ceil, floor, fmin, isfinite
from libc.stdint cimport int64_t

from sluicegate.fleet.cuts cimport higher


def least(
    const int64_t[::1] n, const int64_t[::1] count_low, const int64_t[::1] count_high, const double[::1] total,
    const double[::1] part, const double[::1] least, double[::1] out,
):
    """Of each window the least over c of (total + max(part, c * least)) / (n + c), c from 1 when n is 0.

    c: `count_low` to `count_high`. Raises ValueError for arrays of other lengths.
    """
    cdef int64_t windows = n.shape[0], i
    if not (count_low.shape[0] == count_high.shape[0] == total.shape[0] == part.shape[0] == least.shape[0]
            == out.shape[0] == windows):
        raise ValueError("least: the arrays are not of one length")
    with nogil:
        for i in range(windows):
            out[i] = least_of(n[i], count_low[i], count_high[i], total[i], part[i],
                              least[i] if isfinite(least[i]) else 0.0)


cdef inline double least_of(
    double n, double low, double high, double total, double part, double least
) noexcept nogil:
    cdef double fewest = higher(low, 1.0 if n == 0 and high > 0 else 0.0), best, meet
    best = mean(n, fewest, total, part, least)
    if fewest == high:
        return best
    best = fmin(best, mean(n, high, total, part, least))
    meet = part / least
    if not isfinite(meet):
        return best
    best = fmin(best, mean(n, clipped(floor(meet), fewest, high), total, part, least))
    return fmin(best, mean(n, clipped(ceil(meet), fewest, high), total, part, least))


cdef inline double clipped(double count, double fewest, double most) noexcept nogil:
    return -higher(-higher(count, fewest), -most)


cdef inline double mean(double n, double count, double total, double part, double least) noexcept nogil:
    return (total + higher(part, count * least)) / (n + count)
