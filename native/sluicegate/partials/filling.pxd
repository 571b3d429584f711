"""What a layout is in compiled code: the program of its partials and where its answers are."""

from sluicegate.answers.results cimport Output
from sluicegate.partials.program cimport Program


cdef class Blueprint:
    cdef readonly object layout
    cdef Program p
    cdef Output* outputs  # of each aggregate


cdef Blueprint blueprint_of(layout, bint timed)  # `timed`: without the times, which the window keeps beside its engine
