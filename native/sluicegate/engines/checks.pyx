"""Whether numbers may enter a window: a batch is looked through whole before any reading does; room for its results."""

from cpython cimport array
from libc.math cimport fabs
from libc.stdint cimport int64_t

from sluicegate.reference.core import LARGEST as _LARGEST
from sluicegate.reference.core import LATEST as _LATEST

cdef double MAGNITUDE = _LARGEST
cdef int64_t TIMES = _LATEST


cdef array.array DOUBLES = array.array("d")


def new_column(int64_t readings):
    """Room for a result a reading, not filled: zeros would cost as much as a result."""
    return array.clone(DOUBLES, readings, zero=False)


def first_refused(const double[::1] values not None):
    """Index of the first value that is not finite or whose magnitude exceeds 2^960; −1 where all may enter."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            if not fabs(values[i]) <= MAGNITUDE:
                break
        else:
            i = -1
    return i


def first_not_positive(const double[::1] values not None, int64_t dimensions, int64_t dimension):
    """Index of the first row whose value of this dimension is not greater than 0; −1 where there is none."""
    cdef int64_t i
    with nogil:
        for i in range(values.shape[0] // dimensions):
            if not values[i * dimensions + dimension] > 0.0:
                break
        else:
            i = -1
    return i


def first_late(const int64_t[::1] times not None):
    """Index of the first time beyond ±2^61 µs; −1 where all may enter."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(times.shape[0]):
            if not -TIMES <= times[i] <= TIMES:
                break
        else:
            i = -1
    return i
