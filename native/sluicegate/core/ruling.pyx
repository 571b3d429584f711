"""Built-in rules besides count and time, enforced after each reading; see ruling.pxd. The twin is reference/eviction.py."""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t, intptr_t

from sluicegate.core.eviction cimport Eviction
from sluicegate.partials.program cimport Slot
from sluicegate.partials.wide cimport R_OFFSET
from sluicegate.policies._eviction cimport COMPILED, LONGEST_RUN, MAXIMUM, TOTAL, Condition, Function, Until, leaves_by_rule

from sluicegate.errors import InputError, PolicyError


cdef class Ruling(Eviction):
    """A window that evicts by attribute, total, maximum, longest run, or a compiled rule."""

    cdef int take_condition(self, eviction) except -1:
        cdef Condition* c = &self.condition
        if eviction is None:
            return 0
        self.policy_name = eviction.name
        c.kind, c.slot, c.other, c.dimension = eviction.kind, eviction.slot, eviction.other, eviction.dimension
        c.monotone, c.growing, c.limit, c.most = eviction.monotone, eviction.growing, eviction.limit, eviction.most
        c.function = <Function> <void*> <intptr_t> eviction.address
        c.context = <void*> <intptr_t> eviction.context
        c.until = <Until> <void*> <intptr_t> eviction.until
        return 0

    cdef int refuse_fall(self, const double* values, int64_t count) except -1:
        """Refuse a batch whose growing attribute falls, before any of it enters."""
        cdef const Slot* total = self.engine.total()
        cdef double newest = -INFINITY if total == NULL else total[self.condition.other].f, x
        cdef int64_t i
        for i in range(count):
            x = values[i * self.p.dimensions + self.condition.dimension]
            if x < newest:
                name = self._layout.dimensions[self.condition.dimension]
                raise InputError(
                    f"reading {i}: {name or 'value'} {x!r} after {newest!r}, but the policy {self.policy_name} says "
                    "that it never falls; nothing was inserted"
                )
            newest = x
        return 0

    cdef int enforce_rule(self, const double* values) except -1 nogil:
        """A compiled rule may hold the GIL for a while: nobody else enters then, nor does the rule itself."""
        cdef bint busy = self.busy
        cdef int answer
        if self.accepted <= self.condition.wakes:  # the newest reading's ordinal is one less
            self.note_edge()
            if self.ruled:
                self.settle()
            return 0
        self.busy = True
        self.condition.reference = values[self.condition.dimension]
        answer = self.evict_by_rule()
        if answer >= 0 and self.condition.until != NULL:
            self.condition.wakes = self.wake_at()
        self.busy = busy
        self.note_edge()
        if self.ruled:
            self.settle()
        if answer < 0 and self.condition.failure < 0:
            with gil:
                failure, self.condition.failure = self.condition.failure, 0
                raise PolicyError(
                    f"policy {self.policy_name}: returned {failure}, expected 0 or 1; the reading is in, nothing more "
                    "was evicted"
                )
        return 0

    cdef int evict_by_rule(self) noexcept nogil:
        """The oldest leaves while the rule says so; in bulk, as often as it takes, where the rule is monotone."""
        cdef Condition* c = &self.condition
        cdef const Slot* total
        cdef int answer
        while c.most and self.engine.tail - self.engine.head > c.most:
            self.engine.pop()
        if c.kind == TOTAL:
            return self.evict_over_limit()
        if c.kind == MAXIMUM:
            total = self.engine.total()
            c.reference = NAN if total == NULL else total[c.slot].f  # NAN: nothing leaves
        elif c.kind == LONGEST_RUN:
            total = self.engine.total()
            c.begins = self.engine.head + (0 if total == NULL else total[c.slot + R_OFFSET].i)
        while self.engine.head < self.engine.tail:
            answer = self.leaves(self.oldest())
            if answer != 1:
                return answer
            self.engine.pop()
            if c.monotone:
                answer = self.evict_while(True)
                if answer < 0:
                    return answer
        return 0

    cdef int64_t wake_at(self) noexcept nogil:
        """When the compiled rule has to be asked again; at once where nothing is held or read."""
        cdef const Slot* total = self.engine.total()
        if total == NULL or self.engine.faulted:
            return 0
        return self.condition.until(total, self.condition.context)

    cdef int evict_over_limit(self) noexcept nogil:
        """In bulk what surely leaves, where no value is negative; the rest, and otherwise all, one by one."""
        cdef Condition* c = &self.condition
        cdef const Slot* total = self.engine.total()
        if total != NULL and total[c.slot].f > c.limit and total[c.other].f >= 0.0:
            self.evict_while(True)
            total = self.engine.total()
        while total != NULL and total[c.slot].f > c.limit:
            self.engine.pop()
            total = self.engine.total()
        return 0

    cdef int leaves(self, const Slot* old) noexcept nogil:
        """Whether a prefix leaves: by a built-in rule, or as for any other window."""
        cdef const Slot* total = NULL
        if self.engine.faulted:
            return -1
        if self.condition.kind == 0:
            return Eviction.leaves(self, old)
        if self.condition.kind == TOTAL or self.condition.kind == COMPILED:
            total = self.engine.total()
        return leaves_by_rule(&self.condition, total, old, self.engine.head, self.engine.tail - self.engine.head)
