"""What a window of buckets answers, with certain intervals: now, after each reading of a run, and of a part of it."""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport View
from sluicegate.core.state cimport State


cdef list bounded(State s)
cdef list answers_over(
    State s, bytes oldest, bytes newer, int policy, int64_t cutoff, int64_t evicted, bint bounds
)
cdef int64_t answer_run(
    State s, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
) noexcept nogil
cdef bint view(State s, View* v) noexcept nogil  # False: the window is empty
cdef void answer_now(State s, double** out, int64_t row, bint bounds) noexcept nogil
