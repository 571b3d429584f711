"""A queue of partials under absolute indices in chunks of fixed size, taken from and given back to a shared free list.

Chunks are never moved, so a pointer to a partial stays good while it is there; a level that shrinks feeds one that grows.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.program cimport Slot

ctypedef struct Pool:
    int shift  # a chunk holds 2^shift partials
    int64_t chunk  # slots of a chunk
    int64_t chunks  # allocated, in use or free
    void* free

ctypedef struct Queue:
    Slot** chunk  # a ring: chunk k is at k & mask
    int64_t mask
    int64_t begin  # chunks begin … end − 1 are there
    int64_t end


cdef inline Slot* at(const Pool* pool, const Queue* queue, int width, int64_t index) noexcept nogil:
    return queue.chunk[(index >> pool.shift) & queue.mask] + (index & ((1 << pool.shift) - 1)) * width


cdef inline bint has_room(const Pool* pool, const Queue* queue, int64_t index) noexcept nogil:
    return queue.begin < queue.end and (index >> pool.shift) < queue.end


cdef int reserve(Pool* pool, Queue* queue, int64_t index) noexcept nogil  # makes room for `index`; −1: no memory
cdef void drop(Pool* pool, Queue* queue, int64_t index) noexcept nogil  # gives back what lies wholly before `index`
cdef void clear(Pool* pool, Queue* queue) noexcept nogil
cdef void release(Pool* pool) noexcept nogil  # frees the chunks of the free list
