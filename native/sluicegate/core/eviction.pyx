"""What a policy lets go after each reading; see eviction.pxd. The twin is sluicegate.reference.core."""

from cpython.pythread cimport PyThread_get_thread_ident
from libc.math cimport NAN

from sluicegate.answers.results cimport BY_COUNT, BY_TIME, CUSTOM, Cut
from sluicegate.core.state cimport State, hides
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, H_T_FIRST, Slot
from sluicegate.partials.wide cimport R_OFFSET
from sluicegate.policies._eviction cimport COMPILED, LONGEST_RUN, MAXIMUM, TOTAL, Condition, leaves_by_rule

from sluicegate.errors import InputError


cdef int enforce(State s, const double* values) except -1 nogil:
    cdef int64_t head = s.engine.head
    if s.policy == CUSTOM:
        return enforce_rule(s, &s.rule.condition, values)
    if s.policy == BY_COUNT:
        evict_by_count(s)
    elif s.timed:
        evict_by_time(s)
    elif head < s.engine.tail and leaves(<void*> s, s.engine.leaf(head)) == 1:
        evict_while(s, True)
    if s.up_to.sign:
        evict_irrelevant(s, head)
    settle(s)
    return 0


cdef int enforce_now(State s) except -1 nogil:
    if s.policy != CUSTOM:
        return enforce(s, NULL)
    if s.rule.condition.kind:
        evict_by_rule(s, &s.rule.condition)
    settle(s)
    return 0


cdef int evict_oldest(State s, int64_t count) except -1:
    """Evict so many of the oldest readings of an exact window now. Raises InputError for more than it holds."""
    cdef int64_t held
    s.enter()
    try:
        held = s.engine.tail - s.engine.head
        if not 0 <= count <= held:
            raise InputError(f"evict({count}): expected 0 to {held}, the readings the window holds")
        with nogil:
            s.engine.pop_to(s.engine.head + count)
        s.note_edge()
    finally:
        s.busy = False
    return 0


# by count and by time

cdef void evict_by_count(State s) noexcept nogil:
    cdef int64_t cutoff = s.cut_off()
    if not s.bucketed and s.engine.head < cutoff:
        s.engine.pop_to(cutoff)
    while s.bucketed and s.end_of_oldest() <= cutoff:
        s.engine.pop()


cdef void evict_by_time(State s) noexcept nogil:
    """All that leaves of an exact window, at once where it is much."""
    cdef int64_t head
    if s.sorted is not None:
        s.sorted.evict_through(s.cut_off())
        return
    head = s.first_after(s.engine.head, s.engine.tail, s.cut_off())
    if head > s.engine.head:
        s.engine.pop_to(head)
        s.forget_times()


cdef int evict_while(State s, bint monotone) noexcept nogil:
    """Single evictions first, then, after a log n of them, a bulk one where the policy is monotone."""
    cdef int64_t singles = s.engine.tail - s.engine.head, k = 0
    cdef int answer
    while monotone and singles >> k:
        k += 1
    k = k + 1 if monotone else singles
    while k > 0:
        if s.engine.head == s.engine.tail:
            return 0
        answer = leaves(<void*> s, s.engine.leaf(s.engine.head))
        if answer != 1:
            return answer
        s.engine.pop()
        k -= 1
    return s.engine.bulk(leaves, <void*> s) if s.engine.head < s.engine.tail else 0


cdef int leaves(void* window, const Slot* old) noexcept nogil:
    """Whether a prefix of a window leaves, as an engine asks it; −1: it cannot be said."""
    return leaves_of(<State> window, old)


cdef inline int leaves_of(State s, const Slot* old) noexcept nogil:
    cdef Condition* c = &s.rule.condition
    cdef const Slot* total = NULL
    if s.engine.faulted:
        return -1
    if s.policy == BY_TIME:
        return old[s.newest_slot].i <= s.cut_off()
    if c.kind == 0:
        with gil:
            return ask(s, old)
    if c.kind == TOTAL or c.kind == COMPILED:
        total = s.engine.total()
    return leaves_by_rule(c, total, old, s.engine.head, s.engine.tail - s.engine.head)


# by a callable of (total, old)

cdef int evict_by_callable(State s, leaves, bint monotone) except -1:
    """What it raises leaves a consistent window."""
    s.enter()
    s.rule.asked, s.rule.raised, s.rule.owner = leaves, None, <unsigned long> PyThread_get_thread_ident()
    with nogil:
        evict_while(s, monotone)
        settle(s)
    s.busy = False
    raised, s.rule.asked, s.rule.raised = s.rule.raised, None, None
    if raised is not None:
        raise raised
    return 0


cdef int ask(State s, const Slot* old) noexcept:
    try:
        return 1 if s.rule.asked(s.pack(s.engine.total()), s.pack(old)) else 0
    except BaseException as error:
        s.rule.raised = error
        return -1


# by a built-in or a compiled rule

cdef int enforce_rule(State s, Condition* c, const double* values) except -1 nogil:
    """A compiled rule may hold the GIL for a while: nobody else enters then, nor does the rule itself."""
    cdef bint busy = s.busy
    cdef int answer = 0
    if c.kind == 0:  # a callable decides, which is asked from Python
        s.note_edge()
        return 0
    if s.accepted > c.wakes:  # the newest reading's ordinal is one less
        s.busy, c.reference = True, values[c.dimension]
        answer = evict_by_rule(s, c)
        if answer >= 0 and c.until != NULL:
            c.wakes = wake_at(s, c)
        s.busy = busy
    settle(s)
    if answer < 0 and c.failure < 0:
        with gil:
            s.rule.fail()
    return 0


cdef int evict_by_rule(State s, Condition* c) noexcept nogil:
    """The oldest leaves while the rule says so; in bulk, as often as it takes, where the rule is monotone."""
    cdef const Slot* total
    cdef int answer
    while c.most and s.engine.tail - s.engine.head > c.most:
        s.engine.pop()
    if c.kind == TOTAL:
        return evict_over_limit(s, c)
    if c.kind == MAXIMUM:
        total = s.engine.total()
        c.reference = NAN if total == NULL else total[c.slot].f  # NAN: nothing leaves
    elif c.kind == LONGEST_RUN:
        total = s.engine.total()
        c.begins = s.engine.head + (0 if total == NULL else total[c.slot + R_OFFSET].i)
    while s.engine.head < s.engine.tail:
        answer = leaves_of(s, s.engine.leaf(s.engine.head))
        if answer != 1:
            return answer
        s.engine.pop()
        if c.monotone:
            answer = evict_while(s, True)
            if answer < 0:
                return answer
    return 0


cdef int64_t wake_at(State s, Condition* c) noexcept nogil:
    """When the compiled rule has to be asked again; at once where nothing is held or read."""
    cdef const Slot* total = s.engine.total()
    return 0 if total == NULL or s.engine.faulted else c.until(total, c.context)


cdef int evict_over_limit(State s, Condition* c) noexcept nogil:
    """In bulk what surely leaves, where no value is negative; the rest, and otherwise all, one by one."""
    cdef const Slot* total = s.engine.total()
    if total != NULL and total[c.slot].f > c.limit and total[c.other].f >= 0.0:
        evict_while(s, True)
        total = s.engine.total()
    while total != NULL and total[c.slot].f > c.limit:
        s.engine.pop()
        total = s.engine.total()
    return 0


# up to an extreme

cdef void evict_irrelevant(State s, int64_t head) noexcept nogil:
    """Drop the oldest leaves whose extreme a later reading reaches: a new extreme or a new oldest leaf makes them."""
    cdef const Slot* rest
    cdef double oldest
    while s.engine.tail - s.engine.head > 1:
        oldest = s.engine.leaf(s.engine.head)[s.up_to.slot].f
        if head == s.engine.head and not hides(&s.up_to, s.up_to.newest, oldest):
            return
        rest = s.engine.rest()
        if rest == NULL or not hides(&s.up_to, rest[s.up_to.slot].f, oldest):
            return
        if s.policy == BY_TIME and s.sorted is None:
            s.up_to.held = max(s.up_to.held, s.time_of(s.engine.head))
        s.engine.pop()


# where the window begins now

cdef void settle(State s) noexcept nogil:
    """Note where the window begins now, and tell the histograms, and how uncertain that is within the oldest bucket."""
    s.note_edge()
    if s.buckets.rules is None or s.engine.faulted:
        return
    if s.buckets.rules.has_hop:
        settle_hop(s)
    else:
        s.buckets.rules.settled(s.edge + 1, 0)


cdef void settle_hop(State s) noexcept nogil:
    cdef int64_t start = s.edge + 1, uncertain = 0
    cdef const Slot* leaf
    cdef Cut where
    if s.engine.head == s.engine.tail:
        s.buckets.rules.settled(s.accepted, 0)
        return
    leaf = s.engine.leaf(s.engine.head)
    if s.policy == CUSTOM:
        uncertain = leaf[H_COUNT].i - 1
    elif s.policy == BY_TIME and leaf[H_T_FIRST].i <= s.cut_off():
        where = s.cut_oldest_leaf()
        start, uncertain = leaf[H_O_FIRST].i + leaf[H_COUNT].i - where.most, where.most - where.least
    s.buckets.rules.settled(start, uncertain)
