"""Certain intervals of variances and standard deviations in compiled code: sluicegate.bounds.variance, with the same bits."""

from sluicegate.answers.results cimport Cut, Output
from sluicegate.answers.intervals cimport Interval
from sluicegate.partials.program cimport Slot


cdef Interval spread_interval(
    const Output* o, const Slot* outer, const Slot* leaf, Cut where, double center
) noexcept nogil  # `outer`: the whole window where the edge cuts nothing, else all but the leaf; NULL: nothing. NaN: no result
