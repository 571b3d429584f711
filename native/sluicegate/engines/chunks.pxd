"""A queue of partials under absolute indices in chunks of fixed size, taken from and given back to a shared free list.

A queue begins with small chunks from the heap; where the pool has large ones, mapped from the system, a queue of many
small chunks moves to those once, so that a window of few readings stays small and a great one gives its memory back a
chunk at a time. Chunks of a queue are linked, so that any number of them joins the free list at once.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.program cimport Slot

ctypedef struct Chunk:
    Chunk* next  # in its queue, or in the free list
    Slot* data

ctypedef struct Pool:
    int shift  # a small chunk holds 2^shift partials
    int64_t chunk  # slots of a small chunk
    int64_t chunks  # small chunks allocated, in use or free; a large one counts as 2^large
    int large  # a large chunk holds 2^large small ones; 0: there are none
    bint surplus  # more is free than a window of this size needs: `give_back` returns a chunk to the system
    Chunk* free[2]  # small, large
    int64_t spare[2]  # chunks in the free lists
    int64_t used[2]  # chunks in queues
    Chunk* coming  # a large one that `prepare` is about: its bytes before `ready` have been touched
    int64_t ready
    bint wide  # large chunks come out of regions of huge pages, once there are many
    char* region  # what is left of the newest
    int64_t region_left  # bytes

ctypedef struct Queue:
    Slot** chunk  # a ring: chunk k's data is at k & mask; behind it a ring of the chunks themselves
    int64_t mask
    int64_t begin  # chunks begin … end − 1 are there
    int64_t end
    int shift  # of its chunks now


cdef inline Slot* at(const Pool* pool, const Queue* queue, int width, int64_t index) noexcept nogil:
    return queue.chunk[(index >> queue.shift) & queue.mask] + (index & ((<int64_t> 1 << queue.shift) - 1)) * width


cdef inline bint has_room(const Pool* pool, const Queue* queue, int64_t index) noexcept nogil:
    return queue.begin < queue.end and (index >> queue.shift) < queue.end


cdef inline int64_t run_at(const Queue* queue, int64_t index) noexcept nogil:
    """How many partials lie one after the other from `index` on."""
    return (<int64_t> 1 << queue.shift) - (index & ((<int64_t> 1 << queue.shift) - 1))


cdef extern from *:
    """
    /* A compiler takes what only prefetches for a function without effect and leaves out its calls: the empty line is an effect. */
    #define sg_prefetch(address) do { __builtin_prefetch(address); __asm__ volatile(""); } while (0)
    """
    void prefetch "sg_prefetch"(const void* address) noexcept nogil


cdef inline void ask_for(const void* data, int64_t size) noexcept nogil:
    """Have the pages of so many bytes looked up before they are used: a processor does not look ahead beyond a page."""
    cdef int64_t i
    for i in range(0, size, 2048):
        prefetch(<const char*> data + i)


cdef inline Chunk** links(const Queue* queue) noexcept nogil:
    return <Chunk**> (queue.chunk + queue.mask + 1)


cdef inline void ask_for_place(const Queue* queue, int64_t index, int64_t chunk) noexcept nogil:
    """Fetch where it stands where the partial at `index` is, and what `drop` reads of a queue up to there; and the same of a chunk."""
    prefetch(queue.chunk + ((index >> queue.shift) & queue.mask))
    prefetch(links(queue) + (((index >> queue.shift) - 1) & queue.mask))
    prefetch(queue.chunk + (chunk & queue.mask))
    prefetch(links(queue) + (chunk & queue.mask))


cdef inline void ask_for_link(const Queue* queue, int64_t index) noexcept nogil:
    """Fetch the last chunk wholly before `index`, which `drop` writes."""
    if queue.begin < index >> queue.shift:
        prefetch(links(queue)[((index >> queue.shift) - 1) & queue.mask])


cdef void shape(Pool* pool, int width) noexcept nogil  # an empty pool for windows of any size: 1 KiB and 64 KiB chunks
cdef int reserve(Pool* pool, Queue* queue, int64_t index) noexcept nogil  # makes room up to `index`, in an empty queue from there; −1: no memory
cdef bint prepare(Pool* pool) noexcept nogil  # has a large chunk at hand before it is needed, a few pages a call; False: nothing to do
cdef void drop(Pool* pool, Queue* queue, int64_t index) noexcept nogil  # gives back what lies wholly before `index`; O(1)
cdef void clear(Pool* pool, Queue* queue) noexcept nogil
cdef void give_back(Pool* pool) noexcept nogil  # returns at most one chunk to the system
cdef void release(Pool* pool) noexcept nogil  # frees the chunks of the free lists
cdef int64_t held(const Pool* pool) noexcept nogil  # bytes of chunks, in use or free
