"""Certain intervals in compiled code: sluicegate.bounds.sums and sluicegate.bounds.intervals, of counts, sums, means, extremes and ends.

A window is what lies wholly inside and a run of the oldest leaf's newest readings. The same bits as the twin's.
"""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport K_MEAN, K_RANGE, K_SUM, Cut, Output
from sluicegate.partials.program cimport Slot

cdef extern from "interval_lanes.h" nogil:
    ctypedef struct Lines "certain_lines":  # three straight lines: each its value at c = 0 and its slope
        double at[3]
        double slope[3]

ctypedef struct Inside:  # sluicegate.bounds.sums.Inside
    int64_t n
    double total  # of x − center
    double low
    double high

ctypedef struct Interval:
    Slot low  # of the kind of the answer: a count is an integer
    Slot high

ctypedef struct Part:  # what the cut bucket may add
    int64_t least
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

ctypedef struct Span:
    double least
    double most

ctypedef struct Corners:
    int n
    double c[8]


cdef inline double lesser(double a, double b) noexcept nogil:
    return b if b < a else a


cdef inline double larger(double a, double b) noexcept nogil:
    return b if b > a else a


cdef inline bint rounds(int kind) noexcept nogil:
    """Whether it is uncertain by rounding where nothing is cut."""
    return kind == K_SUM or kind == K_MEAN or kind == K_RANGE


cdef bint has_interval(int kind) noexcept nogil  # whether `interval` knows the kind
cdef Inside inside_of(const Output* o, const Slot* partial) noexcept nogil  # NULL: nothing
cdef Interval interval(
    const Output* o, Slot value, const Inside* inside, const Slot* leaf, Cut where, double center
) noexcept nogil  # `inside`: without the leaf where the edge cuts it, else with it
cdef Slot clamp(int kind, Slot value, const Interval* within) noexcept nogil

# for other kinds, and for many readings at once

cdef Part nothing() noexcept nogil
cdef Part known_part(const Output* o, const Slot* leaf, Cut where, double center) noexcept nogil
cdef Part cut_part(const Output* o, const Slot* leaf, Cut where, double center) noexcept nogil
cdef Lines pooled(const Part* part, double center, bint above) noexcept nogil
cdef Corners corners_of(const Lines* l, int64_t least, int64_t most) noexcept nogil
cdef double least_of(const Lines* l, const Corners* corners, double slope) noexcept nogil
cdef Span lowest_of(const Output* o, const Part* part, const Slot* leaf, Cut where) noexcept nogil
cdef Span highest_of(const Output* o, const Part* part, const Slot* leaf, Cut where) noexcept nogil
