"""Answers, and certain intervals, after each reading of a run that joins the newest bucket, without touching the tree for each.

While readings join, nothing but the newest bucket and the oldest one's cut changes: what stands between them is looked at
once a run. The same bits as one reading after the other; the twin knows only that.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.amta cimport Amta
from sluicegate.answers.results cimport Cut, Output
from sluicegate.core.bounding cimport Around, Bounding

ctypedef struct Newest:  # one aggregate's view of the newest bucket before a run
    double total  # of x − center
    double low
    double high


cdef class Answering(Bounding):
    cdef bint swift  # each aggregate's answer follows from what stands around the newest bucket
    cdef bint sharp  # each aggregate's interval is known in compiled code
    cdef Newest* opened  # one an aggregate
    cdef bint small  # readings may be taken by small.take_small
    cdef Amta forest  # the engine then

    cdef int room_for_runs(self) except -1
    cdef int64_t answer_run(
        self, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
    ) noexcept nogil
    cdef bint look_around(self, Around* a) noexcept nogil
    cdef void answer_now(self, double** out, int64_t row, bint bounds) noexcept nogil
    cdef void lower_run(self, const Around* a, double** out, int64_t row, bint bounds) noexcept nogil
    cdef void follow(self, int k, const Around* a, bint extremes) noexcept nogil
    cdef int64_t uncut(self, const Around* a) noexcept nogil
    cdef void lower_sums(self, int k, const Around* a, double* out) noexcept nogil
    cdef void lower_cut(
        self, int k, const Around* a, double* out, int whole, double base, double inside
    ) noexcept nogil
    cdef double whole_answer(self, const Output* o, const Around* a, int64_t i) noexcept nogil
    cdef double cut_answer(self, const Output* o, const Around* a, int64_t i, Cut where) noexcept nogil
    cdef double cut_low(self, const Output* o, const Around* a, int64_t i, Cut where) noexcept nogil
    cdef double cut_high(self, const Output* o, const Around* a, int64_t i, Cut where) noexcept nogil
    cdef int64_t readings(self, const Around* a, int64_t i) noexcept nogil
    cdef double spread(self, const Output* o, const Around* a, int64_t i) noexcept nogil
    cdef double last_value(self, const Output* o, const Around* a, int64_t i) noexcept nogil
    cdef void lower_others(self, int k, const Around* a, double* out) noexcept nogil
    cdef void answer_full(self, double** out, int64_t row, bint bounds) noexcept nogil
