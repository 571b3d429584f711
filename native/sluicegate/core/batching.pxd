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
    cdef int room_for_blocks(self, int64_t n) except -1 nogil
    cdef int ingest_block(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
    ) except -1 nogil
    cdef bint lies_as_given(self) noexcept nogil
    cdef const Slot* lift_block(self, const double* values, const int64_t* times, int64_t n) noexcept nogil
    cdef Slot* totals_of_block(self, double** out, int64_t row) noexcept nogil
    cdef void heads_by_count(self, int64_t* heads, int64_t n) noexcept nogil
    cdef int heads_by_time(self, int64_t* heads, const int64_t* times, int64_t n) except -1 nogil
    cdef int keep_times(self, const int64_t* times, int64_t n) except -1 nogil
    cdef void note_block(self, const int64_t* times, int64_t taken) noexcept nogil
    cdef void lower_block(self, const Block* block, double** out, int64_t row) noexcept nogil
