"""Which reading joins the newest bucket and which opens one, and how room is made; see placing.pxd.

The twin is tests/native/twins/bucketing.py.
"""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport BY_COUNT, BY_TIME, CUSTOM
from sluicegate.core.state cimport State, hides
from sluicegate.joining.buckets cimport Buckets
from sluicegate.engines.tree.pairs cimport NEWEST, OLDEST
from sluicegate.engines.tree.staged cimport FORWARD, JOIN, OPEN, Staged
from sluicegate.joining.folding cimport Run, fold_run
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, H_T_FIRST, H_T_LAST, Slot, lift


cdef int place(State s, const double* values, int64_t time) except -1 nogil:
    if s.buckets.staged is not None:
        return stage(s, s.buckets.staged, values, time)
    return place_in(s, s.buckets, values, time)


cdef inline int place_in(State s, Buckets b, const double* values, int64_t time) except -1 nogil:
    """Join the newest bucket or open one, making room where there would be one too many."""
    cdef bint joined
    if b.rules is not None and s.accepted >= b.rules.due_at:
        b.sample_results(s.engine.total(), s.center, s.accepted)
    while True:
        joined = s.engine.head < s.engine.tail and joins(s, b, values, time)
        if joined:
            lift_reading(s, b, values, time)
            s.engine.join(s.reading)
        elif b.limit == 0 or s.engine.tail - s.engine.head < b.limit:
            lift_reading(s, b, values, time)
            s.engine.push(s.reading)
            s.created += 1
        else:
            make_room(s)
            continue
        if b.rules is not None:
            b.rules.took(values, s.accepted, joined)
        return 0


cdef inline void lift_reading(State s, Buckets b, const double* values, int64_t time) noexcept nogil:
    lift(&s.p, s.reading, values, time, s.accepted, s.center)
    if b.rules is not None and b.rules.sampling:
        b.carry_sample(s.reading)


cdef inline bint joins(State s, Buckets b, const double* values, int64_t time) noexcept nogil:
    """Whether the newest bucket takes a reading: as the histograms say, or because of the limit.

    Up to an extreme, the reading that hides all of it joins: that costs nothing. The limit forces it only after a level
    eviction, while the bucket is not full, and, where histograms decide, while more than half of the limit is in use. A
    late reading opens a bucket of its own while levels are in proportion to what the window holds; beyond, many late
    readings would evict a level each few of them, for ever.
    """
    cdef const Slot* newest = s.engine.leaf(s.engine.tail - 1)
    cdef bint late = time < newest[H_T_LAST].i
    if not late and hiding(s, b) and hides(&s.up_to, values[0], newest[s.up_to.slot].f):
        return True
    if not late and b.rules is not None and b.rules.joins(values, s.accepted):
        return True
    return may_force(s, b) and forced(s, b, late, newest)


cdef inline bint hiding(State s, Buckets b) noexcept nogil:
    """Whether a reading that makes all of the newest bucket irrelevant joins it, as it may up to an extreme."""
    return s.up_to.sign != 0 and b.rules is None


cdef inline bint may_force(State s, Buckets b) noexcept nogil:
    """Whether a reading may have to join because of the limit."""
    return b.coarse() and not (b.rules is not None and 2 * (s.engine.tail - s.engine.head) <= b.limit)


cdef inline bint forced(State s, Buckets b, bint late, const Slot* newest) noexcept nogil:
    cdef int64_t inside = s.accepted - s.engine.leaf(s.engine.head)[H_O_FIRST].i + 1
    if late and (b.pairs is not None or (4 * inside) >> min(b.level, 62) >= b.limit):
        return False
    return size_of(s, b, newest) * (b.finer * (b.limit - 2)) < max(inside, fewest_cut(s))


cdef inline int64_t size_of(State s, Buckets b, const Slot* newest) noexcept nogil:
    """The newest bucket's readings that count for its size: up to an extreme, what stands before that is irrelevant."""
    return s.accepted - newest[s.up_to.slot + 4].i if hiding(s, b) else newest[H_COUNT].i


cdef inline int64_t fewest_cut(State s) noexcept nogil:
    """What a window up to an extreme holds at least when its edge cuts a bucket, 0: not known.

    Before, what leaves is irrelevant: buckets need not be finer than they will be then.
    """
    return s.value if s.up_to.sign and s.policy == BY_COUNT else 0


# a run of readings that join: the same bits as one after the other, without touching the tree for each

cdef int64_t join_run(State s, const double* values, const int64_t* times, int64_t count) noexcept nogil:
    """Let the newest bucket take all readings up to the first that may do anything but join; how many."""
    cdef Run run
    run.n = count_joining(s, s.buckets, values, times, longest_run(s, s.buckets, count))
    if run.n == 0:
        return 0
    run.values, run.times, run.ordinal, run.centers, run.one = values, times, s.accepted, s.center, s.reading
    fold_run(&s.p, &run, s.engine.leaf(s.engine.tail - 1))
    s.engine.touched()
    s.accepted += run.n
    s.newest = max(s.newest, s.accepted - 1 if times == NULL else times[run.n - 1])
    s.note_edge()
    return run.n


cdef int64_t longest_run(State s, Buckets b, int64_t count) noexcept nogil:
    """For so many readings at most no limit is refreshed and nothing leaves by count; 0: take them one by one."""
    cdef int64_t most = min(count, MOST_RUN)
    if b.staged is not None or s.engine.tail - s.engine.head < 2:
        return 0
    if b.rules is not None:
        most = 0 if b.rules.sampling else min(most, b.rules.due_at - s.accepted)
    if s.policy == CUSTOM:
        return min(most, s.rule.condition.wakes - s.accepted)
    if s.policy == BY_COUNT and s.hop > 1:
        return min(most, s.hop - 1 - s.accepted % s.hop)
    if s.policy == BY_COUNT:
        return min(most, s.end_of_oldest() + s.value - s.accepted - 1)
    return most


cdef int64_t leaves_at(State s) noexcept nogil:
    """By time: when the oldest bucket leaves or the window hops."""
    cdef int64_t over
    if s.hop > 1:
        over = s.newest % s.hop
        return s.newest - over + (0 if over < 0 else s.hop)
    return max(s.engine.leaf(s.engine.head)[s.newest_slot].i, s.up_to.held) + s.value


cdef int64_t count_joining(State s, Buckets b, const double* values, const int64_t* times, int64_t most) noexcept nogil:
    """How many of the next readings join; the histograms take note of each."""
    cdef const Slot* newest
    cdef const Slot* oldest
    cdef bint sliding = s.policy == BY_COUNT and s.hop == 1, forcing, hidden
    cdef int64_t late, until, share = b.finer * (b.limit - 2), few = fewest_cut(s), size, time, n
    cdef double top
    if most <= 0:
        return 0
    newest, oldest = s.engine.leaf(s.engine.tail - 1), s.engine.leaf(s.engine.head)
    late, size, until = newest[H_T_LAST].i, size_of(s, b, newest), leaves_at(s) if s.policy == BY_TIME else 0
    forcing, hidden = may_force(s, b), hiding(s, b)
    top = newest[s.up_to.slot].f if hidden else 0.0
    for n in range(most):
        time = s.accepted + n if times == NULL else times[n]
        if time < late or (s.policy == BY_TIME and time >= until):
            return n
        if s.up_to.sign and hides(&s.up_to, values[0], oldest[s.up_to.slot].f):
            return n
        if hidden and hides(&s.up_to, values[0], top):
            top, size = values[0], -n
        elif not (b.rules is not None and b.rules.joins(values, s.accepted + n)) and not (
            forcing and (size + n) * share < max(s.accepted + n - oldest[H_O_FIRST].i + 1, few)
        ):
            return n
        if b.rules is not None:
            b.rules.took(values, s.accepted + n, True)
            if sliding:
                b.rules.settled(s.accepted + n + 1 - s.value, 0)
        late = time
        values += s.p.dimensions
    return most


# room for one bucket more: the pair that adds least is merged, or all are merged in pairs (a level eviction)

cdef int make_room(State s) except -1 nogil:
    cdef int64_t left = s.last_to_have_left()
    if s.buckets.pairs is None:
        return evict_level(s, left)
    return merge_pair(s, left)


cdef int limit_to(State s, int64_t limit) except -1 nogil:
    s.buckets.limit = limit
    while s.buckets.counted(s.engine) > limit:
        make_room(s)
    return 0


cdef void note_oldest(State s) noexcept nogil:
    s.edge = max(s.edge, s.last_to_have_left())
    s.known.index = -1


cdef int merge_pair(State s, int64_t left) except -1 nogil:
    cdef int touched = s.buckets.pairs.merge() if s.buckets.staged is None else s.buckets.staged.merge_stored()
    s.known.index = -1
    if touched & OLDEST:
        s.edge = max(s.edge, left)
    if touched & NEWEST and s.buckets.rules is not None:
        s.buckets.rules.coarsened()
    return 0


cdef int evict_level(State s, int64_t left) except -1 nogil:
    cdef int64_t head = s.engine.head
    s.engine.coarsen()
    s.known.index = -1
    if s.buckets.rules is not None:
        s.buckets.rules.coarsened()
    s.edge = max(s.edge, left)
    s.buckets.count_level(head)
    return 0


# a staging tail: what the newest bucket hides, what leaves the tail, what is stored

cdef int stage(State s, Staged staged, const double* values, int64_t time) except -1 nogil:
    """The newest bucket takes the reading that hides it; else the reading is staged, after room was made."""
    cdef bint joined = staged.takes(values, time)
    lift(&s.p, s.reading, values, time, s.accepted, s.center)
    if joined:
        staged.join(s.reading)
        collapse(s, staged)
    else:
        if staged.staged() == staged.most:
            spill(s, staged)
        staged.push(s.reading)
    if s.buckets.rules is not None:
        s.buckets.rules.took(values, s.accepted, joined)
    return 0


cdef void collapse(State s, Staged staged) noexcept nogil:
    """The newest bucket and those that it hides become one."""
    while staged.tail - staged.head > 1 and staged.hides(staged.at(staged.top - 1), staged.leaf(staged.tail - 2)):
        if staged.tail - staged.head == 2:
            note_oldest(s)
        if staged.staged() > 1:
            staged.collapse()
        else:
            staged.take_back()


cdef int spill(State s, Staged staged) except -1 nogil:
    """The oldest staged bucket leaves the tail: into the next, into the newest stored, or as a stored one."""
    cdef int found = verdict(s.buckets, staged)
    while found == OPEN and s.buckets.limit and staged.kept() >= s.buckets.limit:
        make_room(s)
        found = verdict(s.buckets, staged)
    if found != OPEN and staged.kept() < 2:
        note_oldest(s)
    staged.spill(found)
    s.created += found == OPEN
    s.known.index = -1
    return 0


cdef int verdict(Buckets b, Staged staged) noexcept nogil:
    cdef const Slot* old = staged.at(staged.base)
    cdef const Slot* newest
    if staged.irrelevant():
        return FORWARD
    if staged.kept() == 0:
        return OPEN
    newest = staged.stored.leaf(staged.stored.tail - 1)
    if newest[H_T_LAST].i > old[H_T_FIRST].i:
        return OPEN
    if staged.hides(old, newest) or not staged.candidate(old):
        return JOIN
    return JOIN if b.limit and staged.kept() >= b.limit and staged.stored_wants(old) else OPEN
