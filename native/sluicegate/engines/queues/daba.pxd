"""DABA: pointers F (head) ≤ L ≤ R ≤ A ≤ B ≤ E (tail) cut one queue of leaves and aggregates into sublists.

The aggregate of p holds leaves p … B − 1 for p in F … L − 1, p … R − 1 in L … R − 1, R … p in R … A − 1, p … B − 1 in
A … B − 1, B … p in B … E − 1.
"""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.engines.queued cimport Queued


cdef class Daba(Queued):
    cdef int64_t l
    cdef int64_t r
    cdef int64_t a
    cdef int64_t b

    cdef Slot* agg(self, int64_t index) noexcept nogil
    cdef void fixup(self) noexcept nogil
    cdef void shrink(self) noexcept nogil
    cdef void reach(self, Slot* out, const Slot* front) noexcept nogil
    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil
    cdef int check_aggregate(self, int64_t index, const Slot* first, const Slot* second) except -1


cdef int check_sizes(Queued queue, int64_t l, int64_t r, int64_t a, int64_t b) except -1
