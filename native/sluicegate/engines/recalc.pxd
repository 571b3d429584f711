"""Recalc: keeps leaves in a queue and recalculates every answer from them, oldest first."""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine
from sluicegate.memory.chunks cimport Pool, Queue
from sluicegate.partials.program cimport Slot


cdef class Recalc(Engine):
    cdef Pool pool
    cdef Queue leaves

    cdef const Slot* fold(self, int64_t first, Slot* out) noexcept nogil
