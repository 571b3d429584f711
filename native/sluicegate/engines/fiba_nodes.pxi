"""A node's parts, and how items enter and leave it. Part of fiba.pyx."""

cdef inline Slot* up_of(Node* node) noexcept nogil:
    return <Slot*> (node + 1)


cdef inline Slot* run_of(Node* node, int w) noexcept nogil:
    """Of a node above the leaf nodes; in those the first leaf lies there."""
    return <Slot*> (node + 1) + w


cdef inline const Slot* run_if(Node* node, int w) noexcept nogil:
    return run_of(node, w) if node != NULL and node.has_run else NULL


cdef inline Slot* leaf_at(Node* node, int64_t k, int w) noexcept nogil:
    return <Slot*> (node + 1) + (k + 1) * w


cdef inline int after(const Node* node, int64_t time) noexcept nogil:
    """Where a later item than those of this time stands; the newest is asked first."""
    cdef int k = node.n
    while k > 0 and node.times[k - 1] > time:
        k -= 1
    return k


cdef inline int place_in(const Node* parent, const Node* node) noexcept nogil:
    cdef int k = parent.n - 1
    while parent.child[k] != node:
        k -= 1
    return k


cdef void open_place(Node* node, int at, int w) noexcept nogil:
    cdef int moved = node.n - at
    node.n += 1
    if moved == 0:
        return
    memmove(node.times + at + 1, node.times + at, moved * sizeof(int64_t))
    if node.level:
        memmove(node.child + at + 1, node.child + at, moved * sizeof(Node*))
    else:
        memmove(leaf_at(node, at + 1, w), leaf_at(node, at, w), moved * w * sizeof(Slot))


cdef void close_up(Node* node, int gone, int w) noexcept nogil:
    """Take out the first items."""
    node.n -= gone
    memmove(node.times, node.times + gone, node.n * sizeof(int64_t))
    if node.level:
        memmove(node.child, node.child + gone, node.n * sizeof(Node*))
    else:
        memmove(leaf_at(node, 0, w), leaf_at(node, gone, w), node.n * w * sizeof(Slot))


cdef inline const Slot* joined(const Program* p, Slot* out, const Slot* a, const Slot* b) noexcept nogil:
    if a == NULL:
        return b
    combine(p, out, a, b)
    return out


cdef inline void chain(const Program* p, Node* node, const Slot* above, bint right) noexcept nogil:
    """A node's run: what is above it and its own aggregate, in order of time."""
    cdef Slot* run = run_of(node, p.width)
    node.has_run = above != NULL or node.has_up
    if above == NULL or not node.has_up:
        if node.has_run:
            copy(p, run, up_of(node) if above == NULL else above)
    elif right:
        combine(p, run, above, up_of(node))
    else:
        combine(p, run, up_of(node), above)
