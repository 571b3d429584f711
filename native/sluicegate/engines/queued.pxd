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

    cdef void lay_out(self, int stride) noexcept nogil  # an empty queue of elements of so many slots
    cdef int make_room(self) except -1 nogil  # for the element `tail`


cdef inline void drop_before(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    """Give back what lies wholly before `index`: to the pool at once, to the system a chunk at a time."""
    if queue.begin < index >> queue.shift:
        drop(pool, queue, index)
    if pool.surplus:
        give_back(pool)
