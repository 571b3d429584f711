"""Many small buckets of a sum-like histogram at once; see bucket_blocks.pxd."""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from sluicegate.engines.amta cimport LEVELS, Amta
from sluicegate.engines.answering cimport Answering
from sluicegate.engines.answers cimport K_SUM, Output
from sluicegate.engines.chunks cimport Queue, at, prefetch, run_at
from sluicegate.engines.opening cimport lift_bucket
from sluicegate.engines.program cimport (
    H_COUNT, H_O_FIRST, Program, Slot, append_closed, combine_bucket, copy, greatest, least,
)
from sluicegate.engines.small cimport Sight
from sluicegate.histograms._sum_like cimport Sum

cdef enum:
    MOST = 768  # readings: what is noted of them takes some 50 KB of the stack
    LONGEST = 16  # of a bucket: a longer one is none of these
    TOLD = 4  # readings of a bucket, as far as their number is looked up
    SPARE = 4  # on either side of what belongs to a reading: buckets up to TOLD are written without asking where they end


cdef extern from "bucket_lanes.h" nogil:
    void bucket_lengths(const double* x, int64_t n, double allowed, int64_t* lengths)
    void bucket_means(
        const double* outer, const double* base, const double* newest, const double* taken, int64_t n, double center, double readings,
        double* out)
    void bucket_sums(
        const double* outer, const double* base, const double* newest, const double* taken, int64_t n, double center, double readings,
        double* out)


ctypedef struct Opened:  # the buckets of a block: the k-th takes readings start[k] … start[k + 1] − 1
    int64_t k
    int64_t n  # readings of them all
    int64_t soon  # leaves that the next block looks at as the oldest: from this one on they are to be fetched
    int64_t later
    short start[MOST + 1]
    short alike[TOLD][MOST + 1]  # those of 1, 2 and 3 readings, and of more
    int many[TOLD]

ctypedef struct Left:  # the buckets that are the oldest after some of those readings, from the head on
    int64_t first
    int64_t last
    short alike[TOLD][MOST + 1]
    int many[TOLD]
    double sums[MOST + 3]  # of R0 from each of them on, and from the one after the last

ctypedef struct Parts:  # of each answer
    double outer[MOST + 2 * SPARE]
    double base[MOST + 2 * SPARE]
    double newest[MOST + 2 * SPARE]
    double taken[MOST + 2 * SPARE]


cdef int64_t open_many(
    Answering self, Amta forest, const Sight* s, const double* values, const int64_t* times, int64_t count, double* out
) except -1 nogil:
    cdef Opened opened
    cdef Left left
    cdef Parts parts
    cdef int64_t most = min(min(count, MOST), self.rules.due_at - self.accepted)
    if not may_open_many(self, forest, s, most):
        return 0
    most = in_order(times, most)
    if most < LEAST_OPENED:
        return 0
    find_lengths(s, values, most, &opened)
    opened.k = min(opened.k, until_tree_grows(forest))
    opened.n = opened.start[opened.k]
    if opened.n < LEAST_OPENED // 2 or not find_left(self, forest, opened.n, &left):
        return 0
    forest.make_room_for(forest.tail + opened.k)
    opened.soon, opened.later = left.last + 1, 2 * left.last + 1 - left.first
    lift_all(self, &opened, values, times, parts.newest + SPARE)
    raise_all(forest, opened.k)
    close_all(self, forest, &opened, parts.base + SPARE)
    leave_all(self, forest, &left)
    if out != NULL:
        answer_all(self, &left, &parts, opened.n, out)
    settle_all(self, s.ruling, &opened, values, times)
    return opened.n


cdef inline bint may_open_many(Answering self, Amta forest, const Sight* s, int64_t most) noexcept nogil:
    """Whether the answers are those of a full window, and both results are there."""
    if most < LEAST_OPENED or s.ruling == NULL or not s.ruling.limit < INFINITY or self.limit or self.edge != self.accepted - self.value - 1:
        return False
    forest.unsettle()
    return forest.depth > 2 and forest.has_base and forest.has_right


cdef inline int64_t in_order(const int64_t* times, int64_t most) noexcept nogil:
    """How many readings come before one that is late."""
    cdef int64_t n = 1
    if times == NULL:
        return most
    while n < most and times[n] >= times[n - 1]:
        n += 1
    return n


cdef inline int64_t until_tree_grows(Amta forest) noexcept nogil:
    """So many leaves leave the leftmost tree as it is."""
    cdef int top = forest.depth - 1
    return ((((forest.tail + 1) >> top) + 1) << top) - forest.tail - 2


# which readings a bucket takes

cdef void find_lengths(const Sight* s, const double* values, int64_t n, Opened* opened) noexcept nogil:
    """The buckets that are closed by one of these readings."""
    cdef double last[2 * TOLD]
    cdef int64_t lengths[MOST]
    cdef int64_t i = 0, length
    cdef int k = 0, kind
    memcpy(last, values + n - TOLD, TOLD * sizeof(double))
    for kind in range(TOLD):
        last[TOLD + kind] = INFINITY  # joins nothing
        opened.many[kind] = 0
    bucket_lengths(values, n - TOLD, s.ruling.limit, lengths)
    bucket_lengths(last, TOLD, s.ruling.limit, lengths + n - TOLD)
    while i < n:
        length = lengths[i]
        if length == TOLD:
            length = whole_length(s.ruling.limit, values + i, min(n - i, LONGEST))
        length = min(length, s.longest)
        opened.start[k] = <short> i
        if length >= LONGEST or i + length >= n:
            break
        kind = <int> min(length, TOLD) - 1
        opened.alike[kind][opened.many[kind]] = <short> k
        opened.many[kind] += 1
        k += 1
        i += length
    opened.k = k


cdef int64_t whole_length(double allowed, const double* x, int64_t most) noexcept nogil:
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


# what the next block reads and writes is fetched meanwhile: a window of many is larger than any cache

cdef extern from *:
    int zeros_below "__builtin_ctzll"(uint64_t number) noexcept nogil


cdef inline void fetch_old(Amta forest, int64_t head) noexcept nogil:
    """A bucket that is the oldest soon, and the node whose sum R0 of it takes; where there is none nothing is fetched."""
    cdef const Slot* leaf = node(forest, 0, head)
    cdef int level = min(zeros_below(head), forest.depth - 1)
    prefetch(leaf)
    prefetch(leaf + 8)
    prefetch(leaf + 16)
    prefetch(leaf + 19)
    prefetch(node(forest, level, head >> level) + 5)


# the new buckets

cdef inline Slot* node(Amta forest, int level, int64_t index) noexcept nogil:
    return at(&forest.pool, &forest.level[(forest.base + level) & (LEVELS - 1)], forest.p.width, index)


cdef inline void lift_one(
    Answering self, Opened* opened, int k, int64_t n, const double* values, const int64_t* times, double* totals
) noexcept nogil:
    cdef int64_t i = opened.start[k]
    cdef const int64_t* when = NULL
    if opened.soon < opened.later:
        fetch_old(self.forest, opened.soon)
        fetch_old(self.forest, opened.soon + 1)
        opened.soon += 2
    if times != NULL:
        when = times + i
    lift_bucket(
        &self.p, node(self.forest, 0, self.forest.tail + k), NULL, values + i, when, self.accepted + i, n, self.center[0], totals + i
    )


cdef void lift_all(Answering self, Opened* opened, const double* values, const int64_t* times, double* totals) noexcept nogil:
    """In the order of their lengths: then no loop's end is a surprise."""
    cdef int j, k
    for j in range(opened.many[0]):
        if opened.alike[0][j] < opened.k:
            lift_one(self, opened, opened.alike[0][j], 1, values, times, totals)
    for j in range(opened.many[1]):
        if opened.alike[1][j] < opened.k:
            lift_one(self, opened, opened.alike[1][j], 2, values, times, totals)
    for j in range(opened.many[2]):
        if opened.alike[2][j] < opened.k:
            lift_one(self, opened, opened.alike[2][j], 3, values, times, totals)
    for j in range(opened.many[3]):
        k = opened.alike[3][j]
        if k < opened.k:
            lift_one(self, opened, k, opened.start[k + 1] - opened.start[k], values, times, totals)


cdef void raise_all(Amta forest, int64_t k) noexcept nogil:
    """The leaves are there: now their parents, level by level, as `raise_level`."""
    cdef int64_t before = forest.tail, after = before + k, index, end
    cdef int level = 1
    while True:
        index, end = ((before + 1) >> level) - 1, ((after + 1) >> level) - 1
        if index >= end:
            break
        raise_level(forest, level, index, end)
        level += 1
    forest.tail = after


cdef inline void raise_level(Amta forest, int level, int64_t index, int64_t end) noexcept nogil:
    cdef const Queue* below = &forest.level[(forest.base + level - 1) & (LEVELS - 1)]
    cdef const Queue* queue = &forest.level[(forest.base + level) & (LEVELS - 1)]
    cdef int64_t n
    cdef int w = forest.p.width
    cdef const Slot* pair
    cdef Slot* out
    while index < end:
        n = min(min(run_at(queue, index), run_at(below, 2 * index) >> 1), end - index)
        pair, out = at(&forest.pool, below, w, 2 * index), at(&forest.pool, queue, w, index)
        index += n
        while n:
            combine_bucket(forest.p, out, pair, pair + w)
            out, pair, n = out + w, pair + 2 * w, n - 1


cdef void close_all(Answering self, Amta forest, const Opened* opened, double* base) noexcept nogil:
    """Each bucket before the newest becomes part of what R1 is taken from; the sum of that beside each reading."""
    cdef int64_t newest = forest.tail - opened.k - 1, i
    cdef int k, prefix = self.outputs[0].prefix
    cdef double sum
    for k in range(opened.k):
        append_closed(forest.p, forest.base_of_right, node(forest, 0, newest + k))
        sum = forest.base_of_right[prefix].f
        for i in range(TOLD):
            base[opened.start[k] + i] = sum
        for i in range(opened.start[k] + TOLD, opened.start[k + 1]):
            base[i] = sum
    forest.has_right = forest.stale = True


# what leaves

cdef bint find_left(Answering self, Amta forest, int64_t n, Left* left) noexcept nogil:
    """The oldest buckets of the next n readings; False: the leftmost tree does not stay what it is."""
    cdef int64_t head = forest.head, after = self.accepted + n - self.value, end, size
    cdef int64_t last = ((((forest.tail + 1) >> (forest.depth - 1)) - 1) << (forest.depth - 1)) - 1
    cdef const Slot* leaf
    cdef int kind
    for kind in range(TOLD):
        left.many[kind] = 0
    while True:
        leaf = node(forest, 0, head)
        size = leaf[H_COUNT].i
        kind = <int> min(size, TOLD) - 1
        left.alike[kind][left.many[kind]] = <short> (head - forest.head)
        left.many[kind] += 1
        if leaf[H_O_FIRST].i + size > after:
            break
        head += 1
        if head > last or head - forest.head > MOST:
            return False
    left.first, left.last = forest.head, head
    return True


cdef void leave_all(Answering self, Amta forest, Left* left) noexcept nogil:
    """The head to the last of these: R0 and the stack for that one, and of the R0s in between the sum."""
    cdef int prefix = self.outputs[0].prefix, level = 0
    cdef int64_t first = left.first, last = left.last
    left.sums[0] = forest.left[prefix].f
    if first < last:
        while level < forest.depth and first >> level != last >> level:
            level += 1
        forest.head, forest.stacked = last, kept_of_stack(forest, last, level)
        while level > 0:
            level -= 1
            sums_of_level(forest, left, level, prefix)
            if last & ((<int64_t> 2 << level) - 1) == <int64_t> 1 << level:
                combine_top(forest, forest.left, node(forest, level, last >> level))
            if not (last >> level) & 1 and (last >> level) + 1 < forest.end(level):
                combine_top(forest, forest.stack + forest.stacked * forest.p.width, node(forest, level, (last >> level) + 1))
                forest.stacked += 1
        forest.let_go()
    left.sums[last + 1 - first] = top_of(forest, prefix)


cdef inline int kept_of_stack(Amta forest, int64_t head, int level) noexcept nogil:
    """Its elements from this level on, which heads with the same first node there have in common."""
    cdef int kept = 0
    while level < forest.depth:
        kept += not (head >> level) & 1 and (head >> level) + 1 < forest.end(level)
        level += 1
    return kept


cdef inline double top_of(Amta forest, int prefix) noexcept nogil:
    """−0.0 adds nothing, not even a sign."""
    return forest.stack[(forest.stacked - 1) * forest.p.width + prefix].f if forest.stacked else -0.0


cdef inline void combine_top(Amta forest, Slot* out, const Slot* first) noexcept nogil:
    """What comes before the stack's top, with that."""
    if forest.stacked:
        combine_bucket(forest.p, out, first, forest.stack + (forest.stacked - 1) * forest.p.width)
    else:
        copy(forest.p, out, first)


cdef inline void sums_of_level(Amta forest, Left* left, int level, int prefix) noexcept nogil:
    """The sums of R0 for the heads with so many trailing zeros: a node, and R0 for the head after it."""
    cdef int64_t index = ((left.first >> level) + 1) | 1, head = index << level, leap = <int64_t> 1 << level
    cdef double* sums = left.sums - left.first
    while head + leap <= left.last:
        sums[head] = node(forest, level, index)[prefix].f + sums[head + leap]
        index += 2
        head += 2 * leap
    if head <= left.last:
        sums[head] = node(forest, level, index)[prefix].f + top_of(forest, prefix)


# the answers

cdef void answer_all(Answering self, const Left* left, Parts* parts, int64_t n, double* out) noexcept nogil:
    cdef const Output* o = self.outputs
    cdef int64_t begin = self.accepted + 1 - self.value  # of the first reading's answer
    cdef double* outer = parts.outer + SPARE
    cdef double* taken = parts.taken + SPARE
    cdef int j
    for j in range(left.many[0]):
        part_of_one(self, left, left.alike[0][j], begin, outer, taken)
    for j in range(left.many[1]):
        parts_of_few(self, left, left.alike[1][j], 2, begin, outer, taken)
    for j in range(left.many[2]):
        parts_of_few(self, left, left.alike[2][j], 3, begin, outer, taken)
    for j in range(left.many[3]):
        parts_of_many(self, left, left.alike[3][j], begin, n, outer, taken)
    if o.kind == K_SUM:
        bucket_sums(outer, parts.base + SPARE, parts.newest + SPARE, taken, n, self.center[0], <double> self.value, out)
    else:
        bucket_means(outer, parts.base + SPARE, parts.newest + SPARE, taken, n, self.center[0], <double> self.value, out)


cdef inline void part_of_one(Answering self, const Left* left, int h, int64_t begin, double* outer, double* taken) noexcept nogil:
    """A bucket of one reading is there or not."""
    cdef int64_t i = node(self.forest, 0, left.first + h)[H_O_FIRST].i - begin
    outer[i], taken[i] = left.sums[h], -0.0


ctypedef struct Cutting:  # as `Sums`
    double total
    double low
    double high
    double least
    double most
    double last
    double others


cdef inline void know(Cutting* k, const Output* o, const Slot* leaf, double center) noexcept nogil:
    k.total = leaf[o.prefix].f
    k.low, k.high = k.total - leaf[o.prefix + 2].f, k.total - leaf[o.prefix + 1].f
    k.least, k.most = leaf[o.low].f - center, leaf[o.high].f - center
    k.last, k.others = leaf[o.last].f - center, k.total - (leaf[o.first].f - center)


cdef inline double given(const Cutting* k, double c, double size) noexcept nogil:
    """As small.taken_of: what the newest c of its readings give."""
    cdef double bottom = greatest(greatest(k.low, k.last + (c - 1.0) * k.least), k.others - (size - 1.0 - c) * k.most)
    cdef double ceiling = least(least(k.high, k.last + (c - 1.0) * k.most), k.others - (size - 1.0 - c) * k.least)
    return least(greatest(k.total * c / size, bottom), ceiling)


cdef inline void parts_of_few(
    Answering self, const Left* left, int h, int size, int64_t begin, double* outer, double* taken
) noexcept nogil:
    cdef const Slot* leaf = node(self.forest, 0, left.first + h)
    cdef int64_t i = leaf[H_O_FIRST].i - begin
    cdef Cutting k
    cdef int out
    know(&k, self.outputs, leaf, self.center[0])
    outer[i], taken[i] = left.sums[h], -0.0
    for out in range(1, size):
        outer[i + out], taken[i + out] = left.sums[h + 1], given(&k, <double> (size - out), <double> size)


cdef void parts_of_many(
    Answering self, const Left* left, int h, int64_t begin, int64_t n, double* outer, double* taken
) noexcept nogil:
    cdef const Slot* leaf = node(self.forest, 0, left.first + h)
    cdef int64_t first = leaf[H_O_FIRST].i - begin, size = leaf[H_COUNT].i, i
    cdef Cutting k
    know(&k, self.outputs, leaf, self.center[0])
    if first >= 0:
        outer[first], taken[first] = left.sums[h], -0.0
    for i in range(max(first + 1, 0), min(first + size, n)):
        outer[i], taken[i] = left.sums[h + 1], given(&k, <double> (first + size - i), <double> size)


cdef void settle_all(Answering self, Sum* ruling, const Opened* opened, const double* values, const int64_t* times) noexcept nogil:
    """What the window and its rule know after these readings, should there be no memory for the next bucket."""
    cdef int64_t i = opened.start[opened.k - 1], n = opened.n
    self.rules.sums.n = n - i
    ruling.sum, ruling.low, ruling.high = values[i], INFINITY, -INFINITY
    for i in range(i + 1, n):
        ruling.low, ruling.high = least(ruling.low, ruling.sum), greatest(ruling.high, ruling.sum)
        ruling.sum = ruling.sum + values[i]
    self.latest = values[n - 1]
    self.newest = max(self.newest, self.accepted + n - 1 if times == NULL else times[n - 1])
    self.accepted += n
    self.created += opened.k
    self.edge = self.accepted - self.value - 1
    if self.edge + 1 > self.rules.start:
        self.rules.start, self.rules.full = self.edge + 1, True
    self.forest.return_spare(opened.k >> 1)
