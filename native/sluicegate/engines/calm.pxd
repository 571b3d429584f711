"""One reading through AMTA while it is calm: the leftmost tree stays, so R0 of the next heads is known beforehand.

The leaf is put in its place and its parents are left for later; R1 takes it in; R0 is looked up. These are the
combinations that single calls make, operand for operand, at another time (`Amta.foresee`, `Amta.catch_up`).
"""

from libc.stdint cimport int64_t, uint64_t

from sluicegate.engines.amta cimport Amta
from sluicegate.partials.kernels cimport Any, Op, combine_by, copy_by, put_by, width_of
from sluicegate.partials.program cimport Slot

cdef enum:
    WIDEST_AHEAD = 32  # slots of a partial: wider ones are better combined when they are needed
    AHEAD = 64  # readings: what their parents and their R0 cost at once stays far below a microsecond


cdef inline bint is_calm(Amta self, int64_t head) noexcept nogil:
    """Whether a leaf can be taken, and the head moved to `head`, by what stands here."""
    return self.tail < self.calm_tail and head < self.calm_head and <uint64_t> (head - self.head) <= <uint64_t> self.calm_jump


cdef inline int slide_calmly(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    cdef int w = width_of(op, self.p)
    put_by(op, self.p, self.next_leaf, leaf)
    self.next_leaf += w
    self.tail += 1
    if Op is Any:
        self.right, self.base_of_right = self.base_of_right, self.right
        combine_by(op, self.p, self.right, self.base_of_right, leaf)
        if head > self.head:
            self.head = head
            copy_by(op, self.p, self.left, self.calm_lefts + (head - self.lefts_from) * w)
        if out != NULL:
            combine_by(op, self.p, out, self.left, self.right)
    else:
        slide_in_registers(self, op, w, leaf, head, out)
    return 1


cdef inline void slide_in_registers(Amta self, Op op, int w, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    """R1 with the leaf, whose base is what it was; R0 for the head; the total: none waits for what was just stored."""
    cdef Slot base[3]
    cdef Slot right[3]
    cdef Slot left[3]
    copy_by(op, self.p, base, self.right)
    combine_by(op, self.p, right, base, leaf)
    copy_by(op, self.p, left, self.calm_lefts + (head - self.lefts_from) * w)
    self.head = head
    copy_by(op, self.p, self.base_of_right, base)
    copy_by(op, self.p, self.right, right)
    copy_by(op, self.p, self.left, left)
    if out != NULL:
        combine_by(op, self.p, out, left, right)
