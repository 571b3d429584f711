# `slide_by` of an engine for each operator, as `Engine.slide_by` is called. To be included where `slide_by` is declared, with operators.pxi.

cdef Slide slide_for(int kernel) noexcept:
    if kernel == ADD:
        return slide_add
    if kernel == GREATEST:
        return slide_greatest
    if kernel == LEAST:
        return slide_least
    return slide_merge if kernel == MERGE else slide_any


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
