"""Certain intervals of variances and standard deviations. By definition: tests/native/bounds/variance_twin.py."""

from sluicegate.answers.results cimport Output, View
from sluicegate.answers.sums cimport Ends


cdef Ends variance_interval(
    const Output* o, const View* v, double center, bint* exact
) noexcept nogil  # of the deviation where that is asked for; NaN: no result
