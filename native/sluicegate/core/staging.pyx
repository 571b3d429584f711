"""Readings of a window with a staging tail; see staging.pxd. The twin is in sluicegate.reference.core."""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport BY_COUNT
from sluicegate.engines.tree.pairs cimport NEWEST, OLDEST
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, H_T_FIRST, H_T_LAST, Slot, fold, lift
from sluicegate.core.ruling cimport Ruling
from sluicegate.engines.tree.staged cimport FORWARD, JOIN, OPEN


cdef class Staging(Ruling):
    """A window that may decide late."""

    cdef int place_staged(self, const double* values, int64_t time) except -1 nogil:
        """The newest bucket takes the reading that hides it; else the reading is staged, after room was made."""
        cdef bint joined = self.staged.takes(values, time)
        if joined and self.p.folds >= 0:
            fold(&self.p, self.staged.at(self.staged.top - 1), values, time, self.accepted, self.center)
            self.staged.touched()
        else:
            lift(&self.p, self.reading, values, time, self.accepted, self.center)
            if joined:
                self.staged.join(self.reading)
        if joined:
            self.collapse()
        else:
            if self.staged.staged() == self.staged.most:
                self.spill()
            self.staged.push(self.reading)
        if self.ruled:
            self.rules.c_took(values, self.accepted, joined)
        return 0

    cdef void collapse(self) noexcept nogil:
        """The newest bucket and those that it hides become one."""
        cdef Slot* newest
        while self.staged.staged() > 1:
            if not self.staged.hides(self.staged.at(self.staged.top - 1), self.staged.at(self.staged.top - 2)):
                return
            if self.engine.tail - self.engine.head == 2:
                self.note_oldest()
            self.staged.collapse()
        while self.staged.kept():
            newest = self.staged.stored.leaf(self.staged.stored.tail - 1)
            if not self.staged.hides(self.staged.at(self.staged.base), newest):
                return
            if self.engine.tail - self.engine.head == 2:
                self.note_oldest()
            self.staged.take_back()

    cdef int spill(self) except -1 nogil:
        """The oldest staged bucket leaves the tail: into the next, into the newest stored, or as a stored one."""
        cdef int verdict = self.verdict()
        while verdict == OPEN and self.limit and self.staged.kept() >= self.limit:
            self.merge_pair()
            verdict = self.verdict()
        if verdict != OPEN and self.staged.kept() < 2:
            self.note_oldest()
        self.staged.spill(verdict)
        self.created += verdict == OPEN
        self.known_head = -1
        return 0

    cdef int verdict(self) noexcept nogil:
        cdef const Slot* old = self.staged.at(self.staged.base)
        cdef const Slot* newest
        if self.staged.irrelevant():
            return FORWARD
        if self.staged.kept() == 0:
            return OPEN
        newest = self.staged.stored.leaf(self.staged.stored.tail - 1)
        if newest[H_T_LAST].i > old[H_T_FIRST].i:
            return OPEN
        if self.staged.hides(old, newest) or not self.staged.candidate(old):
            return JOIN
        return JOIN if self.limit and self.staged.kept() >= self.limit and self.staged.stored_wants(old) else OPEN

    cdef void note_oldest(self) noexcept nogil:
        """The oldest bucket takes over another: what has left of it stays known."""
        cdef const Slot* leaf = self.engine.leaf(self.engine.head)
        self.edge = max(self.edge, leaf[H_O_FIRST].i + leaf[H_COUNT].i - 1 - self.cut_oldest_leaf().most)
        self.known_head = -1

    cdef int merge_pair(self) except -1 nogil:
        """The pair that adds least becomes one bucket."""
        cdef const Slot* leaf = self.engine.leaf(self.engine.head)
        cdef int64_t out = leaf[H_O_FIRST].i + leaf[H_COUNT].i - 1 - self.cut_oldest_leaf().most
        cdef int touched = self.staged.merge_stored() if self.staging else self.pairs.merge()
        self.known_head = -1
        if touched & OLDEST:
            self.edge = max(self.edge, out)
        if touched & NEWEST and self.ruled:
            self.rules.c_coarsened()
        return 0

    cdef inline int64_t constrained(self) noexcept nogil:
        """How many buckets the limit counts: all but what is staged."""
        return self.staged.kept() if self.staging else self.engine.tail - self.engine.head

    cdef int64_t fewest_cut(self) noexcept nogil:
        """What a window up to an extreme holds at least when its edge cuts a bucket, 0: not known; see the twin."""
        return self.value if self.up_to and self.policy == BY_COUNT else 0
