"""Two-Stacks in compiled code: a front and a back stack, flipped when the front is empty.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
2n partials in chunks. Source: paper DABA, Figure 1. The readable twin is tests/native/twins/two_stacks.py.
"""

cimport cython
from libc.stdint cimport int64_t

from sluicegate.engines.queues.two_stacks_lite cimport TwoStacksLite
from sluicegate.partials.program cimport combine


@cython.final
cdef class TwoStacks(TwoStacksLite):
    """Two-Stacks Lite that keeps every leaf beside its partial; `keep` is called with all slots."""

    cdef int check(self) except -1:
        """The front is folded from its end, the back from its beginning."""
        cdef int64_t index
        TwoStacksLite.check(self)
        for index in range(self.head, self.split - 1 if self.head < self.tail else self.head):
            combine(self.p, self.spare, self.leaf(index), self.element(index + 1))
            self.insist(self.same(self.spare, self.element(index)), f"front aggregate {index} is not what is below it")
        return 0
