"""Answers, and certain intervals, after each reading of a run that joins the newest bucket, without touching the tree for each.

While readings join, nothing but the newest bucket and the oldest one's cut changes: what stands between them is looked at
once a run. The same bits as one reading after the other; the twin knows only that.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.amta cimport Amta
from sluicegate.engines.answers cimport Cut, Output
from sluicegate.engines.bucketing cimport Bucketing
from sluicegate.engines.program cimport Slot

ctypedef struct Newest:  # one aggregate's view of the newest bucket before a run
    double total  # of x − center
    double low
    double high

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


cdef class Answering(Bucketing):
    cdef bint swift  # each aggregate's answer follows from what stands around the newest bucket
    cdef bint sharp  # each aggregate's interval is known in compiled code
    cdef Newest* opened  # one an aggregate
    cdef bint small  # readings may be taken by small.take_small
    cdef Amta forest  # the engine then
    cdef double* lows  # after each reading of a run
    cdef double* highs
    cdef double* below  # room for their intervals
    cdef double* above

    cdef int room_for_runs(self) except -1
    cdef int64_t answer_run(
        self, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
    ) noexcept nogil
    cdef bint look_around(self, Around* a) noexcept nogil
    cdef void answer_now(self, double** out, int64_t row, bint bounds) noexcept nogil
    cdef void lower_run(self, const Around* a, double** out, int64_t row, bint bounds) noexcept nogil
    cdef void follow(self, int k, const Around* a, bint extremes) noexcept nogil
    cdef Cut cut_at(self, const Around* a, int64_t i, int64_t* newest) noexcept nogil
    cdef int64_t uncut(self, const Around* a) noexcept nogil
    cdef void lower_sums(self, int k, const Around* a, double* out) noexcept nogil
    cdef void lower_cut(
        self, int k, const Around* a, double* out, int whole, double base, double inside
    ) noexcept nogil
    cdef double whole_answer(self, const Output* o, const Around* a, int64_t i) noexcept nogil
    cdef double cut_answer(self, const Output* o, const Around* a, int64_t i, Cut where) noexcept nogil
    cdef int64_t readings(self, const Around* a, int64_t i) noexcept nogil
    cdef double spread(self, const Output* o, const Around* a, int64_t i) noexcept nogil
    cdef double last_value(self, const Output* o, const Around* a, int64_t i) noexcept nogil
    cdef void lower_others(self, int k, const Around* a, double* out) noexcept nogil
    cdef void bound_run(self, int k, const Around* a, double* out, double* low, double* high) noexcept nogil
    cdef int64_t stretch(
        self, const Output* o, const Around* a, int64_t i, int64_t most, int64_t* newest
    ) noexcept nogil
    cdef bint falls(self, const Around* a, int64_t i) noexcept nogil
    cdef int64_t falls_from(self, const Around* a) noexcept nogil
    cdef int64_t stretch_by_time(self, const Around* a, int64_t i, int64_t* newest) noexcept nogil
    cdef void bound_each(self, int k, const Around* a, double* out, double* low, double* high) noexcept nogil
    cdef void answer_full(self, double** out, int64_t row, bint bounds) noexcept nogil
