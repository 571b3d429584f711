"""Queues of partials in chunks of fixed size; see chunks.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

from sluicegate.engines.program cimport Slot

cdef enum:
    SMALL = 128  # slots of a small chunk, more or less
    LARGE = 6  # a large chunk is 2^LARGE small ones
    MOST_SMALL = 288  # small chunks of a queue before it moves to large ones, which then are no great part of it
    SPARE_LARGE = 2  # free chunks that are kept whatever is in use: what the levels of a forest free and take in turns
    SPARE_SMALL = 16
    MANY = 8  # large chunks in use, in eights, from which two more are kept at hand
    PAGE = 4096  # bytes: a system with larger pages is asked more often than it need be
    HUGE_PAGE = 2097152
    REGION = 16777216  # bytes that huge pages are asked for at a time, where as much is in use already
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
    memset(pool, 0, sizeof(Pool))
    pool.shift = 7
    while pool.shift > 2 and (width << pool.shift) > 2 * SMALL:
        pool.shift -= 1
    pool.chunk = (<int64_t> width) << pool.shift
    pool.large = LARGE


cdef inline bint is_large(const Pool* pool, const Queue* queue) noexcept nogil:
    return queue.shift != pool.shift


cdef int reserve(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    if queue.begin == queue.end:
        queue.shift = pool.shift
        queue.begin = queue.end = index >> queue.shift
    elif pool.large and not is_large(pool, queue) and queue.end - queue.begin >= MOST_SMALL:
        if move_to_large(pool, queue) < 0:
            return -1
    while queue.end <= index >> queue.shift:
        if append(pool, queue) < 0:
            return -1
    return 0


cdef int append(Pool* pool, Queue* queue) noexcept nogil:
    """One chunk more at the end, linked to the one before."""
    cdef Chunk* chunk
    if (queue.chunk == NULL or queue.end - queue.begin >= queue.mask) and widen(queue) < 0:  # before it is full: windows of 2^k end there
        return -1
    chunk = take(pool, is_large(pool, queue))
    if chunk == NULL:
        return -1
    if queue.end > queue.begin:
        links(queue)[(queue.end - 1) & queue.mask].next = chunk
    queue.chunk[queue.end & queue.mask] = chunk.data
    links(queue)[queue.end & queue.mask] = chunk
    queue.end += 1
    return 0


cdef int widen(Queue* queue) noexcept nogil:
    cdef Queue wider = queue[0]
    cdef int64_t k
    wider.mask = 3 if queue.chunk == NULL else 2 * queue.mask + 1
    wider.chunk = <Slot**> calloc(2 * (wider.mask + 1), sizeof(void*))
    if wider.chunk == NULL:
        return -1
    for k in range(queue.begin, queue.end):
        wider.chunk[k & wider.mask] = queue.chunk[k & queue.mask]
        links(&wider)[k & wider.mask] = links(queue)[k & queue.mask]
    free(queue.chunk)
    queue[0] = wider
    return 0


cdef int move_to_large(Pool* pool, Queue* queue) noexcept nogil:
    """Copy a queue into large chunks; the small ones join the free list."""
    cdef Queue large
    cdef int64_t k, inside = (<int64_t> 1 << pool.large) - 1
    memset(&large, 0, sizeof(Queue))
    large.shift = pool.shift + pool.large
    large.begin = large.end = queue.begin >> pool.large
    for k in range(queue.begin, queue.end):
        if large.end <= k >> pool.large and append(pool, &large) < 0:
            clear(pool, &large)
            free(large.chunk)
            return -1
        memcpy(
            large.chunk[(k >> pool.large) & large.mask] + (k & inside) * pool.chunk,
            queue.chunk[k & queue.mask], pool.chunk * sizeof(Slot),
        )
    clear(pool, queue)
    free(queue.chunk)
    queue[0] = large
    return 0


cdef Chunk* take(Pool* pool, bint large) noexcept nogil:
    cdef Chunk* chunk = pool.free[large]
    if chunk != NULL:
        pool.free[large] = chunk.next
        pool.spare[large] -= 1
    elif large and pool.coming != NULL:
        chunk, pool.coming = pool.coming, NULL
    else:
        # With all its pages only where chunks are prepared: else one reading would wait for sixteen of them.
        chunk = allocate(pool, large, MAP_POPULATE if pool.ready else 0)
        if chunk == NULL:
            return NULL
        pool.chunks += (<int64_t> 1) << (pool.large if large else 0)
    pool.used[large] += 1
    return chunk


cdef Chunk* allocate(Pool* pool, bint large, int at_once) noexcept nogil:
    """A chunk of either kind; a large one with all its pages, or only its first."""
    cdef size_t size = pool.chunk * sizeof(Slot)
    cdef Chunk* chunk = <Chunk*> malloc(sizeof(Chunk) + (0 if large else size))
    cdef void* data
    if chunk == NULL or not large:
        if chunk != NULL:
            chunk.data = <Slot*> (chunk + 1)
        return chunk
    data = huge(pool, size << pool.large) if pool.wide else NULL
    if data == NULL:
        data = mmap(NULL, size << pool.large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | at_once, -1, 0)
    if data == MAP_FAILED:
        free(chunk)
        return NULL
    chunk.data = <Slot*> data
    chunk.data.i = 0  # the first page is had now, not when the first leaf comes
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
    cdef int64_t end, size = (pool.chunk << pool.large) * sizeof(Slot), used = pool.used[True] >> 3, wanted = 3 if used > MANY else 1
    if pool.coming == NULL:
        while used:  # so many levels of a forest come to the end of a chunk at once
            used, wanted = used >> 1, wanted + 1
        if not pool.used[True] or pool.spare[True] >= wanted:
            return False
        pool.coming, pool.ready = allocate(pool, True, 0), PAGE
        if pool.coming != NULL:
            pool.chunks += (<int64_t> 1) << pool.large
        return pool.coming != NULL  # without memory: whoever comes to need it says so
    end = min(pool.ready + AT_ONCE * PAGE, size)
    while pool.ready < end:
        pool.coming.data[pool.ready // <int64_t> sizeof(Slot)].i = 0
        pool.ready += PAGE
    if end == size:
        pool.coming.next, pool.free[True] = pool.free[True], pool.coming
        pool.spare[True] += 1
        pool.coming = NULL
    return True


cdef void drop(Pool* pool, Queue* queue, int64_t index) noexcept nogil:
    cdef int64_t k = min(index >> queue.shift, queue.end), n = k - queue.begin
    cdef bint large = is_large(pool, queue)
    if n <= 0:
        return
    links(queue)[(k - 1) & queue.mask].next = pool.free[large]
    pool.free[large] = links(queue)[queue.begin & queue.mask]
    pool.spare[large] += n
    pool.used[large] -= n
    queue.begin = k
    pool.surplus = has_surplus(pool)


cdef bint has_surplus(const Pool* pool) noexcept nogil:
    return has_too_many(pool, False) or has_too_many(pool, True)


cdef inline bint has_too_many(const Pool* pool, bint large) noexcept nogil:
    """More than an eighth of what is in use."""
    return pool.spare[large] > (pool.used[large] >> 3) + (SPARE_LARGE if large else SPARE_SMALL)


cdef void clear(Pool* pool, Queue* queue) noexcept nogil:
    drop(pool, queue, queue.end << queue.shift)


cdef void give_back(Pool* pool) noexcept nogil:
    if has_too_many(pool, True):
        forget(pool, True)
    elif has_too_many(pool, False):
        forget(pool, False)
    pool.surplus = has_surplus(pool)


cdef void forget(Pool* pool, bint large) noexcept nogil:
    cdef Chunk* chunk = pool.free[large]
    pool.free[large] = chunk.next
    pool.spare[large] -= 1
    pool.chunks -= (<int64_t> 1) << (pool.large if large else 0)
    if large:
        munmap(chunk.data, (pool.chunk * sizeof(Slot)) << pool.large)
    free(chunk)


cdef void release(Pool* pool) noexcept nogil:
    cdef int large
    end_region(pool)
    if pool.coming != NULL:
        pool.coming.next, pool.free[True] = pool.free[True], pool.coming
        pool.coming = NULL
    for large in range(2):
        while pool.free[large] != NULL:
            forget(pool, large)


cdef int64_t held(const Pool* pool) noexcept nogil:
    return pool.chunks * pool.chunk * <int64_t> sizeof(Slot)
