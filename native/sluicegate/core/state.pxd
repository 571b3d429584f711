"""What a window is between two readings: its leaves' engine, its policy, its counters, and where its edge stands.

Functions over a State do the rest: core.eviction lets readings leave, joining.placing puts them into buckets. Partials
cross to Python as bytes in the machine's order.
"""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport Cut, Output
from sluicegate.policies.rule cimport Rule
from sluicegate.engines.base cimport Engine
from sluicegate.joining.late cimport Late
from sluicegate.engines.fiba cimport Fiba
from sluicegate.joining.buckets cimport Buckets
from sluicegate.memory.times cimport Times
from sluicegate.partials.filling cimport Blueprint
from sluicegate.partials.program cimport Program, Slot

ctypedef struct Hiding:  # up to an extreme: leaves whose extreme a later reading reaches are irrelevant and leave early
    int sign  # 1: the greatest value hides what is older, −1: the least, 0: no such eviction
    int slot  # where a partial keeps that extreme
    double newest  # the first value of the newest reading
    int64_t held  # the greatest time of what left so: until that is out, nothing behind it leaves by time

ctypedef struct Oldest:  # the oldest leaf, where it is closed and has been looked at
    int64_t index  # −1: it has not
    int64_t first  # ordinal of its first reading
    int64_t end  # and after its last


cdef class State:
    cdef readonly object _layout
    cdef readonly str engine_name
    cdef Engine engine
    cdef Fiba sorted  # the same where readings may come late, else None
    cdef Late late_buckets  # of a window of buckets by time, else None
    cdef Blueprint blueprint  # of the layout, whose program and answers these are
    cdef Program p
    cdef int stored  # slots of a partial as Python sees it: the layout's
    cdef int kept  # slots of a leaf that the engine keeps
    cdef const Output* outputs
    cdef int answers
    cdef int policy
    cdef int64_t value  # of the policy: readings or µs
    cdef int64_t hop
    cdef Hiding up_to
    cdef Rule rule  # of any other policy
    cdef int newest_slot  # where a partial keeps its greatest time, −1 where it does not
    cdef bint plain  # an exact window by count or time whose engine has all at hand, and needs order
    cdef readonly int64_t late  # readings that belonged to the window no more when they came
    cdef int64_t late_since  # the least time of those inside that came late since `changes` was asked
    cdef bint timed  # an exact window by time: its times are kept here, one a leaf, and not in the engine's partials
    cdef Times* times  # NULL: they are not
    cdef bint bucketed  # a leaf is a bucket of readings, not one
    cdef Buckets buckets
    cdef double* center  # `row` and `reading` lie behind it
    cdef bint centered
    cdef bint centers_itself  # on the first reading
    cdef Slot* reading  # lifted; behind it a row of answers and, where leaves are single readings, a total
    cdef Slot* seen  # room for the total of a part of the window; NULL: not needed yet
    cdef double* row
    cdef Oldest known
    cdef readonly int64_t accepted
    cdef readonly int64_t newest
    cdef readonly int64_t edge
    cdef readonly int64_t created
    cdef bint busy  # a batch or an eviction is under way

    cdef int enter(self) except -1
    cdef int look(self) except -1
    cdef int allocate(self) except -1
    cdef int center_on(self, centers) except -1
    cdef int64_t cut_off(self) noexcept nogil
    cdef int64_t cut_off_at(self, int64_t last) noexcept nogil
    cdef int64_t time_cutoff(self) noexcept nogil
    cdef int64_t time_cutoff_at(self, int64_t last) noexcept nogil
    cdef int64_t end_of_oldest(self) noexcept nogil
    cdef void note_edge(self) noexcept nogil
    cdef Cut cut_oldest_leaf(self) noexcept nogil
    cdef int64_t last_to_have_left(self) noexcept nogil
    cdef int keep_time(self, int64_t time) except -1 nogil
    cdef void forget_times(self) noexcept nogil
    cdef int64_t time_of(self, int64_t index) noexcept nogil
    cdef int64_t first_after(self, int64_t first, int64_t end, int64_t cutoff) noexcept nogil
    cdef const Slot* unpack(self, bytes packed) except NULL
    cdef const Slot* partial_of(self, const Slot* unpacked) noexcept nogil
    cdef bytes pack(self, const Slot* partial, int64_t time=*)


cdef inline bint hides(const Hiding* h, double x, double extreme) noexcept nogil:
    """Whether x makes a leaf of this extreme irrelevant."""
    return h.sign * x >= h.sign * extreme
