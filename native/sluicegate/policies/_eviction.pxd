"""The rules that a core enforces besides count and time: whether a prefix of the window leaves; no GIL, no allocation.

The twin is sluicegate.reference.eviction; the kinds are sluicegate.policies.eviction's.
"""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.partials.wide cimport R_COUNT

ctypedef int (*Function)(const Slot* total, const Slot* old, void* context) noexcept nogil
ctypedef int64_t (*Until)(const Slot* total, void* context) noexcept nogil

cdef enum:
    NONE = 0
    DELTA = 1
    TOTAL = 2
    MAXIMUM = 3
    LONGEST_RUN = 4
    COMPILED = 5

ctypedef struct Condition:
    int kind
    int slot
    int other
    int dimension
    bint monotone
    bint growing
    double limit
    double reference  # what old readings are held against: the newest attribute, the maximum
    int64_t begins  # the index of the leaf where the longest run begins
    int64_t most
    Function function
    void* context
    Until until  # NULL: the rule is asked after each reading
    int64_t wakes  # the ordinal of the first reading after which it has to be asked again
    int failure  # what a compiled rule returned below 0


cdef inline bint over(const Condition* e, const Slot* total, const Slot* old, int64_t leaves) noexcept nogil:
    """Whether all of a prefix of no negative values surely leaves: what follows exceeds the limit, rounding included.

    Any order of adding n such values is within n·2⁻⁵³ of their sum; there are three such sums, and a difference.
    """
    cdef double sum = total[e.slot].f, before = old[e.slot].f
    return sum - before > e.limit + (sum + (e.limit if e.limit > 0.0 else -e.limit)) * leaves * 2.0 ** -51


cdef inline int leaves_by_rule(
    Condition* e, const Slot* total, const Slot* old, int64_t head, int64_t leaves
) noexcept nogil:
    """1: the prefix leaves; 0: it stays; −1: the rule failed. The window holds `leaves` from index `head` on."""
    cdef int answer
    if e.kind == DELTA:
        return e.reference - old[e.other].f > e.limit or old[e.slot].f - e.reference > e.limit
    if e.kind == MAXIMUM:
        return old[e.slot].f < e.reference
    if e.kind == LONGEST_RUN:  # no reading of the prefix belongs to the run
        return head + old[e.slot + R_COUNT].i <= e.begins
    if e.kind == TOTAL:
        return over(e, total, old, leaves)
    answer = e.function(total, old, e.context)
    if answer < 0:
        e.failure = answer
        return -1
    return answer != 0
