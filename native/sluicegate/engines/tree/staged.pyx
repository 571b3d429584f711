"""A staging tail before the buckets that are stored, compiled; see staged.pxd.

Fact card: FIFO whose newest end also takes back; associative operation; insert, eviction and total O(1) amortised while
nothing leaves the tail, O(log n) expected for what is stored; 2(n + most) partials, the tail's as many as the staircase
was ever long (a power of two). Source: paper A2MTA, II-B and III-A (the buffer of 512). The readable twin is
tests/native/twins/staged.py.
"""

cimport cython
from libc.stdlib cimport calloc, free

from sluicegate.engines.tree.pairs cimport FRESH, GIVEN, TOOK, Pairs
from sluicegate.partials.program cimport H_T_FIRST, H_T_LAST, H_O_FIRST, Program, Slot, combine, copy
from sluicegate.engines.tree.widths cimport Term, extreme, further, is_extreme, nothing

import struct

cdef enum:  # places of `spare`: total is at 0
    S_REST = 1
    S_FRONT = 2
    S_FRONT_OF_REST = 3

cdef enum:
    FIRST_ROOM = 16  # places of the ring at first

_head = struct.Struct("<3q")


@cython.final
cdef class Staged(Engine):
    """The staging tail, and the stored buckets before it."""

    def __dealloc__(self):
        free(self.guards)
        free(self.leaves)
        free(self.folds)
        free(self.states)

    cdef int guard(self, int64_t most, guards, MaxRule rule, merging) except -1:
        """Before setup: most staged, the extremes that count (slot, dimension, sign, strict), who is a candidate."""
        cdef int j
        self.most, self.m = most, len(guards)
        self.rule, self.ruled = rule, rule is not None
        self.guards = <Guard*> calloc(max(self.m, 1), sizeof(Guard))
        if self.guards == NULL:
            raise MemoryError("staged: no memory for the extremes")
        for j, guard in enumerate(guards):
            self.guards[j].slot, self.guards[j].dimension, self.guards[j].sign, self.guards[j].strict = guard
        self.stored = Pairs()
        self.stored.measure(merging)
        return 0

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        self.stored.setup(p, limit)
        room(self, FIRST_ROOM)
        return 0

    # places

    cdef inline int64_t staged(self) noexcept nogil:
        return self.top - self.base

    cdef inline int64_t kept(self) noexcept nogil:
        return self.stored.tail - self.stored.head

    cdef inline Slot* at(self, int64_t place) noexcept nogil:
        return self.leaves + (place & self.mask) * self.p.width

    cdef inline Slot* fold(self, int64_t place) noexcept nogil:
        return self.folds + (place & self.mask) * self.p.width

    # what hides what

    cdef inline bint takes(self, const double* values, int64_t time) noexcept nogil:
        """Whether the newest bucket takes a reading: it is as old at most, and no extreme of it counts any more."""
        cdef const Slot* newest
        cdef const Guard* g
        cdef double x, y
        cdef int j
        if self.top == self.base:
            return False
        newest = self.at(self.top - 1)
        if time < newest[H_T_LAST].i:
            return False
        for j in range(self.m):
            g = &self.guards[j]
            x, y = g.sign * values[g.dimension], g.sign * newest[g.slot].f
            if x < y or (x == y and g.strict):
                return False
        return True

    cdef inline bint hides(self, const Slot* new, const Slot* old) noexcept nogil:
        """Whether no extreme of the older bucket can become the window's any more, and their times are in order."""
        cdef const Guard* g
        cdef double x, y
        cdef int j
        if old[H_T_LAST].i > new[H_T_FIRST].i:
            return False
        for j in range(self.m):
            g = &self.guards[j]
            x, y = g.sign * new[g.slot].f, g.sign * old[g.slot].f
            if x < y or (x == y and g.strict):
                return False
        return True

    cdef bint candidate(self, const Slot* leaf) noexcept nogil:
        """Whether block maxima say that the bucket may hold the window's extreme some day."""
        cdef double x
        cdef int j
        if not self.ruled:
            return True
        for j in range(self.m):
            x = self.guards[j].sign * leaf[self.guards[j].slot].f
            if self.rule.peaks[j].low <= x and x <= self.rule.peaks[j].high:
                return True
        return False

    cdef bint irrelevant(self) noexcept nogil:
        """Whether later staged buckets together hide the oldest; of one extreme the next would have."""
        cdef const Slot* old = self.at(self.base)
        cdef const Slot* behind
        cdef double x, y
        cdef int j
        if self.m < 2 or self.top - self.base < 2 or old[H_T_LAST].i > self.at(self.base + 1)[H_T_FIRST].i:
            return False
        behind = back(self)
        for j in range(self.m):
            y = self.guards[j].sign * old[self.guards[j].slot].f
            x = self.guards[j].sign * behind[self.guards[j].slot].f
            if self.base + 1 < self.pivot:
                x = max(x, self.guards[j].sign * self.fold(self.base + 1)[self.guards[j].slot].f)
            if x < y or (x == y and self.guards[j].strict):
                return False
        return True

    # the newest end

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Stage a bucket; there is room. Of a window that is being loaded, the first are stored."""
        if self.to_store:
            self.stored.push(leaf)
            self.to_store -= 1
            self.tail += 1
            return 0
        if self.staged() >= self.mask:
            room(self, 2 * (self.mask + 1))
        copy(self.p, self.at(self.top), leaf)
        self.states[self.top & self.mask] = FRESH
        self.top += 1
        self.tail += 1
        rebalance(self)
        return 0

    cdef inline void touched(self) noexcept nogil:
        self.known = min(self.known, self.top - 1)

    cdef void collapse(self) noexcept nogil:
        """The newest but one takes over the newest."""
        cdef Slot* into = self.at(self.top - 2)
        combine(self.p, into, into, self.at(self.top - 1))
        self.top -= 1
        self.tail -= 1
        self.states[(self.top - 1) & self.mask] = TOOK
        self.touched()
        rebalance(self)

    cdef void take_back(self) noexcept nogil:
        """The only staged bucket takes over the newest stored one."""
        cdef Slot* only = self.at(self.base)
        combine(self.p, only, self.stored.leaf(self.stored.tail - 1), only)
        self.stored.pop_newest()
        self.tail -= 1
        self.states[self.base & self.mask] = TOOK
        self.known = self.pivot
        changed(self)

    # the oldest end

    cdef int spill(self, int verdict) except -1 nogil:
        """The oldest staged bucket leaves the tail."""
        cdef Slot* old = self.at(self.base)
        cdef Slot* next = self.at(self.base + 1)
        if verdict == OPEN:
            self.stored.push(old)
            self.stored.newest.state = self.states[self.base & self.mask]
            self.base += 1
        elif verdict == JOIN:
            self.stored.join(old)
            self.stored.newest.state = TOOK
            self.base += 1
            self.tail -= 1
        else:
            combine(self.p, next, old, next)
            self.base += 1
            self.tail -= 1
            self.states[self.base & self.mask] = TOOK
            if self.base == self.pivot:
                split(self, self.base + self.staged() // 2)
            elif self.base + 1 == self.pivot:
                copy(self.p, self.fold(self.base), next)
            else:
                combine(self.p, self.fold(self.base), next, self.fold(self.base + 1))
        changed(self)
        rebalance(self)
        return 0

    cdef void pop(self) noexcept nogil:
        if self.kept():
            self.stored.pop()
        else:
            self.base += 1
            rebalance(self)
        self.head += 1
        changed(self)

    cdef int merge_stored(self) noexcept nogil:
        """The stored pair that adds least becomes one; what `Pairs.merge` says of it."""
        cdef int touched
        set_later(self, self.base)
        touched = self.stored.merge()
        self.tail -= 1
        changed(self)
        return touched

    cdef bint stored_wants(self, const Slot* leaf) noexcept nogil:
        """What `Pairs.wants` says of the oldest staged bucket."""
        set_later(self, self.base + 1)
        return self.stored.wants(leaf)

    # answers

    cdef const Slot* total(self) noexcept nogil:
        if self.head == self.tail:
            return NULL
        return before(self, front(self), back(self), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        if self.tail - self.head < 2:
            return NULL
        return before(self, front_of_rest(self), back(self), self.spare + S_REST * self.p.width)

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        cdef int64_t place = index - self.head - self.kept()
        return self.at(self.base + place) if place >= 0 else self.stored.leaf(self.stored.tail + place)

    cdef int take_state(self, int64_t index) noexcept nogil:
        cdef int64_t place = index - self.head - self.kept()
        cdef int state
        if place < 0:
            return self.stored.take_state(self.stored.tail + place)
        place = (self.base + place) & self.mask
        state, self.states[place] = self.states[place], GIVEN
        return state

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t place = 2 * self.p.width * <int64_t> sizeof(Slot) + 1
        return self.stored.bytes() + Engine.bytes(self) + (self.mask + 1) * place

    # storage

    cdef int begin(self, int64_t head) except -1:
        self.stored.begin(0)
        self.base = self.pivot = self.top = self.known = 0
        changed(self)
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """Rows may be left of what a bucket took over before: when it is given out, they are told to be of no use."""
        cdef int64_t place
        self.stored.finish(NULL, NULL)
        for place in range(self.base, self.top):
            self.states[place & self.mask] = TOOK
        split(self, self.base + self.pivot_after)
        return 0

    def state(self):
        """Ordinal of the oldest bucket, number staged, where they are parted (8 bytes each), the stored ones' state."""
        first = 0 if self.head == self.tail else self.leaf(self.head)[H_O_FIRST].i
        return _head.pack(first, self.staged(), self.pivot - self.base) + self.stored.state()

    def load(self, bytes data not None, int64_t count):
        """Take over a state before the `count` buckets. Raises ValueError for one that cannot be."""
        if len(data) != self.size:
            raise ValueError(f"state of a staging tail of {len(data)} bytes, expected {self.size}")
        _, staged, pivot = _head.unpack_from(data)
        parted = 0 < pivot < staged if staged > 1 else pivot == 0
        if not min(count, 1) <= staged <= min(self.most, count) or not parted:
            raise ValueError(f"{staged} staged buckets of {count}, parted at {pivot}; expected at most {self.most}")
        self.stored.load(data[_head.size :])
        self.to_store, self.pivot_after = count - staged, pivot

    @property
    def size(self):
        """Bytes of a state."""
        return _head.size + self.stored.size


cdef int room(Staged self, int64_t size) except -1 nogil:
    """A ring of `size` places, a power of two, with all that is staged in it: it grows with the staircase."""
    cdef int64_t width = self.p.width, place
    cdef Slot* leaves = <Slot*> calloc(size * width, sizeof(Slot))
    cdef Slot* folds = <Slot*> calloc(size * width, sizeof(Slot))
    cdef unsigned char* states = <unsigned char*> calloc(size, 1)
    if leaves == NULL or folds == NULL or states == NULL:
        free(leaves)
        free(folds)
        free(states)
        with gil:
            raise MemoryError(f"staged: no memory for {size} buckets of {width} slots")
    for place in range(self.base, self.top):
        copy(self.p, leaves + (place & (size - 1)) * width, self.at(place))
        copy(self.p, folds + (place & (size - 1)) * width, self.fold(place))
        states[place & (size - 1)] = self.states[place & self.mask]
    free(self.leaves)
    free(self.folds)
    free(self.states)
    self.leaves, self.folds, self.states, self.mask = leaves, folds, states, size - 1
    return 0


cdef const Slot* back(Staged self) noexcept nogil:
    """What the staged buckets from the pivot on fold to."""
    while self.known < self.top:
        if self.known == self.pivot:
            copy(self.p, self.fold(self.known), self.at(self.known))
        else:
            combine(self.p, self.fold(self.known), self.fold(self.known - 1), self.at(self.known))
        self.known += 1
    return self.fold(self.top - 1)


cdef const Slot* front(Staged self) noexcept nogil:
    """What is stored and what is staged before the pivot fold to; NULL: nothing."""
    cdef Slot* kept = self.spare + S_FRONT * self.p.width
    cdef const Slot* found
    if not self.front_known:
        found = before(self, self.stored.total(), self.fold(self.base) if self.base < self.pivot else NULL, kept)
        self.front_known, self.has_front = True, found != NULL
        if found != NULL and found != kept:
            copy(self.p, kept, found)
    return kept if self.has_front else NULL


cdef const Slot* front_of_rest(Staged self) noexcept nogil:
    """The same without the oldest bucket of all."""
    cdef Slot* kept = self.spare + S_FRONT_OF_REST * self.p.width
    cdef int64_t first = self.base + (0 if self.kept() else 1)
    cdef const Slot* found
    if not self.rest_known:
        found = self.stored.rest() if self.kept() > 1 else NULL
        found = before(self, found, self.fold(first) if first < self.pivot else NULL, kept)
        self.rest_known, self.has_rest = True, found != NULL
        if found != NULL and found != kept:
            copy(self.p, kept, found)
    return kept if self.has_rest else NULL


cdef const Slot* before(Staged self, const Slot* first, const Slot* second, Slot* out) noexcept nogil:
    """Both in `out`; either may be missing."""
    if first == NULL or second == NULL:
        return first if second == NULL else second
    combine(self.p, out, first, second)
    return out


cdef void rebalance(Staged self) noexcept nogil:
    """Keep the pivot between both ends."""
    cdef int64_t n = self.top - self.base
    if n < 2:
        if self.pivot != self.base:
            self.pivot = self.known = self.base
            changed(self)
    elif not self.base < self.pivot < self.top:
        split(self, self.base + n // 2)


cdef void split(Staged self, int64_t pivot) noexcept nogil:
    cdef int64_t place = pivot - 1
    self.pivot = self.known = pivot
    if place >= self.base:
        copy(self.p, self.fold(place), self.at(place))
    while place > self.base:
        place -= 1
        combine(self.p, self.fold(place), self.at(place), self.fold(place + 1))
    changed(self)


cdef inline void changed(Staged self) noexcept nogil:
    self.front_known = self.rest_known = False


cdef void set_later(Staged self, int64_t first) noexcept nogil:
    """Let the stored ones know the extremes of what is staged from `first` on: what that hides costs nothing."""
    cdef double* later = self.stored.later
    cdef const Term* t
    cdef int k
    for k in range(self.stored.m if self.stored.hiding else 0):
        t = &self.stored.terms[k]
        later[k] = nothing(t)
        if is_extreme(t) and first < self.pivot:
            later[k] = extreme(t, self.fold(first))
        if is_extreme(t) and first < self.top:
            later[k] = further(t, later[k], extreme(t, back(self)))
