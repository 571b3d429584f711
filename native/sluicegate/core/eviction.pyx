"""Eviction: what a policy, or the user's rule, lets go; see eviction.pxd."""

from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t

from sluicegate.answers.results cimport BY_COUNT, BY_TIME, CUSTOM, Cut
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, H_T_FIRST, Slot
from sluicegate.core.state cimport State

from sluicegate.errors import BusyError, InputError


cdef class Eviction(State):
    """A window that evicts."""

    cdef void enforce(self) noexcept nogil:
        cdef int64_t cutoff, head = self.engine.head
        if self.policy == BY_COUNT:
            cutoff = self.cut_off()
            if not self.bucketed and head < cutoff:
                self.engine.pop_to(cutoff)
            while self.bucketed and self.end_of_oldest() <= cutoff:
                self.engine.pop()
        elif self.timed:
            self.evict_by_time()
        elif self.policy == BY_TIME and self.engine.head < self.engine.tail:
            if self.leaves(self.oldest()) == 1:
                self.evict_while(True)
        if self.up_to:
            self.evict_irrelevant(head)
        self.note_edge()
        if self.ruled:
            self.settle()

    cdef void evict_by_time(self) noexcept nogil:
        """All that leaves of an exact window, at once where it is much."""
        cdef int64_t head = self.first_after(self.engine.head, self.engine.tail, self.cut_off())
        if head > self.engine.head:
            self.engine.pop_to(head)
            self.forget_times()

    cdef int evict_while(self, bint monotone) noexcept nogil:
        """Single evictions first, then, after a log n of them, a bulk one where the policy is monotone."""
        cdef int64_t singles = self.engine.tail - self.engine.head, k = 0
        cdef int answer
        while monotone and singles >> k:
            k += 1
        k = k + 1 if monotone else singles
        while k > 0:
            if self.engine.head == self.engine.tail:
                return 0
            answer = self.leaves(self.oldest())
            if answer != 1:
                return answer
            self.engine.pop()
            k -= 1
        return self.engine.bulk(ask, <void*> self) if self.engine.head < self.engine.tail else 0

    cdef Slot* oldest(self) noexcept nogil:
        return self.engine.leaf(self.engine.head)

    cdef int leaves(self, const Slot* old) noexcept nogil:
        """Whether a prefix leaves: by time, or by the user's rule."""
        if self.engine.faulted:
            return -1
        if self.policy == BY_TIME:
            return old[self.newest_slot].i <= self.cut_off()
        with gil:
            return self.ask_rule(old)

    cdef int ask_rule(self, const Slot* old) noexcept:
        try:
            return 1 if self.rule(self.pack(self.engine.total()), self.pack(old)) else 0
        except BaseException as error:
            self.raised = error
            return -1

    def evict_oldest(self, int64_t count):
        """Evict so many of the oldest readings of an exact window now. Raises InputError for more than it holds."""
        cdef int64_t held
        self.enter()
        try:
            held = self.engine.tail - self.engine.head
            if not 0 <= count <= held:
                raise InputError(f"evict({count}): expected 0 to {held}, the readings the window holds")
            with nogil:
                self.engine.pop_to(self.engine.head + count)
            self.note_edge()
        finally:
            self.busy = False

    cdef int look(self) except -1:
        """Refuse to read what another thread is changing; the policy that is asked may read its own window."""
        if self.busy and (self.rule is None or self.owner != <unsigned long> PyThread_get_thread_ident()):
            raise BusyError(
                "window: busy with a batch or an eviction; use one thread a window, and none of it in a policy"
            )
        return 0

    def evict(self, leaves, bint monotone):
        """Evict by a user's rule of (total, old); what it raises leaves a consistent window."""
        self.enter()
        self.rule, self.raised, self.owner = leaves, None, <unsigned long> PyThread_get_thread_ident()
        with nogil:
            self.evict_while(monotone)
            self.note_edge()
            if self.ruled:
                self.settle()
        self.busy = False
        raised, self.rule, self.raised = self.raised, None, None
        if raised is not None:
            raise raised

    cdef void evict_irrelevant(self, int64_t head) noexcept nogil:
        """Drop the oldest leaves whose extreme a later reading reaches; only a new extreme or a new oldest leaf makes any."""
        cdef const Slot* left
        cdef const Slot* top
        cdef const Slot* base
        cdef double oldest
        while self.engine.tail - self.engine.head > 1:
            oldest = self.up_to * self.engine.leaf(self.engine.head)[self.extreme_slot].f
            if head == self.engine.head and self.up_to * self.latest < oldest:
                return
            if not self.engine.around(&left, &top, &base):
                top = self.engine.rest()
                if top == NULL or self.up_to * top[self.extreme_slot].f < oldest:
                    return
            elif not (
                self.reaches(self.engine.leaf(self.engine.tail - 1), oldest) or self.reaches(base, oldest) or self.reaches(top, oldest)
            ):
                return
            if self.policy == BY_TIME:
                self.held = max(self.held, self.time_of(self.engine.head))
            self.engine.pop()

    cdef inline bint reaches(self, const Slot* partial, double extreme) noexcept nogil:
        """Whether what follows the oldest leaf holds an extreme as great."""
        return partial != NULL and self.up_to * partial[self.extreme_slot].f >= extreme

    cdef void settle(self) noexcept nogil:
        """Tell the histograms where the window begins now, and how uncertain that is within the oldest bucket."""
        cdef int64_t start = self.edge + 1, uncertain = 0
        cdef const Slot* leaf
        cdef Cut where
        if self.engine.faulted:
            return
        if not self.rules.has_hop:
            if start > self.rules.start:
                self.rules.start, self.rules.full = start, True
            return
        if self.engine.head == self.engine.tail:
            self.rules.c_settled(self.accepted, 0)
            return
        leaf = self.engine.leaf(self.engine.head)
        if self.policy == CUSTOM:
            uncertain = leaf[H_COUNT].i - 1
        elif self.policy == BY_TIME and self.rules.has_hop and leaf[H_T_FIRST].i <= self.cut_off():
            where = self.cut_oldest_leaf()
            start, uncertain = leaf[H_O_FIRST].i + leaf[H_COUNT].i - where.most, where.most - where.least
        self.rules.c_settled(start, uncertain)


cdef int ask(void* core, const Slot* prefix) noexcept nogil:
    """The window's rule, as an engine calls it."""
    return (<Eviction> core).leaves(prefix)
