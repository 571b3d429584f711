"""Columns of numbers out of a list of parsed objects, for which a Python loop would take most of a message's time.

Its definition is tests/native/format/items_twin.py.
"""
from cpython.array cimport array, clone
from cpython.dict cimport PyDict_CheckExact, PyDict_GetItem
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLong, PyLong_CheckExact
from cpython.object cimport PyObject
from libc.math cimport fabs, isfinite, rint
from libc.stdint cimport int64_t

from array import array as _array

cdef extern from *:
    bint mul_overflows "__builtin_mul_overflow"(int64_t, int64_t, int64_t*) noexcept nogil
cdef extern from "Python.h":
    double PyLong_AsDouble(object) except? -1.0

cdef int64_t _WHOLE = 1LL << 61  # no time is beyond it
cdef array _INTS = _array("q")
cdef array _FLOATS = _array("d")


cdef double number_at(object item, object key) except? -1.0:
    """What an object has under a key, as a finite double. Raises TypeError, OverflowError."""
    return number_of(part_of(item, key))


cdef object part_of(object item, object key):
    """What an object has under a key. Raises TypeError."""
    cdef PyObject* found = PyDict_GetItem(item, key) if PyDict_CheckExact(item) else NULL
    if found == NULL:
        raise TypeError("missing")
    return <object> found


cdef double number_of(object raw) except? -1.0:
    """A finite double. Raises TypeError, OverflowError."""
    cdef double value
    if PyFloat_CheckExact(raw):
        value = PyFloat_AS_DOUBLE(raw)
    elif PyLong_CheckExact(raw):
        value = PyLong_AsDouble(raw)
    else:
        raise TypeError("not a number")
    if not isfinite(value):
        raise OverflowError("not finite")
    return value


cdef int64_t time_at(object item, object key, int64_t scale, int64_t earliest, int64_t latest) except? -1:
    """What an object has under a key, times `scale`. Raises TypeError, OverflowError."""
    cdef object raw = part_of(item, key)
    cdef int64_t whole
    cdef double scaled
    if PyLong_CheckExact(raw):
        if mul_overflows(PyLong_AsLongLong(raw), scale, &whole):
            raise OverflowError("outside the range of times")
    else:
        scaled = rint(number_of(raw) * <double> scale)
        if not fabs(scaled) <= <double> _WHOLE:
            raise OverflowError("outside the range of times")
        whole = <int64_t> scaled
    if not earliest <= whole <= latest:
        raise OverflowError("outside the range of times")
    return whole


def columns(list items, time, int64_t scale, int64_t earliest, int64_t latest, tuple keys):
    """Times and one column of values a key, then the latest time and the greatest magnitude; None for other items.

    Each item is an object that has a finite number under `time` (none is asked for: None, and no times) and under each
    key. Times are rounded to even after `scale`, and lie in `earliest` … `latest`.
    """
    cdef Py_ssize_t at, count = len(items)
    cdef array times = clone(_INTS, count if time is not None else 0, False), column
    cdef int64_t newest = earliest
    cdef double value, largest = 0.0
    found = []
    try:
        for at in range(count if time is not None else 0):
            times.data.as_longlongs[at] = time_at(items[at], time, scale, earliest, latest)
            newest = max(newest, times.data.as_longlongs[at])
        for key in keys:
            column = clone(_FLOATS, count, False)
            for at in range(count):
                value = number_at(items[at], key)
                column.data.as_doubles[at] = value
                largest = max(largest, fabs(value))
            found.append(column)
    except (TypeError, OverflowError):
        return None
    return times, found, newest, largest


def run_length(list items, sequence, int64_t first, epoch, named):
    """How many items, from the first on, are objects whose number under `sequence` is `first`, then one more each.

    They have `named` under `epoch`, where that is a key.
    """
    cdef Py_ssize_t at = 0, count = len(items)
    try:
        while at < count and int64_at(items[at], sequence) == first + at:
            if epoch is not None and not is_at(items[at], epoch, named):
                break
            at += 1
    except (TypeError, OverflowError):
        pass
    return at


cdef bint is_at(object item, object key, object named) except -1:
    """Whether an object has this under a key."""
    cdef PyObject* found = PyDict_GetItem(item, key)
    return found != NULL and type(<object> found) is type(named) and <object> found == named


cdef int64_t int64_at(object item, object key) except? -1:
    """What an object has under a key, as a whole number. Raises TypeError, OverflowError."""
    cdef PyObject* found = PyDict_GetItem(item, key) if PyDict_CheckExact(item) else NULL
    if found == NULL or not PyLong_CheckExact(<object> found):
        raise TypeError("not a whole number")
    return PyLong_AsLongLong(<object> found)
