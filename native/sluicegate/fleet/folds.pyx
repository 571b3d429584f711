"""Folds over blocks of positions: sums, extremes, moments, and how often an extreme occurs.

van Herk's blocks, as in `sluicegate_cloud.sliding`, whose `fold`, `fold_squares` and `fold_occurrences` are the twins:
a window of `width` positions is a suffix of one block and a prefix of the next.
"""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport int64_t

#: What `numbers` does with two values.
ADD, LEAST, GREATEST = 0, 1, 2

cdef enum:
    SUM = 0
    LOWER = 1
    UPPER = 2


cdef struct Moments:
    double n, total, squares


cdef struct Often:
    double least, low, high


ctypedef fused Number:
    double
    int64_t

ctypedef fused Row:
    double
    int64_t
    Moments
    Often


cdef inline Row joined(Row a, Row b, int how) noexcept nogil:
    """Numbers as NumPy has it, NaN where one is; moments after Chan, Golub and LeVeque (1979), where a side of no
    readings adds nothing; counts of the less."""
    cdef double apart, all_of
    if Row is Moments:
        apart, all_of = b.total / b.n - a.total / a.n if a.n > 0 and b.n > 0 else 0.0, a.n + b.n
        a.squares = a.squares + b.squares + apart * apart * (a.n * (b.n / (all_of if all_of > 1 else 1.0)))
        a.n = all_of
        a.total = a.total + b.total
        return a
    elif Row is Often:
        if b.least < a.least:
            return b
        if not a.least < b.least:
            a.low += b.low
            a.high += b.high
        return a
    else:
        if how == SUM:
            return a + b
        if Row is double:
            if isnan(a):
                return a
        if how == LOWER:
            return a if a < b else b
        return a if a > b else b


cdef void slide(
    const int64_t[::1] first, const int64_t[::1] last, const Row* rows, const int64_t[::1] windows, int64_t width,
    int64_t positions, Row nothing, int how, Row* suffix, Row* prefix, Row* out
) noexcept nogil:
    """The rows that cover positions first … last, joined in each window."""
    cdef int64_t i, begin = 0, at
    for i in range(positions):
        suffix[i] = prefix[i] = nothing
    for i in range(first.shape[0]):
        suffix[first[i]] = joined(suffix[first[i]], rows[i], how)
        prefix[last[i]] = joined(prefix[last[i]], rows[i], how)
    while begin < positions:
        for i in range(1, width):
            prefix[begin + i] = joined(prefix[begin + i - 1], prefix[begin + i], how)
            at = begin + width - 1 - i
            suffix[at] = joined(suffix[at], suffix[at + 1], how)
        begin += width
    for i in range(windows.shape[0]):
        at = windows[i]
        out[i] = joined(suffix[at], prefix[at + width - 1], how) if at % width else suffix[at]


def numbers(
    const int64_t[::1] first, const int64_t[::1] last, const Number[::1] values, const int64_t[::1] windows,
    int64_t width, Number neutral, int how, Number[:, ::1] room, Number[::1] out,
):
    """ADD, LEAST or GREATEST (`how`) over the values of rows in each window, as `squares` has moments.

    `neutral` where there is none. Raises ValueError for positions without room.
    """
    check(first, last, windows, width, room.shape[0], room.shape[1], values.shape[0])
    if out.shape[0] != windows.shape[0] or not SUM <= how <= UPPER:
        raise ValueError("folds: the arrays have other shapes")
    if out.shape[0]:
        with nogil:
            slide(first, last, &values[0] if values.shape[0] else NULL, windows, width, room.shape[1], neutral, how,
                  &room[0, 0], &room[1, 0], &out[0])


def squares(
    const int64_t[::1] first, const int64_t[::1] last, const double[:, ::1] rows, const int64_t[::1] windows,
    int64_t width, double[:, :, ::1] room, double[:, ::1] out,
):
    """Moments of the rows that cover positions first … last, in each window that begins at one of `windows`.

    A row: n, total, Σ (x − mean)²; none may cross a block's edge. `room`: for every position, a whole number of blocks,
    (2, positions, 3); `out`: (windows, 3). Raises ValueError for positions without room.
    """
    slide_rows(Moments(0.0, 0.0, 0.0), first, last, rows, windows, width, room, out)


def occurrences(
    const int64_t[::1] first, const int64_t[::1] last, const double[:, ::1] rows, const int64_t[::1] windows,
    int64_t width, double[:, :, ::1] room, double[:, ::1] out,
):
    """The least value of each window and two counts of it, as `squares` has moments; (∞, 0, 0) where there is none.

    Raises ValueError for positions without room.
    """
    slide_rows(Often(INFINITY, 0.0, 0.0), first, last, rows, windows, width, room, out)


ctypedef fused Wide:
    Moments
    Often


cdef slide_rows(
    Wide nothing, const int64_t[::1] first, const int64_t[::1] last, const double[:, ::1] rows,
    const int64_t[::1] windows, int64_t width, double[:, :, ::1] room, double[:, ::1] out,
):
    check(first, last, windows, width, room.shape[0], room.shape[1], rows.shape[0])
    if rows.shape[1] != 3 or room.shape[2] != 3 or out.shape[1] != 3 or out.shape[0] != windows.shape[0]:
        raise ValueError("folds: the arrays have other shapes")
    if out.shape[0]:
        with nogil:
            slide(first, last, <const Wide*> &rows[0, 0] if rows.shape[0] else NULL, windows, width, room.shape[1],
                  nothing, SUM, <Wide*> &room[0, 0, 0], <Wide*> &room[1, 0, 0], <Wide*> &out[0, 0])


cdef check(
    const int64_t[::1] first, const int64_t[::1] last, const int64_t[::1] windows, int64_t width, int64_t rooms,
    int64_t positions, int64_t rows
):
    cdef int64_t i, wrong
    wrong = width < 1 or positions < 1 or rooms != 2 or positions % width or first.shape[0] != last.shape[0]
    wrong |= rows < first.shape[0]
    for i in range(first.shape[0] if not wrong else 0):
        wrong |= first[i] < 0 or first[i] >= positions or last[i] < 0 or last[i] >= positions
    for i in range(windows.shape[0] if not wrong else 0):
        wrong |= windows[i] < 0 or windows[i] + width > positions
    if wrong:
        raise ValueError("a row or a window is where there is no room")
