# One reading through an engine for each operator: what `Engine.slide_by` and `slide_slowly_by` are set to. To be included with
# operators.pxi, after the engine's own `slide_by` and `slowly_by`: the same with an operator.

cdef void set_slides(Engine self, int kernel) noexcept:
    if kernel == ADD:
        self.slide_by, self.slide_slowly_by = slide_add, <SlideOn> slowly_add
    elif kernel == GREATEST:
        self.slide_by, self.slide_slowly_by = slide_greatest, <SlideOn> slowly_greatest
    elif kernel == LEAST:
        self.slide_by, self.slide_slowly_by = slide_least, <SlideOn> slowly_least
    elif kernel == MERGE:
        self.slide_by, self.slide_slowly_by = slide_merge, <SlideOn> slowly_merge
    else:
        self.slide_by, self.slide_slowly_by = slide_any, <SlideOn> slowly_any


cdef int slide_any(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, any_op, leaf, head, out)


cdef int slide_add(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, add_op, leaf, head, out)


cdef int slide_least(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, least_op, leaf, head, out)


cdef int slide_greatest(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, greatest_op, leaf, head, out)


cdef int slide_merge(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, merge_op, leaf, head, out)


cdef int slowly_any(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slowly_by(self, any_op, leaf, head, out)


cdef int slowly_add(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slowly_by(self, add_op, leaf, head, out)


cdef int slowly_least(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slowly_by(self, least_op, leaf, head, out)


cdef int slowly_greatest(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slowly_by(self, greatest_op, leaf, head, out)


cdef int slowly_merge(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slowly_by(self, merge_op, leaf, head, out)
