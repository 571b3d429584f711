"""The treap of the closed buckets: a node's partials and its choice follow from its children's. Part of pairs.pyx."""

cdef inline uint64_t priority_of(uint64_t ordinal) noexcept nogil:
    """A hash that gives every ordinal another number: splitmix64's finisher (Steele, Lea & Flood 2014)."""
    cdef uint64_t z = ordinal + 0x9E3779B97F4A7C15ULL
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return z ^ (z >> 31)


cdef inline bint cheaper(const Node* a, const Node* b) noexcept nogil:
    return a.cost < b.cost or (a.cost == b.cost and a.size < b.size)


cdef void refresh(Pairs self, Node* node) noexcept nogil:
    cdef Slot* out = self.all(node)
    if node.left != NULL:
        combine(self.p, out, self.all(node.left), self.partial(node))
    else:
        copy(self.p, out, self.partial(node))
    if node.right != NULL:
        combine(self.p, out, out, self.all(node.right))
    choose(self, node)


cdef inline void choose(Pairs self, Node* node) noexcept nogil:
    """The cheapest pair of the subtree; of equals the fewest readings, then the oldest."""
    cdef Node* best = NULL if node.left == NULL else node.left.cheapest
    if node.paired and (best == NULL or cheaper(node, best)):
        best = node
    if node.right != NULL and node.right.cheapest != NULL and (best == NULL or cheaper(node.right.cheapest, best)):
        best = node.right.cheapest
    node.cheapest = best


cdef void refresh_from(Pairs self, Node* node) noexcept nogil:
    self.rest_known = False
    while node != NULL:
        refresh(self, node)
        node = node.up


cdef void choose_from(Pairs self, Node* node) noexcept nogil:
    """A bucket's pair costs something else: up to where another pair was the cheapest and still is."""
    cdef Node* changed = node
    cdef Node* was
    while node != NULL:
        was = node.cheapest
        choose(self, node)
        if was == node.cheapest and was != changed:
            return
        node = node.up


cdef void close(Pairs self, Node* node) noexcept nogil:
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
        price(self, node.before)
    if below != NULL:
        choose_below(self, node)
    refresh_from(self, node)
    self.look += 1
    for k in range(self.m if self.hiding else 0):
        height = extreme(&self.terms[k], self.partial(node)) if is_extreme(&self.terms[k]) else self.known[k]
        if height != self.known[k]:  # else room was made when it was full already, and the costs knew it
            reveal(self, k, node.before, further(&self.terms[k], self.known[k], height))


cdef void choose_below(Pairs self, Node* node) noexcept nogil:
    """From the bucket before, whose pair is new, up to the last node below this one."""
    cdef Node* each = node.before
    while each != node:
        choose(self, each)
        each = each.up


cdef void remove(Pairs self, Node* node) noexcept nogil:
    """Take a bucket out of the tree."""
    refresh_from(self, detach(self, node))


cdef Node* detach(Pairs self, Node* node) noexcept nogil:
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
