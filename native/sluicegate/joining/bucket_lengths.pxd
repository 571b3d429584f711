"""Which of the next readings open a bucket, and how many each of those takes: known before any of them is opened.

By a sum that decides alone, or by a limit on the number of buckets. As reading by reading, to the last one.
"""

from libc.limits cimport LLONG_MAX
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sluicegate.partials.program cimport H_COUNT, Slot, greatest, least
from sluicegate.joining.small cimport Sight

cdef enum:
    MOST = 1024  # readings: what is noted of them takes some 70 KB of the stack
    LONGEST = 96  # of a bucket: runs of more are as quick by themselves
    TOLD = 4  # readings of a bucket, as far as their number is looked up
    UNTOLD = 2 * TOLD  # of the bucket before: where they are as many, lengths are found one after the other


cdef extern from "bucket_lanes.h" nogil:
    void bucket_lengths(const double* x, int64_t n, double allowed, int64_t most, signed char* lengths)


ctypedef struct Opened:  # the buckets of a block: the k-th takes readings start[k] … start[k + 1] − 1
    int64_t k
    int64_t n  # readings of them all
    int64_t soon  # leaves that the next block looks at as the oldest: from this one on they are to be fetched
    int64_t later
    const Slot* coming  # the first of those, and how many lie behind it in its chunk; 0: nobody has looked
    int64_t run
    int64_t old  # readings of an old bucket, at most
    short start[MOST + 1]
    short alike[TOLD][MOST + 1]  # those of 1, 2 and 3 readings, and of more
    int many[TOLD]


cdef inline bint note_length(Opened* opened, int64_t i, int64_t length, int64_t n) noexcept nogil:
    """One bucket more, from reading i on; False: none of these readings closes it, or it is too long."""
    cdef int kind = <int> min(length, TOLD) - 1
    opened.start[opened.k] = <short> i
    if length >= LONGEST or i + length >= n:
        return False
    opened.alike[kind][opened.many[kind]] = <short> opened.k
    opened.many[kind] += 1
    opened.k += 1
    return True


cdef inline int64_t note_equal(Opened* opened, int64_t i, int64_t length, int64_t most) noexcept nogil:
    """`most` buckets of fewer than TOLD readings each, from reading i on; where the next begins."""
    cdef short* start = opened.start + opened.k
    cdef short* alike = opened.alike[length - 1] + opened.many[length - 1]
    cdef int m, n = <int> most
    for m in range(n):
        start[m], alike[m] = <short> (i + m * length), <short> (opened.k + m)
    opened.k += n
    opened.many[length - 1] += n
    return i + n * length


cdef inline int64_t equal_from(const signed char* lengths, int64_t i, int64_t length, int64_t n) noexcept nogil:
    """How many of that length follow each other from reading i on, closed by one of n readings: that they do is guessed, not waited for."""
    cdef int64_t found = 0
    while i + length < n and lengths[i] == length:
        i += length
        found += 1
    return found


cdef inline void lengths_by_sum(const Sight* s, const double* values, int64_t n, Opened* opened) noexcept nogil:
    """The buckets that are closed by one of these readings."""
    cdef double last[2 * TOLD]
    cdef signed char lengths[MOST]
    cdef int64_t i = 0, length = TOLD
    cdef bint told = s.newest[H_COUNT].i < UNTOLD
    cdef int k
    opened.old = LLONG_MAX
    if told:
        memcpy(last, values + n - TOLD, TOLD * sizeof(double))
        for k in range(TOLD):
            last[TOLD + k] = INFINITY  # joins nothing
        bucket_lengths(values, n - TOLD, s.ruling.limit, s.longest, lengths)
        bucket_lengths(last, TOLD, s.ruling.limit, s.longest, lengths + n - TOLD)
    while i < n:
        if told:
            length = lengths[i]
            if length < TOLD:
                i = note_equal(opened, i, length, equal_from(lengths, i, length, n))
                length = lengths[i]
        if length == TOLD or not told:
            length = whole_length(s.ruling.limit, values + i, min(n - i, s.longest))
        if not note_length(opened, i, length, n):
            return
        i += length


cdef inline int64_t whole_length(double allowed, const double* x, int64_t most) noexcept nogil:
    """As `bucket_lengths`, to the end."""
    cdef double low = INFINITY, high = -INFINITY, sum = x[0], following
    cdef int64_t n = 1
    while n < most:
        low, high, following = least(low, sum), greatest(high, sum), sum + x[n]
        if not (fabs(low) <= allowed and fabs(high) <= allowed and fabs(following - low) <= allowed
                and fabs(following - high) <= allowed and high - low <= allowed):
            break
        sum = following
        n += 1
    return n


cdef inline int64_t equal_by_limit(
    bint slides, int64_t first, int64_t room, int64_t accepted, int64_t i, int64_t length, int64_t n
) noexcept nogil:
    """How many of that length follow each other from reading i on, closed by one of n readings; where nothing leaves, with `room` for what is inside."""
    cdef int64_t most = (n - 1 - i) // length
    return most if slides or not room else min(most, (room + first - accepted - length - 1 - i) // length + 1)


cdef inline void lengths_by_limit(
    bint slides, int64_t first, int64_t share, int64_t value, int64_t accepted, int64_t n, Opened* opened
) noexcept nogil:
    """The same where the number of buckets alone decides: a bucket of n readings takes the next while n · share is less than
    what is inside with it, from reading `first` on where nothing leaves. Share 0: none joins.

    `slides`: in a full window of `value` readings, whose oldest bucket is cut, inside is one more at least, and at most as many
    more as the oldest bucket takes: up to twice as many as a new one. Where that makes a difference no bucket is noted.
    """
    cdef int64_t i = 0, length = 1
    opened.old = LLONG_MAX
    while i < n:
        while share and length < LONGEST and length * share < (value if slides else accepted + i + length - first) + 1:
            length += 1
        if slides and share:
            opened.old = 2 * length
            if length * share < value + opened.old:
                return
        if length < TOLD and i + length < n:
            i = note_equal(opened, i, length, equal_by_limit(slides, first, length * share, accepted, i, length, n))
            continue
        if not note_length(opened, i, length, n):
            return
        i += length
