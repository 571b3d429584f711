"""Eight leaves of a level, and the seven nodes above them, at once: what a block of readings does beside its one long chain.

R1 grows by a combination a reading, each waiting for the one before; all else of a block waits for nothing and goes on meanwhile, if it
stands beside it in the code. `w` slots lie from one partial to the next. The combinations are those of single readings, operand for operand.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Block
from sluicegate.engines.chunks cimport prefetch
from sluicegate.engines.kernels cimport Op, combine_by, copy_by
from sluicegate.engines.program cimport Program, Slot

cdef enum:
    EIGHT = 8
    AHEAD = 16  # eights
    LEVELS_OF_EIGHT = 3


ctypedef struct Eights:  # where the next eight leaves and the nodes above them are
    Slot* node[4]
    int64_t left  # so many eights lie side by side on every level


cdef inline void go_on(Eights* e, int levels, int w) noexcept nogil:
    """To the next eight; those 16 later are asked for, since the processor does not look ahead beyond a page."""
    cdef int level
    for level in range(levels):
        e.node[level] += (EIGHT >> level) * w
        prefetch(e.node[level] + AHEAD * (EIGHT >> level) * w)
    e.left -= 1


cdef inline void raise_eight(Op op, const Program* p, int w, const Eights* e) noexcept nogil:
    """The nodes of three levels above eight leaves."""
    cdef const Slot* leaves = e.node[0]
    cdef Slot pair[4][3]
    cdef Slot four[2][3]
    cdef Slot eight[3]
    cdef int k
    combine_by(op, p, pair[0], leaves, leaves + w)
    combine_by(op, p, pair[1], leaves + 2 * w, leaves + 3 * w)
    combine_by(op, p, pair[2], leaves + 4 * w, leaves + 5 * w)
    combine_by(op, p, pair[3], leaves + 6 * w, leaves + 7 * w)
    combine_by(op, p, four[0], pair[0], pair[1])
    combine_by(op, p, four[1], pair[2], pair[3])
    combine_by(op, p, eight, four[0], four[1])
    for k in range(4):
        copy_by(op, p, e.node[1] + k * w, pair[k])
    for k in range(2):
        copy_by(op, p, e.node[2] + k * w, four[k])
    copy_by(op, p, e.node[3], eight)


cdef inline void lefts_of_eight(Op op, const Program* p, int w, const Eights* e, Slot* lefts) noexcept nogil:
    """R0 for the heads behind the first of eight leaves; lefts[8] is there."""
    cdef const Slot* leaves = e.node[0]
    cdef const Slot* pairs = e.node[1]
    cdef Slot out[8][3]
    cdef int k
    combine_by(op, p, out[4], e.node[2] + w, lefts + 8 * w)
    combine_by(op, p, out[6], pairs + 3 * w, lefts + 8 * w)
    combine_by(op, p, out[7], leaves + 7 * w, lefts + 8 * w)
    combine_by(op, p, out[2], pairs + w, out[4])
    combine_by(op, p, out[3], leaves + 3 * w, out[4])
    combine_by(op, p, out[5], leaves + 5 * w, out[6])
    combine_by(op, p, out[1], leaves + w, out[2])
    for k in range(1, 8):
        copy_by(op, p, lefts + k * w, out[k])


cdef inline void last_lefts_of_eight(Op op, const Program* p, int w, const Eights* e, Slot* lefts) noexcept nogil:
    """The same of a tree's last eight, which nothing follows."""
    cdef const Slot* leaves = e.node[0]
    cdef const Slot* pairs = e.node[1]
    copy_by(op, p, lefts + 7 * w, leaves + 7 * w)
    copy_by(op, p, lefts + 6 * w, pairs + 3 * w)
    copy_by(op, p, lefts + 4 * w, e.node[2] + w)
    combine_by(op, p, lefts + 5 * w, leaves + 5 * w, pairs + 3 * w)
    combine_by(op, p, lefts + 3 * w, leaves + 3 * w, e.node[2] + w)
    combine_by(op, p, lefts + 2 * w, pairs + w, e.node[2] + w)
    combine_by(op, p, lefts + w, leaves + w, lefts + 2 * w)


cdef inline void extend(
    Op op, const Program* p, int w, int s, Slot* right, const Block* block, int64_t i, const Slot* lefts, int64_t n
) noexcept nogil:
    """R1 with the n leaves from i on; the window's total after each where asked for: R0 for its head is at `lefts` + head · w."""
    cdef const Slot* leaves = block.leaves + i * w + s
    cdef Slot* totals = block.totals + i * w + s
    cdef const int64_t* heads = block.heads + i
    cdef int64_t j
    if block.totals == NULL:
        for j in range(n):
            combine_by(op, p, right, right, leaves + j * w)
    else:
        for j in range(n):
            combine_by(op, p, right, right, leaves + j * w)
            combine_by(op, p, totals + j * w, lefts + heads[j] * w, right)
