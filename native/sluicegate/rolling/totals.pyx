"""A window's total after each reading; see totals.pxd.

The array is cut into blocks where a window begins to lie behind the block before: a total is what is left of the block
before (a suffix, folded once from its end) and what came since (a prefix). So a reading takes three combinations,
whatever the window.
What is older comes first in every combination: extremes are those of single readings to the bit, sums within rounding.
"""

from libc.math cimport INFINITY

from sluicegate.partials.kernels cimport ADD, GREATEST, LEAST, MERGE, Add, Greatest, Least

ctypedef fused Operator:
    Add
    Least
    Greatest

cdef Add add_op
cdef Least least_op
cdef Greatest greatest_op


cdef bint roll(
    int operator, const double* x, const int64_t* starts, int64_t first, int64_t n, Rolling* r, double* totals
) noexcept nogil:
    """Totals of the windows starts[i] … first + i, i < n, which go on from those before. False: no such operator.

    Totals of moments are three numbers.
    """
    if operator == ADD:
        roll_by(add_op, x, starts, first, n, r, totals)
    elif operator == LEAST:
        roll_by(least_op, x, starts, first, n, r, totals)
    elif operator == GREATEST:
        roll_by(greatest_op, x, starts, first, n, r, totals)
    elif operator == MERGE:
        roll_moments(x, starts, first, n, r, totals)
    else:
        return False
    return True


cdef void roll_by(
    Operator op, const double* x, const int64_t* starts, int64_t first, int64_t n, Rolling* r, double* totals
) noexcept nogil:
    cdef int64_t block = r.block, i
    cdef double back = r.back
    cdef double* front = r.front - r.begin
    for i in range(n):
        if starts[i] > block:
            r.begin, block, back = starts[i], first + i, neutral(op)
            front = r.front - starts[i]
            fold_front(op, x, starts[i], block, front)
        back = combined(op, back, x[first + i])
        totals[i] = combined(op, front[starts[i]], back)
    r.block, r.back = block, back


cdef inline void fold_front(Operator op, const double* x, int64_t begin, int64_t end, double* front) noexcept nogil:
    """front[i] is the total of readings i … end − 1."""
    cdef double total = neutral(op)
    front[end] = total
    while end > begin:
        end -= 1
        total = combined(op, x[end], total)
        front[end] = total


cdef inline double neutral(Operator op) noexcept nogil:
    if Operator is Add:
        return 0.0
    elif Operator is Least:
        return INFINITY
    else:
        return -INFINITY


cdef inline double combined(Operator op, double a, double b) noexcept nogil:
    if Operator is Add:
        return a + b
    elif Operator is Least:
        return b if b < a else a
    else:
        return b if b > a else a


# count, mean and squared deviations: Chan, Golub & LeVeque's merge, with counts that are known without the readings

cdef void roll_moments(
    const double* x, const int64_t* starts, int64_t first, int64_t n, Rolling* r, double* totals
) noexcept nogil:
    cdef int64_t block = r.block, i
    cdef double mean = r.back, squares = r.squares, older, newer, delta, share
    cdef double* front = r.front - 3 * r.begin
    cdef const double* back
    for i in range(n):
        if starts[i] > block:
            r.begin, block, mean, squares = starts[i], first + i, 0.0, 0.0
            front = r.front - 3 * starts[i]
            fold_moments(x, starts[i], block, front)
        older, newer, back = block - starts[i], first + i + 1 - block, front + 3 * starts[i]
        add_reading(&mean, &squares, x[first + i], newer)
        delta, share = mean - back[1], newer / (older + newer)
        totals[3 * i], totals[3 * i + 1] = older + newer, back[1] + delta * share
        totals[3 * i + 2] = back[2] + squares + delta * older * share * delta  # so that 0 readings add 0, never NaN
    r.block, r.back, r.squares = block, mean, squares


cdef inline void fold_moments(const double* x, int64_t begin, int64_t end, double* front) noexcept nogil:
    """front[3i + 1] and front[3i + 2] are mean and squared deviations of readings i … end − 1."""
    cdef double mean = 0.0, squares = 0.0
    cdef int64_t i = end
    front[3 * end + 1] = front[3 * end + 2] = 0.0
    while i > begin:
        i -= 1
        add_reading(&mean, &squares, x[i], end - i)
        front[3 * i + 1], front[3 * i + 2] = mean, squares


cdef inline void add_reading(double* mean, double* squares, double x, double count) noexcept nogil:
    """Welford's step to so many readings."""
    cdef double delta = x - mean[0], step = delta * (1.0 / count)
    mean[0] += step
    squares[0] += delta * (delta - step)
