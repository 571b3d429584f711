"""The contract of an engine: a FIFO of leaves head … tail − 1 under absolute indices, and the partial of all of them.

No method keeps a pointer it was given. Those that may allocate raise MemoryError and then leave the engine as it was.
"""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Program, Slot

# Whether a prefix of the window leaves: 1 yes, 0 no, −1 an error was noted in the context.
ctypedef int (*Leaves)(void* context, const Slot* prefix) noexcept nogil

ctypedef struct Block:  # readings of an exact window that come one after the other, each a leaf
    int64_t n  # at least 1, at most MOST_BLOCK
    const Slot* leaves  # n partials
    const int64_t* heads  # the window's head after each: never goes back; equal to the tail then: empty
    Slot* totals  # room for n partials: the window's after each (an empty one's is not read); NULL: not asked for

cdef enum:
    MOST_BLOCK = 8192

# push, pop_to and total at once: a leaf, the head after it, and where the total goes (NULL: not asked for); 0: the
# window is empty then
ctypedef int (*Slide)(Engine, const Slot*, int64_t, Slot*) except -1 nogil


cdef class Engine:
    cdef Program* p
    cdef int64_t head
    cdef int64_t tail
    # a partial could not be had from a store: what leaf, total and rest give is not to be believed
    cdef readonly bint faulted
    cdef Slide slide_by  # one reading; a function, found without a table: `slide_any` until an engine sets its own
    cdef Slot* spare  # the results of total and rest, and what engines need besides: five partials
    cdef Slot* asked  # two partials for `ask`

    cdef int setup(self, Program* p, int64_t limit) except -1
    # after setup: `leaf` is asked for so many of a leaf's first slots, 0: never
    cdef int keep(self, int slots) except -1
    cdef int push(self, const Slot* leaf) except -1 nogil
    cdef void join(self, const Slot* reading) noexcept nogil  # folds into the newest leaf
    cdef void touched(self) noexcept nogil  # the caller has changed the newest leaf
    cdef void pop(self) noexcept nogil  # evicts the oldest leaf
    cdef void pop_to(self, int64_t head) noexcept nogil  # evicts the leaves before `head`, at most the tail
    cdef int run(self, const Block* block) except -1 nogil  # push, pop_to and total for each reading; the same bits
    # whether a batch's results may come from the readings themselves (rolling/); then: of n readings, the first of
    # which is leaf `tail`, the last but not the first after which nothing of what was before it is in any bit of the
    # state, −1: none; and these leaves in place of all
    cdef bint rolls(self) noexcept nogil
    cdef int64_t anew(self, const int64_t* heads, int64_t tail, int64_t n) noexcept nogil
    cdef int adopt(self, const Slot* leaves, int64_t head, int64_t held) except -1 nogil
    cdef void copy_leaves(self, Slot* out) noexcept nogil  # all of them, oldest first
    # evicts the longest prefix that leaves; −1 as `Leaves`
    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil
    cdef void return_spare(self, int64_t chunks) noexcept nogil  # at most so many free chunks go back to the system
    cdef int coarsen(self) except -1 nogil  # level eviction: leaf i becomes part of leaf i >> 1
    cdef const Slot* total(self) noexcept nogil  # NULL: empty; valid until the next call
    cdef const Slot* rest(self) noexcept nogil  # without the oldest leaf; NULL: nothing; valid until the next call
    cdef Slot* leaf(self, int64_t index) noexcept nogil
    cdef int64_t bytes(self) noexcept nogil
    cdef const Slot* result(self, int side) noexcept nogil  # 0: R0, 1: R1 less the newest leaf, where kept, else NULL
    cdef int begin(self, int64_t head) except -1  # empty, the next leaf's index is `head`
    # after loading leaves by push: take over R0, R1
    cdef int finish(self, const Slot* left, const Slot* right) except -1
    # raises InvariantError where `total` or `rest` is not what the leaves give; of an engine that keeps whole leaves
    cdef int verify(self) except -1


# whether the prefix that leaves so far (where `started`; it is in `asked`) and one node more leave; then that is it.
# −1: as `Leaves`, or a partial could not be had
cdef int ask(Engine self, bint started, const Slot* node, Leaves leaves, void* context) noexcept nogil
cdef int slide_any(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil  # a Slide for any engine
