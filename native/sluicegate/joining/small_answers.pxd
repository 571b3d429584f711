"""The answers of a window of small buckets after a reading, from what stands around its oldest and its newest bucket.

As `answering` gives them, without its calls: the same bits.
"""

from libc.stdint cimport int64_t

from sluicegate.core.answering cimport Answering
from sluicegate.answers.results cimport BY_COUNT, CUSTOM, K_MAX, K_MEAN, K_MIN, K_SUM, Output, Sums
from sluicegate.partials.program cimport H_COUNT, Slot, greatest, least
from sluicegate.joining.small cimport Sight, know_cut


cdef inline bint answer_irrelevant(Answering self, const Sight* s, double* out) noexcept nogil:
    """Where what a later reading reaches has left, the oldest bucket has the extreme, unless the edge has cut it off."""
    cdef const Output* o = self.outputs
    if not self.up_to or o.kind != (K_MAX if self.up_to > 0 else K_MIN) or self.extreme_slot != (o.high if self.up_to > 0 else o.low):
        return False
    if s.oldest[self.extreme_slot + 4].i <= self.edge:
        return False
    out[0] = s.oldest[self.extreme_slot].f
    return True


cdef inline bint answer_small(Answering self, Sight* s, double* out) noexcept nogil:
    """The only aggregate's, where it is a sum, a mean, or an extreme of whole buckets; False: ask `answer_now`."""
    cdef const Output* o = self.outputs
    cdef int64_t most
    if not s.whole:
        return False
    most = min(s.n, s.end - 1 - self.edge)
    if o.kind == K_SUM or o.kind == K_MEAN:
        if most == s.n and (self.policy == BY_COUNT or s.n == 1):
            out[0] = sum_of_whole(self, o, s)
        elif self.policy == BY_COUNT:
            out[0] = sum_by_count(self, o, s, most)
        else:
            out[0] = sum_by_rule(self, o, s, most)
        return True
    if self.policy == CUSTOM:
        return False
    if answer_irrelevant(self, s, out):
        return True
    if most < s.n:
        return False
    if o.kind == K_MAX:
        out[0] = greatest(s.left[o.high].f, s.newest[o.high].f if s.base == NULL else greatest(s.base[o.high].f, s.newest[o.high].f))
    elif o.kind == K_MIN:
        out[0] = least(s.left[o.low].f, s.newest[o.low].f if s.base == NULL else least(s.base[o.low].f, s.newest[o.low].f))
    else:
        return False
    return True


cdef inline double beside(const Output* o, const Sight* s) noexcept nogil:
    """base ⊕ newest; −0.0 adds nothing, not even a sign."""
    return (-0.0 if s.base == NULL else s.base[o.prefix].f) + s.newest[o.prefix].f


cdef inline int64_t count_beside(const Sight* s) noexcept nogil:
    return s.newest[H_COUNT].i + (0 if s.base == NULL else s.base[H_COUNT].i)


cdef inline double lowered(Answering self, const Output* o, double sum, double count) noexcept nogil:
    cdef double center = self.center[o.dimension]
    return center * count + sum if o.kind == K_SUM else center + sum / count


cdef inline double sum_of_whole(Answering self, const Output* o, const Sight* s) noexcept nogil:
    """As answering.lower_whole."""
    return lowered(self, o, s.left[o.prefix].f + beside(o, s), <double> (s.left[H_COUNT].i + count_beside(s)))


cdef inline double inner(const Output* o, const Sight* s) noexcept nogil:
    """All but the oldest bucket."""
    return (-0.0 if s.top == NULL else s.top[o.prefix].f) + beside(o, s)


cdef inline int64_t inner_count(const Sight* s) noexcept nogil:
    return count_beside(s) + (0 if s.top == NULL else s.top[H_COUNT].i)


cdef inline double sum_by_count(Answering self, const Output* o, Sight* s, int64_t most) noexcept nogil:
    """As answering.slide."""
    return lowered(self, o, inner(o, s) + taken_of(o, s, most, self.center[o.dimension]), <double> (inner_count(s) + most))


cdef inline double taken_of(const Output* o, Sight* s, int64_t most, double center) noexcept nogil:
    """What the cut bucket gives."""
    cdef double c = <double> most, size = <double> s.n, bottom, ceiling
    cdef const Sums* k = &s.sums
    if not s.known:
        know_sums(o, s, center)
    bottom = greatest(greatest(k.low, k.last + (c - 1.0) * k.least), k.others - (size - 1.0 - c) * k.most)
    ceiling = least(least(k.high, k.last + (c - 1.0) * k.most), k.others - (size - 1.0 - c) * k.least)
    return least(greatest(s.oldest[o.prefix].f * c / size, bottom), ceiling)


cdef inline void know_sums(const Output* o, Sight* s, double center) noexcept nogil:
    """As answers.known_sums of a bucket whose first reading is out, field by field: a returned structure would be waited for."""
    cdef const Slot* leaf = s.oldest
    cdef double total = leaf[o.prefix].f
    s.known = True
    s.sums.low, s.sums.high = total - leaf[o.prefix + 2].f, total - leaf[o.prefix + 1].f
    s.sums.least, s.sums.most = leaf[o.low].f - center, leaf[o.high].f - center
    s.sums.last, s.sums.others = leaf[o.last].f - center, total - (leaf[o.first].f - center)


cdef inline double sum_by_rule(Answering self, const Output* o, Sight* s, int64_t most) noexcept nogil:
    """As answering.stand."""
    know_cut(self, o, s, most)
    return lowered(self, o, inner(o, s) + s.sum, <double> (inner_count(s) + s.taken))
