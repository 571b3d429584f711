"""The Reactive Aggregator over FlatFAT: a complete binary tree in one array, its leaves a ring.

Node k's children are 2k and 2k + 1; leaf index is node capacity + (index & (capacity − 1)). A node is there where a
leaf below it is.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine
from sluicegate.partials.program cimport Slot


cdef class Reactive(Engine):
    cdef int64_t capacity
    cdef Slot* nodes  # 2 · capacity partials
    cdef char* there  # 1 where a node is there

    cdef int64_t place(self, int64_t index) noexcept nogil
    cdef Slot* node(self, int64_t k) noexcept nogil
    cdef void set_pair(self, int64_t k) noexcept nogil
    cdef void set_above(self, int64_t k) noexcept nogil
    cdef int resize(self, int64_t capacity) noexcept nogil
    cdef void suffix(self, Slot* out, int64_t k) noexcept nogil
    cdef void prefix(self, Slot* out, int64_t k) noexcept nogil
