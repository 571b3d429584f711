"""The contract of partitions' rows: how readings are placed, leave, are folded, and what is inside."""

from libc.stdint cimport int64_t, uint32_t

from sluicegate.keyed.directory cimport Directory, Slot

cdef enum:
    BUCKET = 6  # words of a bucket: first and last time, readings, sum, least, greatest

cdef class PartitionRows(Directory):
    cdef readonly int64_t clock, readings
    cdef bint by_time, more
    cdef int64_t length, width
    cdef int ops, stride
    cdef int[3] op
    cdef int _place(self, Slot* slot, int64_t time, double value) except -1
    cdef int _join(self, Slot* slot, int64_t time, double value) except -1
    cdef int _room(self, Slot* slot) except -1
    cdef void _disown(self, Slot* slot) noexcept
    cdef void _clear(self, Slot* slot) noexcept
    cdef bint _evict(self, Slot* slot, int64_t now) noexcept
    cdef void _evict_rows(self, Slot* slot, uint32_t rows) noexcept
    cdef int64_t _now(self, Slot* slot) noexcept
    cdef object _walked(self, Slot* slot)
    cdef object _cut(self, const double* row, int64_t cutoff, int64_t known)
    cdef void _fold(self, Slot* slot, double* found) noexcept
    cdef list _rows(self, Slot* slot)
    cdef int _load_rows(self, Slot* slot, const char* data, uint32_t rows) except -1
    cdef int check_rows(self, Slot* slot) except -1
