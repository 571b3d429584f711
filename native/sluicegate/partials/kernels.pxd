"""Operators known at compile time: a loop written once over `Op` becomes a loop of its own for each of them.

    cdef int run_by(X self, Op op, const Block* block) except -1 nogil:   # `op` is a tag, never read
        cdef int w = width_of(op, self.p)                                 # a constant but for Any
        combine_by(op, self.p, out, a, b)                                 # as program.combine, to the bit

    if kernel == ADD: return run_by[Add](self, add, block) …              # `kernel_of(p)` tells which, once, in `setup`

`Any` is the Program itself, whatever it holds: the loop is right for every partial. Nothing here allocates.
"""

from sluicegate.partials.program cimport LOG_SUM, MAX, MIN, MOMENTS, SUM, Program, Slot, Step, combine, copy

cdef enum:  # what `kernel_of` gives
    ANY = 0
    ADD = 1
    LEAST = 2
    GREATEST = 3
    MERGE = 4

ctypedef struct Any:  # a Program of any components
    int tag

ctypedef struct Add:  # one sum, of values or of their logarithms (geometric mean)
    int tag

ctypedef struct Least:  # one minimum
    int tag

ctypedef struct Greatest:  # one maximum
    int tag

ctypedef struct Merge:  # count, mean and squared deviations (variance, standard deviation)
    int tag

ctypedef fused Op:
    Any
    Add
    Least
    Greatest
    Merge


cdef inline int kernel_of_step(const Step* step) noexcept nogil:
    """The operator of one component, ANY where there is no special one."""
    if step.op == SUM or step.op == LOG_SUM:
        return ADD
    if step.op == MIN:
        return LEAST
    if step.op == MAX:
        return GREATEST
    return MERGE if step.op == MOMENTS else ANY


cdef inline int kernel_of(const Program* p) noexcept nogil:
    """The operator that a partial of this program has, ANY where there is no special one."""
    return kernel_of_step(p.step) if p.steps == 1 else ANY


cdef inline bint each_has_kernel(const Program* p) noexcept nogil:
    """Whether every component has a special operator."""
    cdef int k
    for k in range(p.steps):
        if kernel_of_step(&p.step[k]) == ANY:
            return False
    return True


cdef inline int width_of(Op op, const Program* p) noexcept nogil:
    if Op is Any:
        return p.width
    elif Op is Merge:
        return 3
    else:
        return 1


cdef inline void copy_by(Op op, const Program* p, Slot* out, const Slot* a) noexcept nogil:
    if Op is Any:
        copy(p, out, a)
    elif Op is Merge:
        out[0].f, out[1].f, out[2].f = a[0].f, a[1].f, a[2].f
    else:
        out[0] = a[0]


cdef inline void combine_by(Op op, const Program* p, Slot* out, const Slot* a, const Slot* b) noexcept nogil:
    """out = a then b; `out` may be a or b."""
    if Op is Add:
        out.f = a.f + b.f
    elif Op is Least:
        out.f = b.f if b.f < a.f else a.f
    elif Op is Greatest:
        out.f = b.f if b.f > a.f else a.f
    elif Op is Merge:
        merge_moments(out, a, b)
    else:
        combine(p, out, a, b)


cdef inline void merge_moments(Slot* out, const Slot* a, const Slot* b) noexcept nogil:
    """Chan, Golub & LeVeque's merge, as sluicegate.histograms._statistics.c_merge for two that are not empty."""
    cdef double n = a[0].f + b[0].f, delta = b[1].f - a[1].f, share = b[0].f / n
    cdef double mean = a[1].f + delta * share
    cdef double m2 = a[2].f + b[2].f + delta * delta * a[0].f * share
    out[0].f, out[1].f, out[2].f = n, mean, m2
