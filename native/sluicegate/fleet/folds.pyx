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

ctypedef fused Number:
    double
    int64_t


cdef inline Number picked(Number a, Number b, int how) noexcept nogil:
    """As NumPy has it: NaN where one is."""
    if how == SUM:
        return a + b
    if Number is double:
        if isnan(a):
            return a
    if how == LOWER:
        return a if a < b else b
    return a if a > b else b


cdef inline void slid(
    const int64_t* first, const int64_t* last, const Number* values, int64_t rows, const int64_t* windows,
    int64_t size, int64_t width, int64_t positions, Number neutral, int how, Number* suffix, Number* prefix, Number* out
) noexcept nogil:
    cdef int64_t i, begin = 0, at
    for i in range(positions):
        suffix[i] = prefix[i] = neutral
    for i in range(rows):
        suffix[first[i]] = picked(suffix[first[i]], values[i], how)
        prefix[last[i]] = picked(prefix[last[i]], values[i], how)
    while begin < positions:
        for i in range(1, width):
            prefix[begin + i] = picked(prefix[begin + i - 1], prefix[begin + i], how)
            at = begin + width - 1 - i
            suffix[at] = picked(suffix[at + 1], suffix[at], how)
        begin += width
    for i in range(size):
        at = windows[i]
        out[i] = picked(suffix[at], prefix[at + width - 1], how) if at % width else suffix[at]


def numbers(
    const int64_t[::1] first, const int64_t[::1] last, const Number[::1] values, const int64_t[::1] windows,
    int64_t width, Number neutral, int how, Number[::1] front, Number[::1] back, Number[::1] out,
):
    """ADD, LEAST or GREATEST (`how`) over the values of rows in each window, as `squares` has moments.

    `neutral` where there is none. Raises ValueError for positions without room.
    """
    cdef int64_t rows = first.shape[0], size = windows.shape[0], positions = front.shape[0]
    room(first, last, windows, width, positions, back.shape[0], values.shape[0])
    if out.shape[0] != size or not SUM <= how <= UPPER:
        raise ValueError("folds: the arrays have other shapes")
    if size == 0 or rows == 0:
        for i in range(size):
            out[i] = neutral
        return
    with nogil:
        if how == SUM:
            slid(&first[0], &last[0], &values[0], rows, &windows[0], size, width, positions, neutral, SUM,
                 &front[0], &back[0], &out[0])
        elif how == LOWER:
            slid(&first[0], &last[0], &values[0], rows, &windows[0], size, width, positions, neutral, LOWER,
                 &front[0], &back[0], &out[0])
        else:
            slid(&first[0], &last[0], &values[0], rows, &windows[0], size, width, positions, neutral, UPPER,
                 &front[0], &back[0], &out[0])


cdef struct Moments:
    double n, total, squares


cdef struct Often:
    double least, low, high


ctypedef fused Row:
    Moments
    Often


cdef inline Row joined(Row a, Row b) noexcept nogil:
    """Moments after Chan, Golub and LeVeque (1979), where a side of no readings adds nothing; counts of the less."""
    cdef double apart, all_of
    if Row is Moments:
        apart, all_of = b.total / b.n - a.total / a.n if a.n > 0 and b.n > 0 else 0.0, a.n + b.n
        a.squares = a.squares + b.squares + apart * apart * (a.n * (b.n / (all_of if all_of > 1 else 1.0)))
        a.n = all_of
        a.total = a.total + b.total
    elif b.least < a.least:
        return b
    elif not a.least < b.least:
        a.low += b.low
        a.high += b.high
    return a


cdef fold(
    Row nothing, const int64_t[::1] first, const int64_t[::1] last, const double[::1] a, const double[::1] b,
    const double[::1] c, const int64_t[::1] windows, int64_t width,
    double[:, ::1] front, double[:, ::1] back, double[:, ::1] out,
):
    """The rows of three columns that cover positions first … last, joined in each window."""
    cdef int64_t i, positions = front.shape[0], block, begin, at
    cdef Row* suffix = <Row*> &front[0, 0]
    cdef Row* prefix = <Row*> &back[0, 0]
    cdef Row row = nothing
    cdef double* number = <double*> &row
    room(first, last, windows, width, positions, back.shape[0], min(a.shape[0], b.shape[0], c.shape[0]))
    if front.shape[1] != 3 or back.shape[1] != 3 or out.shape[0] != 3 or out.shape[1] != windows.shape[0]:
        raise ValueError("folds: the arrays have other shapes")
    with nogil:
        for i in range(positions):
            suffix[i] = prefix[i] = nothing
        for i in range(first.shape[0]):
            number[0], number[1], number[2] = a[i], b[i], c[i]
            suffix[first[i]] = joined(suffix[first[i]], row)
            prefix[last[i]] = joined(prefix[last[i]], row)
        for block in range(positions // width):
            begin = block * width
            for i in range(1, width):
                prefix[begin + i] = joined(prefix[begin + i - 1], prefix[begin + i])
                at = begin + width - 1 - i
                suffix[at] = joined(suffix[at], suffix[at + 1])
        for i in range(windows.shape[0]):
            at = windows[i]
            row = joined(suffix[at], prefix[at + width - 1]) if at % width else suffix[at]
            out[0, i], out[1, i], out[2, i] = number[0], number[1], number[2]


def squares(
    const int64_t[::1] first, const int64_t[::1] last, const double[::1] n, const double[::1] total,
    const double[::1] squared, const int64_t[::1] windows, int64_t width,
    double[:, ::1] front, double[:, ::1] back, double[:, ::1] out,
):
    """Moments of the rows that cover positions first … last, in each window that begins at one of `windows`.

    No row may cross a block's edge. `front`, `back`: room for every position, a whole number of blocks, (positions, 3);
    `out`: (3, windows): n, total, Σ (x − mean)². Raises ValueError for positions without room.
    """
    fold(Moments(0.0, 0.0, 0.0), first, last, n, total, squared, windows, width, front, back, out)


def occurrences(
    const int64_t[::1] first, const int64_t[::1] last, const double[::1] least, const double[::1] low,
    const double[::1] high, const int64_t[::1] windows, int64_t width,
    double[:, ::1] front, double[:, ::1] back, double[:, ::1] out,
):
    """The least value of each window and two counts of it, as `squares` has moments; (∞, 0, 0) where there is none.

    Raises ValueError for positions without room.
    """
    fold(Often(INFINITY, 0.0, 0.0), first, last, least, low, high, windows, width, front, back, out)


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
