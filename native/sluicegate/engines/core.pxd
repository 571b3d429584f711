"""One window's evolution in compiled code: lift, open or join a leaf, evict, note the edge, answer.

`engine` keeps the leaves; `limit` = 0: every reading is a leaf. Partials cross to Python as bytes in the machine's order.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.answers cimport Cut, Output
from sluicegate.engines.base cimport Engine
from sluicegate.engines.pairs cimport Pairs
from sluicegate.engines.program cimport Program, Slot
from sluicegate.histograms._rules cimport Rules


cdef class Core:
    cdef readonly object _layout
    cdef Engine engine
    cdef Pairs pairs  # the same where neighbouring pairs are merged, else None
    cdef bint merging
    cdef int64_t finer  # so many times as many buckets would be opened as the limit allows
    cdef Program p
    cdef Output* outputs
    cdef int answers
    cdef int policy
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
    cdef Slot* open_leaf  # the newest leaf, while a reading is placed
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
    cdef int64_t level_heads[16]  # the head of level l when it was evicted, at l % 16; since the last multiple of 16
    cdef bint busy  # a batch or an eviction is under way
    cdef object rule
    cdef object raised

    cdef int enter(self) except -1
    cdef int allocate(self) except -1
    cdef int accept(self, const double* values, int64_t time) except -1 nogil
    cdef int64_t join_run(self, const double* values, const int64_t* times, int64_t count) noexcept nogil
    cdef int64_t sum_run(self, const double* values, const int64_t* times, int64_t most) noexcept nogil
    cdef int64_t scan_run(self, const double* values, const int64_t* times, int64_t most, bint hopping) noexcept nogil
    cdef int64_t longest_run(self, int64_t count) noexcept nogil
    cdef bint may_force(self) noexcept nogil
    cdef int64_t leaves_at(self) noexcept nogil
    cdef int place(self, const double* values, int64_t time) except -1 nogil
    cdef void lift_reading(self, const double* values, int64_t time) noexcept nogil
    cdef void join(self, const double* values, int64_t time) noexcept nogil
    cdef bint joins(self, const double* values, int64_t time) noexcept nogil
    cdef bint forced(self, bint late, const Slot* newest) noexcept nogil
    cdef void refresh_rules(self) noexcept nogil
    cdef void carry_sample(self) noexcept nogil
    cdef void settle(self) noexcept nogil
    cdef int64_t cut_off(self) noexcept nogil
    cdef void evict_irrelevant(self, int64_t head) noexcept nogil
    cdef bint coarse(self) noexcept nogil
    cdef int make_room(self) except -1 nogil
    cdef int evict_level(self) except -1 nogil
    cdef int merge_pair(self) except -1 nogil
    cdef bytes histograms_state(self)
    cdef void enforce(self) noexcept nogil
    cdef int64_t end_of_oldest(self) noexcept nogil
    cdef int evict_while(self, bint monotone) noexcept nogil
    cdef void note_edge(self) noexcept nogil
    cdef Cut cut_oldest_leaf(self) noexcept nogil
    cdef int answer_all(self, Slot* out) noexcept nogil
    cdef int run(self, const double* values, const int64_t* times, int64_t count, double** out) except -1 nogil
    cdef int leaves(self, const Slot* old) noexcept nogil
    cdef int ask_rule(self, const Slot* old) noexcept
    cdef int center_on(self, centers) except -1
    cdef const Slot* unpack(self, bytes packed) except NULL
    cdef bytes pack(self, const Slot* partial)
    cdef list as_values(self, const Slot* out)
