"""Many small buckets at once: each step of the way for all of them, before the next step.

Where one sum of a window by count decides alone what joins, or a limit on the number of buckets does, the buckets of the next
readings are known before any is opened. So their lengths are found first; then buckets of the same length are lifted
one after the other, parents are made level by level, and of what leaves meanwhile only the sum is taken, which is all that the
answers need. No step then hangs on how long a bucket is, which is as good as chance. The same bits as bucket by bucket.

While nothing leaves, as well: as a window by count fills, or as long as the compiled rule of a window sleeps.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.amta cimport Amta
from sluicegate.core.answering cimport Answering
from sluicegate.joining.small cimport Sight

cdef enum:
    LEAST_OPENED = 32  # readings for which it is worth while


cdef int64_t open_many(
    Answering self, Amta forest, Sight* s, const double* values, const int64_t* times, int64_t count, double* out
) except -1 nogil  # how many readings its buckets took, none where they have to go one by one; the next opens a bucket, too
