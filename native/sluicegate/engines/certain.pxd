"""Certain intervals in compiled code: sluicegate.bounds and sluicegate.intervals, of counts, sums, means, extremes and ends.

A window is what lies wholly inside and a run of the oldest leaf's newest readings. The same bits as the twin's.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.answers cimport Cut, Output
from sluicegate.engines.program cimport Slot

ctypedef struct Inside:  # sluicegate.bounds.Inside
    int64_t n
    double total  # of x − center
    double low
    double high

ctypedef struct Interval:
    Slot low  # of the kind of the answer: a count is an integer
    Slot high


cdef bint has_interval(int kind) noexcept nogil  # whether `interval` knows the kind
cdef Inside inside_of(const Output* o, const Slot* partial) noexcept nogil  # NULL: nothing
cdef Interval interval(
    const Output* o, Slot value, const Inside* inside, const Slot* leaf, Cut where, double center
) noexcept nogil  # `inside`: without the leaf where the edge cuts it, else with it
cdef Slot clamp(int kind, Slot value, const Interval* within) noexcept nogil
