"""One window's evolution in compiled code: construction, answers to Python and storage; see state.pxd for its parts."""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.core.ingest cimport Ingesting


cdef class Core(Ingesting):
    cdef list composites  # (place, aggregate, slots) of answers that Python tells; None: there are none
