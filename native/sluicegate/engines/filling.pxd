"""Turns a layout into what the compiled window runs on: the program of its partials, its answers, its slots."""

from sluicegate.engines.answers cimport Output
from sluicegate.engines.program cimport Program
from sluicegate.engines.state cimport State


cdef int fill_program(Program* p, layout) except -1  # the steps are allocated
cdef int fill_outputs(Output* outputs, const Program* p, layout) except -1
cdef int fill_slots(State core, layout) except -1  # allocates
