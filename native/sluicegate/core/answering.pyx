"""What a window of buckets answers, and between which values the exact result lies; see answering.pxd."""

from libc.math cimport NAN, isnan
from libc.stdint cimport INT64_MIN, int64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

from sluicegate.answers.intervals cimport Interval, clamp, interval
from sluicegate.answers.results cimport (
    BY_COUNT, BY_TIME, K_COUNT, K_FIRST, K_LAST, K_MAX, K_MEAN, K_MIN, K_RANGE, K_RATE, K_SUM, Output,
    View, bucket_answer, cut_leaf, is_whole,
)
from sluicegate.core.state cimport State
from sluicegate.joining.placing cimport join_run
from sluicegate.partials.program cimport H_COUNT, HIGH, LAST, LOW, PREFIX, Slot, combine, fold, greatest, least

from sluicegate.bounds.told import answer as told_answer
from sluicegate.bounds.told import bounded as told_bounded
from sluicegate.bounds.told import numbers as told_numbers
from sluicegate.bounds.view import View as SeenView
from sluicegate.monoids.monoid import COLUMNLESS as _COLUMNLESS
from sluicegate.records import Bounded
from sluicegate.records import Cut as CutTuple


cdef bint has_room(State s) noexcept nogil:
    """Whether there is memory for a run's partials."""
    if s.seen == NULL:
        s.seen = <Slot*> malloc(3 * s.p.width * sizeof(Slot))
    return s.seen != NULL


# to Python

cdef list bounded(State s):
    """Each aggregate's result with its certain interval; None of a window that is empty or has no buckets."""
    cdef View v
    return told(s, &v, True) if s.bucketed and view(s, &v) else None


cdef list answers_over(
    State s, bytes oldest, bytes newer, int policy, int64_t cutoff, int64_t evicted, bint bounds
):
    """The same, of a shorter window over the same buckets; see `Core.answers_over`."""
    cdef View v
    if not has_room(s):
        raise MemoryError(f"window: no memory for partials of {s.p.width} slots")
    v.leaf = v.total = s.unpack(oldest)
    v.rest = s.unpack(newer) if newer else NULL
    if newer:
        combine(&s.p, s.seen, v.leaf, v.rest)
        v.total = s.seen
    v.where = cut_leaf(&s.p, v.leaf, policy, cutoff, evicted)
    v.whole, v.cutoff = v.where.least == v.leaf[H_COUNT].i, cutoff if policy == BY_TIME else INT64_MIN
    v.late = False
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
        value = bucket_answer(o, v.total, v.rest, v.leaf, v.where, s.center[o.dimension])
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


# after each reading of a batch

cdef int64_t answer_run(
    State s, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
) noexcept nogil:
    """Let the newest bucket take what joins, with the answers after each; how many readings these are."""
    cdef int64_t before = s.accepted, newest = s.newest, edge = s.edge, width = s.p.width, i, n, time
    cdef const Slot* left
    cdef const Slot* top
    cdef const Slot* base
    cdef Slot* joined
    cdef Slot* rest
    cdef Slot* total
    cdef View v
    cdef bint swift = reads_little(s)
    if s.p.folds < 0 or not has_room(s) or not s.engine.around(&left, &top, &base):
        return 0
    joined, rest, total = s.seen, s.seen + width, s.seen + 2 * width
    memcpy(joined, s.engine.leaf(s.engine.tail - 1), width * sizeof(Slot))
    memcpy(total, left, width * sizeof(Slot))  # for the first reading, which stays
    v.leaf, v.total = s.engine.leaf(s.engine.head), total
    n = join_run(s, values, times, count)
    for i in range(n):  # total = left ⊕ (base ⊕ newest bucket), rest = top ⊕ (base ⊕ newest bucket)
        time = before + i if times == NULL else times[i]
        newest = max(newest, time)
        fold(&s.p, joined, values + i * s.p.dimensions, time, before + i, s.center)
        v.rest = joined
        if base != NULL:
            combine_read(s, swift, rest, base, joined)
            v.rest = rest
        combine_read(s, swift, total, left, v.rest)
        if top != NULL:
            combine_read(s, swift, rest, top, v.rest)
            v.rest = rest
        cut_at(s, &v, before + i + 1 if s.policy == BY_COUNT else newest, edge)
        answer_row(s, &v, out, row + i, bounds)
    return n


cdef bint reads_little(State s) noexcept nogil:
    """Whether the answers read counts, sums, extremes and ends of a partial, and nothing else."""
    cdef int k, kind
    for k in range(s.answers):
        kind = s.outputs[k].kind
        if not (
            kind == K_COUNT or kind == K_SUM or kind == K_MEAN or kind == K_MIN or kind == K_MAX or kind == K_FIRST
            or kind == K_LAST or kind == K_RANGE
        ):
            return False
    return True


cdef inline void combine_read(State s, bint swift, Slot* out, const Slot* a, const Slot* b) noexcept nogil:
    """Combine two partials as far as answers read them: of counts, sums, extremes and ends only these."""
    cdef int k, op, at
    if not swift:
        combine(&s.p, out, a, b)
        return
    out[H_COUNT].i = a[H_COUNT].i + b[H_COUNT].i
    for k in range(s.p.folds):
        op, at = s.p.fold[k].op, s.p.fold[k].slot
        if op == PREFIX:
            out[at].f = a[at].f + b[at].f
        elif op == LOW:
            out[at].f = least(a[at].f, b[at].f)
        elif op == HIGH:
            out[at].f = greatest(a[at].f, b[at].f)
        elif op == LAST:
            out[at] = b[at]


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
        value = bucket_answer(o, v.total, v.rest, v.leaf, v.where, s.center[o.dimension])
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
    """The window as it is; False where it is empty."""
    v.total = s.engine.total()
    if v.total == NULL:
        return False
    v.rest, v.leaf = s.engine.rest(), s.engine.leaf(s.engine.head)
    cut_at(s, v, s.accepted if s.policy == BY_COUNT else s.newest, s.edge)
    if s.late_buckets is not None and s.late_buckets.n:
        s.late_buckets.evict(v.cutoff)
        s.late_buckets.add_to(v)
    return True


cdef void cut_at(State s, View* v, int64_t last, int64_t edge) noexcept nogil:
    """Where the edge cuts the oldest bucket when `last` readings are in, or `last` is the newest time."""
    cdef int64_t cutoff = s.cut_off_at(last)
    if s.policy == BY_COUNT:
        edge = max(edge, cutoff - 1)
    v.where = cut_leaf(&s.p, v.leaf, s.policy, cutoff, edge)
    v.whole = v.where.least == v.leaf[H_COUNT].i
    v.cutoff = s.time_cutoff_at(last) if s.policy == BY_TIME else INT64_MIN
    v.late = False


cdef object bounded_of(const Output* o, Slot value, const Interval* found):
    if is_whole(o.kind):
        return Bounded(value.i, found.low.i, found.high.i, found.exact)
    if isnan(found.low.f):
        return Bounded(None, None, None, True)
    return Bounded(value.f, found.low.f, found.high.f, found.exact)
