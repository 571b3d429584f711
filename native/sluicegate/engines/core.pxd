"""One window's evolution in compiled code: construction, answers to Python and storage; see state.pxd for its parts."""

from sluicegate.engines.program cimport Slot
from sluicegate.engines.taking cimport Taking


cdef class Core(Taking):
    cdef list as_values(self, const Slot* out)
    cdef bytes histograms_state(self)
