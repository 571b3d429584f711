"""DABA Lite: pointers F (head) ≤ L ≤ R ≤ A ≤ B ≤ E (tail) cut one queue of partials into sublists.

Elements of R … A − 1 and B … E − 1 are leaves, the others sums: p … B − 1 for p in F … L − 1 and A … B − 1, p … R − 1
for p in L … R − 1.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.lite cimport Lite
from sluicegate.partials.program cimport Slot


ctypedef struct State:
    int64_t head  # this and the tail are the engine's
    int64_t l
    int64_t r
    int64_t a
    int64_t tail
    int64_t b
    bint has_b


cdef class DabaLite(Lite):
    cdef State lists  # between two calls without head and tail
    cdef int64_t inside  # while `ends` are known: for heads before it none is at a chunk's end, whatever L and A are at
    cdef Slot* left  # as `ends`: of the chunk of element l, while L is not empty
    cdef Slot* right  # of element a's
    cdef Slot* sums  # the two that follow
    cdef Slot* sum_b  # of B … E − 1, where has_b
    cdef Slot* sum_ra  # of R … B − 1 while L is not empty

    cdef Slot* element(self, int64_t index) noexcept nogil
    cdef void fixup(self) noexcept nogil
    cdef void shrink(self) noexcept nogil
    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil
