"""What is the process's between two batches: rooms lent for one, and free chunks of the heap, on a shelf. Part of
chunks.pyx."""

cdef enum:
    MOST_SHELVED = 96  # chunks of one size on the shelf
    SIZES = 257  # in slots: longer ones do not lie there


cdef extern from *:
    """
    #include <stdint.h>
    /* What lies there belongs to whoever takes it: an exchange of pointers, and nobody waits. */
    static void *sg_shelf[257], *sg_rooms[8];
    static inline void *sg_swap(void **place, void *put) { return __atomic_exchange_n(place, put, __ATOMIC_ACQ_REL); }
    #define sg_swap_chunks(size, list) sg_swap(&sg_shelf[size], (list))
    #define sg_swap_room(room, data) sg_swap(&sg_rooms[room], (data))
    """
    void* swap_chunks "sg_swap_chunks"(int64_t size, void* list) noexcept nogil
    void* swap_room "sg_swap_room"(int room, void* data) noexcept nogil


cdef void* lend(int room, size_t size) noexcept nogil:
    cdef size_t* found = <size_t*> swap_room(room, NULL)
    if found != NULL and found[0] >= size:
        return found + 2
    free(found)
    found = <size_t*> calloc(1, size + 2 * sizeof(size_t))
    if found == NULL:
        return NULL
    found[0] = size
    return found + 2


cdef void put_back(int room, void* data) noexcept nogil:
    if data != NULL:
        free(swap_room(room, <size_t*> data - 2))


cdef void take_from_shelf(Pool* pool, int kind) noexcept nogil:
    """All that lies there, to one free chunk or none."""
    cdef Chunk* list
    cdef int64_t n
    if kind == LARGE_KIND or slots_of(pool, kind) >= SIZES:
        return
    list = <Chunk*> swap_chunks(slots_of(pool, kind), NULL)
    if list == NULL:
        return
    n = data_of(kind, list).i
    if pool.of[kind].free != NULL:
        pool.of[kind].free.next = list
    else:
        pool.of[kind].free = list
    pool.of[kind].spare += <int> n
    pool.held += n * bytes_of(pool, kind)


cdef void begin_batch(Pool* pool) noexcept nogil:
    pool.batch = True


cdef void end_batch(Pool* pool) noexcept nogil:
    cdef int kind
    # of a great one they are no part to speak of
    for kind in range(0 if pool.of[LARGE_KIND].used else pool.shift - pool.least + 1):
        while slots_of(pool, kind) >= SIZES and has_too_many(pool, kind):
            forget(pool, kind)
        if 0 < pool.of[kind].spare <= MOST_SHELVED and slots_of(pool, kind) < SIZES:
            put_on_shelf(pool, kind)
    pool.batch = False
    pool.surplus = has_surplus(pool)


cdef void put_on_shelf(Pool* pool, int kind) noexcept nogil:
    """All free ones; what lay there goes back to the heap."""
    cdef Chunk* list = pool.of[kind].free
    cdef Chunk* chunk
    data_of(kind, list).i = pool.of[kind].spare
    pool.held -= pool.of[kind].spare * bytes_of(pool, kind)
    pool.of[kind].free, pool.of[kind].spare = NULL, 0
    list = <Chunk*> swap_chunks(slots_of(pool, kind), list)
    while list != NULL:
        chunk, list = list, list.next
        free(chunk)
