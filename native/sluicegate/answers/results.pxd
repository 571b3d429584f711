"""What a window answers, in compiled code: exact where leaves are readings, interpolated where the edge cuts a bucket.

The twin is tests/native/twins/estimate.py, with the same bits. Kinds are places in sluicegate.monoids.KINDS.
"""

from libc.math cimport NAN, log, sqrt
from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Program, Slot
from sluicegate.partials.wide cimport Extra
from sluicegate.histograms._statistics cimport Moments

cdef enum:  # sluicegate.monoids.KINDS
    K_COUNT = 0
    K_SUM = 1
    K_MEAN = 2
    K_MIN = 3
    K_MAX = 4
    K_ARGMIN = 5
    K_ARGMAX = 6
    K_FIRST = 7
    K_LAST = 8
    K_VARIANCE = 9
    K_STD = 10
    K_GEOMETRIC = 11
    K_RANGE = 12
    K_MIN_COUNT = 13
    K_MAX_COUNT = 14
    K_RATE = 15
    K_FREQUENCY = 16
    K_LONGEST_RUN = 17
    K_HISTOGRAM = 18
    K_BLOOM = 19
    K_TOP = 20
    K_DISTINCT = 21
    K_COMPILED = 22
    K_TIME_WEIGHTED = 26
    K_SLOPE = 27
    K_INTERCEPT = 28
    K_COVARIANCE = 29
    K_CORRELATION = 30

cdef enum:  # as tests/native/twins/estimate.py
    CUSTOM = 0
    BY_COUNT = 1
    BY_TIME = 2

ctypedef struct Output:
    int kind
    int dimension
    int ddof
    double per  # µs that a rate or a slope is given for
    bint at_last  # an intercept, at the greatest time
    const Extra* extra  # of a wide component
    int slot  # of a window of single readings
    int second  # the same, of the second component
    int prefix  # of a window of buckets, −1 where the partial lacks it
    int low
    int high
    int first
    int last
    int moments
    int low_count
    int high_count
    int low_ends
    int high_ends

ctypedef struct Cut:
    int64_t least
    int64_t most
    int64_t taken

ctypedef struct View:  # a window of buckets, not empty, as its answers see it
    const Slot* total
    const Slot* rest  # without the oldest bucket; NULL: that is the only one
    const Slot* leaf  # the oldest bucket
    Cut where  # the edge cuts it
    bint whole  # it does not
    bint late  # readings that came late are in total and rest, or in the leaf
    int64_t cutoff  # by time: readings of this time or earlier have left; else the least integer
    int64_t limit  # of buckets, 0: none


ctypedef struct Sums:  # what is known of the sum of x − center over the c newest readings of a cut bucket
    double low
    double high
    double least
    double most
    double last
    double others
    int64_t n
    bint first_is_out


cdef inline bint is_time(int kind) noexcept nogil:
    """Whether the answer is an integer that is no count."""
    return kind == K_ARGMIN or kind == K_ARGMAX


cdef inline bint is_whole(int kind) noexcept nogil:
    """Whether the answer is an integer."""
    return kind == K_COUNT or is_time(kind) or counts_extreme(kind) or kind == K_LONGEST_RUN


cdef inline bint counts_extreme(int kind) noexcept nogil:
    return kind == K_MIN_COUNT or kind == K_MAX_COUNT


cdef inline bint may_lack(int kind) noexcept nogil:
    """Whether NaN stands for no answer."""
    if kind == K_VARIANCE or kind == K_STD or kind == K_RATE or kind == K_FREQUENCY:
        return True
    return kind == K_COMPILED or K_TIME_WEIGHTED <= kind <= K_CORRELATION


cdef inline bint is_slot(int kind) noexcept nogil:
    """Whether the answer is a float64 that the partial holds as it is."""
    return kind == K_SUM or kind == K_MIN or kind == K_MAX or kind == K_FIRST or kind == K_LAST


cdef inline double measured(const Output* o, double x) noexcept nogil:
    """What the sum adds up: the value, or its logarithm."""
    return log(x) if o.kind == K_GEOMETRIC else x


cdef inline double spread(const Output* o, const Moments* m) noexcept nogil:
    """Variance or standard deviation; NaN where there are too few readings."""
    cdef double variance
    if m.n <= o.ddof:
        return NAN
    variance = m.m2 / (m.n - o.ddof)
    return sqrt(variance) if o.kind == K_STD else variance


cdef Cut cut_leaf(const Program* p, const Slot* leaf, int policy, int64_t cutoff, int64_t evicted) noexcept nogil
cdef Slot exact_answer(const Output* o, const Slot* total, int64_t leaves) noexcept nogil
cdef Slot bucket_answer(const Output* o, const View* v, double center) noexcept nogil
