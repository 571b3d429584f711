"""The answers after each reading of a block of small buckets: what is outside the oldest and the newest, and what those two give.

Of what leaves meanwhile only the sum is taken. The same bits as reading by reading.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.amta cimport LEVELS, Amta
from sluicegate.core.answering cimport Answering
from sluicegate.answers.results cimport BY_COUNT, K_SUM, Output
from sluicegate.joining.bucket_lengths cimport MOST, TOLD
from sluicegate.memory.chunks cimport at
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Slot
from sluicegate.joining.small cimport Sight, know_cut

cdef enum:
    SPARE = 4  # on either side of what belongs to a reading: buckets up to TOLD are written without asking where they end
    GROUP = 64  # buckets, as in bucket_lanes.h


cdef extern from "bucket_lanes.h" nogil:
    ctypedef struct Cutting "bucket_cutting":  # as `Sums`
        double total
        double low
        double high
        double least
        double most
        double last
        double others
    ctypedef struct Group "bucket_group":  # the same of many, a column each
        double* total
        double* prefix_low
        double* prefix_high
        double* least
        double* most
        double* first
        double* last
        int64_t* size
    void bucket_few(const Group* g, int64_t n, double center, double* but_one, double* but_two)
    void bucket_threes(
        const double* sums, const double* but_one, const double* but_two, int64_t n, double* outer, double* taken)
    void bucket_taken(const Cutting* k, double c, double size, int64_t n, double* out)
    void bucket_means(
        const double* outer, const double* base, const double* newest, const double* taken, int64_t n, double center, double readings,
        double* out)
    void bucket_sums(
        const double* outer, const double* base, const double* newest, const double* taken, int64_t n, double center, double readings,
        double* out)
    void bucket_standing_means(
        double outer, const double* base, const double* newest, double taken, int64_t n, double center, double readings, double* out)
    void bucket_standing_sums(
        double outer, const double* base, const double* newest, double taken, int64_t n, double center, double readings, double* out)


ctypedef struct Left:  # the buckets that are the oldest after some of those readings, from the head on
    int64_t first
    int64_t last
    bint single  # they are of one reading each
    bint threes  # of three
    bint known  # what each gives, as if of three readings at most
    short place[MOST + 1]  # of its first reading among those of the block; 1 − SPARE: or before
    double but_one[MOST + 1]  # what all its readings but the first give
    double but_two[MOST + 1]
    short longer[MOST + 1]  # those of TOLD readings and more
    int64_t many
    double sums[MOST + 3]  # of R0 from each of them on, and from the one after the last

ctypedef struct Parts:  # of each answer
    double outer[MOST + 2 * SPARE]
    double base[MOST + 2 * SPARE]
    double newest[MOST + 2 * SPARE]
    double taken[MOST + 2 * SPARE]


cdef inline Slot* node(Amta forest, int level, int64_t index) noexcept nogil:
    return at(&forest.pool, &forest.level[(forest.base + level) & (LEVELS - 1)], forest.p.width, index)


cdef inline double top_of(Amta forest, int prefix) noexcept nogil:
    """−0.0 adds nothing, not even a sign."""
    return forest.stack[(forest.stacked - 1) * forest.p.width + prefix].f if forest.stacked else -0.0


# where each reading takes one from the oldest bucket

cdef inline void answer_sliding(Answering self, const Left* left, Parts* parts, int64_t n, double* out) noexcept nogil:
    cdef const Output* o = self.outputs
    cdef int64_t begin = self.accepted + 1 - self.value  # of the first reading's answer
    cdef double* outer = parts.outer + SPARE
    cdef double* taken = parts.taken + SPARE
    cdef int64_t h, n_left = left.last + 1 - left.first
    if left.single:
        for h in range(n_left):
            part_of_one(self, left, h, begin, outer, taken)
    elif left.threes:
        bucket_threes(left.sums, left.but_one, left.but_two, n_left, outer + left.place[0], taken + left.place[0])
    elif left.many < n_left:
        parts_of_few(left, n_left, outer, taken)
    for h in range(left.many):
        parts_of_many(self, left, left.longer[h], begin, n, outer, taken)
    if o.kind == K_SUM:
        bucket_sums(outer, parts.base + SPARE, parts.newest + SPARE, taken, n, self.center[0], <double> self.value, out)
    else:
        bucket_means(outer, parts.base + SPARE, parts.newest + SPARE, taken, n, self.center[0], <double> self.value, out)


cdef inline void part_of_one(Answering self, const Left* left, int64_t h, int64_t begin, double* outer, double* taken) noexcept nogil:
    """A bucket of one reading is there or not."""
    cdef int64_t i = node(self.forest, 0, left.first + h)[H_O_FIRST].i - begin
    outer[i], taken[i] = left.sums[h], -0.0


cdef inline void know(Cutting* k, const Output* o, const Slot* leaf, double center) noexcept nogil:
    k.total = leaf[o.prefix].f
    k.low, k.high = k.total - leaf[o.prefix + 2].f, k.total - leaf[o.prefix + 1].f
    k.least, k.most = leaf[o.low].f - center, leaf[o.high].f - center
    k.last, k.others = leaf[o.last].f - center, k.total - (leaf[o.first].f - center)


cdef inline void know_one(Group* g, int64_t i, const Slot* leaf) noexcept nogil:
    """What `know` looks at, where SUM_BUCKET has it."""
    g.total[i], g.prefix_low[i], g.prefix_high[i] = leaf[5].f, leaf[6].f, leaf[7].f
    g.least[i], g.most[i], g.first[i], g.last[i] = leaf[8].f, leaf[13].f, leaf[18].f, leaf[19].f
    g.size[i] = leaf[H_COUNT].i


cdef inline void parts_of_few(const Left* left, int64_t n, double* outer, double* taken) noexcept nogil:
    """All as if of three readings: what is too much for a bucket the next one writes again, and too little `parts_of_many`."""
    cdef int64_t h, i
    for h in range(n):
        i = left.place[h]
        outer[i], outer[i + 1], outer[i + 2] = left.sums[h], left.sums[h + 1], left.sums[h + 1]
        taken[i], taken[i + 1], taken[i + 2] = -0.0, left.but_one[h], left.but_two[h]


cdef inline void parts_of_many(
    Answering self, const Left* left, int h, int64_t begin, int64_t n, double* outer, double* taken
) noexcept nogil:
    cdef const Slot* leaf = node(self.forest, 0, left.first + h)
    cdef int64_t first = leaf[H_O_FIRST].i - begin, size = leaf[H_COUNT].i, i
    cdef int64_t start = max(first + 1, 0), end = min(first + size, n)
    cdef Cutting k
    know(&k, self.outputs, leaf, self.center[0])
    if first >= 0:
        outer[first], taken[first] = left.sums[h], -0.0
    for i in range(start, end):
        outer[i] = left.sums[h + 1]
    bucket_taken(&k, <double> (first + size - start), <double> size, end - start, taken + start)


# where nothing leaves

cdef inline void answer_standing(Answering self, Sight* s, Parts* parts, int64_t n, double* out) noexcept nogil:
    """As small.sum_of_whole and small.sum_by_rule."""
    cdef const Output* o = self.outputs
    cdef double outer = top_of(self.forest, o.prefix), taken = -0.0
    cdef int64_t inside = self.accepted - s.end, most = min(s.n, s.end - 1 - self.edge)
    if most == s.n and (self.policy == BY_COUNT or s.n == 1):
        outer, inside = self.forest.left[o.prefix].f, inside + s.n
    else:
        know_cut(self, o, s, most)
        taken, inside = s.sum, inside + s.taken
    if o.kind == K_SUM:
        bucket_standing_sums(outer, parts.base + SPARE, parts.newest + SPARE, taken, n, self.center[0], <double> inside, out)
    else:
        bucket_standing_means(outer, parts.base + SPARE, parts.newest + SPARE, taken, n, self.center[0], <double> inside, out)
