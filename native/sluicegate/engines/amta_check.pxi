"""Whether AMTA's nodes and its stack are what the leaves give. Part of amta.pyx."""

cdef int check_nodes(Amta self) except -1:
    cdef int level
    cdef int64_t index
    for level in range(1, self.depth):
        for index in range(self.first(level) + 1, self.end(level)):
            combine(self.p, self.spare, self.node(level - 1, 2 * index), self.node(level - 1, 2 * index + 1))
            if memcmp(self.spare, self.node(level, index), self.p.width * sizeof(Slot)) != 0:
                raise InvariantError(f"node {index} of level {level} is not its children combined")
    return 0


cdef int check_stack(Amta self) except -1:
    """Recompute the stack above a copy of it."""
    cdef int level, kept = self.stacked
    cdef size_t size = kept * self.p.width * sizeof(Slot)
    cdef Slot* kept_stack = <Slot*> calloc(kept + 1, self.p.width * sizeof(Slot))
    if kept_stack == NULL:
        raise MemoryError("amta: no memory to verify")
    memcpy(kept_stack, self.stack, size)
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        stack_head(self, any_op, level)
    level = self.stacked == kept and memcmp(kept_stack, self.stack, size) == 0
    memcpy(self.stack, kept_stack, size)
    self.stacked = kept
    free(kept_stack)
    if not level:
        raise InvariantError("the stack is not what the heads of the levels give")
    return 0
