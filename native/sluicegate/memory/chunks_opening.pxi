"""A queue opened anew for many partials, and what that may need had beforehand, so that it cannot fail. Part of chunks.pyx."""

cdef enum:
    MOST_KEPT = 64  # chunks of a queue that is opened anew stay in it


cdef int foresee_queue(Pool* pool, Queue* queue, int64_t n, int64_t* needs) noexcept nogil:
    cdef int kind = kind_for(pool, queue, n)
    needs[kind] += chunks_for(pool, kind, n)
    while queue.chunk == NULL or chunks_for(pool, kind, n) >= queue.mask:
        if widen(queue) < 0:
            return -1
    return 0


cdef inline int64_t chunks_for(const Pool* pool, int kind, int64_t n) noexcept nogil:
    """In which n partials find room wherever they begin."""
    return n if n < 2 else ((n - 2) >> shift_of(pool, kind)) + 2


cdef int kind_for(const Pool* pool, const Queue* queue, int64_t n) noexcept nogil:
    """The shortest chunks of the heap in which n partials may stay, and an eighth more: as many as a block brings before others leave."""
    cdef int kind = 0
    if pool.together:
        return queue.kind
    while chunks_for(pool, kind, n + (n >> 3)) > most_of(pool, kind) and pool.least + kind < pool.shift:
        kind = next_kind(pool, queue, kind)
    return kind


cdef int keep_ready(Pool* pool, const int64_t* needs) noexcept nogil:
    cdef int kind
    cdef Chunk* chunk
    for kind in range(KINDS):
        if pool.batch and pool.of[kind].spare <= 1 and pool.of[kind].spare + pool.of[kind].used < needs[kind]:
            take_from_shelf(pool, kind)
        while pool.of[kind].spare + pool.of[kind].used < needs[kind]:
            chunk = take_new(pool, kind)
            if chunk == NULL:
                return -1
            chunk.next, pool.of[kind].free = pool.of[kind].free, chunk
            pool.of[kind].spare += 1
    return 0


cdef void shorten_queue(Pool* pool, Queue* queue, int64_t first, int64_t end, int64_t n) noexcept nogil:
    cdef int kind = kind_for(pool, queue, n)
    if queue.begin == queue.end:
        return
    if first >= end or queue.kind != kind or queue.end - queue.begin > MOST_KEPT:
        clear(pool, queue)
        return
    drop(pool, queue, (queue.end - min(queue.end - queue.begin, chunks_between(queue, first, end))) << queue.shift)
    turn(queue, first >> queue.shift)


cdef inline int64_t chunks_between(const Queue* queue, int64_t first, int64_t end) noexcept nogil:
    return ((end - 1) >> queue.shift) - (first >> queue.shift) + 1


cdef inline void turn(Queue* queue, int64_t begin) noexcept nogil:
    """Chunks of the heap to other places of the ring, in which they count from `begin` on."""
    cdef Slot* held[MOST_KEPT]
    cdef int64_t k, n = queue.end - queue.begin
    if not (begin - queue.begin) & queue.mask:
        queue.begin, queue.end = begin, begin + n
        return
    for k in range(n):
        held[k] = queue.chunk[(queue.begin + k) & queue.mask]
    for k in range(n):
        queue.chunk[(begin + k) & queue.mask] = held[k]
    queue.begin, queue.end = begin, begin + n


cdef int open_queue(Pool* pool, Queue* queue, int64_t first, int64_t end, int64_t n) noexcept nogil:
    if queue.begin == queue.end:
        begin_with(pool, queue, kind_for(pool, queue, n), first)
    while queue.end <= (end - 1) >> queue.shift:
        if queue.begin < queue.end and queue.end - queue.begin < queue.most and pool.of[queue.kind].free != NULL:
            append_free(pool, queue)
        elif append(pool, queue) < 0:
            return -1
    return 0
