"""A policy besides count and time; see rule.pxd. The twin is sluicegate.reference.eviction."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, intptr_t

from sluicegate.policies._eviction cimport Condition, Function, Until

from sluicegate.errors import InputError, PolicyError


cdef class Rule:
    """The condition under which the oldest leaves leave, and the errors that name it."""

    cdef int take(self, eviction) except -1:
        """Take over a `policies.eviction.Eviction`; None: count or time decides, or a callable."""
        cdef Condition* c = &self.condition
        if eviction is None:
            return 0
        self.name = eviction.name
        c.kind, c.slot, c.other, c.dimension = eviction.kind, eviction.slot, eviction.other, eviction.dimension
        c.monotone, c.growing, c.limit, c.most = eviction.monotone, eviction.growing, eviction.limit, eviction.most
        c.function = <Function> <void*> <intptr_t> eviction.address
        c.context = <void*> <intptr_t> eviction.context
        c.until = <Until> <void*> <intptr_t> eviction.until
        return 0

    cdef int refuse_fall(self, const Slot* total, const double* values, int64_t count, object dimensions) except -1:
        """Refuse a batch whose growing attribute falls, before any of it enters a window of this total."""
        cdef double newest = -INFINITY if total == NULL else total[self.condition.other].f, x
        cdef int64_t i, width = len(dimensions)
        for i in range(count if self.condition.growing else 0):
            x = values[i * width + self.condition.dimension]
            if x < newest:
                name = dimensions[self.condition.dimension]
                raise InputError(
                    f"reading {i}: {name or 'value'} {x!r} after {newest!r}, but the policy {self.name} says that it "
                    "never falls; nothing was inserted"
                )
            newest = x
        return 0

    cdef int fail(self) except -1:
        """Raise what a compiled rule returned below 0."""
        failure, self.condition.failure = self.condition.failure, 0
        raise PolicyError(
            f"policy {self.name}: returned {failure}, expected 0 or 1; the reading is in, nothing more was evicted"
        )
