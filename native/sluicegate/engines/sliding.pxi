"""A reading by the operator that the partial has, known while compiling. Part of amta.pyx, daba.pyx and two_stacks.pyx.

`Sliding` is the engine of each, with its `kernel`, and `slide_by` takes the reading: push, pop_to and total at once.
"""

# tags of kernels.pxd: never read, they choose a function
cdef Any any_op
cdef Add add_op
cdef Least least_op
cdef Greatest greatest_op
cdef Merge merge_op


cdef inline int slide_by_kernel(Sliding self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    if self.kernel == ADD:
        return slide_by(self, add_op, leaf, head, out)
    if self.kernel == GREATEST:
        return slide_by(self, greatest_op, leaf, head, out)
    if self.kernel == LEAST:
        return slide_by(self, least_op, leaf, head, out)
    if self.kernel == MERGE:
        return slide_by(self, merge_op, leaf, head, out)
    return slide_by(self, any_op, leaf, head, out)
