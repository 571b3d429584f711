"""Rooms that are lent for a batch and are the process's between two. Part of chunks.pyx."""

cdef extern from *:
    """
    #include <stdint.h>
    /* What lies there belongs to whoever takes it: an exchange of pointers, and nobody waits. */
    static void *sg_rooms[8];
    static inline void *sg_swap(void **place, void *put) { return __atomic_exchange_n(place, put, __ATOMIC_ACQ_REL); }
    #define sg_swap_room(room, data) sg_swap(&sg_rooms[room], (data))
    """
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
