"""Many small buckets at once; see bucket_blocks.pxd, and bucket_lengths.pxd and bucket_answers.pxd for the first and the last step."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t

from sluicegate.engines.amta cimport LEVELS, Amta
from sluicegate.core.answering cimport Answering
from sluicegate.answers.results cimport BY_COUNT
from sluicegate.joining.bucket_answers cimport (
    GROUP, SPARE, Group, Left, Parts, answer_sliding, answer_standing, bucket_few, know_one, node, top_of,
)
from sluicegate.joining.bucket_lengths cimport LONGEST, MOST, TOLD, Opened, lengths_by_limit, lengths_by_sum
from sluicegate.memory.chunks cimport Queue, at, prefetch, run_at
from sluicegate.joining.opening cimport append_sums, combine_sums, lift_bucket, lift_pair
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Slot, copy, greatest, least
from sluicegate.joining.small cimport Sight, carry_sample
from sluicegate.histograms._sum_like cimport Sum

cdef extern from "bucket_lift.h" nogil:
    void bucket_lift_twos(
        void* place, int w, const short* which, int many, const short* start, const double* x, int64_t ordinal, double center, double* totals)
    void bucket_lift_threes(
        void* place, int w, const short* which, int many, const short* start, const double* x, int64_t ordinal, double center, double* totals)

cdef enum:
    MOST_ALONE = 768  # readings at once where each opens a bucket: of more the first would have left the caches
    LIFTED = 4  # buckets of two or three readings, while two times two that leave soon are fetched
    NODES_AHEAD = 12  # their places are fetched
    LEFT_AHEAD = 12  # what leaves comes out of the second cache
    AHEAD_OF_BUCKET = 12  # and those of buckets, where they are not what has just left


cdef int64_t open_many(
    Answering self, Amta forest, Sight* s, const double* values, const int64_t* times, int64_t count, double* out
) except -1 nogil:
    cdef Opened opened
    cdef Left left
    cdef Parts parts
    cdef bint slides = self.policy == BY_COUNT and self.edge == self.accepted - self.value - 1
    cdef int64_t most = even(most_readings(self, forest, s, slides, count), MOST if s.newest[H_COUNT].i > 1 else MOST_ALONE)
    if most < LEAST_OPENED:
        return 0
    most = in_order(times, most)
    if most < LEAST_OPENED:
        return 0
    find_lengths(self, s, slides, values, most, &opened)
    opened.k = min(opened.k, most_buckets(self, forest))
    opened.n = opened.start[opened.k]
    if opened.n < LEAST_OPENED // 2 or (slides and not find_left(self, forest, s, &opened, &left)):
        return 0
    forest.make_room_for(forest.tail + opened.k)
    s.oldest = node(forest, 0, forest.head)  # room for more may have taken all to longer chunks
    open_all(self, forest, &opened, values, times, &parts)
    if slides:
        leave_all(self, forest, &left)
    if out != NULL and slides:
        answer_sliding(self, &left, &parts, opened.n, out)
    elif out != NULL:
        answer_standing(self, s, &parts, opened.n, out)
    s.fetched = opened.soon
    settle_all(self, s.ruling, slides, &opened, values, times)
    return opened.n


cdef inline int64_t most_readings(Answering self, Amta forest, const Sight* s, bint slides, int64_t most) noexcept nogil:
    """So many of the next at most: a limit is refreshed, a rule asked, the window full, or the leftmost tree empty then; or 0."""
    cdef int64_t last
    if self.ruled:
        most = min(most, self.rules.due_at - self.accepted)
        if s.ruling == NULL or self.limit or not s.ruling.limit < INFINITY:
            return 0
    forest.unsettle()
    if forest.depth < 3 or not forest.has_base or not forest.has_right:
        return 0
    if self.policy != BY_COUNT:
        return min(most, self.condition.wakes - self.accepted)
    if not slides:
        return min(most, self.value - self.accepted)
    last = ((((forest.tail + 1) >> (forest.depth - 1)) - 1) << (forest.depth - 1)) - 1
    if last - forest.head <= MOST:
        most = min(most, end_of(node(forest, 0, last)) + self.value - self.accepted - 1)
    return most


cdef inline int64_t even(int64_t n, int64_t most) noexcept nogil:
    """A block of so many, so that those after it are as long: each fetches for the next what leaves then."""
    cdef int64_t blocks = (n + most - 1) // most
    return n if n <= most else (n + blocks - 1) // blocks


cdef inline int64_t end_of(const Slot* leaf) noexcept nogil:
    """The ordinal after its last reading."""
    return leaf[H_O_FIRST].i + leaf[H_COUNT].i


cdef inline int64_t most_buckets(Answering self, Amta forest) noexcept nogil:
    """So many leave the leftmost tree as it is, and keep the limit."""
    cdef int top = forest.depth - 1
    cdef int64_t most = ((((forest.tail + 1) >> top) + 1) << top) - forest.tail - 2
    return min(most, self.limit - (forest.tail - forest.head)) if self.limit else most


cdef inline void find_lengths(
    Answering self, const Sight* s, bint slides, const double* values, int64_t n, Opened* opened
) noexcept nogil:
    cdef int64_t share = self.finer * (self.limit - 2) if self.level else 0
    cdef int kind
    opened.k = opened.start[0] = 0
    opened.soon = opened.later = opened.run = 0
    opened.coming = NULL
    for kind in range(TOLD):
        opened.many[kind] = 0
    if s.ruling != NULL:
        lengths_by_sum(s, values, n, opened)
    else:
        lengths_by_limit(slides, s.oldest[H_O_FIRST].i, share, self.value, self.accepted, n, opened)


cdef inline int64_t in_order(const int64_t* times, int64_t most) noexcept nogil:
    """How many readings come before one that is late."""
    cdef int64_t n = 1
    if times == NULL:
        return most
    while n < most and times[n] >= times[n - 1]:
        n += 1
    return n


# what the next block reads and writes is fetched meanwhile: a window of many is larger than any cache

cdef extern from *:
    """
    /* the empty line keeps a compiler from leaving out calls of functions that only prefetch */
    #define sg_fetch_to_read(address) do { __builtin_prefetch(address, 0, 2); __asm__ volatile(""); } while (0)
    #define sg_fetch_to_write(address) do { __builtin_prefetch(address, 1); __asm__ volatile(""); } while (0)
    """
    void fetch_to_read "sg_fetch_to_read"(const void* address) noexcept nogil
    void fetch_to_write "sg_fetch_to_write"(const void* address) noexcept nogil
    int zeros_below "__builtin_ctzll"(uint64_t number) noexcept nogil


cdef inline void fetch_place(const Slot* place, int w) noexcept nogil:
    """Where a partial is written soon: a processor writes in order, so one place that is out of the caches holds up all that follow."""
    fetch_to_write(place)
    fetch_to_write(place + 8)
    fetch_to_write(place + 16)
    fetch_to_write(place + w - 1)


cdef inline void fetch_old(Amta forest, Opened* opened) noexcept nogil:
    """Two buckets that are the oldest soon, which lie in one chunk, and the node whose sum R0 of the first of them takes."""
    cdef int level = min(zeros_below(opened.soon), forest.depth - 1), w = forest.p.width, s
    cdef const Slot* leaf = opened.coming
    if opened.run == 0:
        leaf, opened.run = node(forest, 0, opened.soon), run_at(&forest.level[forest.base], opened.soon)
    for s in range(0, 2 * w, 8):
        fetch_to_read(leaf + s)
    fetch_to_read(node(forest, level, opened.soon >> level) + 5)
    opened.coming = leaf + 2 * w
    opened.run -= 2
    opened.soon += 2


# the new buckets

cdef inline void fetch_for_two(Amta forest, Opened* opened, const Slot* place) noexcept nogil:
    """With every second bucket, and not all at once: a processor waits for few lines at a time.

    Two that leave soon; where nothing leaves, two places to write: no chunk has just left then to be written again.
    """
    cdef int w = forest.p.width
    if opened.soon < opened.later:
        fetch_old(forest, opened)
    elif opened.later == 0:
        fetch_place(place + AHEAD_OF_BUCKET * w, w)
        fetch_place(place + (AHEAD_OF_BUCKET + 1) * w, w)


cdef void open_all(
    Answering self, Amta forest, Opened* opened, const double* values, const int64_t* times, Parts* parts
) noexcept nogil:
    """As many at a time as a chunk holds."""
    cdef int next[TOLD]  # of each kind
    cdef int kind, first = 0, end
    cdef const Slot* closed = node(forest, 0, forest.tail - 1)
    cdef Slot* place
    for kind in range(TOLD):
        next[kind] = 0
    while first < opened.k:
        place = node(forest, 0, forest.tail)
        end = first + <int> min(opened.k - first, run_at(&forest.level[forest.base], forest.tail))
        lift_all(self, opened, first, end, place, next, values, times, parts.newest + SPARE)
        carry_sample(self, place)
        raise_all(forest, end - first)
        close_all(self, forest, opened, first, end, closed, place, parts.base + SPARE)
        closed = place + (end - 1 - first) * forest.p.width
        first = end


cdef inline void lift_one(
    Answering self, Opened* opened, Slot* place, int k, int64_t n, const double* values, const int64_t* times, double* totals
) noexcept nogil:
    cdef int64_t i = opened.start[k]
    cdef const int64_t* when = NULL
    if k & 1:
        fetch_for_two(self.forest, opened, place)
    if times != NULL:
        when = times + i
    if n == 2:
        lift_pair(&self.p, place, values + i, when, self.accepted + i, self.center[0], totals + i)
    else:
        lift_bucket(&self.p, place, NULL, values + i, when, self.accepted + i, n, self.center[0], totals + i)


cdef inline int lift_few(
    Answering self, Opened* opened, Slot* base, int kind, int next, int end, const double* values, const int64_t* times, double* totals
) noexcept nogil:
    """Buckets of two or three readings, before bucket `end`: up to LIFTED of them; how many."""
    cdef const short* which = opened.alike[kind] + next
    cdef int k = which[0], n = LIFTED if next + LIFTED <= opened.many[kind] and which[LIFTED - 1] < end else 1
    if times != NULL:
        lift_one(self, opened, base + k * self.p.width, k, kind + 1, values, times, totals)
        return 1
    for k in range(0, n if n > 1 else which[0] & 1, 2):
        fetch_for_two(self.forest, opened, base + which[k] * self.p.width)
    if kind == 1:
        bucket_lift_twos(base, self.p.width, which, n, opened.start, values, self.accepted, self.center[0], totals)
    else:
        bucket_lift_threes(base, self.p.width, which, n, opened.start, values, self.accepted, self.center[0], totals)
    return n


cdef inline void lift_all(
    Answering self, Opened* opened, int first, int end, Slot* place, int* next, const double* values, const int64_t* times, double* totals
) noexcept nogil:
    """In the order of their lengths: then no loop's end is a surprise."""
    cdef int k, kind, w = self.p.width
    while next[0] < opened.many[0] and opened.alike[0][next[0]] < end:
        k = opened.alike[0][next[0]]
        lift_one(self, opened, place + (k - first) * w, k, 1, values, times, totals)
        next[0] += 1
    for kind in range(1, 3):
        while next[kind] < opened.many[kind] and opened.alike[kind][next[kind]] < end:
            next[kind] += lift_few(self, opened, place - first * w, kind, next[kind], end, values, times, totals)
    while next[3] < opened.many[3] and opened.alike[3][next[3]] < end:
        k = opened.alike[3][next[3]]
        lift_one(self, opened, place + (k - first) * w, k, opened.start[k + 1] - opened.start[k], values, times, totals)
        next[3] += 1


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
            fetch_place(out + NODES_AHEAD * w, w)
            combine_sums(forest.p, out, pair, pair + w)
            out, pair, n = out + w, pair + 2 * w, n - 1


cdef inline void close_all(
    Answering self, Amta forest, const Opened* opened, int first, int end, const Slot* before, const Slot* place, double* base
) noexcept nogil:
    """Each bucket before the newest becomes part of what R1 is taken from; the sum of that beside each reading."""
    cdef double sums[MOST]
    cdef int64_t i
    cdef int k
    append_sums(forest.p, forest.base_of_right, before, 1, sums)
    append_sums(forest.p, forest.base_of_right, place, end - first - 1, sums + 1)
    for k in range(first, end):
        for i in range(TOLD):
            base[opened.start[k] + i] = sums[k - first]
        for i in range(opened.start[k] + TOLD, opened.start[k + 1]):
            base[i] = sums[k - first]
    forest.has_right = forest.stale = True


# what leaves

cdef bint find_left(Answering self, Amta forest, const Sight* s, Opened* opened, Left* left) noexcept nogil:
    """The oldest buckets of these readings, and which the next block will have; False: one is longer than was reckoned with."""
    cdef int64_t n, end
    left.known = 1 < s.n < TOLD  # a guess: the others are like the first
    if not look_at_left(self, forest, s, opened, left):
        return False
    n, end = left.last + 1 - left.first, end_of(node(forest, 0, left.last))
    left.single = end - s.oldest[H_O_FIRST].i == n
    left.threes = left.known and left.threes
    if not (left.single or left.known) and left.many < n:
        left.known = True
        look_at_left(self, forest, s, opened, left)
    fetch_stack(forest, left.last)
    opened.soon = max(s.fetched, (left.last + 2) & ~<int64_t> 1)
    opened.later = min(left.last + 1 + n + n, forest.tail - 1)
    return True


cdef bint look_at_left(Answering self, Amta forest, const Sight* s, const Opened* opened, Left* left) noexcept nogil:
    """A group at a time; what they give only where there is more than one reading to it: each is looked at once."""
    cdef int64_t h = 0, n, i, size, first = s.oldest[H_O_FIRST].i + self.value - self.accepted - 1, place = first
    cdef int64_t old = opened.old, many = 0, others = 0
    cdef int w = self.p.width
    cdef bint known = left.known
    cdef const Slot* leaf
    cdef Group g
    while place < opened.n:
        leaf, n, i = node(forest, 0, forest.head + h), min(run_at(&forest.level[forest.base], forest.head + h), GROUP), 0
        while i < n and place < opened.n:
            size = leaf[H_COUNT].i
            if size > old:
                return False
            left.longer[many] = <short> (h + i)
            many += size >= TOLD
            others |= size ^ 3
            prefetch(leaf + LEFT_AHEAD * w)
            if known:
                prefetch(leaf + LEFT_AHEAD * w + 8)
                prefetch(leaf + LEFT_AHEAD * w + 16)
                know_one(&g, i, leaf)
                left.place[h + i] = <short> place
            place += size
            leaf += w
            i += 1
        if known:
            bucket_few(&g, i, self.center[0], left.but_one + h, left.but_two + h)
        h += i
    left.place[0] = <short> max(first, 1 - SPARE)
    left.first, left.last, left.many, left.threes = forest.head, forest.head + h - 1, many, others == 0
    return True


cdef inline void fetch_stack(Amta forest, int64_t head) noexcept nogil:
    """The nodes that `leave_all` takes R0 and the stack from, for this head."""
    cdef int level = 0
    while level < forest.depth and forest.head >> level != head >> level:
        fetch_place(node(forest, level, head >> level), forest.p.width)
        if not (head >> level) & 1 and (head >> level) + 1 < forest.end(level):
            fetch_place(node(forest, level, (head >> level) + 1), forest.p.width)
        level += 1


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


cdef inline void combine_top(Amta forest, Slot* out, const Slot* first) noexcept nogil:
    """What comes before the stack's top, with that."""
    if forest.stacked:
        combine_sums(forest.p, out, first, forest.stack + (forest.stacked - 1) * forest.p.width)
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


cdef void settle_all(
    Answering self, Sum* ruling, bint slides, const Opened* opened, const double* values, const int64_t* times
) noexcept nogil:
    """What the window and its rule know after these readings, should there be no memory for the next bucket."""
    cdef int64_t n = opened.n
    if ruling != NULL:
        self.rules.sums.n = n - opened.start[opened.k - 1]
        settle_sum(ruling, values + opened.start[opened.k - 1], self.rules.sums.n)
    self.latest = values[n - 1]
    self.newest = max(self.newest, self.accepted + n - 1 if times == NULL else times[n - 1])
    self.accepted += n
    self.created += opened.k
    if slides:
        self.edge = self.accepted - self.value - 1
    if self.ruled and self.edge + 1 > self.rules.start:
        self.rules.start, self.rules.full = self.edge + 1, True
    self.forest.return_spare(opened.k >> 1)


cdef inline void settle_sum(Sum* ruling, const double* values, int64_t n) noexcept nogil:
    """Of the newest bucket's readings."""
    cdef int64_t i
    ruling.sum, ruling.low, ruling.high = values[0], INFINITY, -INFINITY
    for i in range(1, n):
        ruling.low, ruling.high = least(ruling.low, ruling.sum), greatest(ruling.high, ruling.sum)
        ruling.sum = ruling.sum + values[i]
