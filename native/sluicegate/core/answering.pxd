"""What a window of buckets answers, with certain intervals: now, and of a part of it."""

from libc.math cimport NAN, isnan
from libc.stdint cimport int64_t

from sluicegate.answers.results cimport K_DISTINCT, K_SUM, Output, View, is_whole, may_lack
from sluicegate.core.state cimport State
from sluicegate.partials.program cimport Slot


cdef inline double of_nothing(int kind) noexcept nogil:
    """An empty window's answer in a column."""
    return 0.0 if kind <= K_SUM or kind == K_DISTINCT else NAN


cdef inline double in_column(int kind, Slot answer) noexcept nogil:
    """An answer in a column."""
    return <double> answer.i if is_whole(kind) else answer.f


cdef inline object number_of(const Output* o, Slot answer):
    """An answer as Python has it."""
    if is_whole(o.kind):
        return answer.i
    return None if may_lack(o.kind) and isnan(answer.f) else answer.f


cdef object seen(State s, const View* v)
cdef list bounded(State s)
cdef list answers_over(State s, bytes oldest, bytes newer, int policy, int64_t cutoff, int64_t evicted, bint bounds)
cdef bint view(State s, View* v) noexcept nogil  # False: the window is empty
cdef void answer_now(State s, double** out, int64_t row, bint bounds) noexcept nogil
