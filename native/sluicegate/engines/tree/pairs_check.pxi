"""Whether the treap is what its buckets give. Part of pairs.pyx."""

cdef int check_node(Pairs self, Node* node) except -1:
    """Order of priorities, the subtree's partial, its cheapest pair and the pair's cost."""
    cdef Slot* kept = self.spare + S_CHECK * self.p.width
    cdef Node* cheapest
    cdef double cost
    if node == NULL:
        return 0
    check_node(self, node.left)
    check_node(self, node.right)
    ordinal = self.partial(node)[H_O_FIRST].i
    for child in (<size_t> node.left, <size_t> node.right):
        if child and ((<Node*> <size_t> child).up != node or (<Node*> <size_t> child).priority >= node.priority):
            raise InvariantError(f"the bucket from ordinal {ordinal} does not stand above its children")
    copy(self.p, kept, self.all(node))
    cheapest, cost, paired = node.cheapest, node.cost, node.paired
    price(self, node)
    refresh(self, node)
    if memcmp(kept, self.all(node), self.p.width * sizeof(Slot)) != 0:
        raise InvariantError(f"the subtree of the bucket from ordinal {ordinal} is not what its buckets give")
    if cheapest != node.cheapest or paired != node.paired or (paired and cost != node.cost):
        raise InvariantError(f"the cost {cost} of the bucket from ordinal {ordinal} is not what its pair gives")
    return 0
