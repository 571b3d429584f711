"""The directory of partitions: keys to slots by a hash table, the order of updates as a list, ranks as a heap."""

from cpython.long cimport PyLong_AsLongLong
from cpython.object cimport PyObject_Hash
from cpython.unicode cimport PyUnicode_CheckExact, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from sluicegate.errors import InvariantError

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    NONE = 0xFFFFFFFF
    OF_MALLOC = 16  # what an allocation costs beside its bytes


cdef class Directory:
    """Slots by key. Keys are integers of 64 bits or texts; a text is kept once, as UTF-8."""

    def __cinit__(self, *args, **named):
        self.free = self.first = self.newest_slot = NONE
        self.mask = 63
        self.table = <uint32_t*> calloc(self.mask + 1, sizeof(uint32_t))
        if self.table == NULL:
            raise MemoryError("keyed windows: no memory for the table of keys")

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.made):
            free(slot_at(self, i).text)
            free(slot_at(self, i).rows)
        for i in range((self.made + PAGE - 1) >> PAGE_BITS):
            free(self.pages[i])
        free(self.pages)
        free(self.table)
        free(self.heap)

    cdef uint32_t find_number(self, int64_t key) noexcept:
        """The slot of an integer, NONE where there is no such partition."""
        cdef uint32_t at = hash_number(key) & self.mask, found
        cdef Slot* slot
        while True:
            found = self.table[at]
            if not found:
                return NONE
            slot = slot_at(self, found - 1)
            if slot.key == key and slot.text == NULL:
                return found - 1
            at = (at + 1) & self.mask

    cdef uint32_t find_text(self, const char* text, uint32_t length, uint32_t hashed) noexcept:
        """The slot of a text, NONE where there is no such partition."""
        cdef uint32_t at = hashed & self.mask, found
        cdef Slot* slot
        while True:
            found = self.table[at]
            if not found:
                return NONE
            slot = slot_at(self, found - 1)
            if slot.hash == hashed and slot.text != NULL and slot.length == length \
                    and memcmp(slot.text, text, length) == 0:
                return found - 1
            at = (at + 1) & self.mask

    cdef uint32_t find(self, object key) except? 0xFFFFFFFE:
        """The slot of a key that was checked: an int of 64 bits or a str."""
        cdef Py_ssize_t size
        cdef const char* text
        if PyUnicode_CheckExact(key):
            text = PyUnicode_AsUTF8AndSize(key, &size)
            return self.find_text(text, <uint32_t> size, <uint32_t> PyObject_Hash(key))
        return self.find_number(PyLong_AsLongLong(key))

    cdef uint32_t add(self, object key) except? 0xFFFFFFFE:
        """A new slot, the most recently updated; there is none of this key."""
        cdef uint32_t i, at
        cdef Py_ssize_t size
        cdef const char* text
        cdef Slot* slot
        cdef char* copy = NULL
        if (self.live + 1) * 4 > (<int64_t> self.mask + 1) * 3:
            self._grow_table()
        if PyUnicode_CheckExact(key):
            text = PyUnicode_AsUTF8AndSize(key, &size)
            copy = <char*> malloc(size + 1)
            if copy == NULL:
                raise MemoryError("keyed windows: no memory for a key")
            memcpy(copy, text, size)
        try:
            i = self._free_slot()
        except MemoryError:
            free(copy)
            raise
        slot = slot_at(self, i)
        memset(slot, 0, sizeof(Slot))
        if copy == NULL:
            slot.key = PyLong_AsLongLong(key)
            slot.hash = hash_number(slot.key)
        else:
            slot.text, slot.length, slot.hash = copy, <uint32_t> size, <uint32_t> PyObject_Hash(key)
            self.owned += size + 1 + OF_MALLOC
        slot.flags = FLAG_USED
        slot.number = self.next_number
        self.next_number += 1
        at = slot.hash & self.mask
        while self.table[at]:
            at = (at + 1) & self.mask
        self.table[at] = i + 1
        self.live += 1
        self._append(i)
        if self.by != LRU:
            self._rank(i)
        return i

    cdef uint32_t _free_slot(self) except? 0xFFFFFFFE:
        """One that was let go, or a new one; the page for it first."""
        cdef uint32_t i
        cdef Slot** pages
        if self.free != NONE:
            i = self.free
            self.free = slot_at(self, i).after
            return i
        if self.made & (PAGE - 1) == 0:
            if self.made >> PAGE_BITS == self.page_room:
                pages = <Slot**> realloc(self.pages, (self.page_room * 2 + 16) * sizeof(Slot*))
                if pages == NULL:
                    raise MemoryError("keyed windows: no memory for partitions")
                self.pages, self.page_room = pages, self.page_room * 2 + 16
            self.pages[self.made >> PAGE_BITS] = <Slot*> calloc(PAGE, sizeof(Slot))
            if self.pages[self.made >> PAGE_BITS] == NULL:
                raise MemoryError("keyed windows: no memory for partitions")
        self.made += 1
        return self.made - 1

    cdef int remove(self, uint32_t i) except -1:
        """Let a slot go: its rows, its text, its place in the table and the list."""
        cdef Slot* slot = slot_at(self, i)
        cdef uint32_t at = slot.hash & self.mask, then, home
        while self.table[at] != i + 1:
            at = (at + 1) & self.mask
        then = at
        while True:  # what was displaced by it moves back (Knuth 6.4, algorithm R)
            then = (then + 1) & self.mask
            if not self.table[then]:
                break
            home = slot_at(self, self.table[then] - 1).hash & self.mask
            if (then - home) & self.mask >= (then - at) & self.mask:
                self.table[at] = self.table[then]
                at = then
        self.table[at] = 0
        self._unlink(i)
        if slot.text != NULL:
            self.owned -= slot.length + 1 + OF_MALLOC
            free(slot.text)
        free(slot.rows)  # whose bytes the caller has taken off
        memset(slot, 0, sizeof(Slot))
        slot.after = self.free
        self.free = i
        self.live -= 1
        return 0

    cdef void touch(self, uint32_t i) noexcept:
        """It is the most recently updated."""
        if self.newest_slot != i:
            self._unlink(i)
            self._append(i)

    cdef void _append(self, uint32_t i) noexcept:
        cdef Slot* slot = slot_at(self, i)
        slot.before, slot.after = self.newest_slot, NONE
        if self.newest_slot == NONE:
            self.first = i
        else:
            slot_at(self, self.newest_slot).after = i
        self.newest_slot = i

    cdef void _unlink(self, uint32_t i) noexcept:
        cdef Slot* slot = slot_at(self, i)
        if slot.before == NONE:
            self.first = slot.after
        else:
            slot_at(self, slot.before).after = slot.after
        if slot.after == NONE:
            self.newest_slot = slot.before
        else:
            slot_at(self, slot.after).before = slot.before

    cdef int _grow_table(self) except -1:
        cdef uint32_t mask = self.mask * 2 + 1, i, at
        cdef uint32_t* table = <uint32_t*> calloc(<size_t> mask + 1, sizeof(uint32_t))
        if table == NULL:
            raise MemoryError("keyed windows: no memory for the table of keys")
        for i in range(self.made):
            if slot_at(self, i).flags & FLAG_USED:
                at = slot_at(self, i).hash & mask
                while table[at]:
                    at = (at + 1) & mask
                table[at] = i + 1
        free(self.table)
        self.table, self.mask = table, mask
        return 0

    cdef uint32_t least(self) except? 0xFFFFFFFE:
        """The slot that leaves next; there is one. Ranks that are too low are corrected when they come up."""
        cdef Slot* slot
        if self.by == LRU:
            return self.first
        while True:
            slot = slot_at(self, self.heap[0].slot)
            if not slot.flags & FLAG_USED or slot.number != self.heap[0].number:
                self._drop_top()
            elif self.by == LFU and slot.updates != self.heap[0].updates:
                self.heap[0].updates = slot.updates
                self._sift_down(0)
            else:
                return self.heap[0].slot

    cdef int _rank(self, uint32_t i) except -1:
        """A rank for a new slot; those of slots that have left go when they are more than half."""
        cdef size_t at, above, kept = 0
        cdef Rank* heap
        cdef Rank rank
        if self.heap_size > 2 * <size_t> self.live + 64:
            for at in range(self.heap_size):
                rank = self.heap[at]
                if slot_at(self, rank.slot).flags & FLAG_USED and slot_at(self, rank.slot).number == rank.number:
                    self.heap[kept] = rank
                    kept += 1
            self.heap_size = kept
            for at in range(kept // 2, 0, -1):
                self._sift_down(at - 1)
        if self.heap_size == self.heap_room:
            heap = <Rank*> realloc(self.heap, (self.heap_room + self.heap_room // 2 + 64) * sizeof(Rank))
            if heap == NULL:
                raise MemoryError("keyed windows: no memory for ranks")
            self.heap, self.heap_room = heap, self.heap_room + self.heap_room // 2 + 64
        at = self.heap_size
        self.heap_size += 1
        rank.updates = slot_at(self, i).updates if self.by == LFU else 0
        rank.number, rank.slot = slot_at(self, i).number, i
        while at:
            above = (at - 1) // 2
            if not sooner(&rank, &self.heap[above]):
                break
            self.heap[at] = self.heap[above]
            at = above
        self.heap[at] = rank
        return 0

    cdef void _sift_down(self, size_t at) noexcept:
        cdef Rank rank = self.heap[at]
        cdef size_t below
        while True:
            below = 2 * at + 1
            if below >= self.heap_size:
                break
            if below + 1 < self.heap_size and sooner(&self.heap[below + 1], &self.heap[below]):
                below += 1
            if not sooner(&self.heap[below], &rank):
                break
            self.heap[at] = self.heap[below]
            at = below
        self.heap[at] = rank

    cdef void _drop_top(self) noexcept:
        self.heap_size -= 1
        self.heap[0] = self.heap[self.heap_size]
        self._sift_down(0)

    cdef object key_of(self, Slot* slot):
        """The key as Python has it."""
        return slot.key if slot.text == NULL else PyUnicode_DecodeUTF8(slot.text, slot.length, NULL)

    cdef size_t taken(self) noexcept:
        """Bytes in use: pages, table, ranks, texts and rows."""
        cdef size_t pages = (self.made + PAGE - 1) >> PAGE_BITS
        return (
            pages * (PAGE * sizeof(Slot) + OF_MALLOC) + self.page_room * sizeof(Slot*)
            + (<size_t> self.mask + 1) * sizeof(uint32_t) + self.heap_room * sizeof(Rank) + self.owned
        )

    cdef int check(self) except -1:
        """Raise InvariantError where table, list and ranks do not agree about the slots."""
        cdef uint32_t i = self.first, before = NONE
        cdef int64_t seen = 0
        cdef size_t at
        while i != NONE and seen <= self.live:
            seen += 1
            if slot_at(self, i).before != before or not slot_at(self, i).flags & FLAG_USED:
                raise InvariantError(f"keyed windows: partition {i} is not where the list has it")
            if self.find(self.key_of(slot_at(self, i))) != i:
                raise InvariantError(f"keyed windows: key {self.key_of(slot_at(self, i))!r} is not found")
            before, i = i, slot_at(self, i).after
        if seen != self.live or self.newest_slot != before:
            raise InvariantError(f"keyed windows: {seen} partitions in the list, {self.live} are there")
        for at in range(1, self.heap_size):
            if sooner(&self.heap[at], &self.heap[(at - 1) // 2]):
                raise InvariantError(f"keyed windows: rank {at} is before the one above it")
        return 0


cdef inline bint sooner(const Rank* a, const Rank* b) noexcept nogil:
    return a.updates < b.updates or (a.updates == b.updates and a.number < b.number)
