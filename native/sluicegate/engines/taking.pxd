"""Readings: one by one and in batches, with the answers after each."""

from libc.stdint cimport int64_t

from sluicegate.engines.answering cimport Answering
from sluicegate.engines.base cimport Block
from sluicegate.engines.program cimport Slot


cdef class Taking(Answering):
    cdef bint plain  # an exact window by count or time whose engine has all at hand
    cdef bint as_is  # the only answer is the engine's total as it stands
    cdef bint simple  # plain, by count, one slot that is the value lifted and the answer as it stands
    cdef Slot* scratch  # of a block: its heads, its leaves and its totals where they are not the caller's, and what finds its heads
    cdef int64_t* cuts  # of a block by time, in `scratch`: up to where leaves leave; behind them the oldest leaves' times
    cdef int64_t most_block  # readings
    cdef int64_t newest_of_block  # the greatest time up to its end
    cdef bint empties  # the block may leave the window empty
    cdef tuple names  # of the aggregates
    cdef object read_row  # what `slide` asks where a value or a time is not a plain float or int
    cdef object read_time
    cdef bint positive  # values must be greater than 0

    cdef bint may_enter(self, double x) noexcept nogil
    cdef int64_t time_from(self, time) except? -1
    cdef object answer(self)
    cdef int take_any(self, const double* values, const int64_t* time, double* out) except -1 nogil
    cdef int take(self, const double* values, const int64_t* time, double* out) except -1 nogil  # a row of answers
    cdef int accept(self, const double* values, int64_t time) except -1 nogil
    cdef void center_on_reading(self, const double* values) noexcept nogil
    cdef int answer_all(self, Slot* out) noexcept nogil
    cdef int answer_into(self, double** out, int64_t i) noexcept nogil
    cdef int run(
        self, const double* values, const int64_t* times, int64_t count, double** out, bint bounds
    ) except -1 nogil
    cdef int64_t take_run(
        self, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
    ) noexcept nogil
    cdef bint takes_blocks(self) noexcept nogil
    cdef int run_blocks(self, const double* values, const int64_t* times, int64_t count, double** out) except -1 nogil
    cdef void ask_for_next(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
    ) noexcept nogil
    cdef int room_for_blocks(self, int64_t n) except -1 nogil
    cdef int take_block(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
    ) except -1 nogil
    cdef const Slot* lift_block(self, const double* values, const int64_t* times, int64_t n) noexcept nogil
    cdef Slot* totals_of_block(self, double** out, int64_t row) noexcept nogil
    cdef int64_t heads_by_count(self, int64_t* heads, int64_t n) noexcept nogil
    cdef int64_t heads_by_time(self, int64_t* heads, const int64_t* times, int64_t n) except -1 nogil
    cdef bint one_for_each(self, const int64_t* times, int64_t n) noexcept nogil
    cdef int64_t heads_in_order(self, int64_t* heads, const int64_t* times, int64_t n) noexcept nogil
    cdef int64_t heads_one_by_one(self, int64_t* heads, const int64_t* times, int64_t n) noexcept nogil
    cdef void copy_times(self, int64_t* out, int64_t index, int64_t n) noexcept nogil
    cdef int keep_times(self, const int64_t* times, int64_t n) except -1 nogil
    cdef void took_block(self, const int64_t* times, int64_t n, int64_t taken) noexcept nogil
    cdef void lower_block(self, const Block* block, double** out, int64_t row) noexcept nogil
