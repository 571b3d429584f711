"""Late readings of a window of buckets, and what they add to its answers; see late.pxd.

The twin is tests/native/twins/late.py.

The buckets that came in order stay as they are: contiguous, and in order inside. A late reading joins a late bucket
whose times it lies between, or opens one; of too many the two neighbours of fewest readings become one. Late buckets
do not overlap in time. All that lie wholly inside are combined into what the window has inside; the one that the edge
cuts is united with the oldest bucket, if that is cut too, and of such a bucket no place of any reading is known, only
its times.
"""

cimport cython
from libc.math cimport INFINITY, log
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from sluicegate.answers.results cimport Cut, View
from sluicegate.partials.program cimport (
    FIRST, H_COUNT, H_O_FIRST, H_T_FIRST, H_T_LAST, HIGH, LAST, LOG_PREFIX, LOW, PREFIX, Slot, combine, copy,
    greatest, least, log_of,
)

from sluicegate.errors import SnapshotError

cdef enum:
    ROOM = 6  # partials: inside, total, rest, cut; and two on the way


@cython.final
cdef class Late:
    """At most MOST_LATE buckets, the oldest first."""

    def __dealloc__(self):
        free(self.buckets)

    cdef inline Slot* at(self, int k) noexcept nogil:
        return self.buckets + k * self.p.width

    # readings

    cdef int add(self, const Slot* reading, int64_t time, int64_t cutoff) noexcept nogil:
        """Slide a reading that belongs to the window, as a partial; −1: no memory, nothing changed."""
        cdef int k
        if reserve(self) < 0:
            return -1
        self.evict(cutoff)
        k = self.n
        while k > 0 and self.at(k - 1)[H_T_LAST].i >= time:
            k -= 1
        self.joined += 1
        if k < self.n and self.at(k)[H_T_FIRST].i <= time:
            join(self, self.at(k), reading)
            return 0
        memmove(self.at(k + 1), self.at(k), (self.n - k) * self.p.width * sizeof(Slot))
        copy(self.p, self.at(k), reading)
        self.n += 1
        if self.n > MOST_LATE:
            merge_least(self)
        return 0

    cdef void evict(self, int64_t cutoff) noexcept nogil:
        """What lies wholly at `cutoff` or earlier leaves."""
        while self.n > 0 and self.at(0)[H_T_LAST].i <= cutoff:
            remove(self, 0)

    # answers

    cdef void add_to(self, View* v) noexcept nogil:
        """The late ones inside enter the view of a window by time; its total, rest and leaf may be replaced."""
        cdef Slot* room = self.at(MOST_LATE + 1)
        cdef int w = self.p.width, first = 0
        cdef const Slot* inside
        cdef const Slot* cut = NULL
        while first < self.n and self.at(first)[H_T_LAST].i <= v.cutoff:
            first += 1
        if first == self.n:
            return
        if self.at(first)[H_T_FIRST].i <= v.cutoff:
            cut = self.at(first)
            first += 1
        inside = fold(self, first, room)
        v.late = True
        if inside != NULL:
            unite(self, room + w, v.total, inside)
            v.total = room + w
        if cut != NULL and v.whole:
            v.rest = v.total
        elif v.rest == NULL:
            v.rest = inside
        elif inside != NULL:
            unite(self, room + 2 * w, v.rest, inside)
            v.rest = room + 2 * w
        if cut == NULL:
            return
        unite(self, room + 4 * w, v.total, cut)
        cut_beside(self, v, cut, room + 3 * w)
        v.total = room + 4 * w

    # storage

    def save(self):
        """How many joined, then the buckets; nothing where none ever did."""
        cdef int64_t size = self.n * self.p.width * sizeof(Slot)
        held = (<char*> self.buckets)[:size] if self.n else b""
        return (<char*> &self.joined)[: sizeof(int64_t)] + held if self.joined else b""

    def load(self, bytes saved not None):
        """Slide over saved buckets. Raises SnapshotError for what cannot be such."""
        cdef int64_t size = self.p.width * sizeof(Slot)
        cdef int64_t held = len(saved) - <int64_t> sizeof(int64_t)
        self.n, self.joined = 0, 0
        if not saved:
            return
        if held < 0 or held % size or held > MOST_LATE * size:
            raise SnapshotError(f"window state: {held} bytes of late buckets, expected at most {MOST_LATE} of {size}")
        if reserve(self) < 0:
            raise MemoryError("window: no memory for late buckets")
        memcpy(&self.joined, <const char*> saved, sizeof(int64_t))
        memcpy(self.buckets, <const char*> saved + sizeof(int64_t), held)
        self.n = held // size

    def count(self):
        """How many readings they hold."""
        return readings(self)

    cdef int64_t bytes(self) noexcept nogil:
        return 0 if self.buckets == NULL else (MOST_LATE + 1 + ROOM) * self.p.width * <int64_t> sizeof(Slot)


cdef int reserve(Late self) noexcept nogil:
    """−1: no memory."""
    if self.buckets == NULL:
        self.buckets = <Slot*> malloc((MOST_LATE + 1 + ROOM) * self.p.width * sizeof(Slot))
    return -1 if self.buckets == NULL else 0


cdef void join(Late self, Slot* bucket, const Slot* reading) noexcept nogil:
    unite(self, self.at(MOST_LATE + 1), bucket, reading)
    copy(self.p, bucket, self.at(MOST_LATE + 1))


cdef void merge_least(Late self) noexcept nogil:
    """Of neighbours those of fewest readings, the oldest such, become one."""
    cdef int64_t fewest = INT64_MAX, count
    cdef int k, best = 0
    for k in range(self.n - 1):
        count = self.at(k)[H_COUNT].i + self.at(k + 1)[H_COUNT].i
        if count < fewest:
            fewest, best = count, k
    combine(self.p, self.at(best), self.at(best), self.at(best + 1))
    remove(self, best + 1)


cdef void remove(Late self, int k) noexcept nogil:
    self.n -= 1
    memmove(self.at(k), self.at(k + 1), (self.n - k) * self.p.width * sizeof(Slot))


cdef const Slot* fold(Late self, int first, Slot* out) noexcept nogil:
    """The buckets from `first` on as one; NULL: there is none."""
    cdef int k
    if first == self.n:
        return NULL
    copy(self.p, out, self.at(first))
    for k in range(first + 1, self.n):
        combine(self.p, out, out, self.at(k))
    return out


cdef void unite(Late self, Slot* out, const Slot* a, const Slot* b) noexcept nogil:
    """Two that may overlap: the first reading is the earlier one's, the last the later one's; equals: a's first."""
    cdef int k, s
    combine(self.p, out, a, b)
    for k in range(self.p.steps):
        s = self.p.step[k].slot
        if self.p.step[k].op == FIRST:
            out[s] = (b if b[H_T_FIRST].i < a[H_T_FIRST].i else a)[s]
        elif self.p.step[k].op == LAST:
            out[s] = (b if b[H_T_LAST].i >= a[H_T_LAST].i else a)[s]


cdef void cut_beside(Late self, View* v, const Slot* cut, Slot* out) noexcept nogil:
    """The edge cuts a late bucket, and perhaps the oldest other one: both are one, of which no place is known."""
    cdef int64_t n = cut[H_COUNT].i, taken
    cdef double share = (<double> (cut[H_T_LAST].i - v.cutoff)) / (<double> (cut[H_T_LAST].i - cut[H_T_FIRST].i))
    cdef Cut where
    taken = min(max(<int64_t> (n * share + 0.5), 1), n)
    if v.whole:
        copy(self.p, out, cut)
        where.least, where.most, where.taken = 1, n, taken
    else:
        unite(self, out, v.leaf, cut)
        where.least, where.most, where.taken = v.where.least, v.where.most + n, v.where.taken + taken
    forget_places(self, out, out[H_O_FIRST].i + out[H_COUNT].i - where.most)
    v.leaf, v.where, v.whole = out, where, False


cdef void forget_places(Late self, Slot* bucket, int64_t place) noexcept nogil:
    """A reading's ordinal says no more whether it is inside: extremes are where nothing follows from it."""
    cdef int k, op
    for k in range(self.p.steps):
        op = self.p.step[k].op
        if op == LOW or op == HIGH:
            bucket[self.p.step[k].slot + 3].i = bucket[self.p.step[k].slot + 4].i = place
        elif op == PREFIX or op == LOG_PREFIX:
            widen_prefix(self, bucket, k, self.p.step[k].dimension, op == LOG_PREFIX)


cdef void widen_prefix(Late self, Slot* bucket, int k, int dimension, bint logarithms) noexcept nogil:
    """Any one to all but one of the readings may be outside: between which sums theirs lies."""
    cdef Slot* s = bucket + self.p.step[k].slot
    cdef double low = -INFINITY, high = INFINITY, center = self.centers[dimension]
    cdef int64_t others = bucket[H_COUNT].i - 1
    cdef int j
    for j in range(self.p.steps):
        if self.p.step[j].dimension == dimension and self.p.step[j].op == LOW:
            low = bucket[self.p.step[j].slot].f
        elif self.p.step[j].dimension == dimension and self.p.step[j].op == HIGH:
            high = bucket[self.p.step[j].slot].f
    if logarithms:
        low, high, center = log(low), log(high), log_of(center)
    low, high = low - center, high - center
    s[1].f, s[2].f = least(low, others * low), greatest(high, others * high)


cdef int64_t readings(Late self) noexcept nogil:
    """How many readings the buckets hold."""
    cdef int64_t held = 0
    cdef int k
    for k in range(self.n):
        held += self.at(k)[H_COUNT].i
    return held
