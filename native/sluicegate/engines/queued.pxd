"""What engines with a queue of elements have in common: element i is the leaf and what stands beside it, `stride`
slots."""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine
from sluicegate.memory.chunks cimport Pool, Queue, drop, give_back
from sluicegate.partials.program cimport Program, Slot


cdef class Queued(Engine):
    cdef Pool pool
    cdef Queue queue
    cdef int stride
    cdef size_t size  # bytes of a partial

    # an element is so many partials; before anything is pushed
    cdef int lay_out(self, int partials, int64_t limit) except -1
    cdef int make_room(self) except -1 nogil  # for the element `tail`
    cdef bint same(self, const Slot* a, const Slot* b) noexcept nogil
    cdef int insist(self, bint holds, str what) except -1


# of DABA and DABA Lite: raises InvariantError where the pointers of their sublists break Lemma 4.1
cdef int check_sizes(Queued queue, int64_t l, int64_t r, int64_t a, int64_t b) except -1
# an empty queue of elements of so many slots
cdef void shape_elements(Pool* pool, Queue* queue, int stride) noexcept nogil


cdef inline void drop_before(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    """Give back what lies wholly before `index`: to the pool at once, to the system a chunk at a time."""
    if queue.begin < index >> queue.shift:
        drop(pool, queue, index)
    if pool.surplus:
        give_back(pool)
