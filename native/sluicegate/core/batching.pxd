"""Batches into an exact window by count or time, in blocks: where it begins after each reading, leaves and answers."""

from libc.stdint cimport int64_t

from sluicegate.core.event_time cimport EventTime
from sluicegate.engines.base cimport Block
from sluicegate.partials.program cimport Slot


cdef class Batching(EventTime):
    cdef bint as_is  # the only answer is the engine's total as it stands
    # Of a block, while a batch lasts: its heads, its leaves, and its totals where they are not the caller's.
    cdef Slot* scratch
    cdef int64_t most_block  # readings
    cdef bint empties  # the block may leave the window empty

    cdef void center_on_reading(self, const double* values) noexcept nogil
    cdef bint ingests_blocks(self) noexcept nogil
    cdef int run_blocks(self, const double* values, const int64_t* times, int64_t count, double** out) except -1 nogil
