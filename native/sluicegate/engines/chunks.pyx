"""Queues of partials in chunks of fixed size; see chunks.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

from sluicegate.engines.program cimport Slot

cdef enum:
    SMALL = 128  # slots of the longest chunk of the heap, more or less
    LEAST = 3  # 2^LEAST partials of the shortest one: what loops over eight leaves count on
    LARGE = 6  # a large chunk is 2^LARGE of the longest ones
    MOST_SMALL = 1056  # of those in a queue before it moves to large ones, which then are no great part of it
    MOST_BESIDE = 288  # where many large ones are in use: their ends are no great part of all then, and longer runs are quicker
    MANY_LARGE = 48
    MOST_SHORT = 36  # of shorter ones at most
    SPARE_LARGE = 2  # free chunks that are kept whatever is in use: what the levels of a forest free and take in turns
    SPARE_OF_GREAT = 40  # of each length from the heap beside large ones: none goes back while its levels take turns
    SPARE = 56  # partials in such of the heap, but `kept` chunks at least
    LEAST_WIDE = 15  # places of a ring that may have too many, less one
    MOST_KEPT = 64  # chunks of a queue that is opened anew stay in it
    MOST_SHELVED = 96  # chunks of one size on the shelf
    SIZES = 2 * SMALL + 1  # in slots: longer ones do not lie there
    MANY = 8  # large chunks in use, in eights, from which two more are kept at hand
    PAGE = 4096  # bytes: a system with larger pages is asked more often than it need be
    HUGE_PAGE = 2097152
    REGION = 16777216  # bytes that huge pages are asked for at a time, where as much is in use already
    GREAT = 128  # large chunks in use, from which a window of wide partials keeps more free ones
    AT_ONCE = 4  # pages that one reading has prepared: a new one takes microseconds


cdef extern from *:
    """
    #ifndef MAP_POPULATE  /* Linux only: the pages are had one by one then, as they are used */
    #define MAP_POPULATE 0
    #endif
    """
    int MAP_POPULATE


cdef extern from *:
    """
    #include <sys/mman.h>
    #include <unistd.h>
    #define sg_page_size() ((size_t) sysconf(_SC_PAGESIZE))
    #ifdef MADV_HUGEPAGE
    #define sg_ask_for_huge(data, size) madvise((data), (size), MADV_HUGEPAGE)
    #else
    #define sg_ask_for_huge(data, size) ((void) 0)
    #endif
    """
    size_t page_size "sg_page_size"() noexcept nogil
    void ask_for_huge "sg_ask_for_huge"(void* data, size_t size) noexcept nogil


cdef void shape(Pool* pool, int width) noexcept nogil:
    cdef int shift = 7
    while shift > 2 and (width << shift) > 2 * SMALL:
        shift -= 1
    shape_by(pool, width, min(shift, LEAST), shift, True)


cdef void shape_by(Pool* pool, int width, int least, int shift, bint large) noexcept nogil:
    memset(pool, 0, sizeof(Pool))
    pool.width, pool.least, pool.shift, pool.large, pool.kept = width, least, shift, LARGE if large else 0, 1


cdef void shape_together(Pool* pool, int width, int least, int shift) noexcept nogil:
    shape_by(pool, width, least, shift, False)
    pool.together = True


cdef void keep_to_kind(const Pool* pool, Queue* queue, int shift) noexcept nogil:
    queue.shift, queue.kind = <short> shift, <short> (shift - pool.least)


cdef inline int shift_of(const Pool* pool, int kind) noexcept nogil:
    return pool.shift + pool.large if kind == LARGE_KIND else pool.least + kind


cdef inline int64_t slots_of(const Pool* pool, int kind) noexcept nogil:
    cdef int64_t partials = <int64_t> 1 << shift_of(pool, kind)
    return (2 * partials - 2 if pool.together else partials) * pool.width


cdef inline int64_t bytes_of(const Pool* pool, int kind) noexcept nogil:
    return slots_of(pool, kind) * <int64_t> sizeof(Slot) + (0 if kind == LARGE_KIND else <int64_t> sizeof(Chunk))


cdef inline Slot* data_of(int kind, Chunk* chunk) noexcept nogil:
    return (<LargeChunk*> chunk).data if kind == LARGE_KIND else <Slot*> (chunk + 1)


cdef inline int next_kind(const Pool* pool, const Queue* queue, int kind) noexcept nogil:
    """The chunks that a queue moves to; the same where there are none."""
    if pool.together:
        return kind
    if pool.least + kind < pool.shift:
        return max(kind + 1, min(queue.lowest, pool.shift - pool.least))
    return LARGE_KIND if pool.large else kind


cdef inline int64_t most_of(const Pool* pool, int kind) noexcept nogil:
    """So many chunks a queue has at most before it moves to longer ones.

    What is begun at both ends grows with their length, what stands beside each (its link, its place in the ring, the heap's own) with their number.
    """
    if pool.least + kind == pool.shift:
        return MOST_SMALL if pool.of[LARGE_KIND].used < MANY_LARGE else MOST_BESIDE
    return min((slots_of(pool, kind) >> 1) + 4, MOST_SHORT)


cdef int reserve(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    if queue.begin == queue.end:
        begin_with(pool, queue, queue.kind if pool.together else 0, index)
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
    if (queue.chunk == NULL or queue.end - queue.begin >= queue.mask) and widen(queue) < 0:  # before it is full: windows of 2^k end there
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
    if kind == LARGE_KIND:
        have_ready(pool, ((queue.end - queue.begin) >> pool.large) + 1)
    for k in range(queue.begin, queue.end + 1):
        if longer.end <= k >> (longer.shift - queue.shift) and append(pool, &longer) < 0:
            clear(pool, &longer)
            free(longer.chunk)
            return -1
        if k < queue.end:
            memcpy(
                longer.chunk[(k >> (longer.shift - queue.shift)) & longer.mask] + (k & inside) * n, queue.chunk[k & queue.mask],
                n * sizeof(Slot),
            )
    clear(pool, queue)
    free(queue.chunk)
    queue[0] = longer
    while kind != LARGE_KIND and pool.of[was].spare > 1 and not pool.batch:  # of many only a chunk an operation goes back
        forget(pool, was)
    return 0


cdef void have_ready(Pool* pool, int64_t n) noexcept nogil:
    """So many large chunks are free, with all their pages, as far as there is memory: all will be written at once."""
    cdef Chunk* chunk
    while pool.of[LARGE_KIND].spare < n:
        chunk = allocate(pool, LARGE_KIND, MAP_POPULATE)
        if chunk == NULL:
            return
        chunk.next, pool.of[LARGE_KIND].free = pool.of[LARGE_KIND].free, chunk
        pool.of[LARGE_KIND].spare += 1
        pool.held += bytes_of(pool, LARGE_KIND)


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
    """The shortest chunks of the heap in which n partials may stay."""
    cdef int kind = 0
    if pool.together:
        return queue.kind
    while chunks_for(pool, kind, n) > most_of(pool, kind) and pool.least + kind < pool.shift:
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


cdef Chunk* take(Pool* pool, int kind) noexcept nogil:
    cdef Chunk* chunk
    if pool.of[kind].free == NULL and pool.batch:
        take_from_shelf(pool, kind)
    chunk = pool.of[kind].free
    if chunk != NULL:
        pool.of[kind].free = chunk.next
        pool.of[kind].spare -= 1
    elif kind == LARGE_KIND and pool.coming != NULL:
        chunk, pool.coming = pool.coming, NULL
    else:
        chunk = take_new(pool, kind)
        if chunk == NULL:
            return NULL
    pool.of[kind].used += 1
    return chunk


cdef inline Chunk* take_new(Pool* pool, int kind) noexcept nogil:
    """With all its pages only where chunks are prepared: else one reading would wait for sixteen of them."""
    cdef Chunk* chunk = allocate(pool, kind, MAP_POPULATE if pool.ready else 0)
    if chunk != NULL:
        pool.held += bytes_of(pool, kind)
    return chunk


include "chunks_shelf.pxi"


cdef Chunk* allocate(Pool* pool, int kind, int at_once) noexcept nogil:
    """A chunk of any kind; a large one with all its pages, or only its first."""
    cdef bint large = kind == LARGE_KIND
    cdef size_t size = slots_of(pool, kind) * sizeof(Slot)
    cdef Chunk* chunk = <Chunk*> malloc(sizeof(LargeChunk) if large else sizeof(Chunk) + size)
    cdef void* data
    if chunk == NULL or not large:
        return chunk
    data = huge(pool, size) if pool.wide else NULL
    if data == NULL:
        data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | at_once, -1, 0)
    if data == MAP_FAILED:
        free(chunk)
        return NULL
    (<LargeChunk*> chunk).data = <Slot*> data
    (<Slot*> data).i = 0  # the first page is had now, not when the first leaf comes
    return chunk


cdef void* huge(Pool* pool, size_t size) noexcept nogil:
    """A chunk out of a region of huge pages: one fault for many chunks, and few pages for a processor to look up."""
    cdef void* region
    cdef size_t over
    if held(pool) < REGION or size > REGION // 8 or size % page_size():
        return NULL
    if pool.region_left < <int64_t> size:
        end_region(pool)
        region = mmap(NULL, REGION + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        if region == MAP_FAILED:
            return NULL
        over = <size_t> region & (HUGE_PAGE - 1)
        pool.region, pool.region_left = <char*> region + (HUGE_PAGE - over), REGION
        munmap(region, HUGE_PAGE - over)
        if over:
            munmap(pool.region + REGION, over)
        ask_for_huge(pool.region, REGION)
    region = pool.region
    pool.region += size
    pool.region_left -= size
    return region


cdef void end_region(Pool* pool) noexcept nogil:
    """Give the rest of it back."""
    if pool.region_left:
        munmap(pool.region, pool.region_left)
    pool.region_left = 0


cdef bint prepare(Pool* pool) noexcept nogil:
    cdef int64_t end, size, used, wanted
    if not pool.of[LARGE_KIND].used:
        return False
    size, used = slots_of(pool, LARGE_KIND) * <int64_t> sizeof(Slot), pool.of[LARGE_KIND].used >> 3
    wanted = 3 if used > MANY else 1
    if pool.coming == NULL:
        while used:  # so many levels of a forest come to the end of a chunk at once
            used, wanted = used >> 1, wanted + 1
        if pool.of[LARGE_KIND].spare >= wanted:
            return False
        pool.coming, pool.ready = allocate(pool, LARGE_KIND, 0), PAGE
        if pool.coming != NULL:
            pool.held += bytes_of(pool, LARGE_KIND)
        return pool.coming != NULL  # without memory: whoever comes to need it says so
    end = min(pool.ready + AT_ONCE * PAGE, size)
    while pool.ready < end:
        (<LargeChunk*> pool.coming).data[pool.ready // <int64_t> sizeof(Slot)].i = 0
        pool.ready += PAGE
    if end == size:
        pool.coming.next, pool.of[LARGE_KIND].free = pool.of[LARGE_KIND].free, pool.coming
        pool.of[LARGE_KIND].spare += 1
        pool.coming = NULL
    return True


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
    pool.surplus = pool.surplus or kind >= least_of_surplus(pool) and has_too_many(pool, kind)


cdef inline int least_of_surplus(const Pool* pool) noexcept nogil:
    """Shorter ones go back otherwise: to the shelf after a batch, where there are no large ones."""
    return LARGE_KIND if pool.batch and not pool.of[LARGE_KIND].used else 0


cdef bint has_surplus(const Pool* pool) noexcept nogil:
    cdef int kind
    for kind in range(least_of_surplus(pool), KINDS):
        if has_too_many(pool, kind):
            return True
    return False


cdef inline bint has_too_many(const Pool* pool, int kind) noexcept nogil:
    """More than an eighth of what is in use, or a sixteenth of what is from the heap, and what takes turns.

    Half of what is in use where that is many wide partials: their number comes and goes, and clearing their pages anew takes longer than all else.
    """
    if kind == LARGE_KIND:
        return pool.of[kind].spare > (pool.of[kind].used >> (1 if pool.wide and pool.of[kind].used > GREAT else 3)) + SPARE_LARGE
    if pool.of[LARGE_KIND].used:
        return pool.of[kind].spare > (pool.of[kind].used >> 3) + SPARE_OF_GREAT
    return pool.of[kind].spare > (pool.of[kind].used >> 4) + max(SPARE >> shift_of(pool, kind), pool.kept)


cdef void clear(Pool* pool, Queue* queue) noexcept nogil:
    drop(pool, queue, queue.end << queue.shift)


cdef void give_back(Pool* pool) noexcept nogil:
    cdef int kind = LARGE_KIND, least = least_of_surplus(pool)
    while kind > least and not has_too_many(pool, kind):
        kind -= 1
    if has_too_many(pool, kind):
        forget(pool, kind)
    pool.surplus = has_surplus(pool)


cdef void forget(Pool* pool, int kind) noexcept nogil:
    cdef Chunk* chunk = pool.of[kind].free
    pool.of[kind].free = chunk.next
    pool.of[kind].spare -= 1
    pool.held -= bytes_of(pool, kind)
    if kind == LARGE_KIND:
        munmap((<LargeChunk*> chunk).data, slots_of(pool, kind) * sizeof(Slot))
    free(chunk)


cdef void release(Pool* pool) noexcept nogil:
    cdef int kind
    end_region(pool)
    if pool.coming != NULL:
        pool.coming.next, pool.of[LARGE_KIND].free = pool.of[LARGE_KIND].free, pool.coming
        pool.coming = NULL
    for kind in range(KINDS):
        while pool.of[kind].free != NULL:
            forget(pool, kind)


cdef int64_t held(const Pool* pool) noexcept nogil:
    return pool.held
