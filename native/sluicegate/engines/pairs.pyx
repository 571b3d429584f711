"""A FIFO of buckets in which any neighbouring pair may be merged, compiled; the readable twin is sluicegate.reference.pairs.

Fact card: FIFO and merging in the middle; associative operation; insert, eviction and merge O(log n) combines expected, join and
total O(1), rest O(log n) once a change; 2n partials in chunks that are never moved. A treap (Seidel & Aragon 1996) whose priorities
are a hash of the first ordinal: its shape, and so every bit of an answer, follows from the buckets alone.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp

from sluicegate.engines.base cimport Engine
from sluicegate.engines.program cimport (
    FIRST, H_COUNT, H_O_FIRST, H_ORDERED, H_T_FIRST, H_T_LAST, HIGH, HIGH_ENDS, LAST, LOW, LOW_ENDS, ORDERED, Program, Slot, combine,
    combine_ends, combine_header, copy, join_extreme, mask,
)
from sluicegate.engines.widths cimport Term, added_of_extremes, beyond, extreme, further, is_extreme, nothing, reach, weight

import struct

from sluicegate.errors import InvariantError

cdef enum:
    S_REST = 1  # places of `spare`: total is at 0
    S_CLOSED = 2  # the closed buckets but the oldest
    S_PAIR = 3
    S_CHECK = 4

_head = struct.Struct("<3q")


@cython.final
cdef class Pairs(Engine):
    """The closed buckets' treap, each also linked to its neighbours, and the open bucket."""

    def __dealloc__(self):
        cdef void** chunk = self.chunk
        while chunk != NULL:
            self.chunk = <void**> chunk[0]
            free(chunk)
            chunk = self.chunk
        free(self.terms)
        free(self.base)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        self.a_chunk = min(max(<int64_t> 8, limit >> 3), <int64_t> 256)
        self.ranged = is_range(p)
        return 0

    cdef int measure(self, terms) except -1:
        """Take the widths that a merge is judged by (sluicegate.histograms.widths.Term)."""
        cdef int k
        self.m = len(terms)
        self.terms = <Term*> calloc(max(self.m, 1), sizeof(Term))
        self.base = <double*> calloc(max(5 * self.m, 1), sizeof(double))
        if self.terms == NULL or self.base == NULL:
            raise MemoryError("pairs: no memory for the widths")
        for k, term in enumerate(terms):
            self.terms[k].width, self.terms[k].prefix, self.terms[k].low, self.terms[k].high = term[:4]
            self.terms[k].last, self.terms[k].ends, self.terms[k].timed = term[4:]
            self.terms[k].scale = 1.0
            self.extremes = (self.extremes or not k) and is_extreme(&self.terms[k])
            self.hiding = self.hiding or (self.m > 1 and is_extreme(&self.terms[k]))
        self.later, self.behind = self.base + self.m, self.base + 2 * self.m
        self.between, self.known = self.base + 3 * self.m, self.base + 4 * self.m
        self.forget_behind()
        return 0

    # nodes

    cdef inline size_t record(self) noexcept nogil:
        return sizeof(Node) + 2 * self.p.width * sizeof(Slot)

    cdef inline Slot* partial(self, Node* node) noexcept nogil:
        return <Slot*> (node + 1)

    cdef inline Slot* all(self, Node* node) noexcept nogil:
        """The partial of a node's subtree."""
        return <Slot*> (node + 1) + self.p.width

    cdef Node* take(self) noexcept nogil:
        cdef Node* node
        cdef void** chunk
        cdef int64_t i
        if self.free == NULL:
            chunk = <void**> malloc(sizeof(Slot) + self.a_chunk * self.record())
            if chunk == NULL:
                return NULL
            chunk[0] = <void*> self.chunk
            self.chunk, self.chunks = chunk, self.chunks + 1
            for i in range(self.a_chunk):
                self.give(<Node*> (<char*> chunk + sizeof(Slot) + i * self.record()))
        node = self.free
        self.free = node.after
        node.left = node.right = node.up = node.before = node.after = node.cheapest = NULL
        node.paired, node.state, node.look = False, FRESH, self.look
        return node

    cdef inline void give(self, Node* node) noexcept nogil:
        node.after = self.free
        self.free = node

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t chunk = sizeof(Slot) + self.a_chunk * self.record()
        return Engine.bytes(self) + self.chunks * chunk + self.m * <int64_t> (sizeof(Term) + 5 * sizeof(double))

    cdef inline void together(self, Slot* out, const Slot* a, const Slot* b) noexcept nogil:
        """Two neighbours as one, to the bit what `combine` gives."""
        if not self.ranged:
            combine(self.p, out, a, b)
            return
        combine_header(out, a, b)
        join_extreme(out + 5, a + 5, b + 5, mask(b[5].f < a[5].f))
        join_extreme(out + 10, a + 10, b + 10, mask(b[10].f > a[10].f))
        out[15], out[16] = a[15], b[16]
        combine_ends(out + 17, a + 17, b + 17, -1.0)
        combine_ends(out + 20, a + 20, b + 20, 1.0)

    # the treap: a node's partials and its choice follow from its children's

    cdef void refresh(self, Node* node) noexcept nogil:
        cdef Slot* out = self.all(node)
        if node.left != NULL:
            self.together(out, self.all(node.left), self.partial(node))
        else:
            copy(self.p, out, self.partial(node))
        if node.right != NULL:
            self.together(out, out, self.all(node.right))
        self.choose(node)

    cdef inline void choose(self, Node* node) noexcept nogil:
        """The cheapest pair of the subtree; of equals the fewest readings, then the oldest."""
        cdef Node* best = NULL if node.left == NULL else node.left.cheapest
        if node.paired and (best == NULL or cheaper(node, best)):
            best = node
        if node.right != NULL and node.right.cheapest != NULL and (best == NULL or cheaper(node.right.cheapest, best)):
            best = node.right.cheapest
        node.cheapest = best

    cdef void refresh_from(self, Node* node) noexcept nogil:
        self.rest_known = False
        while node != NULL:
            self.refresh(node)
            node = node.up

    cdef void choose_from(self, Node* node) noexcept nogil:
        """A bucket's pair costs something else: up to where another pair was the cheapest and still is."""
        cdef Node* changed = node
        cdef Node* was
        while node != NULL:
            was = node.cheapest
            self.choose(node)
            if was == node.cheapest and was != changed:
                return
            node = node.up

    cdef double added(self, const Slot* first, const Slot* second) noexcept nogil:
        """The weight of both as one, less their own; where squares overflow it is no number, and counts as infinite.

        `behind` is what is behind both.
        """
        cdef Slot* pair = self.spare + S_PAIR * self.p.width
        cdef double cost
        cdef int k
        if self.extremes and self.hiding and (not self.terms[0].timed or ordered(first, second)):
            cost = added_of_extremes(self.terms, self.m, first, second, self.behind, self.between)
            return cost if cost == cost else INFINITY
        for k in range(self.m if self.hiding else 0):
            if is_extreme(&self.terms[k]):
                self.between[k] = further(&self.terms[k], self.behind[k], extreme(&self.terms[k], second))
        self.together(pair, first, second)
        cost = weight(self.terms, self.m, pair, self.behind) - weight(self.terms, self.m, first, self.between)
        cost -= weight(self.terms, self.m, second, self.behind)
        return cost if cost == cost else INFINITY

    # what is behind a bucket hides it in part: as long as a reading is in the window, so are all behind it

    cdef void forget_behind(self) noexcept nogil:
        """No bucket is left, or the first is to come."""
        cdef int k
        for k in range(self.m):
            self.base[k] = self.later[k] = self.behind[k] = self.between[k] = nothing(&self.terms[k])

    cdef void look_behind(self, Node* node) noexcept nogil:
        """Take what is behind a bucket into `behind`; O(log n)."""
        cdef int k
        if not self.hiding:
            return
        for k in range(self.m):
            self.behind[k] = self.later[k] if node == self.newest else self.base[k]
        if node == self.newest:
            return
        if node.right != NULL:
            self.take_behind(self.all(node.right))
        while node.up != NULL:
            if node.up.left == node:
                self.take_behind(self.partial(node.up))
                if node.up.right != NULL:
                    self.take_behind(self.all(node.up.right))
            node = node.up

    cdef inline void take_behind(self, const Slot* later) noexcept nogil:
        cdef int k
        for k in range(self.m):
            if is_extreme(&self.terms[k]):
                self.behind[k] = further(&self.terms[k], self.behind[k], extreme(&self.terms[k], later))

    cdef Node* last_beyond(self, const Term* t, Node* before) noexcept nogil:
        """The last closed bucket before one whose extreme is beyond that one's; NULL: there is none."""
        cdef double than = extreme(t, self.partial(before))
        cdef Node* node = before.left
        while node == NULL or not beyond(t, self.all(node), than):  # up to where one lies before it
            while before.up != NULL and before.up.left == before:
                before = before.up
            before = before.up
            if before == NULL or beyond(t, self.partial(before), than):
                return before
            node = before.left
        while True:  # and down to the last of those
            if node.right != NULL and beyond(t, self.all(node.right), than):
                node = node.right
            elif beyond(t, self.partial(node), than):
                return node
            else:
                node = node.left

    cdef void reveal(self, int k, Node* last, double height) noexcept nogil:
        """What is behind the closed buckets up to `last` has changed, at most to a height: what it may hide costs anew.

        That is what no later one of them hides. Each is hidden once, so there are O(1) for a bucket that is closed. A pair that was
        hidden and stays so adds nothing, whatever hides it.
        """
        cdef const Term* t = &self.terms[k]
        while last != NULL:
            self.revalue(last.before)
            self.revalue(last)  # what is behind it is behind all that it hides, too
            last = NULL if beyond(t, self.partial(last), height) else self.last_beyond(t, last)

    cdef void revalue(self, Node* node) noexcept nogil:
        cdef double cost
        if node == NULL or not node.paired or node.look == self.look:
            return
        cost, node.look = node.cost, self.look
        self.price(node)
        if node.cost != cost:
            self.choose_from(node)

    cdef void look_at_newest(self) noexcept nogil:
        """Let the costs know what is behind the closed buckets now."""
        cdef const Term* t
        cdef int k
        for k in range(self.m if self.hiding else 0):
            self.known[k], t = self.base[k], &self.terms[k]
            if is_extreme(t):
                self.base[k] = further(t, extreme(t, self.partial(self.newest)), self.later[k])
        self.look += 1
        for k in range(self.m if self.hiding else 0):
            if self.base[k] != self.known[k]:
                self.reveal(k, self.newest.before, further(&self.terms[k], self.base[k], self.known[k]))

    cdef void price(self, Node* node) noexcept nogil:
        """What merging a closed bucket with the next adds to the interval of a window whose edge may be at any reading."""
        if node.after != NULL:
            self.look_behind(node.after)
        self.judge(node)

    cdef void judge(self, Node* node) noexcept nogil:
        """The same, where `behind` is known."""
        cdef Node* after = node.after
        node.paired = after != NULL and after != self.newest
        if after == NULL:
            return
        node.cost = self.added(self.partial(node), self.partial(after))
        node.size = self.partial(node)[H_COUNT].i + self.partial(after)[H_COUNT].i

    cdef void close(self, Node* node) noexcept nogil:
        """Put the bucket that was open into the tree, as its last; `newest` is another already."""
        cdef Node* spot = node.before
        cdef Node* below = NULL
        cdef double height
        cdef int k
        for k in range(self.m):
            self.known[k], self.base[k] = self.base[k], nothing(&self.terms[k])
        node.priority = priority_of(<uint64_t> self.partial(node)[H_O_FIRST].i)
        while spot != NULL and spot.priority < node.priority:
            below = spot
            spot = spot.up
        node.left, node.up = below, spot
        if below != NULL:
            below.up = node
        if spot != NULL:
            spot.right = node
        else:
            self.root = node
        if node.before != NULL:
            self.price(node.before)
        if below != NULL:
            self.choose_below(node)
        self.refresh_from(node)
        self.look += 1
        for k in range(self.m if self.hiding else 0):
            height = extreme(&self.terms[k], self.partial(node)) if is_extreme(&self.terms[k]) else self.known[k]
            if height != self.known[k]:  # else room was made when it was full already, and the costs knew it
                self.reveal(k, node.before, further(&self.terms[k], self.known[k], height))

    cdef void choose_below(self, Node* node) noexcept nogil:
        """From the bucket before, whose pair is new, up to the last node below this one."""
        cdef Node* each = node.before
        while each != node:
            self.choose(each)
            each = each.up

    cdef void remove(self, Node* node) noexcept nogil:
        """Take a bucket out of the tree."""
        self.refresh_from(self.detach(node))

    cdef Node* detach(self, Node* node) noexcept nogil:
        """Its two subtrees become one in its place; the lowest node whose subtree is another now."""
        cdef Node* left = node.left
        cdef Node* right = node.right
        cdef Node* up = node.up
        cdef Node** place = &self.root
        if up != NULL:
            place = &up.left if up.left == node else &up.right
        while left != NULL and right != NULL:
            if left.priority > right.priority:
                place[0], left.up, up = left, up, left
                place = &left.right
                left = left.right
            else:
                place[0], right.up, up = right, up, right
                place = &right.left
                right = right.left
        place[0] = left if left != NULL else right
        if place[0] != NULL:
            place[0].up = up
        return up

    # the contract

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Append a bucket; the one before it is closed now."""
        cdef Node* node = self.take()
        cdef Node* last = self.newest
        if node == NULL:
            with gil:
                raise MemoryError(f"pairs: no memory for {self.a_chunk} buckets beside {self.tail - self.head}")
        copy(self.p, self.partial(node), leaf)
        node.before = last
        self.newest = node
        if last == NULL:
            self.oldest = node
        else:
            last.after = node
            self.close(last)
        self.tail += 1
        return 0

    cdef void join(self, const Slot* reading) noexcept nogil:
        cdef Slot* open = self.partial(self.newest)
        self.together(open, open, reading)

    cdef void pop(self) noexcept nogil:
        cdef Node* gone = self.oldest
        self.unlink(gone)
        if gone == self.newest:
            self.newest = NULL
            self.forget_behind()
        else:
            self.remove(gone)
        self.rest_known = False
        self.give(gone)
        self.head += 1

    cdef void pop_newest(self) noexcept nogil:
        cdef Node* gone = self.newest
        cdef Node* open = gone.before
        cdef int k
        self.unlink(gone)
        self.newest = open
        if open != NULL:
            self.remove(open)
            open.left = open.right = open.up = open.cheapest = NULL
            open.paired = False
        if open != NULL and open.before != NULL:
            self.price(open.before)
            self.choose_from(open.before)
        if open == NULL:
            self.forget_behind()
        for k in range(self.m if open != NULL else 0):
            self.known[k] = self.base[k]
            if is_extreme(&self.terms[k]):
                self.base[k] = extreme(&self.terms[k], self.partial(open))
        self.look += 1
        for k in range(self.m if self.hiding and open != NULL else 0):
            if self.base[k] != self.known[k]:
                self.reveal(k, open.before, self.known[k])
        self.rest_known = False
        self.give(gone)
        self.tail -= 1

    cdef void unlink(self, Node* node) noexcept nogil:
        if node.before != NULL:
            node.before.after = node.after
        else:
            self.oldest = node.after
        if node.after != NULL:
            node.after.before = node.before
        self.cursor = NULL

    cdef Node* least(self) noexcept nogil:
        """The first of the pair that adds least, the open bucket's among them."""
        cdef Node* first
        self.look_at_newest()
        if self.m > 1 and self.merges >= self.due:
            self.rescale()
        first = self.newest.before
        self.price(first)
        if self.root.cheapest != NULL and not cheaper(first, self.root.cheapest):
            first = self.root.cheapest
        return first

    cdef bint wants(self, const Slot* leaf) noexcept nogil:
        cdef Node* first = self.least()
        cdef int64_t size = self.partial(self.newest)[H_COUNT].i + leaf[H_COUNT].i
        cdef double cost
        self.look_behind(self.newest)
        cost = self.added(self.partial(self.newest), leaf)
        if cost > first.cost or (cost == first.cost and size >= first.size):
            return False
        self.merges += 1
        return True

    cdef int merge(self) noexcept nogil:
        cdef Node* first = self.least()
        cdef Node* second = first.after
        cdef Node* lowest
        cdef Node* above
        cdef int touched, k
        touched = (OLDEST if first == self.oldest else 0) | (NEWEST if second == self.newest else 0)
        self.merges += 1
        self.tail -= 1
        if second == self.newest:
            self.together(self.partial(second), self.partial(first), self.partial(second))
            second.state = TOOK
            for k in range(self.m if self.hiding else 0):
                if is_extreme(&self.terms[k]):
                    self.base[k] = further(&self.terms[k], self.base[k], extreme(&self.terms[k], self.partial(first)))
            self.unlink(first)
            self.remove(first)
            self.give(first)
            first = second
        else:
            self.together(self.partial(first), self.partial(first), self.partial(second))
            first.state = TOOK
            self.unlink(second)
            lowest = self.detach(second)
            self.give(second)
            self.price(first)
            above = lowest
            while above != NULL and above != first:
                above = above.up
            self.refresh_from(lowest if above == first else first)  # both lie on one way up
        if first.before != NULL:
            self.price(first.before)
            self.choose_from(first.before)
        return touched

    cdef void rescale(self) noexcept nogil:
        """Measure each width by what the whole window as one bucket might add, and price every pair anew."""
        cdef const Slot* total = self.total()
        cdef int k
        for k in range(self.m):
            self.terms[k].scale = reach(&self.terms[k], total)
        self.due = self.merges + self.tail - self.head
        self.reprice()

    cdef void reprice(self) noexcept nogil:
        cdef Node* node = self.newest.before
        cdef int k
        if node != NULL:
            self.look_behind(self.newest)
        while node != NULL:
            self.judge(node)
            for k in range(self.m if self.hiding else 0):
                if is_extreme(&self.terms[k]):
                    self.behind[k] = self.base[k] if node.after == self.newest else self.between[k]
            node = node.before
        self.choose_all(self.root)

    cdef void choose_all(self, Node* node) noexcept nogil:
        if node != NULL:
            self.choose_all(node.left)
            self.choose_all(node.right)
            self.choose(node)

    cdef const Slot* total(self) noexcept nogil:
        if self.newest == NULL:
            return NULL
        if self.root == NULL:
            return self.partial(self.newest)
        self.together(self.spare, self.all(self.root), self.partial(self.newest))
        return self.spare

    cdef const Slot* rest(self) noexcept nogil:
        cdef const Slot* closed
        cdef Slot* out = self.spare + S_REST * self.p.width
        if self.oldest == self.newest:
            return NULL
        closed = self.closed_rest()
        if closed == NULL:
            return self.partial(self.newest)
        self.together(out, closed, self.partial(self.newest))
        return out

    cdef const Slot* closed_rest(self) noexcept nogil:
        """What stands right of each node on the way from the oldest bucket up; kept until a closed bucket changes."""
        cdef Slot* out = self.spare + S_CLOSED * self.p.width
        cdef Node* node = self.oldest
        cdef bint started = self.rest_known or node.right != NULL
        if self.rest_known:
            return out if self.oldest.after != self.newest else NULL
        if node.right != NULL:
            copy(self.p, out, self.all(node.right))
        while node.up != NULL:
            node = node.up
            if started:
                self.together(out, out, self.partial(node))
            else:
                copy(self.p, out, self.partial(node))
            started = True
            if node.right != NULL:
                self.together(out, out, self.all(node.right))
        self.rest_known = True
        return out if started else NULL

    cdef bint around(self, const Slot** left, const Slot** top, const Slot** base) noexcept nogil:
        if self.root == NULL:
            return False
        left[0], top[0], base[0] = self.all(self.root), self.closed_rest(), NULL
        return True

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return self.partial(self.find(index))

    cdef Node* find(self, int64_t index) noexcept nogil:
        """Both ends at once; between them from where it looked last."""
        if index == self.tail - 1:
            return self.newest
        if index == self.head:
            return self.oldest
        if self.cursor == NULL or index < self.place:
            self.cursor, self.place = self.oldest, self.head
        while self.place < index:
            self.cursor, self.place = self.cursor.after, self.place + 1
        return self.cursor

    cdef int take_state(self, int64_t index) noexcept nogil:
        cdef Node* node = self.find(index)
        cdef int state = node.state
        node.state = GIVEN
        return state

    # storage

    cdef int begin(self, int64_t head) except -1:
        cdef Node* node = self.oldest
        cdef Node* after
        while node != NULL:
            after = node.after
            self.give(node)
            node = after
        self.root = self.oldest = self.newest = self.cursor = NULL
        self.rest_known = False
        self.forget_behind()
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """Rows may be left of what a bucket took over before: when it is given out, they are told to be of no use."""
        cdef Node* node = self.oldest
        while node != NULL:
            node.state = TOOK
            node = node.after
        return 0

    def state(self):
        """Ordinal of the oldest bucket, merges, when the scales are taken anew, and the scales; 8 bytes little-endian each."""
        cdef int k
        first = 0 if self.oldest == NULL else self.partial(self.oldest)[H_O_FIRST].i
        scales = [self.terms[k].scale for k in range(self.m)]
        return _head.pack(first, self.merges, self.due) + struct.pack(f"<{self.m}d", *scales)

    def load(self, bytes data not None):
        """Take over a state, before the buckets. Raises ValueError for another length, or scales that cannot be."""
        cdef int k
        if len(data) != self.size:
            raise ValueError(f"state of merged pairs of {len(data)} bytes, expected {self.size}")
        _, merges, due = _head.unpack_from(data)
        scales = struct.unpack_from(f"<{self.m}d", data, _head.size)
        if not 0 <= merges <= 2**62 or not 0 <= due <= 2**62 or not all(scale >= 0.0 for scale in scales):
            raise ValueError(f"{merges} merges, scales {scales}, expected none below 0")
        self.merges, self.due = merges, due
        for k in range(self.m):
            self.terms[k].scale = scales[k]

    @property
    def size(self):
        """Bytes of a state."""
        return _head.size + 8 * self.m

    # invariants

    cdef int check(self) except -1:
        cdef Node* node = self.oldest
        cdef int64_t n = 0
        self.check_node(self.root)
        while node != NULL:
            if (node.after == NULL) != (node == self.newest) or (node.after != NULL and node.after.before != node):
                raise InvariantError(f"bucket {self.head + n} is not linked to its neighbours")
            n += 1
            node = node.after
        if n != self.tail - self.head:
            raise InvariantError(f"{n} buckets are linked, {self.tail - self.head} counted")
        return 0

    cdef int check_node(self, Node* node) except -1:
        """Order of priorities, the subtree's partial, its cheapest pair and the pair's cost."""
        cdef Slot* kept = self.spare + S_CHECK * self.p.width
        cdef Node* cheapest
        cdef double cost
        if node == NULL:
            return 0
        self.check_node(node.left)
        self.check_node(node.right)
        ordinal = self.partial(node)[H_O_FIRST].i
        for child in (<size_t> node.left, <size_t> node.right):
            if child and ((<Node*> <size_t> child).up != node or (<Node*> <size_t> child).priority >= node.priority):
                raise InvariantError(f"the bucket from ordinal {ordinal} does not stand above its children")
        copy(self.p, kept, self.all(node))
        cheapest, cost, paired = node.cheapest, node.cost, node.paired
        self.price(node)
        self.refresh(node)
        if memcmp(kept, self.all(node), self.p.width * sizeof(Slot)) != 0:
            raise InvariantError(f"the subtree of the bucket from ordinal {ordinal} is not what its buckets give")
        if cheapest != node.cheapest or paired != node.paired or (paired and cost != node.cost):
            raise InvariantError(f"the cost {cost} of the bucket from ordinal {ordinal} is not what its pair gives")
        return 0


cdef bint is_range(const Program* p) noexcept nogil:
    """A header, then LOW, HIGH, FIRST, LAST, LOW_ENDS, HIGH_ENDS of one dimension and no more."""
    cdef int k, s = 5
    cdef int op[11]
    op[0], op[1], op[2], op[3], op[4], op[9], op[10] = LOW, HIGH, FIRST, LAST, ORDERED, LOW_ENDS, HIGH_ENDS
    if p.width != 23 or p.steps != 11:
        return False
    for k in range(11):
        if 4 < k < 9:  # the header's others, which follow ORDERED
            continue
        if p.step[k].op != op[k] or (k != 4 and p.step[k].slot != s):
            return False
        s += 5 if k < 2 else 0 if k == 4 else 1 if k < 4 else 3
    return True


cdef inline bint ordered(const Slot* a, const Slot* b) noexcept nogil:
    return a[H_ORDERED].i == 1 and b[H_ORDERED].i == 1 and b[H_T_FIRST].i >= a[H_T_LAST].i


cdef inline bint cheaper(const Node* a, const Node* b) noexcept nogil:
    return a.cost < b.cost or (a.cost == b.cost and a.size < b.size)


cdef inline uint64_t priority_of(uint64_t ordinal) noexcept nogil:
    """A hash that gives every ordinal another number: splitmix64's finisher (Steele, Lea & Flood 2014)."""
    cdef uint64_t z = ordinal + 0x9E3779B97F4A7C15ULL
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return z ^ (z >> 31)
