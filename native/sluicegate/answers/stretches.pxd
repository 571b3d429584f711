"""Certain intervals of many readings at once: of those of a run between which the cut stays, or gives up one with each.

The same bits as `certain.interval` for each of them.
"""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport Cut, Output
from sluicegate.partials.program cimport Slot

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


cdef int64_t alike(const Output* o, const Slot* leaf, int64_t c) noexcept nogil
cdef void intervals(const Output* o, const Stretch* s, double* value, double* low, double* high) noexcept nogil  # and clamps
