"""A long batch through a window of few readings while it lies in the batch: each result from the readings themselves, with no forest.

Partials are single numbers. Extremes are those of single calls to the bit, sums within rounding. `directly.h` has the loops.
"""

from libc.stdint cimport int64_t

cdef extern from "directly.h" nogil:
    int MOST_DIRECTLY "SLUICEGATE_MOST_DIRECTLY"  # readings of a window
    int MOST_IN_BLOCKS "SLUICEGATE_MOST_IN_BLOCKS"  # and where its times are not a step apart
    void directly_add "sluicegate_directly_add"(const double* x, int64_t n, int64_t size, double* out)
    void directly_least "sluicegate_directly_least"(const double* x, int64_t n, int64_t size, double* out)
    void directly_greatest "sluicegate_directly_greatest"(const double* x, int64_t n, int64_t size, double* out)
    void growing_add "sluicegate_growing_add"(const double* x, int64_t held, int64_t n, double* out)
    void growing_least "sluicegate_growing_least"(const double* x, int64_t held, int64_t n, double* out)
    void growing_greatest "sluicegate_growing_greatest"(const double* x, int64_t held, int64_t n, double* out)
    int64_t add_by_time "sluicegate_directly_by_time_add"(
        const double* x, const int64_t* times, int64_t span, int64_t held, int64_t before, int64_t n, double* out)
    int64_t least_by_time "sluicegate_directly_by_time_least"(
        const double* x, const int64_t* times, int64_t span, int64_t held, int64_t before, int64_t n, double* out)
    int64_t greatest_by_time "sluicegate_directly_by_time_greatest"(
        const double* x, const int64_t* times, int64_t span, int64_t held, int64_t before, int64_t n, double* out)
    int64_t ordered "sluicegate_ordered"(const int64_t* times, int64_t n)
