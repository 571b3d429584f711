"""Certain intervals of variances and standard deviations in compiled code: sluicegate.bounds_variance, with the same bits."""

from sluicegate.engines.answers cimport Cut, Output
from sluicegate.engines.certain cimport Interval
from sluicegate.engines.program cimport Slot


cdef Interval spread_interval(
    const Output* o, const Slot* outer, const Slot* leaf, Cut where, double center
) noexcept nogil  # `outer`: the whole window where the edge cuts nothing, else all but the leaf; NULL: nothing. NaN: no result
