"""Buckets: which reading joins the newest and which opens one, runs of those that join, level eviction and the merging of pairs."""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.core.staging cimport Staging

cdef enum:
    MOST_RUN = 1024  # readings folded at once: they stay in the processor's first cache


cdef class Bucketing(Staging):
    cdef Slot* open_leaf  # the newest leaf, while a reading is placed
    cdef double* totals  # room for a run's sums of the first dimension, after each reading; NULL: not asked for

    cdef int place(self, const double* values, int64_t time) except -1 nogil
    cdef void lift_reading(self, const double* values, int64_t time) noexcept nogil
    cdef void join(self, const double* values, int64_t time) noexcept nogil
    cdef bint joins(self, const double* values, int64_t time) noexcept nogil
    cdef bint hides(self, const double* values, const Slot* newest) noexcept nogil
    cdef int64_t counted(self, const Slot* newest) noexcept nogil
    cdef bint forced(self, bint late, const Slot* newest) noexcept nogil
    cdef void refresh_rules(self) noexcept nogil
    cdef void carry_sample(self) noexcept nogil
    cdef bint coarse(self) noexcept nogil
    cdef int make_room(self) except -1 nogil
    cdef int evict_level(self) except -1 nogil
    cdef int64_t join_run(self, const double* values, const int64_t* times, int64_t count) noexcept nogil
    cdef int64_t sum_run(self, const double* values, const int64_t* times, int64_t most) noexcept nogil
    cdef int64_t scan_run(self, const double* values, const int64_t* times, int64_t most, bint hopping) noexcept nogil
    cdef int64_t longest_run(self, int64_t count) noexcept nogil
    cdef bint may_force(self) noexcept nogil
    cdef int64_t leaves_at(self) noexcept nogil
