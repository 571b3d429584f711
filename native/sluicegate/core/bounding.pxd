"""Certain intervals after each reading of a run that joins the newest bucket: what stands around it, and where the edge cuts.

Readings between which the cut stays, or gives up one with each, have theirs taken together; see stretches.pxd.
"""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport K_STD, K_VARIANCE, Cut, Output, is_whole
from sluicegate.core.bucketing cimport Bucketing
from sluicegate.answers.intervals cimport Interval
from sluicegate.partials.program cimport H_COUNT, Slot, greatest, least

ctypedef struct Around:  # what a run leaves as it is
    const Slot* left  # total = left ⊕ (base ⊕ newest), rest = top ⊕ (base ⊕ newest); see Engine.around
    const Slot* top
    const Slot* base
    const Slot* leaf  # the oldest bucket
    const double* values  # NULL: the newest bucket as it is, after a reading that opened it or came alone
    const int64_t* times
    int64_t n
    int64_t before  # readings taken before the run
    int64_t held  # of the newest bucket then
    int64_t edge
    int64_t newest  # time, before the run


cdef class Bounding(Bucketing):
    cdef double* lows  # after each reading of a run
    cdef double* highs
    cdef double* below  # room for their intervals
    cdef double* above

    cdef Cut cut_at(self, const Around* a, int64_t i, int64_t* newest) noexcept nogil
    cdef void bound_run(self, int k, const Around* a, double* out, double* low, double* high) noexcept nogil
    cdef int64_t stretch(
        self, const Output* o, const Around* a, int64_t i, int64_t most, int64_t* newest
    ) noexcept nogil
    cdef bint falls(self, const Around* a, int64_t i) noexcept nogil
    cdef int64_t falls_from(self, const Around* a) noexcept nogil
    cdef int64_t stretch_by_time(self, const Around* a, int64_t i, int64_t* newest) noexcept nogil
    cdef void bound_each(self, int k, const Around* a, double* out, double* low, double* high) noexcept nogil
    cdef Interval interval_of(self, const Output* o, Slot value, const Slot* outer, const Slot* leaf, Cut where) noexcept nogil


cdef inline bint is_spread(int kind) noexcept nogil:
    return kind == K_VARIANCE or kind == K_STD


cdef inline void put(int kind, Slot value, const Interval* found, double* out, double* low, double* high) noexcept nogil:
    if is_whole(kind):
        out[0], low[0], high[0] = <double> value.i, <double> found.low.i, <double> found.high.i
    else:
        out[0], low[0], high[0] = value.f, found.low.f, found.high.f


cdef inline double sum_beside(const Output* o, const Slot* outer, const Slot* base, double newest) noexcept nogil:
    """outer + (base + newest); −0.0 adds nothing, not even a sign."""
    return (-0.0 if outer == NULL else outer[o.prefix].f) + ((-0.0 if base == NULL else base[o.prefix].f) + newest)


cdef inline double beside_low(const Output* o, const Slot* base, double newest) noexcept nogil:
    return newest if base == NULL else least(base[o.low].f, newest)


cdef inline double beside_high(const Output* o, const Slot* base, double newest) noexcept nogil:
    return newest if base == NULL else greatest(base[o.high].f, newest)
