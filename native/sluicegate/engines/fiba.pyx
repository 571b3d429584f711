"""A finger B-tree of leaves in order of time, in compiled code: the engine that takes late readings.

Fact card: any order of arrival; associative operation; with d leaves after the new one, insert O(log d) amortised, O(1)
at the newest end; evict and query O(1) amortised; n leaves and about a sixth as many aggregates. Source: Tangwongsan,
Hirzel and Schneider, "Optimal and General Out-of-Order Sliding-Window Aggregation", VLDB 2019, and their bulk eviction,
VLDB 2023. The twin, a treap, is sluicegate.reference.engines.fiba. Readings stand only in the tree's leaves here, and
since they leave only at the oldest end, nodes on the two spines may hold fewer than half: nothing is ever borrowed or
merged.

An inner node's `up` is the partial of all its children. A spine's node leaves out the child on the spine, the root
those at both ends; `run` goes on from the root to the node: root's `up` ⊗ … ⊗ the right spine's, and the left spine's ⊗
… up to below the root. So the window's partial is suffix of the left leaf ⊗ left run ⊗ right run ⊗ right leaf's `up`.

Nodes come from blocks of the engine's own; an insertion makes sure of as many as it may take before it changes
anything.
"""

cimport cython
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from sluicegate.partials.program cimport COUNT, LOG_SUM, MAX, MIN, MOMENTS, SUM, T_FIRST, T_LAST, Program, combine, copy

cdef enum:
    FIRST_BLOCK = 2  # nodes; each further block holds half as many as there are
    LARGEST_BLOCK = 256


@cython.final
cdef class Fiba(Engine):
    """Leaves by time, equal ones by arrival; the index of a leaf is its place in that order."""

    def __dealloc__(self):
        cdef void* block
        while self.blocks != NULL:
            block = self.blocks
            self.blocks = (<void**> block)[0]
            free(block)
        free(self.suffix)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        self.node_size = sizeof(Node) + (1 + MOST) * p.width * sizeof(Slot)
        self.suffix = <Slot*> malloc(MOST * p.width * sizeof(Slot))
        self.root = self.free_nodes = NULL
        self.commutes = commutes(p)
        if self.suffix == NULL or reserve_nodes(self) < 0:
            raise MemoryError(f"fiba: no memory for nodes of partials of {p.width} slots")
        clear(self)
        return 0

    # insertion

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Append a leaf at the newest time."""
        return self.insert(self.right.times[self.right.n - 1] if self.right.n else 0, leaf)

    cdef int insert(self, int64_t time, const Slot* leaf) except -1 nogil:
        cdef int w = self.p.width, at
        cdef Node* node
        cdef Node* sibling
        cdef Touched touched
        touched.n = 0
        if self.free_count < self.root.level + 3 and reserve_nodes(self) < 0:
            with gil:
                raise MemoryError(f"fiba: no memory for leaf {self.tail}")
        self.cursor = NULL
        node = place_of(self, time)
        if node == self.left and self.start:
            close_up(node, self.start, w)
            memmove(self.suffix, self.suffix + self.start * w, node.n * w * sizeof(Slot))
            self.start = 0
        if node.n == MOST:
            sibling = split(self, node, &touched)
            if time >= sibling.times[0]:
                node = sibling
        at = after(node, time)
        open_place(node, at, w)
        node.times[at] = time
        copy(self.p, leaf_at(node, at, w), leaf)
        self.tail += 1
        if touched.n == 0 and node == self.right and node != self.left and at == node.n - 1:
            if node.has_up:
                combine(self.p, up_of(node), up_of(node), leaf)
            else:
                copy(self.p, up_of(node), leaf)
                node.has_up = True
        elif touched.n or not self.commutes or node == self.left:
            repair(self, node, &touched)
        else:
            add(self, node, leaf)
        return 0

    # eviction

    cdef void pop(self) noexcept nogil:
        self.cursor = NULL
        self.head += 1
        self.start += 1
        if self.start == self.left.n:
            repair_left(self, NULL)

    cdef void evict_through(self, int64_t cutoff) noexcept nogil:
        """Whole subtrees first, where the left leaf node goes."""
        cdef Node* node = self.root
        cdef int gone, k
        if self.head == self.tail or self.left.times[self.start] > cutoff:
            return
        self.cursor = NULL
        if self.left.times[self.left.n - 1] > cutoff:
            while self.left.times[self.start] <= cutoff:
                self.start += 1
                self.head += 1
            return
        if self.left.next != NULL and self.left.next.times[0] > cutoff:
            self.head += self.left.n - self.start
            self.start = self.left.n
            repair_left(self, NULL)
            return
        while node.level:
            gone = max(after(node, cutoff) - 1, 0)
            for k in range(gone):
                self.head += free_below(self, node.child[k])
            if gone:
                self.start = 0
                close_up(node, gone, 0)
            node = node.child[0]
        gone = after(node, cutoff)
        self.head += gone - self.start
        self.start = gone
        self.left = node
        repair_left(self, self.root)

    cdef int begin(self, int64_t head) except -1:
        clear(self)
        return Engine.begin(self, head)

    # answers

    cdef const Slot* total(self) noexcept nogil:
        return total_from(self, 0, self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        return total_from(self, 1, self.spare + self.p.width)

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        cdef Node* node
        if index == self.tail - 1:
            return leaf_at(self.right, self.right.n - 1, self.p.width)
        node = find(self, index)
        return leaf_at(node, index - self.cursor_first, self.p.width)

    cdef int64_t time_at(self, int64_t index) noexcept nogil:
        cdef Node* node
        if index == self.tail - 1:
            return self.right.times[self.right.n - 1]
        node = find(self, index)
        return node.times[index - self.cursor_first]

    cdef int64_t bytes(self) noexcept nogil:
        return Engine.bytes(self) + self.nodes * <int64_t> self.node_size + MOST * self.p.width * <int64_t> sizeof(Slot)


# nodes

cdef int reserve_nodes(Fiba self) noexcept nogil:
    """Make sure of one node a level and two more, the most that an insertion takes; −1: no memory."""
    cdef int64_t count, k, least = 2 if self.root == NULL else self.root.level + 3
    cdef char* block
    while self.free_count < least:
        count = min(max(self.nodes >> 1, <int64_t> FIRST_BLOCK), <int64_t> LARGEST_BLOCK)
        block = <char*> malloc(sizeof(void*) + count * self.node_size)
        if block == NULL:
            return -1
        (<void**> block)[0] = self.blocks
        self.blocks = block
        self.nodes += count
        for k in range(count):
            free_node(self, <Node*> (block + sizeof(void*) + k * self.node_size))
    return 0


cdef Node* new_node(Fiba self, int level, int role) noexcept nogil:
    cdef Node* node = self.free_nodes
    self.free_nodes = node.parent
    self.free_count -= 1
    node.parent = node.next = NULL
    node.level, node.role, node.n, node.has_up, node.has_run = level, role, 0, False, False
    return node


cdef void free_node(Fiba self, Node* node) noexcept nogil:
    node.parent = self.free_nodes
    self.free_nodes = node
    self.free_count += 1


cdef int64_t free_below(Fiba self, Node* node) noexcept nogil:
    """Give back a subtree; how many leaves it held."""
    cdef int64_t held = 0
    cdef int k
    if node.level == 0:
        held = node.n - (self.start if node == self.left else 0)
    else:
        for k in range(node.n):
            held += free_below(self, node.child[k])
    free_node(self, node)
    return held


cdef void clear(Fiba self) noexcept nogil:
    if self.root != NULL:
        free_below(self, self.root)
    self.root = self.left = self.right = new_node(self, 0, ROOT)
    self.start = 0
    self.cursor = NULL


# insertion

cdef Node* place_of(Fiba self, int64_t time) noexcept nogil:
    """The node a leaf belongs into: up from the newest end as far as needed, then down."""
    cdef Node* node = self.right
    while node.parent != NULL and time < node.times[0]:
        node = node.parent
    while node.level:
        node = node.child[max(after(node, time) - 1, 0)]
    return node


cdef Node* split(Fiba self, Node* node, Touched* touched) noexcept nogil:
    """Move a full node's newer part into a new sibling; the parents make room first."""
    cdef Node* sibling
    cdef Node* parent
    cdef int at = APPENDED if node.role == RIGHT or node.role == ROOT else MOST // 2, k, w = self.p.width
    if node.parent == NULL:
        grow(self, node)
    elif node.parent.n == MOST:
        split(self, node.parent, touched)
    parent = node.parent
    sibling = new_node(self, node.level, RIGHT if node.role == RIGHT or node.role == ROOT else INNER)
    if node.role == ROOT:
        node.role = LEFT
    elif node.role == RIGHT:
        node.role = INNER
    sibling.n, node.n = MOST - at, at
    memcpy(sibling.times, node.times + at, sibling.n * sizeof(int64_t))
    if node.level == 0:
        memcpy(leaf_at(sibling, 0, w), leaf_at(node, at, w), sibling.n * w * sizeof(Slot))
        sibling.next, node.next = node.next, sibling
    for k in range(sibling.n if node.level else 0):
        sibling.child[k] = node.child[at + k]
        sibling.child[k].parent = sibling
    sibling.parent = parent
    k = place_in(parent, node) + 1
    open_place(parent, k, w)
    parent.child[k], parent.times[k] = sibling, sibling.times[0]
    if node == self.right:
        self.right = sibling
    if touched.n == 0:
        touched.node[0] = parent
        touched.n = 1
    touched.node[touched.n], touched.node[touched.n + 1] = sibling, node
    touched.n += 2
    return sibling


cdef void grow(Fiba self, Node* node) noexcept nogil:
    self.root = node.parent = new_node(self, node.level + 1, ROOT)
    self.root.child[0], self.root.times[0], self.root.n = node, node.times[0], 1


# aggregates

cdef void repair(Fiba self, Node* node, const Touched* touched) noexcept nogil:
    """After an insertion: the nodes that split, from below, then up to a spine, and down that again."""
    cdef int k = touched.n
    cdef Node* top = touched.node[0] if k else node
    if k == 0:
        refresh(self, node)
    while k > 0:
        k -= 1
        refresh(self, touched.node[k])
    while top.role == INNER:
        top = top.parent
        refresh(self, top)
    if top.level:
        run_down(self, top)


cdef void add(Fiba self, Node* node, const Slot* leaf) noexcept nogil:
    """`repair` where any order will do: the leaf enters each aggregate on the way up as it is."""
    combine(self.p, up_of(node), up_of(node), leaf)
    while node.role == INNER:
        node = node.parent
        if node.has_up:
            combine(self.p, up_of(node), up_of(node), leaf)
    if node.level:
        run_down(self, node)


cdef void refresh(Fiba self, Node* node) noexcept nogil:
    """A node's own aggregate, from its children's."""
    cdef int k, first, end
    if node.level == 0:
        refresh_leaves(self, node)
        return
    first = node.role == LEFT or node.role == ROOT
    end = node.n - (node.role == RIGHT or node.role == ROOT)
    node.has_up = first < end
    for k in range(first, end):
        if k == first:
            copy(self.p, up_of(node), up_of(node.child[k]))
        else:
            combine(self.p, up_of(node), up_of(node), up_of(node.child[k]))


cdef void refresh_leaves(Fiba self, Node* node) noexcept nogil:
    cdef int k, w = self.p.width
    if node == self.left:
        stack_up(self)
        return
    node.has_up = node.n > 0
    for k in range(node.n):
        if k == 0:
            copy(self.p, up_of(node), leaf_at(node, k, w))
        else:
            combine(self.p, up_of(node), up_of(node), leaf_at(node, k, w))


cdef void stack_up(Fiba self) noexcept nogil:
    """The left leaf node's suffixes."""
    cdef int k = self.left.n - 1, w = self.p.width
    if k >= self.start:
        copy(self.p, self.suffix + k * w, leaf_at(self.left, k, w))
    while k > self.start:
        k -= 1
        combine(self.p, self.suffix + k * w, leaf_at(self.left, k, w), self.suffix + (k + 1) * w)


cdef void run_down(Fiba self, Node* top) noexcept nogil:
    """The runs from a spine's node down to the last above the leaves."""
    if top.role != LEFT:
        run_right(self, top)
    if top.role != RIGHT:
        run_left(self, top)


cdef void run_right(Fiba self, Node* node) noexcept nogil:
    while node.level:
        chain(self.p, node, run_if(node.parent, self.p.width), True)
        node = node.child[node.n - 1]


cdef void run_left(Fiba self, Node* node) noexcept nogil:
    cdef Node* above
    while node.level:
        if node.role == LEFT:
            above = node.parent
            chain(self.p, node, run_if(above, self.p.width) if above.role == LEFT else NULL, False)
        node = node.child[0]


# eviction and answers

cdef void repair_left(Fiba self, Node* top) noexcept nogil:
    """Take out what is empty at the oldest end; then the left spine's roles and aggregates, from `top` down.

    NULL: from the lowest node that has lost a child; those above do not count the child on the spine.
    """
    cdef Node* node = self.left
    cdef Node* above
    if self.head == self.tail:
        self.left, self.start = self.root, 0  # nothing of it is counted again
        clear(self)
        return
    if self.start == node.n:
        self.start = 0
        while True:
            above = node.parent
            free_node(self, node)
            close_up(above, 1, 0)
            node = above
            if node.n:
                break
        if top == NULL:
            top = node
    while self.root.level and self.root.n == 1:
        node = self.root
        self.root = top = node.child[0]
        self.root.parent, self.root.role = NULL, ROOT
        free_node(self, node)
    node = top
    while node.level:
        node = node.child[0]
        node.role = LEFT
        if node.level:
            refresh(self, node)
    self.left = node
    if node == self.root:
        node.role, self.right = ROOT, node
    refresh(self, node)
    if top.level:
        refresh(self, top)
        run_down(self, top)


cdef const Slot* total_from(Fiba self, int skipped, Slot* out) noexcept nogil:
    """Left suffix ⊗ left run ⊗ right run ⊗ right leaf node."""
    cdef int first = self.start + skipped, w = self.p.width
    cdef const Slot* front = self.suffix + first * w if first < self.left.n else NULL
    cdef Node* node = self.left.parent
    if node == NULL:
        return front
    if node.role == LEFT and node.has_run:
        front = joined(self.p, out, front, run_of(node, w))
    node = self.right.parent
    if node.has_run:
        front = joined(self.p, out, front, run_of(node, w))
    return joined(self.p, out, front, up_of(self.right))


cdef Node* find(Fiba self, int64_t index) noexcept nogil:
    """The node of a leaf, from where it was asked last on: a walk takes O(1) a leaf."""
    if self.cursor == NULL or index < self.cursor_first:
        self.cursor, self.cursor_first = self.left, self.head - self.start
    while index >= self.cursor_first + self.cursor.n:
        self.cursor_first += self.cursor.n
        self.cursor = self.cursor.next
    return self.cursor


cdef bint commutes(const Program* p) noexcept:
    """Whether the order matters to nothing but rounding."""
    cdef int k
    for k in range(p.steps):
        if p.step[k].op not in (SUM, MIN, MAX, COUNT, T_FIRST, T_LAST, LOG_SUM, MOMENTS):
            return False
    return True


include "fiba_nodes.pxi"
