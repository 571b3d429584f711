"""A block's partials from its readings, and its answers from its totals, row by row. Part of batching.pyx."""

cdef void lift_alone(const Program* p, Slot* leaves, const double* x, int64_t n, double center) noexcept nogil:
    """Readings of a partial that is one set of moments or one sum of logarithms, as `lift`."""
    cdef int64_t i, step = p.dimensions
    if p.step.op == LOG_SUM:
        for i in range(n):
            leaves[i].f = log(x[i * step])
        return
    for i in range(n):
        leaves[3 * i].f, leaves[3 * i + 1].f, leaves[3 * i + 2].f = 1.0, x[i * step] - center, 0.0


cdef void lower_rows(const Output* o, const Block* block, double* out, int64_t first, int w) noexcept nogil:
    """One aggregate's answers after each reading, the first of which gave the window the end `first`."""
    cdef const Slot* totals = block.totals + o.slot
    cdef int64_t i
    if is_slot(o.kind):
        if <double*> block.totals != out:
            for i in range(block.n):
                out[i] = totals[i * w].f
    elif o.kind == K_COUNT:
        for i in range(block.n):
            out[i] = <double> (first + i - block.heads[i])
    elif o.kind == K_MEAN:
        for i in range(block.n):
            out[i] = totals[i * w].f / (first + i - block.heads[i])
    elif o.kind == K_VARIANCE or o.kind == K_STD:
        for i in range(block.n):
            out[i] = spread(o, <const Moments*> (totals + i * w))
    else:
        for i in range(block.n):
            out[i] = in_column(o.kind, exact_answer(o, block.totals + i * w, first + i - block.heads[i]))
