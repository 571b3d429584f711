"""Aggregates of fixed width beyond a number or two: longest run, bins, Bloom filter, top k, distinct count, the user's.

Their partials are canonical: a function of the readings alone, so that combining is associative to the bit (a rate's,
a compensated sum's and the user's own aside). Nothing is allocated but by `fill_extra`. The twin is
sluicegate.reference.wide, the numbers of the operations are sluicegate.monoids.layout.Op.
"""

from libc.stdint cimport int64_t

ctypedef union Slot:
    double f
    int64_t i

ctypedef void (*Lift)(const double*, int64_t, int64_t, void*) noexcept nogil
ctypedef void (*Combine)(void*, const void*, const void*) noexcept nogil
ctypedef double (*Lower)(const void*) noexcept nogil

ctypedef struct Extra:
    int64_t slots
    int64_t size  # edges; bits; k; lg k; how many dimensions a pair or the user's operation reads
    int64_t hashes
    double* edges
    int* dimensions
    Lift lift
    Combine combine
    Lower lower
    Combine deduct

cdef enum:  # sluicegate.monoids.layout.Op
    RATE = 23
    RUN = 24
    BINS = 25
    BLOOM = 26
    TOP = 27
    DISTINCT = 28
    TOTAL = 29
    COMPILED = 30
    SPAN = 31
    AREA = 33
    LINE = 34
    PAIR = 35
    KLL = 36
    COUNTS = 37

cdef enum:  # the slots of a longest run
    R_COUNT = 0  # readings
    R_FIRST = 1  # first and last value
    R_LAST = 2
    R_PREFIX = 3  # lengths of the run at the start, at the end, and of the longest
    R_SUFFIX = 4
    R_BEST = 5
    R_OFFSET = 6  # of the longest one's first reading, from the partial's first
    R_BEST_FIRST = 7  # its first and last time
    R_BEST_LAST = 8
    R_PREFIX_LAST = 9  # the last time of the run at the start, the first one of the run at the end
    R_SUFFIX_FIRST = 10

cdef void lift_wide(
    int op, const Extra* e, Slot* s, const double* values, int dimension, int64_t time, int64_t ordinal
) noexcept nogil
cdef void combine_wide(int op, const Extra* e, Slot* o, const Slot* a, const Slot* b) noexcept nogil
cdef void fold_bins(const Extra* e, Slot* s, const double* x, int step, int64_t n) noexcept nogil
cdef bint deduct_wide(int op, const Extra* e, Slot* o, const Slot* total, const Slot* oldest) noexcept nogil
cdef double number_of_distinct(const Extra* e, const Slot* s) noexcept nogil
cdef Extra* make_extra(layout) except? NULL
cdef void free_extra(Extra* extra, int steps) noexcept
