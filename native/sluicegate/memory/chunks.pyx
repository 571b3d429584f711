"""Queues of partials in chunks of fixed size; see chunks.pxd.

Here: what chunks a queue has and when it moves to longer ones. Where they come from is chunks_memory.pxi.
"""

from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset


cdef enum:
    SMALL = 512  # slots of the longest chunk of the heap, more or less
    LEAST = 3  # 2^LEAST partials of the shortest one: what loops over eight leaves count on
    LARGE = 4  # a large chunk is 2^LARGE of the longest ones
    MOST_SMALL = 264  # of those in a queue before it moves to large ones, which then are no great part of it
    # where many large ones are in use: their ends are no great part of all then, and longer runs are quicker
    MOST_BESIDE = 72
    MANY_LARGE = 48
    MOST_SHORT = 36  # of shorter ones at most
    LEAST_WIDE = 15  # places of a ring that may have too many, less one


cdef void shape(Pool* pool, int width) noexcept nogil:
    cdef int shift = 9
    while shift > 2 and (width << shift) > 2 * SMALL:
        shift -= 1
    shape_by(pool, width, min(shift, LEAST), shift, True)


cdef void shape_by(Pool* pool, int width, int least, int shift, bint large) noexcept nogil:
    memset(pool, 0, sizeof(Pool))
    pool.width, pool.least, pool.shift, pool.large, pool.kept = width, least, shift, LARGE if large else 0, 1
    pool.spare = SPARE


cdef inline int shift_of(const Pool* pool, int kind) noexcept nogil:
    return pool.shift + pool.large if kind == LARGE_KIND else pool.least + kind


cdef inline int64_t slots_of(const Pool* pool, int kind) noexcept nogil:
    return <int64_t> pool.width << shift_of(pool, kind)


cdef inline int64_t bytes_of(const Pool* pool, int kind) noexcept nogil:
    return slots_of(pool, kind) * <int64_t> sizeof(Slot) + (0 if kind == LARGE_KIND else <int64_t> sizeof(Chunk))


cdef inline Slot* data_of(int kind, Chunk* chunk) noexcept nogil:
    return (<LargeChunk*> chunk).data if kind == LARGE_KIND else <Slot*> (chunk + 1)


cdef inline int next_kind(const Pool* pool, const Queue* queue, int kind) noexcept nogil:
    """The chunks that a queue moves to; the same where there are none."""
    if pool.least + kind < pool.shift:
        return max(kind + 1, min(queue.lowest, pool.shift - pool.least))
    return LARGE_KIND if pool.large else kind


cdef inline int64_t most_of(const Pool* pool, int kind) noexcept nogil:
    """So many chunks a queue has at most before it moves to longer ones.

    What is begun at both ends grows with their length, what stands beside each (its link, its place in the ring, the
    heap's own) with their number.
    """
    if pool.least + kind == pool.shift:
        return MOST_SMALL if pool.of[LARGE_KIND].used < MANY_LARGE else MOST_BESIDE
    return min((slots_of(pool, kind) >> 1) + 4, MOST_SHORT)


cdef int reserve(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    if queue.begin == queue.end:
        begin_with(pool, queue, 0, index)
    return extend(pool, queue, index)


cdef int extend(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    """Room up to `index` in a queue that has begun."""
    while queue.end <= index >> queue.shift:
        if queue.end - queue.begin < queue.most and pool.of[queue.kind].free != NULL and queue.kind != LARGE_KIND:
            append_free(pool, queue)
        elif append(pool, queue) < 0:
            return -1
    return 0


cdef inline void append_free(Pool* pool, Queue* queue) noexcept nogil:
    """`append` of what is at hand, in a queue that is neither empty nor full."""
    cdef Chunk* chunk = pool.of[queue.kind].free
    pool.of[queue.kind].free = chunk.next
    pool.of[queue.kind].spare -= 1
    pool.of[queue.kind].used += 1
    link_of(queue, queue.end - 1).next = chunk
    queue.chunk[queue.end & queue.mask] = <Slot*> (chunk + 1)
    queue.end += 1


cdef inline void begin_with(Pool* pool, Queue* queue, int kind, int64_t index) noexcept nogil:
    """Chunks of this kind into an empty queue, from `index` on."""
    if kind == LARGE_KIND and queue.kind != LARGE_KIND:  # its ring is for half as many
        free(queue.chunk)
        queue.chunk, queue.mask = NULL, 0
    queue.kind, queue.shift = <short> kind, <short> shift_of(pool, kind)
    queue.begin = queue.end = index >> queue.shift
    queue.most = 0


cdef int append(Pool* pool, Queue* queue) noexcept nogil:
    """One chunk more at the end, linked to the one before."""
    cdef Chunk* chunk
    cdef int longer = next_kind(pool, queue, queue.kind)
    if longer != queue.kind and queue.kind != LARGE_KIND and queue.end - queue.begin >= most_of(pool, queue.kind):
        return move(pool, queue, longer)
    # before it is full: windows of 2^k end there
    if (queue.chunk == NULL or queue.end - queue.begin >= queue.mask) and widen(queue) < 0:
        return -1
    chunk = take(pool, queue.kind)
    if chunk == NULL:
        return -1
    if queue.end > queue.begin:
        link_of(queue, queue.end - 1).next = chunk
    queue.chunk[queue.end & queue.mask] = data_of(queue.kind, chunk)
    if queue.kind == LARGE_KIND:
        (<Chunk**> (queue.chunk + queue.mask + 1))[queue.end & queue.mask] = chunk
    queue.end += 1
    queue.most = queue.mask if queue.kind == longer else <int> min(<int64_t> queue.mask, most_of(pool, queue.kind))
    return 0


cdef int widen(Queue* queue) noexcept nogil:
    cdef Queue wider = queue[0]
    cdef int64_t k
    cdef int rings = 1 + (queue.kind == LARGE_KIND)
    wider.mask = 3 if queue.chunk == NULL else 2 * queue.mask + 1
    wider.chunk = <Slot**> calloc(rings * (wider.mask + 1), sizeof(void*))
    if wider.chunk == NULL:
        return -1
    for k in range(queue.begin, queue.end):
        wider.chunk[k & wider.mask] = queue.chunk[k & queue.mask]
        if rings == 2:
            (<Chunk**> (wider.chunk + wider.mask + 1))[k & wider.mask] = link_of(queue, k)
    free(queue.chunk)
    queue[0] = wider
    return 0


cdef void narrow(Queue* queue) noexcept nogil:
    cdef int mask = queue.mask >> 1
    cdef int64_t k
    cdef Slot** chunk
    if queue.kind == LARGE_KIND or queue.mask < LEAST_WIDE or 2 * (queue.end - queue.begin) + 2 > queue.mask:
        return
    for k in range(queue.begin, queue.end):  # none meets another: they are fewer than the places
        queue.chunk[k & mask] = queue.chunk[k & queue.mask]
    queue.mask, queue.most = mask, min(queue.most, mask)
    chunk = <Slot**> realloc(queue.chunk, (mask + 1) * sizeof(void*))
    if chunk != NULL:
        queue.chunk = chunk


cdef int move(Pool* pool, Queue* queue, int kind) noexcept nogil:
    """Copy a queue into longer chunks, with room for one partial more at least; the shorter ones join the free list."""
    cdef Queue longer
    cdef int was = queue.kind
    cdef int64_t k, n = slots_of(pool, was), inside
    memset(&longer, 0, sizeof(Queue))
    longer.lowest = queue.lowest
    begin_with(pool, &longer, kind, queue.begin << queue.shift)
    inside = (<int64_t> 1 << (longer.shift - queue.shift)) - 1
    for k in range(queue.begin, queue.end + 1):
        if longer.end <= k >> (longer.shift - queue.shift) and append(pool, &longer) < 0:
            clear(pool, &longer)
            free(longer.chunk)
            return -1
        if k < queue.end:
            memcpy(
                longer.chunk[(k >> (longer.shift - queue.shift)) & longer.mask] + (k & inside) * n,
                queue.chunk[k & queue.mask], n * sizeof(Slot),
            )
    clear(pool, queue)
    free(queue.chunk)
    queue[0] = longer
    # of many only a chunk an operation goes back
    while kind != LARGE_KIND and pool.of[was].spare > 1:
        forget(pool, was)
    return 0


cdef void drop(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    cdef int64_t k = min(index >> queue.shift, queue.end), n = k - queue.begin
    cdef int kind = queue.kind
    if n <= 0:
        return
    link_of(queue, k - 1).next = pool.of[kind].free
    pool.of[kind].free = link_of(queue, queue.begin)
    pool.of[kind].spare += n
    pool.of[kind].used -= n
    queue.begin = k
    pool.surplus = pool.surplus or has_too_many(pool, kind)


cdef void clear(Pool* pool, Queue* queue) noexcept nogil:
    drop(pool, queue, queue.end << queue.shift)


cdef inline int64_t chunks_for(const Pool* pool, int kind, int64_t n) noexcept nogil:
    """In which n partials find room wherever they begin."""
    return n if n < 2 else ((n - 2) >> shift_of(pool, kind)) + 2


cdef int kind_for(const Pool* pool, const Queue* queue, int64_t n) noexcept nogil:
    """The shortest chunks of the heap in which n partials may stay, and an eighth more: as many as a block brings
    before others leave."""
    cdef int kind = 0
    while chunks_for(pool, kind, n + (n >> 3)) > most_of(pool, kind) and pool.least + kind < pool.shift:
        kind = next_kind(pool, queue, kind)
    return kind


cdef int open_queue(Pool* pool, Queue* queue, int64_t first, int64_t end, int64_t n) noexcept nogil:
    if queue.begin == queue.end:
        begin_with(pool, queue, kind_for(pool, queue, n), first)
    return extend(pool, queue, end - 1)


include "chunks_memory.pxi"
