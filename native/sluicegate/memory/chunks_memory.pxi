"""Chunks from the heap and from the system's pages, some before they are needed, and back once too many are free. Part of chunks.pyx."""

from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

cdef enum:
    SPARE_LARGE = 2  # free chunks that are kept whatever is in use: what the levels of a forest free and take in turns
    SPARE_OF_GREAT = 40  # of each length from the heap beside large ones: none goes back while its levels take turns
    SLOTS_OF_GREAT = 5120  # in these at most
    SPARE = 56  # partials in such of the heap, but `kept` chunks at least
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
        return pool.of[kind].spare > (pool.of[kind].used >> 3) + min(SPARE_OF_GREAT, SLOTS_OF_GREAT // slots_of(pool, kind))
    return pool.of[kind].spare > (pool.of[kind].used >> 4) + max(SPARE >> shift_of(pool, kind), pool.kept)


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
