"""Chunks from the heap and from the system's pages, and back once too many are free. Part of chunks.pyx."""

from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

cdef enum:
    SPARE_LARGE = 2  # free chunks that are kept whatever is in use: what the levels of a forest free and take in turns
    SPARE_OF_GREAT = 40  # of each length from the heap beside large ones: none goes back while its levels take turns
    SLOTS_OF_GREAT = 5120  # in these at most
    SPARE = 56  # partials in such of the heap, but `kept` chunks at least
    HUGE_PAGE = 2097152
    REGION = 16777216  # bytes that huge pages are asked for at a time, where as much is in use already
    GREAT = 128  # large chunks in use, from which a window of wide partials keeps more free ones


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
    else:
        chunk = allocate(pool, kind)
        if chunk == NULL:
            return NULL
        pool.held += bytes_of(pool, kind)
    pool.of[kind].used += 1
    return chunk


cdef Chunk* allocate(Pool* pool, int kind) noexcept nogil:
    """A chunk of any kind."""
    cdef bint large = kind == LARGE_KIND
    cdef size_t size = slots_of(pool, kind) * sizeof(Slot)
    cdef Chunk* chunk = <Chunk*> malloc(sizeof(LargeChunk) if large else sizeof(Chunk) + size)
    cdef void* data
    if chunk == NULL or not large:
        return chunk
    data = huge(pool, size) if pool.wide else NULL
    if data == NULL:
        data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if data == MAP_FAILED:
        free(chunk)
        return NULL
    (<LargeChunk*> chunk).data = <Slot*> data
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

    Half of what is in use where that is many wide partials: their number comes and goes, and clearing their pages anew
    takes longer than all else.
    """
    cdef int share
    cdef int64_t most
    if kind == LARGE_KIND:
        share = 1 if pool.wide and pool.of[kind].used > GREAT else 3
        return pool.of[kind].spare > (pool.of[kind].used >> share) + SPARE_LARGE
    if pool.of[LARGE_KIND].used:
        most = min(SPARE_OF_GREAT, SLOTS_OF_GREAT // slots_of(pool, kind))
        return pool.of[kind].spare > (pool.of[kind].used >> 3) + most
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
    for kind in range(KINDS):
        while pool.of[kind].free != NULL:
            forget(pool, kind)
