# The contract of the compiled bucket: the record of docs/reference/format.md as a C struct, and what folds into it.
cimport cython
from cpython.array cimport array
from libc.stdint cimport int64_t


cdef struct Extreme:
    double value
    int64_t t_first
    int64_t t_last
    int64_t o_first
    int64_t o_last
    int64_t count  # occurrences; -1: not known
    double pre  # the extreme of what stands before its first and after its last occurrence; NaN: not known
    double suf


cdef struct Record:
    int64_t first
    int64_t n
    int64_t t_first
    int64_t t_last
    double total
    double pre_low
    double pre_high
    Extreme low
    Extreme high
    double x_first
    double x_last
    int64_t gap
    int64_t flags
    double m2
    double log_total
    double log_pre_low
    double log_pre_high
    int64_t doubt


@cython.final
cdef class Builder:
    cdef readonly double center
    cdef readonly int64_t next  # the ordinal of the reading that comes next
    cdef double log_center
    cdef int64_t latest
    cdef bint seen
    cdef Record r  # the open bucket; r.n is 0 where there is none
    cdef int put(self, double value, int64_t time, int64_t gap, int64_t doubt) except -1
    cdef int fold_whole(self, const Record* like, array times, array values, Py_ssize_t begin) except -1
    cdef bint folds(self, const Record* like, array times, array values, Py_ssize_t begin, bytes packed) except -1
