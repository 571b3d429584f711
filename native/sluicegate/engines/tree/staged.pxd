"""A staging tail before the buckets that are stored: what may become an extreme is decided when it leaves the tail.

The tail is a double-ended queue of at most `most` buckets in a ring, base … top − 1, as two stacks. Those before
`pivot` keep what they and all up to the pivot fold to, the others what all from the pivot on fold to: so both ends cost
O(1), amortised. base < pivot < top wherever there are two or more; base = pivot where there is one.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine
from sluicegate.engines.tree.pairs cimport Pairs
from sluicegate.partials.program cimport Program, Slot
from sluicegate.histograms._values cimport MaxRule

cdef enum:  # what becomes of the oldest staged bucket
    FORWARD = 0  # a later one hides it, not the next: the next takes it over
    JOIN = 1  # the newest stored one takes it
    OPEN = 2  # it is stored as a bucket of its own

ctypedef struct Guard:  # an extreme that is kept
    int slot
    int dimension
    int sign
    bint strict


cdef class Staged(Engine):
    cdef readonly Pairs stored
    cdef MaxRule rule  # its ranges say what is a candidate; None: everything is
    cdef bint ruled
    cdef Guard* guards
    cdef int m
    cdef int64_t most
    cdef int64_t mask
    cdef Slot* leaves
    cdef Slot* folds
    cdef unsigned char* states
    cdef int64_t base
    cdef int64_t pivot
    cdef int64_t top
    cdef int64_t known  # the folds of pivot … known − 1 are up to date
    cdef bint front_known  # of the stored and the staged before the pivot
    cdef bint has_front
    cdef bint rest_known  # the same without the oldest of all
    cdef bint has_rest
    cdef int64_t to_store  # of a window that is being loaded
    cdef int64_t pivot_after  # then

    cdef int guard(self, int64_t most, guards, MaxRule rule, merging) except -1
    cdef int64_t staged(self) noexcept nogil
    cdef int64_t kept(self) noexcept nogil  # stored ones
    cdef Slot* at(self, int64_t place) noexcept nogil
    cdef Slot* fold(self, int64_t place) noexcept nogil
    cdef bint takes(self, const double* values, int64_t time) noexcept nogil
    cdef bint hides(self, const Slot* new, const Slot* old) noexcept nogil
    cdef bint candidate(self, const Slot* leaf) noexcept nogil
    cdef bint irrelevant(self) noexcept nogil
    cdef void collapse(self) noexcept nogil
    cdef void take_back(self) noexcept nogil
    cdef int spill(self, int verdict) except -1 nogil
    cdef int merge_stored(self) noexcept nogil
    cdef bint stored_wants(self, const Slot* leaf) noexcept nogil
    cdef int take_state(self, int64_t index) noexcept nogil
