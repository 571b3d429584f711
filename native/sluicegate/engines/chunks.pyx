"""Queues of partials in chunks of fixed size; see chunks.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc

from sluicegate.engines.program cimport Slot


cdef int reserve(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    cdef int64_t k = index >> pool.shift
    cdef Slot* chunk
    if queue.begin == queue.end:
        queue.begin = queue.end = k
    while queue.end <= k:
        if queue.chunk == NULL or queue.end - queue.begin > queue.mask:
            if widen(queue) < 0:
                return -1
        chunk = take(pool)
        if chunk == NULL:
            return -1
        queue.chunk[queue.end & queue.mask] = chunk
        queue.end += 1
    return 0


cdef int widen(Queue* queue) noexcept nogil:
    cdef int64_t size = 4 if queue.chunk == NULL else 2 * (queue.mask + 1)
    cdef int64_t k
    cdef Slot** wider = <Slot**> calloc(size, sizeof(Slot*))
    if wider == NULL:
        return -1
    for k in range(queue.begin, queue.end):
        wider[k & (size - 1)] = queue.chunk[k & queue.mask]
    free(queue.chunk)
    queue.chunk = wider
    queue.mask = size - 1
    return 0


cdef Slot* take(Pool* pool) noexcept nogil:
    cdef Slot* chunk = <Slot*> pool.free
    if chunk != NULL:
        pool.free = (<void**> chunk)[0]
        return chunk
    chunk = <Slot*> malloc(pool.chunk * sizeof(Slot))
    if chunk != NULL:
        pool.chunks += 1
    return chunk


cdef void drop(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    cdef int64_t k = index >> pool.shift
    cdef Slot* chunk
    while queue.begin < queue.end and queue.begin < k:
        chunk = queue.chunk[queue.begin & queue.mask]
        (<void**> chunk)[0] = pool.free
        pool.free = chunk
        queue.begin += 1


cdef void clear(Pool* pool, Queue* queue) noexcept nogil:
    drop(pool, queue, queue.end << pool.shift)


cdef void release(Pool* pool) noexcept nogil:
    cdef void* chunk
    while pool.free != NULL:
        chunk = pool.free
        pool.free = (<void**> chunk)[0]
        free(chunk)
