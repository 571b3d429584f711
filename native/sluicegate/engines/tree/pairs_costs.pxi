"""What merging a pair adds: less where a later extreme hides it, since a reading leaves before all later ones.

Part of pairs.pyx.
"""

cdef double added(Pairs self, const Slot* first, const Slot* second) noexcept nogil:
    """The weight of both as one, less their own; where squares overflow it is no number, and counts as infinite.

    `behind` is what is behind both.
    """
    cdef Slot* pair = self.spare + S_PAIR * self.p.width
    cdef double cost
    cdef int k
    for k in range(self.m if self.hiding else 0):
        if is_extreme(&self.terms[k]):
            self.between[k] = further(&self.terms[k], self.behind[k], extreme(&self.terms[k], second))
    combine(self.p, pair, first, second)
    cost = weight(self.terms, self.m, pair, self.behind) - weight(self.terms, self.m, first, self.between)
    cost -= weight(self.terms, self.m, second, self.behind)
    return cost if cost == cost else INFINITY


cdef void forget_behind(Pairs self) noexcept nogil:
    """No bucket is left, or the first is to come."""
    cdef int k
    for k in range(self.m):
        self.base[k] = self.later[k] = self.behind[k] = self.between[k] = nothing(&self.terms[k])


cdef void look_behind(Pairs self, Node* node) noexcept nogil:
    """Take what is behind a bucket into `behind`; O(log n)."""
    cdef int k
    if not self.hiding:
        return
    for k in range(self.m):
        self.behind[k] = self.later[k] if node == self.newest else self.base[k]
    if node == self.newest:
        return
    if node.right != NULL:
        take_behind(self, self.all(node.right))
    while node.up != NULL:
        if node.up.left == node:
            take_behind(self, self.partial(node.up))
            if node.up.right != NULL:
                take_behind(self, self.all(node.up.right))
        node = node.up


cdef inline void take_behind(Pairs self, const Slot* later) noexcept nogil:
    cdef int k
    for k in range(self.m):
        if is_extreme(&self.terms[k]):
            self.behind[k] = further(&self.terms[k], self.behind[k], extreme(&self.terms[k], later))


cdef Node* last_beyond(Pairs self, const Term* t, Node* before) noexcept nogil:
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


cdef void reveal(Pairs self, int k, Node* last, double height) noexcept nogil:
    """What is behind the closed buckets up to `last` has changed, at most to a height: what it may hide costs anew.

    That is what no later one of them hides. Each is hidden once, so there are O(1) for a bucket that is closed. A pair
    that was hidden and stays so adds nothing, whatever hides it.
    """
    cdef const Term* t = &self.terms[k]
    while last != NULL:
        revalue(self, last.before)
        revalue(self, last)  # what is behind it is behind all that it hides, too
        last = NULL if beyond(t, self.partial(last), height) else last_beyond(self, t, last)


cdef void revalue(Pairs self, Node* node) noexcept nogil:
    cdef double cost
    if node == NULL or not node.paired or node.look == self.look:
        return
    cost, node.look = node.cost, self.look
    price(self, node)
    if node.cost != cost:
        choose_from(self, node)


cdef void look_at_newest(Pairs self) noexcept nogil:
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
            reveal(self, k, self.newest.before, further(&self.terms[k], self.base[k], self.known[k]))


cdef void price(Pairs self, Node* node) noexcept nogil:
    """What merging a closed bucket with the next adds to the interval of a window whose edge may be at any reading."""
    if node.after != NULL:
        look_behind(self, node.after)
    judge(self, node)


cdef void judge(Pairs self, Node* node) noexcept nogil:
    """The same, where `behind` is known."""
    cdef Node* after = node.after
    node.paired = after != NULL and after != self.newest
    if after == NULL:
        return
    node.cost = added(self, self.partial(node), self.partial(after))
    node.size = self.partial(node)[H_COUNT].i + self.partial(after)[H_COUNT].i


cdef void rescale(Pairs self) noexcept nogil:
    """Measure each width by what the whole window as one bucket might add, and price every pair anew."""
    cdef const Slot* total = self.total()
    cdef int k
    for k in range(self.m):
        self.terms[k].scale = reach(&self.terms[k], total)
    self.due = self.merges + self.tail - self.head
    reprice(self)


cdef void reprice(Pairs self) noexcept nogil:
    cdef Node* node = self.newest.before
    cdef int k
    if node != NULL:
        look_behind(self, self.newest)
    while node != NULL:
        judge(self, node)
        for k in range(self.m if self.hiding else 0):
            if is_extreme(&self.terms[k]):
                self.behind[k] = self.base[k] if node.after == self.newest else self.between[k]
        node = node.before
    choose_all(self, self.root)


cdef void choose_all(Pairs self, Node* node) noexcept nogil:
    if node != NULL:
        choose_all(self, node.left)
        choose_all(self, node.right)
        choose(self, node)
