"""Readings of a window with a staging tail; see staging.pxd. The twin is sluicegate.reference.staging."""

from libc.stdint cimport int64_t

from sluicegate.core.state cimport State
from sluicegate.engines.tree.staged cimport FORWARD, JOIN, OPEN, Staged
from sluicegate.joining.buckets cimport Buckets
from sluicegate.joining.room cimport make_room, note_oldest
from sluicegate.partials.program cimport H_T_FIRST, H_T_LAST, Slot, fold, lift


cdef int stage(State s, Staged staged, const double* values, int64_t time) except -1 nogil:
    """The newest bucket takes the reading that hides it; else the reading is staged, after room was made."""
    cdef bint joined = staged.takes(values, time)
    if joined and s.p.folds >= 0:
        fold(&s.p, staged.at(staged.top - 1), values, time, s.accepted, s.center)
        staged.touched()
    else:
        lift(&s.p, s.reading, values, time, s.accepted, s.center)
        if joined:
            staged.join(s.reading)
    if joined:
        collapse(s, staged)
    else:
        if staged.staged() == staged.most:
            spill(s, staged)
        staged.push(s.reading)
    if s.buckets.rules is not None:
        s.buckets.rules.c_took(values, s.accepted, joined)
    return 0


cdef void collapse(State s, Staged staged) noexcept nogil:
    """The newest bucket and those that it hides become one."""
    while staged.tail - staged.head > 1 and staged.hides(staged.at(staged.top - 1), staged.leaf(staged.tail - 2)):
        if staged.tail - staged.head == 2:
            note_oldest(s)
        if staged.staged() > 1:
            staged.collapse()
        else:
            staged.take_back()


cdef int spill(State s, Staged staged) except -1 nogil:
    """The oldest staged bucket leaves the tail: into the next, into the newest stored, or as a stored one."""
    cdef int found = verdict(s.buckets, staged)
    while found == OPEN and s.buckets.limit and staged.kept() >= s.buckets.limit:
        make_room(s)
        found = verdict(s.buckets, staged)
    if found != OPEN and staged.kept() < 2:
        note_oldest(s)
    staged.spill(found)
    s.created += found == OPEN
    s.known.index = -1
    return 0


cdef int verdict(Buckets b, Staged staged) noexcept nogil:
    cdef const Slot* old = staged.at(staged.base)
    cdef const Slot* newest
    if staged.irrelevant():
        return FORWARD
    if staged.kept() == 0:
        return OPEN
    newest = staged.stored.leaf(staged.stored.tail - 1)
    if newest[H_T_LAST].i > old[H_T_FIRST].i:
        return OPEN
    if staged.hides(old, newest) or not staged.candidate(old):
        return JOIN
    return JOIN if b.limit and staged.kept() >= b.limit and staged.stored_wants(old) else OPEN
