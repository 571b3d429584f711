"""What a window is between two readings, and where its edge stands; see state.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from sluicegate.answers.results cimport BY_COUNT, BY_TIME, Cut, cut_leaf
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Slot
from sluicegate.memory.times cimport (
    Times, begin_times, forget, give_back_times, has_surplus, keep, keep_next, release_times, time_at,
)

from sluicegate import catalogue
from sluicegate.errors import BusyError

cdef int64_t NOTHING_LEAVES = -(1LL << 63) + 1
cdef int64_t NOT_KNOWN = 1LL << 62
cdef str BUSY = "window: busy with a batch or an eviction; use one thread a window, and none of it in a policy"


cdef class State:
    """The fields of a window; see state.pxd."""

    def __dealloc__(self):
        free(self.center)
        free(self.seen)
        if self.times != NULL:
            release_times(self.times)
        free(self.times)

    cdef int allocate(self) except -1:
        cdef int n = self.p.dimensions
        self.center = <double*> calloc(2 * n + (1 if self.bucketed else 2) * self.p.width + self.answers, sizeof(Slot))
        if self.center == NULL:
            raise MemoryError(f"window: no memory for partials of {self.p.width} slots")
        self.row, self.reading = self.center + n, <Slot*> (self.center + 2 * n)
        if self.timed:
            self.times = <Times*> calloc(1, sizeof(Times))
            if self.times == NULL:
                raise MemoryError("window: no memory for its times")
            begin_times(self.times)
        return 0

    cdef int enter(self) except -1:
        """Refuse what would meet a batch that runs in another thread, or a policy's own window half-way."""
        if self.busy:
            raise BusyError(BUSY)
        self.busy = True
        return 0

    cdef int look(self) except -1:
        """Refuse to read what another thread is changing; the policy that is asked may read its own window."""
        if self.busy and (self.rule.asked is None or self.rule.owner != <unsigned long> PyThread_get_thread_ident()):
            raise BusyError(BUSY)
        return 0

    def require_leaves(self):
        """Raise ConfigurationError where the engine keeps no whole leaves."""
        if self.kept < self.p.width:
            raise catalogue.refuse_leaves(self.engine_name)

    cdef int center_on(self, centers) except -1:
        cdef int k
        self.centered = centers is not None
        for k in range(self.p.dimensions if self.centered else 0):
            self.center[k] = centers[k]
        return 0

    cdef int64_t cut_off(self) noexcept nogil:
        """By time: readings of this time or earlier leave. By count: the ordinal of the first reading inside."""
        return self.cut_off_at(self.accepted if self.policy == BY_COUNT else self.newest)

    cdef int64_t time_cutoff(self) noexcept nogil:
        """Readings of this time or earlier are out."""
        return self.time_cutoff_at(self.newest)

    cdef int64_t time_cutoff_at(self, int64_t last) noexcept nogil:
        cdef int64_t over
        if self.hop > 1:
            over = last % self.hop
            last -= over if over >= 0 else over + self.hop
        return last - self.value

    cdef int64_t cut_off_at(self, int64_t last) noexcept nogil:
        """The same when `last` readings are in, or `last` is the newest time.

        What left early as irrelevant still blocks, as it would in the whole window, a FIFO, what is behind it.
        """
        cdef int64_t cutoff = self.time_cutoff_at(last)
        return NOTHING_LEAVES if self.policy == BY_TIME and self.up_to.held > cutoff else cutoff

    cdef int64_t end_of_oldest(self) noexcept nogil:
        """The ordinal after the oldest leaf's last reading; a closed leaf is looked at once."""
        cdef const Slot* oldest
        cdef int64_t head = self.engine.head
        if not self.bucketed:
            return head + 1
        if self.engine.faulted:
            return NOT_KNOWN
        if head == self.known.index:
            return self.known.end
        oldest = self.engine.leaf(head)
        if head < self.engine.tail - 1:
            self.known = Oldest(head, oldest[H_O_FIRST].i, oldest[H_O_FIRST].i + oldest[H_COUNT].i)
        return oldest[H_O_FIRST].i + oldest[H_COUNT].i

    cdef void note_edge(self) noexcept nogil:
        cdef int64_t out
        if self.engine.faulted and self.bucketed:
            return
        if not self.bucketed:
            out = self.engine.head - 1
        elif self.engine.head == self.engine.tail:
            out = self.accepted - 1
        elif self.engine.head == self.known.index:
            out = self.known.first - 1
        else:
            out = self.engine.leaf(self.engine.head)[H_O_FIRST].i - 1
        self.edge = max(self.edge, out)
        if self.policy == BY_COUNT:
            self.edge = max(self.edge, self.cut_off() - 1)

    cdef Cut cut_oldest_leaf(self) noexcept nogil:
        cdef const Slot* leaf = self.engine.leaf(self.engine.head)
        return cut_leaf(&self.p, leaf, self.policy, self.cut_off(), self.edge)

    cdef int64_t last_to_have_left(self) noexcept nogil:
        """The ordinal of the last reading that surely has left, of a window whose edge is in its oldest bucket."""
        cdef const Slot* leaf = self.engine.leaf(self.engine.head)
        return leaf[H_O_FIRST].i + leaf[H_COUNT].i - 1 - self.cut_oldest_leaf().most

    # the times of an exact window by time

    cdef int keep_time(self, int64_t time) except -1 nogil:
        """Keep the next leaf's time."""
        cdef int64_t index = self.engine.tail
        if index & 1 and has_surplus(self.times):  # a chunk an operation: at the other readings the engine's turn
            give_back_times(self.times, 1)
        if not keep_next(self.times, index, time) and keep(self.times, index, &time, 1) < 0:
            with gil:
                raise MemoryError(f"window: no memory for the time of reading {index}")
        return 0

    cdef void forget_times(self) noexcept nogil:
        """Give back the times of leaves that have left."""
        forget(self.times, self.engine.head)

    cdef int64_t time_of(self, int64_t index) noexcept nogil:
        """The greatest time of a leaf."""
        if self.sorted is not None:
            return self.sorted.time_at(index)
        if self.timed:
            return time_at(self.times, index)
        return self.engine.leaf(index)[self.newest_slot].i

    cdef int64_t first_after(self, int64_t first, int64_t end, int64_t cutoff) noexcept nogil:
        """Of leaves first … end − 1 the first that does not leave by time: O(log n), as times never go back."""
        cdef int64_t looked = first + 8, middle
        while first < end and first < looked:
            if self.time_of(first) > cutoff:
                return first
            first += 1
        if first < end and self.time_of(end - 1) > cutoff:
            end -= 1  # the newest, after a gap
        while first < end:
            middle = (first + end) >> 1
            if self.time_of(middle) <= cutoff:
                first = middle + 1
            else:
                end = middle
        return first

    # partials as bytes: the layout's slots, the time first where it is kept here

    cdef bytes pack(self, const Slot* partial, int64_t time=0):
        cdef bytes out
        cdef Slot* slots
        if partial == NULL:
            return b""
        out = PyBytes_FromStringAndSize(NULL, self.stored * sizeof(Slot))
        slots = <Slot*> PyBytes_AS_STRING(out)
        if self.timed:
            slots.i = time
        memcpy(slots + self.timed, partial, (self.stored - self.timed) * sizeof(Slot))
        return out

    cdef const Slot* unpack(self, bytes packed) except NULL:
        if len(packed) != self.stored * <int64_t> sizeof(Slot):
            raise ValueError(f"partial: {len(packed)} bytes, expected {self.stored * sizeof(Slot)}")
        return <const Slot*> PyBytes_AS_STRING(packed)

    cdef const Slot* partial_of(self, const Slot* unpacked) noexcept nogil:
        """What the engine keeps of an unpacked partial; of a count alone, a count."""
        if self.stored > self.timed:
            return unpacked + self.timed
        self.reading.i = 1
        return self.reading
