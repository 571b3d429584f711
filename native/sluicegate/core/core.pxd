"""One window's evolution in compiled code: construction, answers to Python and storage; see state.pxd for its parts."""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.core.ingest cimport Ingesting


cdef class Core(Ingesting):
    cdef list composites  # (place, aggregate, slots) of answers that are more than one number
    cdef list as_values(self, const Slot* out)
    cdef int cut_composites(self, list values) except -1
    cdef int lower_composites(self, const Slot* partial, list values) except -1
    cdef int load_leaf(self, int64_t time, const Slot* leaf) except -1
    cdef bytes late_state(self)
    cdef int load_late(self, bytes saved) except -1
