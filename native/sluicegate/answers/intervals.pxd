"""Certain intervals of a window of buckets. By definition: tests/native/bounds/intervals_twin.py."""

from sluicegate.answers.results cimport Output, View
from sluicegate.partials.program cimport Slot

ctypedef struct Interval:
    Slot low  # of the kind of the answer: a count is an integer. NaN: there is no result
    Slot high
    bint exact  # nothing but rounding is uncertain


cdef Interval interval(const Output* o, const View* v, Slot value, double center) noexcept nogil
cdef Slot clamp(const Output* o, Slot value, const Interval* within) noexcept nogil
