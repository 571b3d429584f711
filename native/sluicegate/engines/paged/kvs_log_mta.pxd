"""The logarithmic Monoid Tree Aggregator over a store: the tree of log_mta, its nodes in the pages of pages.pxd.

Level l holds nodes head >> l … (tail − 1) >> l, up to `top`, which is one pair. The pages of higher levels are begun
all the same, so that every page before the newest of its tier is in the store; their nodes are set when they come into
use.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Leaves
from sluicegate.engines.paged.pages cimport Paged
from sluicegate.partials.program cimport Slot


cdef class KvsLogMta(Paged):
    cdef int top

    cdef void measure(self) noexcept nogil
    cdef void set_pair(self, int level, int64_t index) noexcept nogil
    cdef void set_firsts(self) noexcept nogil
    cdef void append(self, const Slot* leaf) noexcept nogil
    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil
    cdef void drop_to(self, int64_t head) noexcept nogil
