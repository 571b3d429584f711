"""The contract of an engine, for subclasses; no engine itself."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.math cimport fabs
from libc.stdlib cimport calloc, free

from sluicegate.partials.program cimport MOMENTS, SAMPLE, Program, Slot, combine, copy, slots_of_step

from sluicegate.errors import InvariantError

cdef double ROUNDED = 2.0 ** -50  # of what all leaves add up to, for each of them: more than additions round


cdef class Engine:
    """What every engine promises; see base.pxd."""

    def __dealloc__(self):
        free(self.spare)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        self.p = p
        self.head = self.tail = 0
        self.faulted = False
        self.slide_by = slide_any
        self.spare = <Slot*> calloc(5 * p.width, sizeof(Slot))
        if self.spare == NULL:
            raise MemoryError(f"engine: no memory for 5 partials of {p.width} slots")
        self.asked = self.spare + 2 * p.width
        return 0

    cdef int keep(self, int slots) except -1:
        return 0

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Default: as a reading after which nothing leaves."""
        self.slide_by(self, leaf, self.head, NULL)
        return 0

    cdef void join(self, const Slot* reading) noexcept nogil:
        """Default: the newest leaf lies where `leaf` says."""
        cdef Slot* newest = self.leaf(self.tail - 1)
        combine(self.p, newest, newest, reading)
        self.touched()

    cdef void touched(self) noexcept nogil:
        pass

    cdef void pop(self) noexcept nogil:
        """Default: as `pop_to`; an engine has either."""
        if self.head < self.tail:
            self.pop_to(self.head + 1)

    cdef void pop_to(self, int64_t head) noexcept nogil:
        """Default: one by one."""
        while self.head < head:
            self.pop()

    cdef int run(self, const Block* block) except -1 nogil:
        """Default: reading by reading."""
        cdef int64_t i
        cdef int w = self.p.width
        for i in range(block.n):
            self.slide_by(
                self, block.leaves + i * w, block.heads[i], block.totals + i * w if block.totals != NULL else NULL
            )
        return 0

    cdef bint rolls(self) noexcept nogil:
        return False

    cdef int64_t anew(self, const int64_t* heads, int64_t tail, int64_t n) noexcept nogil:
        return -1

    cdef int adopt(self, const Slot* leaves, int64_t head, int64_t held) except -1 nogil:
        return 0

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """Default: one by one."""
        cdef int answer
        while self.head < self.tail:
            answer = leaves(context, self.leaf(self.head))
            if answer != 1:
                return answer
            self.pop()
        return 0

    cdef void return_spare(self, int64_t chunks) noexcept nogil:
        pass

    cdef int coarsen(self) except -1 nogil:
        return 0

    cdef const Slot* total(self) noexcept nogil:
        return NULL

    cdef const Slot* rest(self) noexcept nogil:
        return NULL

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return NULL

    cdef void copy_leaves(self, Slot* out) noexcept nogil:
        pass

    cdef int64_t bytes(self) noexcept nogil:
        return 5 * self.p.width * <int64_t> sizeof(Slot)

    cdef const Slot* result(self, int side) noexcept nogil:
        return NULL

    cdef int begin(self, int64_t head) except -1:
        self.head = self.tail = head
        return 0

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        return 0

    cdef int verify(self) except -1:
        compare(self, self.head, True)
        return compare(self, self.head + 1, False)


cdef int ask(Engine self, bint started, const Slot* node, Leaves leaves, void* context) noexcept nogil:
    cdef Slot* longer = self.asked + self.p.width
    cdef int answer
    if self.faulted:
        return -1
    if started:
        combine(self.p, longer, self.asked, node)
    else:
        copy(self.p, longer, node)
    answer = leaves(context, longer)
    if answer == 1:
        copy(self.p, self.asked, longer)
    return answer


cdef int slide_any(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    cdef const Slot* total
    self.push(leaf)
    self.pop_to(head)
    total = self.total() if out != NULL else NULL
    if total != NULL:
        copy(self.p, out, total)
    return self.head < self.tail


cdef int compare(Engine self, int64_t first, bint whole) except -1:
    """The leaves from `first` on, folded oldest first, beside what the engine says of them."""
    cdef int w = self.p.width, k
    cdef bytearray room = bytearray(2 * w * sizeof(Slot))
    cdef Slot* folded = <Slot*> PyByteArray_AS_STRING(room)
    cdef double* sizes = <double*> (folded + w)
    cdef const Slot* told
    cdef int64_t index
    for index in range(first, self.tail):
        told = self.leaf(index)
        for k in range(w):
            sizes[k] += fabs(told[k].f)
        if index == first:
            copy(self.p, folded, told)
        else:
            combine(self.p, folded, folded, told)
    told = self.total() if whole else self.rest()
    if self.faulted:
        return 0
    if (told != NULL) if first >= self.tail else not is_like(self.p, told, folded, sizes, self.tail - first + 1):
        what = "total" if whole else "total without the oldest leaf"
        raise InvariantError(f"{type(self).__name__}: the {what} is not what leaves {first} … {self.tail - 1} give")
    return 0


cdef bint is_like(const Program* p, const Slot* told, const Slot* folded, const double* sizes, int64_t leaves) noexcept:
    """To the bit, or as near as sums in another order are, of so many leaves of these sizes.

    Squared deviations, sketches and what the user combines are not looked at.
    """
    cdef double near
    cdef int k, i, n, s
    for k in range(p.steps if told != NULL else 0):
        n, s, near = slots_of_step(p.step[k].op), p.step[k].slot, 0.0
        for i in range(n):
            near += leaves * ROUNDED * sizes[s + i]
        for i in range(1 if p.step[k].op == MOMENTS or p.step[k].op == SAMPLE else n):
            if told[s + i].i != folded[s + i].i and not fabs(told[s + i].f - folded[s + i].f) <= near:
                return False
    return told != NULL
