"""One window's evolution in compiled code: construction, answers to Python and storage; see state.pxd for its parts."""

from sluicegate.partials.program cimport Slot
from sluicegate.core.taking cimport Taking


cdef class Core(Taking):
    cdef list composites  # (place, aggregate, slots) of answers that are more than one number
    cdef list as_values(self, const Slot* out)
    cdef int cut_composites(self, list values) except -1
    cdef int lower_composites(self, const Slot* partial, list values) except -1
    cdef bytes histograms_state(self)
