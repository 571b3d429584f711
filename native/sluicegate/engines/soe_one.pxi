"""One reading through Subtract-on-Evict: what push, pop and total do, in registers where nothing is in doubt. Part of soe.pyx."""

cdef int slide_any(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(<Soe> self, leaf, head, out)


cdef int slide_sum(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return exchange_sum(<Soe> self, leaf, head, out)


cdef int slide_moments(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return exchange_moments(<Soe> self, leaf, head, out)


cdef inline bint exchanges(Soe self, int64_t head) noexcept nogil:
    """Whether one leaves, of two at least, and no chunk with it."""
    return head == self.head + 1 and self.tail - self.head > 1 and at_hand(&self.queue, head, self.tail) and not self.pool.surplus


cdef inline int exchange_sum(Soe self, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    """A sum with its error, and the largest summand; nothing is changed where that tells that digits were lost."""
    cdef double x, old, before, with_leaf, after, error, most, size, largest
    cdef int64_t at_most
    if not exchanges(self, head):
        return self.slide_slowly_by(self, leaf, head, out)
    x, old, before, largest = leaf.f, at(&self.pool, &self.queue, 1, head - 1).f, self.sum.f, self.largest[0]
    with_leaf = before + x
    error = self.errors[0] + error_of(before, x, with_leaf)
    after = with_leaf - old
    error += error_of(with_leaf, -old, after)
    size = fabs(x)
    at_most = chosen(mask(size >= 0.5 * largest), self.largest_at[0], self.tail)  # as good as chance: no jump
    most = size if size > largest else largest
    if at_most < head and fabs(after) < most * CANCELLED:
        return self.slide_slowly_by(self, leaf, head, out)
    at(&self.pool, &self.queue, 1, self.tail).f = x
    self.sum.f, self.errors[0], self.largest[0], self.largest_at[0] = after, error, most, at_most
    self.head, self.tail = head, self.tail + 1
    if out != NULL:
        out.f = after + error
    return 1


cdef inline double error_of(double a, double b, double total) noexcept nogil:
    """What rounding took from a + b = total (Knuth's TwoSum)."""
    cdef double part = total - a
    return (a - (total - part)) + (b - part)


cdef inline int exchange_moments(Soe self, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    """The same of mean and squared deviations, where they neither overflow nor lose digits nor are due to be taken anew."""
    cdef Slot oldest[3]
    cdef Slot total[3]
    cdef double greatest_since, most
    if not exchanges(self, head) or self.since >= TURNS * (self.tail - self.head) + FEWEST - 1:
        return self.slide_slowly_by(self, leaf, head, out)
    oldest[0].f, oldest[1], oldest[2].f = 1.0, at(&self.pool, &self.queue, 1, head - 1)[0], 0.0
    combine_by(merge_op, self.p, total, self.sum, leaf)
    most = greatest(self.greatest[0], total[2].f)
    deduct_moments(total, total, oldest)
    if not (fabs(leaf[1].f) < FAR and most < INFINITY and total[2].f >= most * LOST):
        return self.slide_slowly_by(self, leaf, head, out)
    at(&self.pool, &self.queue, 1, self.tail)[0] = leaf[1]
    copy_by(merge_op, self.p, self.sum, total)
    self.greatest[0] = most
    self.head, self.tail, self.since = head, self.tail + 1, self.since + 1
    if out != NULL:
        copy_by(merge_op, self.p, out, total)
    return 1


cdef int slide_slowly(Soe self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """Whatever leaves, and whatever is lost with it: as push, pop and total."""
    cdef Block block
    block.n, block.leaves, block.heads, block.totals, block.more, block.soon = 1, leaf, &head, out, False, NULL
    block.jump = head - self.head
    one(self, &block, 0)
    return self.head < self.tail
