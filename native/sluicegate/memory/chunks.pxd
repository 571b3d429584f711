"""A queue of partials under absolute indices in chunks, taken from and given back to a shared free list.

A queue begins with chunks of a few partials from the heap and moves to larger ones as it grows, so that what is begun
and what stands between them stays a small part of it; where the pool has large ones, mapped from the system, a queue of
many moves to those, so that a great one gives its memory back a chunk at a time. Chunks of a queue are linked, so that
any number of them joins the free list at once.
"""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot

cdef enum:
    KINDS = 8  # of chunks: those of the heap, each twice as long as the one before, and the large one
    LARGE_KIND = KINDS - 1

ctypedef struct Chunk:
    Chunk* next  # in its queue, or in the free list; behind it the partials of one of the heap

ctypedef struct LargeChunk:
    Chunk link
    Slot* data

ctypedef struct Kind:
    Chunk* free
    int spare  # chunks in that list
    int used  # and in queues

ctypedef struct Pool:
    int width  # slots of a partial
    int least  # the smallest chunk holds 2^least partials
    int shift  # the largest of the heap 2^shift
    int large  # a large chunk holds 2^large of those; 0: there are none
    bint surplus  # more is free than a window of this size needs: `give_back` returns a chunk to the system
    int spare  # partials that may be free in those of the heap, of a kind
    int kept  # but at least so many chunks
    Kind of[KINDS]
    int64_t held  # bytes of chunks, in use or free

ctypedef struct Queue:
    # a ring: chunk k's data is at k & mask; behind it, where they are large, a ring of the chunks themselves
    Slot** chunk
    int64_t begin  # chunks begin … end − 1 are there
    int64_t end
    int mask
    int most  # chunks, before it moves to longer ones or its ring is full
    short shift  # of its chunks now
    short kind
    # once they are not the shortest they are of this kind at least: who reads one after the other has longer runs
    short lowest


cdef inline Slot* at(const Queue* queue, int width, int64_t index) noexcept nogil:
    return queue.chunk[(index >> queue.shift) & queue.mask] + (index & ((<int64_t> 1 << queue.shift) - 1)) * width


cdef inline bint has_room(const Queue* queue, int64_t index) noexcept nogil:
    return queue.begin < queue.end and (index >> queue.shift) < queue.end


cdef inline int64_t run_at(const Queue* queue, int64_t index) noexcept nogil:
    """How many partials lie one after the other from `index` on."""
    return (<int64_t> 1 << queue.shift) - (index & ((<int64_t> 1 << queue.shift) - 1))


cdef inline Chunk* link_of(const Queue* queue, int64_t k) noexcept nogil:
    """Chunk k, which is there."""
    if queue.kind == LARGE_KIND:
        return (<Chunk**> (queue.chunk + queue.mask + 1))[k & queue.mask]
    return <Chunk*> queue.chunk[k & queue.mask] - 1


cdef inline int64_t ring_bytes(const Queue* queue) noexcept nogil:
    if queue.chunk == NULL:
        return 0
    return ((1 + (queue.kind == LARGE_KIND)) * (queue.mask + 1)) * <int64_t> sizeof(void*)


cdef void shape(Pool* pool, int width) noexcept nogil  # an empty pool for windows of any size: up to 4 KiB, and 64 KiB
# 2^least to 2^shift partials, at most 7 kinds, and large ones or none
cdef void shape_by(Pool* pool, int width, int least, int shift, bint large) noexcept nogil
# makes room up to `index`, in an empty queue from there; −1: no memory
cdef int reserve(Pool* pool, Queue* queue, int64_t index) noexcept nogil
# an empty one, for first … end − 1, at most n of them; −1: no memory
cdef int open_queue(Pool* pool, Queue* queue, int64_t first, int64_t end, int64_t n) noexcept nogil
cdef void narrow(Queue* queue) noexcept nogil  # halves a ring at least twice as long as its chunks of the heap need
# gives back what lies wholly before `index`; O(1)
cdef void drop(Pool* pool, Queue* queue, int64_t index) noexcept nogil
cdef void clear(Pool* pool, Queue* queue) noexcept nogil
cdef void give_back(Pool* pool) noexcept nogil  # returns at most one chunk to the system
cdef void release(Pool* pool) noexcept nogil  # frees the chunks of the free lists
