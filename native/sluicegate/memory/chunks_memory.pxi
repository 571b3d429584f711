"""Chunks from the heap and from the system's pages, and back once too many are free. Part of chunks.pyx."""

from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

cdef extern from *:
    """
    #include <stdlib.h>
    #ifdef __GLIBC__
    #include <malloc.h>
    static void sluicegate_give_back(void) { malloc_trim(0); }
    #else
    static void sluicegate_give_back(void) {}
    #endif
    """
    void trim_heap "sluicegate_give_back"() nogil

cdef enum:
    SPARE_LARGE = 2  # free chunks that are kept whatever is in use: what the levels of a forest free and take in turns
    SPARE_OF_GREAT = 40  # of each length from the heap beside large ones: none goes back while its levels take turns
    SLOTS_OF_GREAT = 5120  # in these at most
    SPARE = 56  # partials in such of the heap


cdef Chunk* take(Pool* pool, int kind) noexcept nogil:
    cdef Chunk* chunk
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
    data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if data == MAP_FAILED:
        free(chunk)
        return NULL
    (<LargeChunk*> chunk).data = <Slot*> data
    return chunk


cdef bint has_surplus(const Pool* pool) noexcept nogil:
    cdef int kind
    for kind in range(KINDS):
        if has_too_many(pool, kind):
            return True
    return False


cdef inline bint has_too_many(const Pool* pool, int kind) noexcept nogil:
    """More than an eighth of what is in use, or a sixteenth of what is from the heap, and what takes turns."""
    cdef int64_t most
    if kind == LARGE_KIND:
        return pool.of[kind].spare > (pool.of[kind].used >> 3) + SPARE_LARGE
    if pool.of[LARGE_KIND].used:
        most = min(SPARE_OF_GREAT, SLOTS_OF_GREAT // slots_of(pool, kind))
        return pool.of[kind].spare > (pool.of[kind].used >> 3) + most
    return pool.of[kind].spare > (pool.of[kind].used >> 4) + max(pool.spare >> shift_of(pool, kind), pool.kept)


cdef void give_back(Pool* pool) noexcept nogil:
    cdef int kind = LARGE_KIND
    while kind > 0 and not has_too_many(pool, kind):
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
    for kind in range(KINDS):
        while pool.of[kind].free != NULL:
            forget(pool, kind)


def give_back_heap():
    """Give the system back the pages of the heap on which nothing is; after much has been freed, for it looks at all.

    Where the C library has no way to, nothing happens.
    """
    with nogil:
        trim_heap()
