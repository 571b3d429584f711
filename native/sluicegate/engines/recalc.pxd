"""Recalc: keeps leaves in a queue and recalculates every answer from them, oldest first."""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Block, Engine
from sluicegate.memory.chunks cimport Pool, Queue
from sluicegate.partials.program cimport Slot


cdef class Recalc(Engine):
    cdef Pool pool
    cdef Queue leaves
    cdef int kernel

    cdef const Slot* fold(self, int64_t first) noexcept nogil
    cdef bint abreast(self, const Block* block, int64_t i) noexcept nogil
    cdef int take_abreast(self, const Block* block, int64_t i) except -1 nogil
    cdef void fold_abreast(self, double* held, int64_t n) noexcept nogil
    cdef void lay_out(self, int64_t first, double* x, int64_t n) noexcept nogil
