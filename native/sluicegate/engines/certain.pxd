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

ctypedef struct Stretch:  # readings of a run between which the cut's count stays, or falls by one with each
    int64_t n
    bint falls
    bint whole  # the edge cuts nothing
    Cut where  # at the first of them
    int64_t inside  # readings without the leaf's, or with them where it is whole, after the first
    double center
    const Slot* leaf
    const Slot* outer  # what is inside is outer ⊕ (base ⊕ the newest bucket); NULL: nothing
    const Slot* base
    const double* totals  # of the newest bucket after each reading
    double* lows  # the same; `intervals` changes them
    double* highs
    double* below  # room for n
    double* above


cdef bint has_interval(int kind) noexcept nogil  # whether `interval` knows the kind
cdef Inside inside_of(const Output* o, const Slot* partial) noexcept nogil  # NULL: nothing
cdef Interval interval(
    const Output* o, Slot value, const Inside* inside, const Slot* leaf, Cut where, double center
) noexcept nogil  # `inside`: without the leaf where the edge cuts it, else with it
cdef Slot clamp(int kind, Slot value, const Interval* within) noexcept nogil
cdef int64_t alike(const Output* o, const Slot* leaf, int64_t c) noexcept nogil
cdef void intervals(const Output* o, const Stretch* s, double* value, double* low, double* high) noexcept nogil  # and clamps
