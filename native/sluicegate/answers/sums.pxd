"""The error algebra of sums in compiled code: its twin is tests/native/bounds/error_algebra.py.

A window is what lies wholly inside and a run of its oldest bucket's newest readings. For a geometric mean all values
are logarithms.
"""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport Output, View
from sluicegate.partials.program cimport Slot

ctypedef struct Ends:
    double low
    double high

ctypedef struct Lines:  # three straight lines: each its value at c = 0 and its slope
    double at[3]
    double slope[3]

ctypedef struct Corners:  # counts between which a bound is monotone
    int n
    double c[8]

ctypedef struct Inside:  # the buckets wholly inside
    int64_t n
    double total  # of x − center
    double low
    double high

ctypedef struct Part:  # what the cut bucket may add
    int64_t least  # readings
    int64_t most
    double sum_low
    double sum_high
    double raw_low  # of x, not of x − center
    double raw_high
    double n_in
    double s_in
    double n_any
    double s_any
    double low
    double high
    double min_high
    double max_low
    int64_t size
    double magnitude


cdef inline bint fixed(const Part* p) noexcept nogil:
    """Whether the part adds known readings and no others."""
    return p.least == p.most and (p.least == p.n_in or p.least == p.n_any)


cdef Inside inside_of(const Output* o, const Slot* partial) noexcept nogil  # NULL: nothing
cdef Part part_of(const Output* o, const View* v, double center) noexcept nogil
cdef Lines lines_of(const Part* part, double center, bint above) noexcept nogil
cdef Ends sum_interval(const Inside* inside, const Part* part, double center) noexcept nogil
cdef Ends mean_interval(const Inside* inside, const Part* part, double center) noexcept nogil
