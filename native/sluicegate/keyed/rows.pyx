"""Rows of each partition in one block, by time, with two stacks of partials in them; or buckets.

Two stacks: see engines/queues/two_stacks. Here the older stack's partials stand beside the readings, and it is made
when an answer is asked for and not when a reading comes, so that keys that nobody asks for do not pay for it. A late
reading among those of the older stack has it made anew at the next answer. Buckets are answered by a walk over them.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

from sluicegate.keyed.directory cimport FLAG_CHANGED, Directory, Slot, slot_at

from sluicegate.errors import InvariantError
from sluicegate.keyed.definition import More, Totals

cdef enum:
    STALE = 0xFFFFFFFF  # a split: the older stack is to be made anew
    OF_MALLOC = 16

cdef enum:
    SUM, MIN, MAX

cdef double INFINITE = float("inf")


cdef inline int64_t time_of(const double* row) noexcept nogil:
    return (<const int64_t*> row)[0]


cdef inline int64_t cell_of(int64_t time, int64_t width) noexcept nogil:
    """Which stretch of so many µs holds a time, rounded down."""
    return time // width - (time % width < 0)


cdef inline double identity(int op) noexcept nogil:
    return 0.0 if op == SUM else INFINITE if op == MIN else -INFINITE


cdef inline double combined(int op, double a, double b) noexcept nogil:
    if op == SUM:
        return a + b
    if op == MIN:
        return b if b < a else a
    return b if b > a else a


cdef class PartitionRows(Directory):
    """What each partition holds, by `definition`."""

    cdef int _place(self, Slot* slot, int64_t time, double value) except -1:
        """A single reading among those of its key, behind those of its time."""
        cdef uint32_t low = slot.head, at, middle
        cdef double* row
        cdef int k
        if slot.tail == slot.room:
            self._room(slot)
            low = slot.head
        at = slot.tail
        if self.by_time and at > low and time_of(slot.rows + <size_t> (at - 1) * self.stride) > time:
            while low < at:
                middle = low + (at - low) // 2
                if time_of(slot.rows + <size_t> middle * self.stride) > time:
                    at = middle
                else:
                    low = middle + 1
            row = slot.rows + <size_t> at * self.stride
            memmove(row + self.stride, row, <size_t> (slot.tail - at) * self.stride * sizeof(double))
            if slot.split != STALE and at < slot.split:
                slot.split = STALE
        row = slot.rows + <size_t> at * self.stride
        (<int64_t*> row)[0] = time
        row[1] = value
        slot.tail += 1
        if slot.split != STALE:
            for k in range(self.ops):
                slot.back[k] = combined(self.op[k], slot.back[k], value)
        return 0

    cdef int _join(self, Slot* slot, int64_t time, double value) except -1:
        """A reading into the bucket of its stretch of time or, by count, the newest; or into a new one."""
        cdef uint32_t at = slot.tail
        cdef int64_t cell = 0, other
        cdef double* row
        if self.by_time:
            cell = cell_of(time, self.width)
        while at > slot.head:
            row = slot.rows + <size_t> (at - 1) * BUCKET
            if self.by_time:
                other = cell_of(time_of(row), self.width)
                if other > cell:
                    at -= 1
                    continue
                if other < cell:
                    break
            elif (<int64_t*> row)[2] >= self.width:
                break
            (<int64_t*> row)[0] = min((<int64_t*> row)[0], time)
            (<int64_t*> row)[1] = max((<int64_t*> row)[1], time)
            (<int64_t*> row)[2] += 1
            row[3] += value
            row[4] = combined(MIN, row[4], value)
            row[5] = combined(MAX, row[5], value)
            return 0
        if slot.tail == slot.room:
            at -= slot.head
            self._room(slot)
            at += slot.head
        row = slot.rows + <size_t> at * BUCKET
        memmove(row + BUCKET, row, <size_t> (slot.tail - at) * BUCKET * sizeof(double))
        (<int64_t*> row)[0] = (<int64_t*> row)[1] = time
        (<int64_t*> row)[2] = 1
        row[3] = row[4] = row[5] = value
        slot.tail += 1
        return 0

    cdef int _room(self, Slot* slot) except -1:
        """Rows move to the front where a third is free there; else the block grows by half."""
        cdef uint32_t live = slot.tail - slot.head, room
        cdef size_t size = self.stride * sizeof(double)
        cdef double* rows
        if slot.head:
            memmove(slot.rows, slot.rows + <size_t> slot.head * self.stride, live * size)
            if slot.split != STALE:
                slot.split -= slot.head
        room = slot.room
        if <uint64_t> slot.head * 3 < slot.room or not slot.room:
            if slot.room >= 1 << 30:
                raise MemoryError("keyed windows: a partition of 2^30 rows; make the window shorter or use buckets=")
            room = slot.room + slot.room // 2 + 1
        elif live * 8 <= slot.room:
            room = live * 2 + 1
        slot.head, slot.tail = 0, live
        if room != slot.room:
            rows = <double*> realloc(slot.rows, room * size)
            if rows == NULL:
                raise MemoryError("keyed windows: no memory for readings")
            self.owned += room * size + OF_MALLOC
            self._disown(slot)
            slot.rows, slot.room = rows, room
        return 0

    cdef void _disown(self, Slot* slot) noexcept:
        if slot.room:
            self.owned -= <size_t> slot.room * self.stride * sizeof(double) + OF_MALLOC

    cdef void _clear(self, Slot* slot) noexcept:
        """No rows: their block is given back."""
        cdef int k
        self._disown(slot)
        free(slot.rows)
        slot.rows = NULL
        slot.head = slot.tail = slot.room = slot.split = 0
        for k in range(self.ops):
            slot.back[k] = identity(self.op[k])

    cdef bint _evict(self, Slot* slot, int64_t now) noexcept:
        """What is wholly too old leaves; whether anything did."""
        cdef uint32_t at = slot.head
        cdef int64_t cutoff = now - self.length, after = slot.held
        cdef const double* row
        while at < slot.tail:
            row = slot.rows + <size_t> at * self.stride
            if self.by_time:
                if (<const int64_t*> row)[1 if self.width else 0] > cutoff:
                    break
            elif after - ((<const int64_t*> row)[2] if self.width else 1) < self.length:
                break
            after -= (<const int64_t*> row)[2] if self.width else 1
            at += 1
        if at == slot.head:
            return False
        self._evict_rows(slot, at - slot.head)
        return True

    cdef void _evict_rows(self, Slot* slot, uint32_t rows) noexcept:
        cdef uint32_t i
        cdef int64_t gone = rows
        if self.width:
            gone = 0
            for i in range(slot.head, slot.head + rows):
                gone += (<int64_t*> (slot.rows + <size_t> i * BUCKET))[2]
        slot.head += rows
        slot.held -= gone
        self.readings -= gone
        if slot.split != STALE and slot.head > slot.split:
            slot.split = STALE
        if slot.head == slot.tail and self.by_time:
            self._clear(slot)

    cdef int64_t _now(self, Slot* slot) noexcept:
        return slot.newest if slot.newest > self.clock else self.clock

    def totals(self, uint32_t i):
        """What is inside for certain, and the bucket that the edge cuts: `Totals`."""
        cdef Slot* slot = slot_at(self, i)
        cdef uint32_t at
        cdef double[3] found
        cdef double[3] named
        cdef int64_t inside = 0, cutoff
        cdef const double* row
        cdef int k
        cut = None
        named[SUM], named[MIN], named[MAX] = 0.0, INFINITE, -INFINITE
        if self.by_time and self._evict(slot, self._now(slot)):
            slot.flags |= FLAG_CHANGED
        if not self.width:
            self._fold(slot, found)
            for k in range(self.ops):
                named[self.op[k]] = found[k]
            more = self._walked(slot) if self.more and slot.tail > slot.head else None
            return Totals(slot.held, named[SUM], named[MIN], named[MAX], None, more)
        cutoff = self._now(slot) - self.length if self.by_time else 0
        for at in range(slot.head, slot.tail):
            row = slot.rows + <size_t> at * BUCKET
            if at == slot.head:
                if self.by_time and time_of(row) <= cutoff:
                    cut = self._cut(row, cutoff, -1)
                    continue
                if not self.by_time and slot.held > self.length:
                    cut = self._cut(row, 0, (<const int64_t*> row)[2] - (slot.held - self.length))
                    continue
            inside += (<const int64_t*> row)[2]
            named[SUM] += row[3]
            named[MIN] = combined(MIN, named[MIN], row[4])
            named[MAX] = combined(MAX, named[MAX], row[5])
        return Totals(inside, named[SUM], named[MIN], named[MAX], cut)

    cdef object _walked(self, Slot* slot):
        """First, last, the earliest extremes and the squared deviations: two passes, so that nothing cancels."""
        cdef uint32_t at
        cdef double total = 0.0, off = 0.0, m2 = 0.0, mean
        cdef const double* row
        cdef const double* low = slot.rows + <size_t> slot.head * self.stride
        cdef const double* high = low
        for at in range(slot.head, slot.tail):
            row = slot.rows + <size_t> at * self.stride
            total += row[1]
            if row[1] < low[1]:
                low = row
            if row[1] > high[1]:
                high = row
        mean = total / (slot.tail - slot.head)
        for at in range(slot.head, slot.tail):
            row = slot.rows + <size_t> at * self.stride
            off += row[1] - mean
            m2 += (row[1] - mean) * (row[1] - mean)
        m2 -= off * off / (slot.tail - slot.head)
        if low[1] == high[1]:
            m2 = 0.0
        elif not m2 < INFINITE:  # squares are beyond float64, so that their difference may be no number
            m2 = INFINITE
        row = slot.rows + <size_t> (slot.tail - 1) * self.stride
        return More(
            (slot.rows + <size_t> slot.head * self.stride)[1], row[1], time_of(low), time_of(high),
            m2 if m2 > 0.0 else 0.0,
        )

    cdef object _cut(self, const double* row, int64_t cutoff, int64_t known):
        """The oldest bucket as a tuple: its words, the cutoff, and how many of its readings are inside if known."""
        cdef const int64_t* whole = <const int64_t*> row
        return whole[0], whole[1], whole[2], row[3], row[4], row[5], cutoff, known

    cdef void _fold(self, Slot* slot, double* found) noexcept:
        """Each operation over all readings; the older stack is made anew if it is stale."""
        cdef uint32_t at
        cdef double[3] folded
        cdef double* row
        cdef int k
        if slot.split == STALE:
            for k in range(self.ops):
                folded[k] = slot.back[k] = identity(self.op[k])
            for at in range(slot.tail, slot.head, -1):
                row = slot.rows + <size_t> (at - 1) * self.stride
                for k in range(self.ops):
                    folded[k] = row[2 + k] = combined(self.op[k], row[1], folded[k])
            slot.split = slot.tail
        for k in range(self.ops):
            found[k] = slot.back[k]
            if slot.head < slot.split:
                found[k] = combined(self.op[k], slot.rows[<size_t> slot.head * self.stride + 2 + k], slot.back[k])

    def rows(self, uint32_t i):
        """The rows of a slot as tuples: readings (time, value), or buckets, the oldest first."""
        return self._rows(slot_at(self, i))

    cdef list _rows(self, Slot* slot):
        cdef uint32_t at
        cdef const double* row
        cdef list found = []
        for at in range(slot.head, slot.tail):
            row = slot.rows + <size_t> at * self.stride
            if self.width:
                found.append((
                    time_of(row), (<const int64_t*> row)[1], (<const int64_t*> row)[2], row[3], row[4], row[5],
                ))
            else:
                found.append((time_of(row), row[1]))
        return found

    cdef int check_rows(self, Slot* slot) except -1:
        """Raise InvariantError where rows are out of order, miscounted, or the older stack is not their fold."""
        cdef uint32_t at
        cdef int64_t held = 0, newest
        cdef double[3] folded
        cdef const double* row
        cdef int k
        if not slot.head <= slot.tail <= slot.room:
            raise InvariantError(f"key {self.key_of(slot)!r}: rows {slot.head} to {slot.tail} of {slot.room}")
        for k in range(self.ops):
            folded[k] = identity(self.op[k])
        for at in range(slot.tail, slot.head, -1):
            row = slot.rows + <size_t> (at - 1) * self.stride
            held += (<const int64_t*> row)[2] if self.width else 1
            newest = (<const int64_t*> row)[1] if self.width else time_of(row)
            if newest > slot.newest or (self.width and not time_of(row) <= newest):
                raise InvariantError(f"key {self.key_of(slot)!r}: a row of time {newest}, the newest is {slot.newest}")
            if self.by_time and at < slot.tail and newest > time_of(row + self.stride):
                raise InvariantError(f"key {self.key_of(slot)!r}: row {at - 1} is later than the next")
            if self.width and ((<const int64_t*> row)[2] < 1 or not row[4] <= row[5]):
                raise InvariantError(f"key {self.key_of(slot)!r}: row {at - 1} is no bucket")
            for k in range(self.ops if not self.width and slot.split != STALE and at <= slot.split else 0):
                folded[k] = combined(self.op[k], row[1], folded[k])
                if folded[k] != row[2 + k]:
                    raise InvariantError(f"key {self.key_of(slot)!r}: partial {k} of row {at - 1} is not the fold")
        if held != slot.held:
            raise InvariantError(f"key {self.key_of(slot)!r}: {held} readings in rows, {slot.held} counted")
        return 0

    cdef int _load_rows(self, Slot* slot, const char* data, uint32_t rows) except -1:
        """Saved rows take the place of those that are there; the older stack is made when an answer is asked for."""
        cdef size_t saved = (BUCKET if self.width else 2) * sizeof(double), size = self.stride * sizeof(double)
        cdef uint32_t at
        self.readings -= slot.held
        self._clear(slot)
        slot.held = 0
        if not rows:
            return 0
        slot.rows = <double*> realloc(NULL, rows * size)
        if slot.rows == NULL:
            raise MemoryError("keyed windows: no memory for readings")
        slot.room = slot.tail = rows
        slot.split = STALE
        self.owned += rows * size + OF_MALLOC
        for at in range(rows):
            memcpy(slot.rows + <size_t> at * self.stride, data + at * saved, saved)
            slot.held += (<int64_t*> (slot.rows + <size_t> at * BUCKET))[2] if self.width else 1
        self.readings += slot.held
        return 0
