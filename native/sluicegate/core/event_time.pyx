"""Event time of windows by time whose leaves are readings. The twin is sluicegate.reference.core."""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from sluicegate.answers.results cimport BY_TIME
from sluicegate.core.eviction cimport enforce
from sluicegate.engines.base cimport Engine
from sluicegate.engines.fiba cimport Fiba
from sluicegate.memory.times cimport begin_times, release_times

from sluicegate.constants import NEVER as _NEVER
from sluicegate.catalogue import needs_order_by
from sluicegate.errors import ConfigurationError, InputError

cdef enum:
    LOOKED_THROUGH = 512  # times together, without a branch

cdef int64_t NEVER = _NEVER


cdef class EventTime(State):
    """A window whose readings leave by their own time, in whatever order they came."""

    def advance(self, int64_t time):
        """It is at least this late now: what that makes too old leaves."""
        self.enter()
        try:
            if self.policy != BY_TIME:
                raise ConfigurationError("advance: only a window with policies.time has a time that goes on")
            if time > self.newest:
                self.newest = time
                enforce(self, NULL)
        finally:
            self.busy = False

    cdef bint belongs(self, int64_t time) noexcept nogil:
        """Whether a reading of this time is inside; one that is not is counted."""
        cdef bint inside = time > self.time_cutoff()
        self.late += not inside
        return inside

    cdef int64_t in_order(self, const int64_t* times, int64_t count) noexcept nogil:
        """How many readings come before the first that is older than one before it."""
        cdef int64_t i = 0, n
        if count and times[0] < self.newest:
            return 0
        while i < count:
            n = min(count - i, <int64_t> LOOKED_THROUGH)
            if not in_order(<const uint64_t*> times + i, n):
                while times[i + 1] >= times[i]:
                    i += 1
                return i + 1
            i += n - 1 if n > 1 else 1
        return count

    cdef bint has_late_inside(self, const int64_t* times, int64_t count) noexcept nogil:
        """Whether one of a batch would have to be put before a reading that is inside when it comes."""
        cdef int64_t i, newest = self.newest, last = NEVER
        if self.engine.head < self.engine.tail:
            last = self.time_of(self.engine.tail - 1)
        for i in range(count):
            if times[i] >= newest:
                newest = last = times[i]
            elif times[i] > self.time_cutoff_at(newest):
                if times[i] < last:
                    return True
                last = times[i]
        return False

    cdef int insert_late(self, int64_t time) except -1 nogil:
        """Put the lifted reading where it belongs: an engine that needs order gives way to one that does not."""
        cdef int64_t last = self.engine.tail - 1
        if self.sorted is None:
            if self.engine.head > last or time >= self.time_of(last):  # after `advance`
                self.keep_time(time)
                self.engine.push(self.reading)
                return 0
            with gil:
                self.go_by_time()
        if self.engine.head <= last and time < self.sorted.time_at(last):
            self.late_since = min(self.late_since, time)
        self.sorted.insert(time, self.reading)
        return 0

    cdef bint needs_order(self) noexcept nogil:
        """Whether a window of single readings by time keeps none in memory to put a late one among."""
        return self.policy == BY_TIME and not self.bucketed and (not self.timed or self.kept < self.p.width)

    def refuse_late(self, const int64_t[::1] times not None):
        """Raise InputError, before any of a batch enters, where one comes late into a window that needs order."""
        if times.shape[0] and self.needs_order() and self.has_late_inside(&times[0], times.shape[0]):
            self.refuse_late_leafless()

    cdef int refuse_late_leafless(self) except -1 nogil:
        """Refuse a late reading where there is nothing to put it among."""
        if self.needs_order():
            with gil:
                raise InputError(needs_order_by(self.engine_name))
        return 0

    cdef int go_by_time(self) except -1:
        """From here on the leaves stand in a finger B-tree, with their times."""
        cdef int64_t index
        cdef Engine engine = self.engine
        cdef Fiba tree = Fiba()
        self.refuse_late_leafless()
        tree.setup(&self.p, self.limit)
        tree.begin(engine.head)
        for index in range(engine.head, engine.tail):
            tree.insert(self.time_of(index), engine.leaf(index))
        self.engine = self.sorted = tree
        self.plain = False
        self.up_to.held = NEVER
        release_times(self.times)
        begin_times(self.times)
        return 0

    def first_changed(self):
        """The first closed leaf that `changes` has not given out as it is: a late one moves all that come after it."""
        cdef int64_t index = min(self.buckets.mark, self.engine.tail)
        if self.sorted is not None and self.late_since != INT64_MAX:
            index = self.engine.head
            while index < self.engine.tail and self.sorted.time_at(index) <= self.late_since:
                index += 1
            index = max(self.engine.head, index - 1)
        self.late_since = INT64_MAX
        return min(self.buckets.mark, index)


cdef inline bint in_order(const uint64_t* times, int64_t n) noexcept nogil:
    """Whether each of n times, which are within ±2^61, is no earlier than the one before it."""
    cdef uint64_t late = 0
    cdef int64_t j
    for j in range(1, n):
        late |= times[j] - times[j - 1]
    return not late >> 63
