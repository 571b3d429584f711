"""What holds of the tree between calls: the fingers, roles, sizes and the order of time. Part of fiba.pyx."""

cdef int check_tree(Fiba self) except -1:
    cdef int64_t index, held = 0
    cdef Node* node = self.root
    check_node(self, self.root, ROOT, NULL)
    while node.level:
        node = node.child[0]
    insist(self, node == self.left, "the left finger")
    while node != NULL:
        held += node.n - (self.start if node == self.left else 0)
        node = node.next
    insist(self, held == self.tail - self.head, f"{held} leaves")
    for index in range(self.head + 1, self.tail):
        insist(self, self.time_at(index - 1) <= self.time_at(index), f"leaf {index} is before the one before it")
    return 0


cdef int check_node(Fiba self, Node* node, int role, Node* parent) except -1:
    cdef int k, below, least = MOST // 2 if role == INNER else 2 if role == ROOT and node.level else 0
    insist(self, node.role == role and node.parent == parent, f"a node of level {node.level} has role {node.role}")
    insist(self, least <= node.n <= MOST, f"{node.n} items at level {node.level}")
    for k in range(node.n if node.level else 0):
        below = role
        if role == ROOT:
            below = LEFT if k == 0 else RIGHT if k == node.n - 1 else INNER
        elif (role == LEFT and k) or (role == RIGHT and k < node.n - 1):
            below = INNER
        check_node(self, node.child[k], below, node)
        insist(self, below == LEFT or node.child[k].times[0] == node.times[k], f"least time {k} at {node.level}")
    return 0


cdef int insist(Fiba self, bint holds, str what) except -1:
    if not holds:
        raise InvariantError(f"Fiba: {what} (leaves {self.head} … {self.tail - 1})")
    return 0
