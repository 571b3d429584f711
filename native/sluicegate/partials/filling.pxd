"""Turns a layout into what the compiled window runs on: the program of its partials, its answers, its slots."""

from sluicegate.answers.results cimport Output
from sluicegate.partials.program cimport Program


cdef int fill_program(Program* p, layout) except -1  # the steps are allocated
cdef int fill_outputs(Output* outputs, const Program* p, layout) except -1
