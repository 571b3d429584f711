"""A window's total after each reading; see totals.pxd.

The array is cut into blocks where a window begins to lie behind the block before: a total is what is left of the block before (a
suffix, folded once from its end) and what came since (a prefix). So a reading takes three combinations, whatever the window.
What is older comes first in every combination: extremes are those of single readings to the bit, sums within rounding.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

from sluicegate.partials.kernels cimport ADD, GREATEST, LEAST, Add, Greatest, Least

ctypedef fused Operator:
    Add
    Least
    Greatest

cdef Add add_op
cdef Least least_op
cdef Greatest greatest_op


cdef bint roll(
    int operator, const double* x, const int64_t* starts, int64_t first, int64_t n, double* front, double* totals
) noexcept nogil:
    """Totals of the windows starts[i] … first + i, i < n; `front` has room beside x, up to place first + n. False: no such operator."""
    if operator == ADD:
        roll_by(add_op, x, starts, first, n, front, totals)
    elif operator == LEAST:
        roll_by(least_op, x, starts, first, n, front, totals)
    elif operator == GREATEST:
        roll_by(greatest_op, x, starts, first, n, front, totals)
    else:
        return False
    return True


cdef void roll_by(
    Operator op, const double* x, const int64_t* starts, int64_t first, int64_t n, double* front, double* totals
) noexcept nogil:
    cdef int64_t block = first, i
    cdef double back = neutral(op)
    fold_front(op, x, starts[0] if starts[0] < first else first, first, front)
    for i in range(n):
        if starts[i] > block:
            block = first + i
            fold_front(op, x, starts[i], block, front)
            back = neutral(op)
        back = combined(op, back, x[first + i])
        totals[i] = combined(op, front[starts[i]], back)


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
