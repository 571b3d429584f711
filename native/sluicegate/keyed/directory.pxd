"""The contract of the directory of partitions: a slot for each key, in pages that never move."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    PAGE_BITS = 6
    PAGE = 64  # slots a page: growing costs 8 KiB at a time
    FLAG_USED = 1
    FLAG_CHANGED = 2  # since the last snapshot or changes
    FLAG_SAVED = 4  # a snapshot or changes hold it

cdef enum:
    LRU, LFU, OLDEST

cdef struct Slot:
    int64_t key
    char* text  # owned; NULL where the key is an integer
    int64_t newest  # greatest time of a reading that entered
    int64_t updated  # the key's now when its last reading entered
    uint64_t number  # partitions made before this one
    uint64_t updates  # readings that entered
    int64_t held  # readings in its rows
    double[3] back  # the fold of the rows from `split` on
    double* rows
    uint32_t head, tail, room, split  # rows: first, one behind the last, allocated, two stacks' border
    uint32_t before, after  # neighbours in the list from the least recently updated on; free slots by `after`
    uint32_t hash, length  # of the key; of its text
    uint32_t flags

cdef struct Rank:
    uint64_t updates  # 0 where the oldest leaves first
    uint64_t number
    uint32_t slot

cdef class Directory:
    cdef Slot** pages
    cdef uint32_t page_room, made, free, first, newest_slot
    cdef uint32_t* table  # slot + 1 by hash, linear probing; 0: empty
    cdef uint32_t mask
    cdef Rank* heap
    cdef size_t heap_size, heap_room
    cdef readonly int64_t live
    cdef int by
    cdef uint64_t next_number
    cdef size_t owned  # bytes of texts and rows, with the allocator's own
    cdef uint32_t find_number(self, int64_t key) noexcept
    cdef uint32_t find_text(self, const char* text, uint32_t length, uint32_t hashed) noexcept
    cdef uint32_t find(self, object key) except? 0xFFFFFFFE
    cdef uint32_t add(self, object key) except? 0xFFFFFFFE
    cdef int remove(self, uint32_t i) except -1
    cdef void touch(self, uint32_t i) noexcept
    cdef uint32_t least(self) except? 0xFFFFFFFE
    cdef object key_of(self, Slot* slot)
    cdef size_t taken(self) noexcept
    cdef int check(self) except -1
    cdef void _append(self, uint32_t i) noexcept
    cdef void _unlink(self, uint32_t i) noexcept
    cdef uint32_t _free_slot(self) except? 0xFFFFFFFE
    cdef int _grow_table(self) except -1
    cdef int _rank(self, uint32_t i) except -1
    cdef void _sift_down(self, size_t at) noexcept
    cdef void _drop_top(self) noexcept

cdef inline Slot* slot_at(Directory self, uint32_t i) noexcept nogil:
    return &self.pages[i >> PAGE_BITS][i & (PAGE - 1)]

cdef inline uint32_t hash_number(int64_t key) noexcept nogil:
    """Mix all bits (splitmix64), so that keys that are multiples of a power of two spread."""
    cdef uint64_t z = <uint64_t> key + <uint64_t> 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return <uint32_t> (z ^ (z >> 31))
