"""What a window is between two readings: its leaves' engine, its policy, its counters, and where its edge stands.

`engine` keeps the leaves; `limit` = 0: every reading is a leaf. Partials cross to Python as bytes in the machine's order.
The classes build on each other, a module each: State, Eviction, Ruling, Bucketing, Taking, Core.
"""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport Cut, Output
from sluicegate.engines.base cimport Engine
from sluicegate.engines.tree.pairs cimport Pairs
from sluicegate.partials.program cimport Program, Slot
from sluicegate.engines.tree.staged cimport Staged
from sluicegate.memory.times cimport Times
from sluicegate.histograms._rules cimport Rules

cdef enum:
    KEPT_LEVELS = 16  # sluicegate.reference.core.KEPT_LEVELS


cdef class State:
    cdef readonly object _layout
    cdef readonly str engine_name
    cdef int kept  # slots of a leaf that the engine keeps
    cdef Engine engine
    cdef Pairs pairs  # the same where neighbouring pairs are merged, else None
    cdef bint merging
    cdef Staged staged  # the same where there is a staging tail, else None
    cdef bint staging
    cdef Program p
    cdef int stored  # slots of a partial as Python sees it: the layout's
    cdef Output* outputs
    cdef int answers
    cdef int policy
    cdef bint timed  # an exact window by time: its times are kept here, one a leaf, and not in the engine's partials
    cdef Times times
    cdef int64_t latest_late  # ordinal of the last reading that was older than one before it, −1: none
    cdef int newest_slot  # where a partial keeps its greatest time, −1 where it does not
    cdef int64_t value  # of the policy: readings or µs
    cdef readonly int64_t limit  # of buckets now, 0: none; at most what the engine was set up for
    cdef int64_t hop
    cdef int up_to  # 1 (−1): what the greatest (least) value makes irrelevant leaves too
    cdef int64_t held  # the greatest time of what left as irrelevant: until that is out, nothing behind it leaves by time
    cdef int extreme_slot
    cdef bint bucketed
    cdef bint ruled
    cdef Rules rules
    cdef int* sample_slot  # of each controlled sum
    cdef int* prefix_slot
    cdef double* center
    cdef bint centered
    cdef bint centers_itself  # on the first reading
    cdef Slot* reading
    cdef double latest  # the first value of the newest reading
    cdef int64_t known_head  # the oldest leaf, closed, of which the next two are known; −1: not
    cdef int64_t known_first
    cdef int64_t known_end
    cdef double* row
    cdef readonly int64_t accepted
    cdef readonly int64_t newest
    cdef readonly int64_t edge
    cdef readonly int64_t created
    cdef public int64_t mark
    cdef readonly int64_t level  # level evictions so far
    cdef int64_t level_heads[KEPT_LEVELS]  # the head of level l when it was evicted, at l % 16; since the last multiple of 16
    cdef bint busy  # a batch or an eviction is under way

    cdef int enter(self) except -1
    cdef int allocate(self) except -1
    cdef void keep_to(self, int64_t limit) noexcept nogil
    cdef int center_on(self, centers) except -1
    cdef int64_t cut_off(self) noexcept nogil
    cdef int64_t cut_off_at(self, int64_t last) noexcept nogil
    cdef int64_t end_of_oldest(self) noexcept nogil
    cdef void note_edge(self) noexcept nogil
    cdef Cut cut_oldest_leaf(self) noexcept nogil
    cdef int keep_time(self, int64_t time) except -1 nogil
    cdef void forget_times(self) noexcept nogil
    cdef int64_t time_of(self, int64_t index) noexcept nogil
    cdef int64_t first_after(self, int64_t first, int64_t end, int64_t cutoff) noexcept nogil
    cdef const Slot* unpack(self, bytes packed) except NULL
    cdef const Slot* partial_of(self, const Slot* unpacked) noexcept nogil
    cdef bytes pack(self, const Slot* partial, int64_t time=*)
