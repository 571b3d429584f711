"""A block of readings through Subtract-on-Evict; results may differ from those of single calls by their rounding. Part of soe.pyx."""

cdef int one(Soe self, const Block* block, int64_t i) except -1 nogil:
    if self.kernel == MERGE:
        renew_moments(self)
    self.push(block.leaves + i * self.p.width)
    self.pop_to(block.heads[i])
    if block.totals != NULL and self.head < self.tail:
        copy(self.p, block.totals + i * self.p.width, self.total())
    return 0


cdef bint is_alone(Soe self, const Block* block, int64_t i) noexcept nogil:
    """Whether the window holds one reading, and one after each from `i` on."""
    return self.tail - self.head == 1 and block.jump == 1 and block.heads[block.n - 1] - self.head == block.n - i


cdef int run_alone(Soe self, const Block* block, int64_t i) except -1 nogil:
    """Each total is the reading itself; the last one's is taken down, as `take_anew` has it."""
    cdef int64_t k
    try:
        while i < block.n:
            self.make_room()
            k = min(run_at(&self.queue, self.tail), block.n - i)
            keep_values(self.element(self.tail), block.leaves + i * self.p.width, k, self.p.width)
            if block.totals != NULL:
                copy_readings(block.totals + i * self.p.width, block.leaves + i * self.p.width, k, self.p.width)
            self.head, self.tail, i = self.head + k, self.tail + k, i + k
            drop_before(&self.pool, &self.queue, self.head)
    finally:
        self.take_anew()
    return 0


cdef int64_t steady(Soe self, const Block* block, int64_t i) except -1 nogil:
    """How many readings from `i` on let one leave each; there is room for them then."""
    cdef int64_t n = block.n - i
    if block.jump != 1 or block.heads[block.n - 1] - self.head != n or self.tail - self.head < 2:
        return 1
    self.make_room()
    if reserve(&self.pool, &self.queue, self.tail + n - 1) < 0:
        with gil:
            raise MemoryError(f"soe: no memory for leaves {self.tail} to {self.tail + n - 1}")
    return n


cdef const double* exchange(Soe self, const double* new, double* room, int64_t k) noexcept nogil:
    """Keep k readings behind the tail; the k oldest, some of which they may be themselves, where they are or in `room`."""
    cdef int64_t j = 0, n
    while j < k:
        n = min(run_at(&self.queue, self.tail + j), k - j)
        memcpy(self.element(self.tail + j), new + j, n * sizeof(double))
        j += n
    if run_at(&self.queue, self.head) >= k:
        return <const double*> self.element(self.head)
    j = 0
    while j < k:
        n = min(run_at(&self.queue, self.head + j), k - j)
        memcpy(room + j, self.element(self.head + j), n * sizeof(double))
        j += n
    return room


cdef void fetch_next(Soe self, int64_t k, int64_t first, int64_t end) noexcept nogil:
    """Have what the next k readings take out fetched while these are worked on: of it, quarters `first` to `end`."""
    cdef int64_t j = first * k >> 2, n
    end = min(end * k >> 2, self.tail - self.head - k)
    while j < end:
        n = min(run_at(&self.queue, self.head + k + j), end - j)
        lanes_fetch(self.element(self.head + k + j), n * sizeof(double))
        j += n


cdef int64_t glide(Soe self, const Block* block, int64_t i, int64_t k) noexcept nogil:
    """Take k such readings: the sum of the differences up to each is added to the total of before.

    What comes and what leaves is cut in two (Rump, Ogita & Oishi's extraction): upper parts on a grid so coarse that
    no sum of them rounds, and small rests. 0, and no reading is taken, where a total is so small that the rounding of
    the rests would show in it.
    """
    cdef double room[STRETCH]
    cdef double upper[STRETCH]
    cdef double lower[STRETCH]
    cdef double unasked[STRETCH]
    cdef double* out = <double*> (block.totals + i) if block.totals != NULL else unasked
    cdef double s = self.sum.f, c = self.errors[0], largest = self.largest[0], up, t, part
    cdef const double* new = <const double*> (block.leaves + i)
    cdef const double* old = exchange(self, new, room, k)
    cdef int found = lanes_cut(new, old, upper, lower, k, grid_of(largest), largest)
    fetch_next(self, k, 0, 2)
    if found > 1:
        largest = lanes_largest(new, k)
        found = lanes_cut(new, old, upper, lower, k, grid_of(largest), largest)
    if found:
        lanes_running(lower, k)
    fetch_next(self, k, 2, 4)
    if lanes_totals(upper, lower if found else NULL, out, k, s, c, least_sound(self, largest, found), &up):
        return 0
    note_largest(self, new, k, largest)
    t = s + up
    part = t - s
    self.sum.f = t
    self.errors[0] = c + (lower[k - 1] if found else 0.0) + ((s - (t - part)) + (up - part))
    advance(self, k)
    return k


cdef inline double least_sound(Soe self, double largest, bint rests) noexcept nogil:
    """The least magnitude of a total in which the rounding of rests, or of the errors, does not show yet."""
    if rests:
        return largest * CUT
    return largest * CANCELLED if self.errors[0] != 0.0 else 0.0  # without rests nothing rounds


cdef int64_t glide_moments(Soe self, const Block* block, int64_t i, int64_t k) noexcept nogil:
    """Take up to k such readings: mean and squared deviations of as many readings, one of them exchanged.

    It ends before one that may lose digits or overflow, or where the total is due to be taken anew.
    """
    cdef double new[STRETCH]
    cdef double room[STRETCH]
    cdef double shift[STRETCH + 1]
    cdef double squares[STRETCH]
    cdef double n = self.sum[0].f, mean = self.sum[1].f, m2 = self.sum[2].f
    cdef Slot* totals = block.totals + 3 * i
    cdef const double* old
    cdef int64_t j
    k = max(min(k, TURNS * (self.tail - self.head) + FEWEST - self.since), 0)
    for j in range(k):
        new[j] = block.leaves[3 * (i + j) + 1].f
    old = exchange(self, new, room, k)
    fetch_next(self, k, 0, 4)
    shift[0] = 0.0
    lanes_shares(new, old, shift + 1, k, 1.0 / n)
    lanes_running(shift + 1, k)
    lanes_squares(new, old, shift + 1, squares, k, mean)
    lanes_running(squares, k)
    k = while_sound(self, new, squares, k)
    if k == 0:
        return 0
    for j in range(k if block.totals != NULL else 0):
        totals[3 * j].f, totals[3 * j + 1].f, totals[3 * j + 2].f = n, mean + shift[j + 1], m2 + squares[j]
    self.sum[1].f, self.sum[2].f = mean + shift[k], m2 + squares[k - 1]
    advance(self, k)
    return k


cdef int64_t while_sound(Soe self, const double* new, const double* squares, int64_t k) noexcept nogil:
    """How many readings neither overflow nor lose digits; the greatest squared deviations up to there are noted."""
    cdef double m2 = self.sum[2].f, most = self.greatest[0], high
    cdef int64_t j
    high = greatest(most, m2 + lanes_largest(squares, k))  # or more
    if not (lanes_sound(squares, k, m2, high * LOST) and lanes_largest(new, k) < FAR):
        high = most
        for j in range(k):
            if not (high * LOST <= m2 + squares[j] < INFINITY) or not fabs(new[j]) < FAR:
                k = j
                break
            high = greatest(high, m2 + squares[j])
    self.greatest[0] = high
    return k


cdef void advance(Soe self, int64_t k) noexcept nogil:
    """As many have left as have come."""
    self.head += k
    self.tail += k
    self.since += k
    drop_before(&self.pool, &self.queue, self.head)


cdef void note_largest(Soe self, const double* new, int64_t k, double largest) noexcept nogil:
    """Before the tail moves."""
    cdef int64_t j
    self.largest[0] = largest
    for j in range(k - 1, -1, -1):
        if fabs(new[j]) >= 0.5 * largest:
            self.largest_at[0] = self.tail + j
            return


cdef inline double grid_of(double largest) noexcept nogil:
    """What rounds a number up to `largest` to a multiple of 2⁻⁴¹ of the power of two above: sums of 2^12 of those are exact."""
    cdef Slot grid
    grid.f = largest
    grid.i = (grid.i & EXPONENT) + TWELVE_AND_A_HALF
    return grid.f


cdef inline void keep_values(Slot* elements, const Slot* leaves, int64_t k, int w) noexcept nogil:
    """What `soe` keeps of sums, or of moments."""
    cdef int64_t j
    for j in range(k):
        elements[j] = leaves[j * w + (w > 1)]


cdef inline void copy_readings(Slot* totals, const Slot* leaves, int64_t k, int w) noexcept nogil:
    """The totals of one reading each, as `rounded` has them: a sum with an error of 0, whose sign a zero takes."""
    cdef int64_t j
    if w > 1:
        memcpy(totals, leaves, k * w * sizeof(Slot))
        return
    for j in range(k):
        totals[j].f = leaves[j].f + 0.0


cdef inline void add_distances(const Slot* values, int64_t k, double mean, double* total, double* squares) noexcept nogil:
    cdef double first = 0.0, second = 0.0, third = 0.0, fourth = 0.0, a, b
    cdef int64_t j
    for j in range(0, k - 1, 2):
        a, b = values[j].f - mean, values[j + 1].f - mean
        first += a
        second += b
        third += a * a
        fourth += b * b
    if k & 1:
        a = values[k - 1].f - mean
        first += a
        third += a * a
    total[0] += first + second
    squares[0] += third + fourth


cdef int run_stretches(Soe self, const Block* block) except -1 nogil:
    """Readings that let one leave each by stretches, the others one by one."""
    cdef int64_t i = 0, k, alone
    while i < block.n:
        if is_alone(self, block, i):
            return run_alone(self, block, i)
        k = min(steady(self, block, i), STRETCH)
        alone = 1
        if k >= LEAST_RUN:
            k = glide(self, block, i, k) if self.kernel == ADD else glide_moments(self, block, i, k)
            i += k
            alone = 1 if k or self.kernel == MERGE else ALONE  # moments only have to be taken anew
        while k < LEAST_RUN and alone > 0 and i < block.n:
            one(self, block, i)
            i, alone = i + 1, alone - 1
    return 0
