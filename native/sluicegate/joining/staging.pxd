"""Readings of a window with a staging tail: what the newest hides, what leaves the tail, what is stored."""

from libc.stdint cimport int64_t

from sluicegate.core.state cimport State
from sluicegate.engines.tree.staged cimport Staged


cdef int stage(State s, Staged staged, const double* values, int64_t time) except -1 nogil
