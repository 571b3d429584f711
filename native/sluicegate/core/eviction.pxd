"""Eviction: what a policy, or the user's rule, lets go, and what the histograms are told of it."""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.core.state cimport State


cdef class Eviction(State):
    cdef object rule  # the user's, while it is asked
    cdef object raised
    cdef unsigned long owner  # the thread whose rule evicts: it may look at the window meanwhile

    cdef int look(self) except -1
    cdef void enforce(self) noexcept nogil
    cdef void evict_by_time(self) noexcept nogil
    cdef int evict_while(self, bint monotone) noexcept nogil
    cdef Slot* oldest(self) noexcept nogil
    cdef int leaves(self, const Slot* old) noexcept nogil
    cdef int ask_rule(self, const Slot* old) noexcept
    cdef void evict_irrelevant(self, int64_t head) noexcept nogil
    cdef bint reaches(self, const Slot* partial, double extreme) noexcept nogil
    cdef void settle(self) noexcept nogil
