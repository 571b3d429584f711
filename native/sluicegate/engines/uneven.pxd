"""A long batch by time through a window of some size, whatever the gaps, straight from where the caller has readings and times.

Partials are single numbers; operands and order are those of single calls. `uneven.h` has the loops.
"""

from libc.stdint cimport int64_t

from sluicegate.partials.kernels cimport Add, Greatest, Least, Op
from sluicegate.engines.steady cimport Steady, begin_steady, top_of

cdef extern from "uneven.h" nogil:
    ctypedef struct Course "sluicegate_course":
        const int64_t* times
        int64_t span
        int64_t last
        int missed
        int waits

    ctypedef struct Uneven "sluicegate_uneven":
        Steady s
        Course c

    int LEAST_UNEVEN "SLUICEGATE_LEAST_UNEVEN"
    int64_t room_of_uneven_top "sluicegate_uneven_room"(int top)
    int64_t find_heads "sluicegate_find_heads"(Course* t, int64_t head, int64_t tail, int64_t n, int64_t* heads)
    int64_t uneven_add "sluicegate_uneven_add"(Uneven* to, int64_t n, double* totals)
    int64_t uneven_least "sluicegate_uneven_least"(Uneven* to, int64_t n, double* totals)
    int64_t uneven_greatest "sluicegate_uneven_greatest"(Uneven* to, int64_t n, double* totals)

cdef enum:
    MOST_UNEVEN = 24576  # readings of the window: what is kept beside them is 215 KB then


cdef inline int top_of_uneven(int64_t held) noexcept nogil:
    """The level of steady.h's T for a window that may come to hold some more."""
    return top_of(held + (held >> 2) + 16)


cdef inline int64_t room_of_uneven(int64_t held) noexcept nogil:
    """In numbers."""
    return room_of_uneven_top(top_of_uneven(held))


cdef inline Course course_of(const int64_t* times, int64_t span, int64_t tail, int64_t n) noexcept nogil:
    """Of n readings, the first of which, with the first of `times`, is leaf `tail`."""
    cdef Course c
    c.times, c.span, c.last = times - tail, span, tail + n
    c.missed = c.waits = 0
    return c


cdef inline void begin_uneven(
    Uneven* u, const double* leaves, const int64_t* times, double* room, int64_t head, int64_t tail, int64_t n, int64_t span
) noexcept nogil:
    """Before leaf `tail`, which is the first of n `leaves`; those of the window lie before it, and so do times."""
    begin_steady(&u.s, leaves, room, head, tail)
    u.s.top = top_of_uneven(tail - head)
    u.c = course_of(times, span, tail, n)


cdef inline int64_t uneven_by(Op op, Uneven* u, int64_t n, double* totals) noexcept nogil:
    """How many of n readings have been taken; a total after each to `totals`, NULL: not asked for."""
    if Op is Add:
        return uneven_add(u, n, totals)
    elif Op is Least:
        return uneven_least(u, n, totals)
    elif Op is Greatest:
        return uneven_greatest(u, n, totals)
    else:
        return 0
