"""Folds over blocks of positions that NumPy has no operation for: moments, and how often an extreme occurs.

van Herk's blocks, as in `sluicegate_cloud.sliding`, whose `fold_squares` and `fold_occurrences` are the twins: a window
of `width` positions is a suffix of one block and a prefix of the next.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

cdef struct Moments:
    double n, total, squares


cdef struct Often:
    double least, low, high


cdef inline Moments merged(Moments a, Moments b) noexcept nogil:
    """Chan, Golub and LeVeque (1979); a side of no readings adds nothing."""
    cdef double apart = b.total / b.n - a.total / a.n if a.n > 0 and b.n > 0 else 0.0
    cdef double all_of = a.n + b.n
    a.squares = a.squares + b.squares + apart * apart * (a.n * (b.n / (all_of if all_of > 1 else 1.0)))
    a.n = all_of
    a.total = a.total + b.total
    return a


cdef inline Often counted(Often a, Often b) noexcept nogil:
    if b.least < a.least:
        return b
    if a.least < b.least:
        return a
    a.low += b.low
    a.high += b.high
    return a


def squares(
    const int64_t[::1] first, const int64_t[::1] last, const double[::1] n, const double[::1] total,
    const double[::1] squared, const int64_t[::1] windows, int64_t width,
    double[:, ::1] front, double[:, ::1] back, double[:, ::1] out,
):
    """Moments of the rows that cover positions first … last, in each window that begins at one of `windows`.

    No row may cross a block's edge. `front`, `back`: room for every position, a whole number of blocks, (positions, 3);
    `out`: (3, windows): n, total, Σ (x − mean)². Raises ValueError for positions without room.
    """
    cdef int64_t i, positions = front.shape[0], block, begin, at
    cdef Moments* suffix = <Moments*> &front[0, 0]
    cdef Moments* prefix = <Moments*> &back[0, 0]
    cdef Moments row, both
    room(first, last, windows, width, positions, back.shape[0], min(n.shape[0], total.shape[0], squared.shape[0]))
    if front.shape[1] != 3 or back.shape[1] != 3 or out.shape[0] != 3 or out.shape[1] != windows.shape[0]:
        raise ValueError("squares: the arrays have other shapes")
    with nogil:
        for i in range(positions):
            suffix[i] = Moments(0.0, 0.0, 0.0)
            prefix[i] = Moments(0.0, 0.0, 0.0)
        for i in range(first.shape[0]):
            row = Moments(n[i], total[i], squared[i])
            suffix[first[i]] = merged(suffix[first[i]], row)
            prefix[last[i]] = merged(prefix[last[i]], row)
        for block in range(positions // width):
            begin = block * width
            for i in range(1, width):
                prefix[begin + i] = merged(prefix[begin + i - 1], prefix[begin + i])
                at = begin + width - 1 - i
                suffix[at] = merged(suffix[at], suffix[at + 1])
        for i in range(windows.shape[0]):
            at = windows[i]
            both = suffix[at]
            if at % width:
                both = merged(both, prefix[at + width - 1])
            out[0, i], out[1, i], out[2, i] = both.n, both.total, both.squares


def occurrences(
    const int64_t[::1] first, const int64_t[::1] last, const double[::1] least, const double[::1] low,
    const double[::1] high, const int64_t[::1] windows, int64_t width,
    double[:, ::1] front, double[:, ::1] back, double[:, ::1] out,
):
    """The least value of each window and two counts of it, as `squares` has moments; (∞, 0, 0) where there is none.

    Raises ValueError for positions without room.
    """
    cdef int64_t i, positions = front.shape[0], block, begin, at
    cdef Often* suffix = <Often*> &front[0, 0]
    cdef Often* prefix = <Often*> &back[0, 0]
    cdef Often row, both
    room(first, last, windows, width, positions, back.shape[0], min(least.shape[0], low.shape[0], high.shape[0]))
    if front.shape[1] != 3 or back.shape[1] != 3 or out.shape[0] != 3 or out.shape[1] != windows.shape[0]:
        raise ValueError("occurrences: the arrays have other shapes")
    with nogil:
        for i in range(positions):
            suffix[i] = Often(INFINITY, 0.0, 0.0)
            prefix[i] = Often(INFINITY, 0.0, 0.0)
        for i in range(first.shape[0]):
            row = Often(least[i], low[i], high[i])
            suffix[first[i]] = counted(suffix[first[i]], row)
            prefix[last[i]] = counted(prefix[last[i]], row)
        for block in range(positions // width):
            begin = block * width
            for i in range(1, width):
                prefix[begin + i] = counted(prefix[begin + i - 1], prefix[begin + i])
                at = begin + width - 1 - i
                suffix[at] = counted(suffix[at], suffix[at + 1])
        for i in range(windows.shape[0]):
            at = windows[i]
            both = suffix[at]
            if at % width:
                both = counted(both, prefix[at + width - 1])
            out[0, i], out[1, i], out[2, i] = both.least, both.low, both.high


cdef room(
    const int64_t[::1] first, const int64_t[::1] last, const int64_t[::1] windows, int64_t width, int64_t positions,
    int64_t others, int64_t rows
):
    cdef int64_t i, wrong
    wrong = width < 1 or positions < 1 or others != positions or positions % width or first.shape[0] != last.shape[0]
    wrong |= rows < first.shape[0]
    for i in range(first.shape[0] if not wrong else 0):
        wrong |= first[i] < 0 or first[i] >= positions or last[i] < 0 or last[i] >= positions
    for i in range(windows.shape[0] if not wrong else 0):
        wrong |= windows[i] < 0 or windows[i] + width > positions
    if wrong:
        raise ValueError("a row or a window is where there is no room")
