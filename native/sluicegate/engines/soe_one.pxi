"""One reading through Subtract-on-Evict: what push, pop and total do, in registers where nothing is in doubt. Part of soe.pyx."""

cdef int slide_any(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(<Soe> self, leaf, head, out)


cdef int slide_sum(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_sum_of(<Soe> self, leaf, head, out)


cdef int slide_moments(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_moments_of(<Soe> self, leaf, head, out)


cdef inline int slide_sum_of(Soe self, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    if head == self.head + 1 and head < self.ends.until:
        if exchange_sum(self, leaf, self.ends.oldest + self.head, self.ends.newest + self.tail, out):
            return 1
    return self.slide_slowly_by(self, leaf, head, out)


cdef inline int slide_moments_of(Soe self, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    if head == self.head + 1 and head < self.ends.until:
        if exchange_moments(self, leaf, self.ends.oldest + self.head, self.ends.newest + self.tail, out):
            return 1
    return self.slide_slowly_by(self, leaf, head, out)


cdef int slowly_sum(Soe self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    if begins_exchange(self, head) and exchange_sum(self, leaf, self.element(self.head), self.element(self.tail), out):
        drop_before(&self.pool, &self.queue, self.head)
        find_ends(self, INT64_MAX)
        return 1
    return slide_slowly(self, leaf, head, out)


cdef int slowly_moments(Soe self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    if begins_exchange(self, head):
        renew_moments(self)
        if turns_left(self) > 1 and exchange_moments(self, leaf, self.element(self.head), self.element(self.tail), out):
            drop_before(&self.pool, &self.queue, self.head)
            find_ends(self, self.head + turns_left(self))
            return 1
    return slide_slowly(self, leaf, head, out)


cdef inline int begins_exchange(Soe self, int64_t head) except -1 nogil:
    """Whether one leaves, of two at least; there is room for the one that comes then."""
    self.ends.until = 0
    if head != self.head + 1 or self.tail - self.head < 2:
        return False
    self.make_room()
    return True


cdef inline bint exchange_sum(Soe self, const Slot* leaf, const Slot* oldest, Slot* newest, Slot* out) noexcept nogil:
    """A sum with its error, and the largest summand; nothing is changed where that tells that digits were lost."""
    cdef One* one = <One*> self.arena
    cdef double x = leaf.f, old = oldest.f, before = one.total.f, with_leaf = before + x, after = with_leaf - old
    cdef double size = fabs(x), most = one.largest, error
    cdef int64_t at_most = one.largest_at, at_tail = self.tail
    at_most = at_tail if size >= 0.5 * most else at_most  # as good as chance: no jump
    most = size if size > most else most
    if at_most <= self.head and fabs(after) < most * CANCELLED:
        return False
    error = one.error + error_of(before, x, with_leaf)
    error += error_of(with_leaf, -old, after)
    newest.f = x
    one.total.f, one.error, one.largest, one.largest_at = after, error, most, at_most
    exchange_one(self)
    if out != NULL:
        out.f = after + error
    return True


cdef inline double error_of(double a, double b, double total) noexcept nogil:
    """What rounding took from a + b = total (Knuth's TwoSum)."""
    cdef double part = total - a
    return (a - (total - part)) + (b - part)


cdef inline int64_t turns_left(Soe self) noexcept nogil:
    """How many readings until moments are due to be taken anew."""
    return TURNS * (self.tail - self.head) + FEWEST - self.since


cdef inline void exchange_mean(double n, double* mean, double* m2, double new, double old) noexcept nogil:
    """Mean and squared deviations of n readings, one of them for another."""
    cdef double by = new - old, before = mean[0]
    mean[0] = before + by / n
    m2[0] += by * ((new - mean[0]) + (old - before))


cdef inline bint exchange_moments(Soe self, const Slot* leaf, const Slot* oldest, Slot* newest, Slot* out) noexcept nogil:
    """The same of mean and squared deviations, where they neither overflow nor lose digits."""
    cdef One* one = <One*> self.arena
    cdef double n = one.total[0].f, mean = one.total[1].f, m2 = one.total[2].f, x = leaf[1].f, most
    exchange_mean(n, &mean, &m2, x, oldest.f)
    most = greatest(one.greatest, m2)
    if not (fabs(x) < FAR and most < INFINITY and m2 >= most * LOST):
        return False
    newest.f = x
    one.total[1].f = mean
    apart(one.total + 1)
    one.total[2].f, one.greatest = m2, most
    self.since += 1
    exchange_one(self)
    if out != NULL:
        out[0].f, out[1].f, out[2].f = n, mean, m2
    return True


cdef inline void renew_moments(Soe self) noexcept nogil:
    """Before a reading with which they were due to be taken anew."""
    if turns_left(self) <= 1 and self.overflow_at < self.head:
        self.take_moments_anew()


cdef int slide_slowly(Soe self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """Whatever leaves, and whatever is lost with it: as push, pop and total."""
    cdef Block block
    block.n, block.leaves, block.heads, block.totals, block.more = 1, leaf, &head, out, False
    block.jump = head - self.head
    one(self, &block, 0)
    return self.head < self.tail
