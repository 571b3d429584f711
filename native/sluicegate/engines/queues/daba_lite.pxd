"""DABA Lite: pointers F (head) ≤ L ≤ R ≤ A ≤ B ≤ E (tail) cut one queue of partials into sublists.

Elements of R … A − 1 and B … E − 1 are leaves, the others sums: p … B − 1 for p in F … L − 1 and A … B − 1, p … R − 1
for p in L … R − 1.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.queues.lite cimport Lite
from sluicegate.partials.program cimport Slot


cdef class DabaLite(Lite):
    cdef int64_t l
    cdef int64_t r
    cdef int64_t a
    cdef int64_t b
    cdef bint has_b
    cdef Slot* sum_b  # of B … E − 1, where has_b
    cdef Slot* sum_ra  # of R … B − 1 while L is not empty

    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil
