"""A block of readings through a window of few, on flat arrays: what AMTA does, without looking for chunks.

In so small a window the leftmost tree changes every few readings. The nodes of a level stand in one array, whose pointer is
such that node i is at i (what is before the window's first is room that is read and not used). R0 for every head of the leftmost
tree stands in `lefts` (see amta.glide); the operands and their order are those of single calls.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.eights cimport EIGHT, LEVELS_OF_EIGHT, Eights, combine_pairs, last_lefts_of_eight, lefts_of_eight
from sluicegate.partials.kernels cimport Add, Greatest, Least, Op, combine_by, copy_by, width_of
from sluicegate.partials.program cimport Program, Slot

cdef extern from "little.h" nogil:
    ctypedef struct Steady "sluicegate_little":  # of partials that are one number
        double* level[12]
        double* lefts
        int64_t head
        int64_t tail
        double left
        double right
        double base

    void steady_add "sluicegate_little_add"(Steady* to, int64_t n, double* totals)
    void steady_least "sluicegate_little_least"(Steady* to, int64_t n, double* totals)
    void steady_greatest "sluicegate_little_greatest"(Steady* to, int64_t n, double* totals)

cdef enum:
    LEAST_STEADY = 15  # readings of the window at least, where one leaves for each that comes
    MOST_STEADY = 512  # and at most: flat arrays of 1,024 gained nothing
    LITTLE = 256  # readings of the window at most, else
    PIECE = 512  # readings at once
    LEVELS_OF_LITTLE = 12
    ROOM_BESIDE = 14 * (EIGHT + 2) + PIECE  # partials: between the levels, and totals nobody asked for

ctypedef struct Little:
    Slot* level[LEVELS_OF_LITTLE]
    Slot* lefts
    int64_t head
    int64_t tail
    int depth
    bint has_right
    bint has_base
    Slot left[3]
    Slot right[3]
    Slot base[3]


cdef inline int64_t end_of(const Little* t, int level) noexcept nogil:
    return ((t.tail + 1) >> level) - 1


cdef inline void measure_little(Little* t) noexcept nogil:
    while (t.head >> t.depth) < end_of(t, t.depth):
        t.depth += 1
    while t.depth > 0 and (t.head >> (t.depth - 1)) >= end_of(t, t.depth - 1):
        t.depth -= 1


cdef inline int64_t end_of_left(const Little* t) noexcept nogil:
    """The first leaf after the leftmost tree."""
    return end_of(t, t.depth - 1) << (t.depth - 1)


cdef inline void find_lefts(Little* t, Op op, const Program* p) noexcept nogil:
    """R0 for each head after the present one in the leftmost tree."""
    cdef int w = width_of(op, p), level
    cdef int64_t end = end_of_left(t), group = (t.head + 1) & -EIGHT
    cdef Eights e
    if t.depth <= LEVELS_OF_EIGHT:
        find_lefts_by(t, op, p, end, 1, 0)
        return
    find_lefts_by(t, op, p, end, EIGHT, LEVELS_OF_EIGHT)
    for level in range(LEVELS_OF_EIGHT):
        e.node[level] = t.level[level] + (group >> level) * w
    while group < end:
        if group + EIGHT < end:
            lefts_of_eight(op, p, w, &e, t.lefts + group * w)
        else:
            last_lefts_of_eight(op, p, w, &e, t.lefts + group * w)
        for level in range(LEVELS_OF_EIGHT):
            e.node[level] += (EIGHT >> level) * w
        group += EIGHT


cdef inline void find_lefts_by(Little* t, Op op, const Program* p, int64_t end, int64_t step, int lowest) noexcept nogil:
    """The same for the heads that are multiples of `step`, two to the power of `lowest`."""
    cdef int w = width_of(op, p), level
    cdef int64_t h = end - step, follows
    while h > t.head:
        level = lowest
        while not (h >> level) & 1:
            level += 1
        follows = h + ((<int64_t> 1) << level)
        if follows < end:
            combine_by(op, p, t.lefts + h * w, t.level[level] + (h >> level) * w, t.lefts + follows * w)
        else:
            copy_by(op, p, t.lefts + h * w, t.level[level] + (h >> level) * w)
        h -= step


cdef inline void restart_left(Little* t, Op op, const Program* p) noexcept nogil:
    """R0 from the leaves and the stack (Algorithm 4)."""
    cdef int w = width_of(op, p)
    if t.head + 1 < end_of_left(t):
        combine_by(op, p, t.left, t.level[0] + t.head * w, t.lefts + (t.head + 1) * w)
    else:
        copy_by(op, p, t.left, t.level[0] + t.head * w)


cdef inline void restart_right(Little* t, Op op, const Program* p) noexcept nogil:
    """R1 from the last pair of each level but the topmost (Algorithm 5)."""
    cdef int w = width_of(op, p), level
    cdef int64_t last = t.tail - 1
    cdef const Slot* newest = t.level[0] + last * w
    cdef Slot pair[3]
    t.has_right = t.depth > 1
    t.has_base = t.has_right and last & 1
    if not t.has_right:
        return
    if t.has_base:
        copy_by(op, p, t.base, newest - w)
    for level in range(1, t.depth - 1):
        last = end_of(t, level) - 1
        if last & 1:
            combine_by(op, p, pair, t.level[level] + (last - 1) * w, t.level[level] + last * w)
        else:
            copy_by(op, p, pair, t.level[level] + last * w)
        if t.has_base:
            combine_by(op, p, t.base, pair, t.base)
        else:
            copy_by(op, p, t.base, pair)
            t.has_base = True
    if t.has_base:
        combine_by(op, p, t.right, t.base, newest)
    else:
        copy_by(op, p, t.right, newest)


cdef inline int64_t quiet_little(const Little* t, int64_t n) noexcept nogil:
    """How many readings neither let the leftmost tree grow nor lower it; one leaves for each at most."""
    cdef int top = t.depth - 1
    cdef int64_t most
    if top < 1 or not t.has_right:
        return 0
    most = ((((t.tail + 1) >> top) + 1) << top) - t.tail - 2
    most = min(min(most, end_of_left(t) - 1 - t.head), n)
    return max(most, 0)


cdef inline void glide_little(
    Little* t, Op op, const Program* p, const int64_t* heads, Slot* totals, int64_t k
) noexcept nogil:
    cdef int w = width_of(op, p)
    cdef const Slot* leaves = t.level[0] + t.tail * w
    cdef int64_t j, before = t.head
    cdef Slot right[3]
    copy_by(op, p, t.lefts + before * w, t.left)
    copy_by(op, p, right, t.right)
    for j in range(k - 1):
        combine_by(op, p, right, right, leaves + j * w)
        combine_by(op, p, totals + j * w, t.lefts + heads[j] * w, right)
    copy_by(op, p, t.base, right)
    combine_by(op, p, right, right, leaves + (k - 1) * w)
    combine_by(op, p, totals + (k - 1) * w, t.lefts + heads[k - 1] * w, right)
    copy_by(op, p, t.right, right)
    t.has_base = True
    t.tail += k
    t.head = heads[k - 1]
    copy_by(op, p, t.left, t.lefts + t.head * w)


cdef inline void step_little(Little* t, Op op, const Program* p, int64_t head, Slot* total) noexcept nogil:
    """One reading that changes the leftmost tree, and what leaves with it: R0 and R1 are taken once, after both."""
    cdef int w = width_of(op, p), before = t.depth
    cdef bint grown, fell = False
    t.tail += 1
    measure_little(t)
    grown = before == 0 or t.depth == before and not (t.tail + 1) & (((<int64_t> 1) << (before - 1)) - 1)
    if grown:
        find_lefts(t, op, p)
    else:
        t.has_base = t.has_right
        if t.has_base:
            copy_by(op, p, t.base, t.right)
            combine_by(op, p, t.right, t.base, t.level[0] + (t.tail - 1) * w)
        else:
            copy_by(op, p, t.right, t.level[0] + (t.tail - 1) * w)
        t.has_right = True
    if head > t.head:
        before = t.depth
        t.head = head
        measure_little(t)
        fell = t.depth < before
        if fell and t.depth:
            find_lefts(t, op, p)
        elif t.depth:
            copy_by(op, p, t.left, t.lefts + head * w)
    elif grown:
        restart_left(t, op, p)
    if fell and t.depth:
        restart_left(t, op, p)
    if (grown or fell) and t.depth:
        restart_right(t, op, p)
    elif not t.depth:
        t.has_right = t.has_base = False
    if t.head < t.tail:
        if t.has_right:
            combine_by(op, p, total, t.left, t.right)
        else:
            copy_by(op, p, total, t.left)


cdef inline void run_steadily(Little* t, Op op, Slot* totals, int64_t n) noexcept nogil:
    """run_little for partials of one number while one reading leaves for each that comes: the same combinations, in loops of C."""
    cdef Steady s
    cdef int level
    for level in range(LEVELS_OF_LITTLE):
        s.level[level] = <double*> t.level[level]
    s.lefts, s.head, s.tail = <double*> t.lefts, t.head, t.tail
    s.left, s.right, s.base = t.left[0].f, t.right[0].f, t.base[0].f
    if Op is Add:
        steady_add(&s, n, <double*> totals)
    elif Op is Least:
        steady_least(&s, n, <double*> totals)
    elif Op is Greatest:
        steady_greatest(&s, n, <double*> totals)
    t.head, t.tail, t.has_right, t.has_base = s.head, s.tail, True, True
    measure_little(t)
    t.left[0].f, t.right[0].f, t.base[0].f = s.left, s.right, s.base


cdef inline void run_little(
    Little* t, Op op, const Program* p, const int64_t* heads, Slot* totals, int64_t n
) noexcept nogil:
    """n readings whose leaves, and the nodes above them, are in the arrays; `totals` has room for as many."""
    cdef int w = width_of(op, p)
    cdef int64_t i = 0, k
    if t.depth:
        find_lefts(t, op, p)
    while i < n:
        k = quiet_little(t, n - i)
        if k > 0:
            glide_little(t, op, p, heads + i, totals + i * w, k)
            i += k
        else:
            step_little(t, op, p, heads[i], totals + i * w)
            i += 1


cdef inline void raise_little(Little* t, Op op, const Program* p, int64_t n) noexcept nogil:
    """The nodes that n leaves more complete, and the parents of the last pairs, which single readings make later."""
    cdef int w = width_of(op, p), level
    cdef int64_t index, end
    cdef const Slot* pairs
    cdef Slot* nodes
    for level in range(1, LEVELS_OF_LITTLE):
        index, end = max(((t.tail + 1) >> level) - 1, t.head >> level), (t.tail + n) >> level
        if index >= end:
            return
        pairs, nodes = t.level[level - 1] + 2 * index * w, t.level[level] + index * w
        if 2 * index < t.head >> (level - 1):  # its left half has left
            copy_by(op, p, nodes, pairs + w)
            pairs, nodes, index = pairs + 2 * w, nodes + w, index + 1
        combine_pairs(op, p, w, nodes, pairs, end - index)
