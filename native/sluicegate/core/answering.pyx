"""What a window of buckets answers, and between which values the exact result lies; see answering.pxd."""

from libc.stdint cimport INT64_MIN, int64_t
from libc.stdlib cimport malloc

from sluicegate.answers.intervals cimport Interval, clamp, interval
from sluicegate.answers.results cimport BY_COUNT, BY_TIME, K_RATE, bucket_answer, cut_leaf
from sluicegate.partials.program cimport H_COUNT, Slot, combine

from sluicegate.bounds.told import answer as told_answer
from sluicegate.bounds.told import bounded as told_bounded
from sluicegate.bounds.told import numbers as told_numbers
from sluicegate.bounds.view import View as SeenView
from sluicegate.monoids.monoid import COLUMNLESS as _COLUMNLESS
from sluicegate.records import Bounded
from sluicegate.records import Cut as CutTuple


# to Python

cdef list bounded(State s):
    """Each aggregate's result with its certain interval; None of a window that is empty or has no buckets."""
    cdef View v
    return told(s, &v, True) if s.bucketed and view(s, &v) else None


cdef list answers_over(State s, bytes oldest, bytes newer, int policy, int64_t cutoff, int64_t evicted, bint bounds):
    """The same, of a shorter window over the same buckets; see `Core.answers_over`."""
    cdef View v
    if s.seen == NULL:
        s.seen = <Slot*> malloc(s.p.width * sizeof(Slot))
        if s.seen == NULL:
            raise MemoryError(f"window: no memory for a partial of {s.p.width} slots")
    v.leaf = v.total = s.unpack(oldest)
    v.rest = s.unpack(newer) if newer else NULL
    if newer:
        combine(&s.p, s.seen, v.leaf, v.rest)
        v.total = s.seen
    v.where = cut_leaf(&s.p, v.leaf, policy, cutoff, evicted)
    v.whole, v.cutoff = v.where.least == v.leaf[H_COUNT].i, cutoff if policy == BY_TIME else INT64_MIN
    v.late, v.limit = False, s.buckets.limit
    if policy == BY_TIME and s.late_buckets is not None:
        s.late_buckets.add_to(&v)
    return told(s, &v, bounds)


cdef list told(State s, const View* v, bint bounds):
    cdef const Output* o
    cdef Interval found
    cdef Slot value
    cdef int k
    answers = []
    for k in range(s.answers):
        o = &s.outputs[k]
        if o.kind >= K_RATE:
            answers.append((told_bounded if bounds else told_answer)(seen(s, v), s._layout.monoids[k]))
            continue
        value = bucket_answer(o, v, s.center[o.dimension])
        if bounds:
            found = interval(o, v, value, s.center[o.dimension])
            answers.append(bounded_of(o, clamp(o, value, &found), &found))
        else:
            answers.append(number_of(o, value))
    return answers


cdef object seen(State s, const View* v):
    """What sluicegate.bounds.told takes its answers from."""
    unpack = s._layout.format.unpack
    rest = unpack(s.pack(v.rest)) if v.rest != NULL else None
    where = CutTuple(v.where.least, v.where.most, v.where.taken)
    cutoff = v.cutoff if v.cutoff != INT64_MIN else None
    centers = tuple([s.center[k] for k in range(s.p.dimensions)])
    return SeenView(s._layout, unpack(s.pack(v.total)), rest, unpack(s.pack(v.leaf)), where, cutoff, centers, v.late)


# after a reading of a batch

cdef void answer_now(State s, double** out, int64_t row, bint bounds) noexcept nogil:
    """The answers as they are, to one row."""
    cdef int k
    cdef View v
    if view(s, &v):
        answer_row(s, &v, out, row, bounds)
        return
    for k in range(s.answers * (3 if bounds else 1)):
        out[k][row] = of_nothing(s.outputs[k % s.answers].kind)


cdef void answer_row(State s, const View* v, double** out, int64_t row, bint bounds) noexcept nogil:
    cdef int k, n = s.answers
    cdef const Output* o
    cdef Interval found
    cdef Slot value
    for k in range(n):
        o = &s.outputs[k]
        if o.kind >= K_RATE:
            told_row(s, k, v, out, row, bounds)
            continue
        value = bucket_answer(o, v, s.center[o.dimension])
        if bounds:
            found = interval(o, v, value, s.center[o.dimension])
            value = clamp(o, value, &found)
            out[n + k][row], out[2 * n + k][row] = in_column(o.kind, found.low), in_column(o.kind, found.high)
        out[k][row] = in_column(o.kind, value)


cdef void told_row(State s, int k, const View* v, double** out, int64_t row, bint bounds) noexcept with gil:
    """What Python tells, in its columns; a histogram and other answers that are no numbers have none."""
    cdef int n = s.answers
    monoid = s._layout.monoids[k]
    value, low, high = (NAN, NAN, NAN) if monoid.kind in _COLUMNLESS else told_numbers(seen(s, v), monoid, bounds)
    out[k][row] = value
    if bounds:
        out[n + k][row], out[2 * n + k][row] = low, high


# what is seen of the window

cdef bint view(State s, View* v) noexcept nogil:
    """The window as it is, with where its edge cuts the oldest bucket; False where it is empty."""
    cdef int64_t cutoff, edge = s.edge
    v.total = s.engine.total()
    if v.total == NULL:
        return False
    v.rest, v.leaf = s.engine.rest(), s.engine.leaf(s.engine.head)
    cutoff = s.cut_off()
    if s.policy == BY_COUNT:
        edge = max(edge, cutoff - 1)
    v.where = cut_leaf(&s.p, v.leaf, s.policy, cutoff, edge)
    v.whole = v.where.least == v.leaf[H_COUNT].i
    v.cutoff = s.time_cutoff() if s.policy == BY_TIME else INT64_MIN
    v.late, v.limit = False, s.buckets.limit
    if s.late_buckets is not None and s.late_buckets.n:
        s.late_buckets.evict(v.cutoff)
        s.late_buckets.add_to(v)
    return True


cdef object bounded_of(const Output* o, Slot value, const Interval* found):
    if is_whole(o.kind):
        return Bounded(value.i, found.low.i, found.high.i, found.exact)
    if isnan(found.low.f):
        return Bounded(None, None, None, True)
    return Bounded(value.f, found.low.f, found.high.f, found.exact)
