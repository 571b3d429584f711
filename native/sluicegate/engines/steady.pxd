"""A long batch through a window of some size while one reading leaves for each that comes, straight from where the caller has it.

Partials are single numbers; operands and order are those of single calls. `steady.h` has the loops.
"""

from libc.stdint cimport int64_t, uint64_t

from sluicegate.partials.kernels cimport Add, Greatest, Least, Op

cdef extern from "steady.h" nogil:
    ctypedef struct Steady "sluicegate_steady":
        const double* leaves
        double* room
        int64_t head
        int64_t tail
        int top
        double left
        double right
        double base

    int64_t room_of_top "sluicegate_steady_room"(int top)
    void steady_add "sluicegate_steady_add"(Steady* to, int64_t n, double* totals)
    void steady_least "sluicegate_steady_least"(Steady* to, int64_t n, double* totals)
    void steady_greatest "sluicegate_steady_greatest"(Steady* to, int64_t n, double* totals)

cdef extern from *:
    int empty_above "__builtin_clzll"(uint64_t number) nogil  # leading zeros of what is not 0

cdef enum:
    LEAST_STEADILY = 31  # readings of the window at least: of fewer the leftmost tree changes too often
    MOST_STEADILY = 16384  # and at most: what is kept beside them is 200 KB then


cdef inline int top_of(int64_t held) noexcept nogil:
    """The level of little.h's T."""
    return 62 - empty_above(<uint64_t> held + 1)


cdef inline int64_t room_of_steady(int64_t held) noexcept nogil:
    """In numbers."""
    return room_of_top(top_of(held))


cdef inline void begin_steady(Steady* s, const double* leaves, double* room, int64_t head, int64_t tail) noexcept nogil:
    """Before leaf `tail`, which is the first of `leaves`; those of the window lie before it."""
    s.leaves, s.room, s.head, s.tail, s.top = leaves - tail, room, head, tail, top_of(tail - head)


cdef inline void steady_by(Op op, Steady* s, int64_t n, double* totals) noexcept nogil:
    """n readings; a total after each to `totals`, NULL: not asked for."""
    if Op is Add:
        steady_add(s, n, totals)
    elif Op is Least:
        steady_least(s, n, totals)
    elif Op is Greatest:
        steady_greatest(s, n, totals)
