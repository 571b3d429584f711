"""Paged trees: which pages are in memory, which go to the store and which come back; see pages.pxd.

Fact card: at most five pages a tier are in memory, so O(log n) partials whatever the window holds. A page goes to the
store when the next one of its tier begins; the next page at the head is asked for when half of the one before is used;
anything else is fetched when it is read. Source: paper AMTA, 4.1.5 and 5.1; a page carries the inner levels of its
tier, where the paper stores every level.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from sluicegate.partials.program cimport Program, Slot, combine, copy

from sluicegate.errors import StoreError

cdef int64_t FAR = 1LL << 61


cdef class Paged(Engine):
    """What the store-backed engines share."""

    def __dealloc__(self):
        cdef int t
        cdef Block* block
        for t in range(LEVELS):
            give(self, self.tier[t].tail)
            give(self, self.tier[t].before)
            give(self, self.tier[t].head)
            give(self, self.tier[t].browsed)
        while self.idle != NULL:
            block = self.idle
            self.idle = block.next
            free(block)
        free(self.blank)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        memset(self.tier, 0, sizeof(self.tier))
        self.idle, self.outgoing = NULL, []
        self.idle_blocks = self.blocks = self.sealed = self.leaving = self.failures = 0
        self.blank = <Slot*> calloc(2 * p.width, sizeof(Slot))  # a pair: children are read side by side
        if self.blank == NULL:
            raise MemoryError(f"paged engine: no memory for 2 partials of {p.width} slots")
        return 0

    def attach(self, pager, int shift):
        """Use this pager, with pages of 2^shift partials; once, before the first leaf."""
        cdef int level
        self.pager, self.shift, self.faulted = pager, shift, True
        self.repair()
        for level in range(LEVELS):
            self.tier_of[level] = level // shift
            self.bits[level] = shift - level % shift

    # nodes

    cdef inline Slot* node(self, int level, int64_t index) noexcept nogil:
        """A node that exists; the pages around head and tail are at hand."""
        cdef Tier* tier = &self.tier[self.tier_of[level]]
        cdef int bits = self.bits[level]
        cdef int64_t page = index >> bits, h = (1LL << bits) | (index & ((1LL << bits) - 1))
        if tier.tail != NULL and tier.tail.page == page:
            return tier.tail.heap + h * self.p.width
        if tier.head != NULL and tier.head.page == page:
            return tier.head.heap + h * self.p.width
        if tier.before != NULL and tier.before.page == page:
            return tier.before.heap + h * self.p.width
        return distant(self, level, index)

    cdef int64_t end(self, int level) noexcept nogil:
        return 0

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return self.node(0, index)

    cdef int64_t bytes(self) noexcept nogil:
        return Engine.bytes(self) + self.blocks * ((<int64_t> 2 << self.shift) * self.p.width * <int64_t> sizeof(Slot))

    # to the store

    cdef int make_room(self, int64_t index) except -1 nogil:
        """Have memory, and room in the store's queue, for all that appending this leaf begins: nothing fails after."""
        cdef int level = 0, t
        cdef int64_t pair
        if self.faulted or self.interrupted:
            finish_interrupted(self)
        self.starts = 0
        while True:
            t = self.tier_of[level]
            if self.bits[level] == self.shift and (
                self.tier[t].tail == NULL or self.tier[t].tail.page != index >> self.shift
            ):
                self.start_tier[self.starts], self.start_page[self.starts] = t, index >> self.shift
                self.starts += 1
            pair = self.parent_made_by(level, index)
            if pair < 0:
                break
            level += 1
            index = pair
        if self.starts:
            reserve(self, self.starts)
            with gil:
                copy_outgoing(self)
        return 0

    cdef int64_t parent_made_by(self, int level, int64_t index) noexcept nogil:
        return -1

    cdef int seal_pages(self) noexcept:
        """Queue the pages that were announced. What interrupts that is raised by the next insertion."""
        try:
            self.pager.seal(self.outgoing)
            self.sealed += len(self.outgoing)
            self.outgoing, self.leaving = [], 0
        except BaseException as error:
            self.interruption, self.interrupted = error, True
        return 0

    cdef bint begin_page(self, int tier, int64_t page) noexcept nogil:
        """Whether this is a new page; then it is now the newest of its tier. `make_room` has seen to the memory."""
        cdef Tier* at = &self.tier[tier]
        cdef Block* block
        if at.tail != NULL and at.tail.page == page:
            return False
        block = take(self)
        block.page = page
        if at.before != NULL and at.before.page == self.head >> (tier * self.shift) >> self.shift:
            give(self, at.head)
            at.head = at.before
        else:
            give(self, at.before)
        at.before, at.tail = at.tail, block
        return True

    cdef void fill(self, int tier, int64_t index) noexcept nogil:
        """Give the places before a page's first node a value: their nodes left before they would have been made."""
        cdef int64_t k, nodes = 1LL << self.shift, offset = index & (nodes - 1)
        cdef Slot* heap = self.tier[tier].tail.heap
        for k in range(offset):
            copy(self.p, heap + (nodes + k) * self.p.width, heap + (nodes + offset) * self.p.width)

    # at the head

    cdef int move_head(self, int64_t head) noexcept nogil:
        """Evict the leaves before `head`; −1 where the pages that are needed then cannot be had."""
        cdef int t = 0, level
        cdef int64_t before, page, half = (1LL << self.shift) >> 1
        cdef int64_t old = self.head
        self.head = head
        while t * self.shift < LEVELS and self.tier[t].tail != NULL:
            level = t * self.shift
            before, page = old >> level >> self.shift, head >> level >> self.shift
            if before != page and hold_head(self, t) < 0:
                return -1
            if (head >> level) - (page << self.shift) >= half and (
                before != page or (old >> level) - (page << self.shift) < half
            ):
                ask_ahead(self, t, page + 1)
            if old >> level == head >> level:
                return 0
            t += 1
        return 0

    # after a failure

    def heal(self):
        """Fetch what could not be had. Raises StoreError where it still cannot."""
        self.repair()

    cdef int repair(self) except -1 nogil:
        cdef int t = 0, k
        if not self.faulted:
            return 0
        self.faulted = False
        for k in range(2 * self.p.width):
            self.blank[k].i = FAR
        while t * self.shift < LEVELS and self.tier[t].tail != NULL and not self.faulted:
            hold_head(self, t)
            t += 1
        if self.lost and not self.faulted:
            self.recompute()
        if not self.faulted:
            self.lost = False
            return 0
        with gil:
            if isinstance(self.error, (StoreError, MemoryError, KeyboardInterrupt, SystemExit)):
                raise self.error
            raise StoreError(f"store: {self.error!r}; the next call tries again") from self.error

    cdef void recompute(self) noexcept nogil:
        pass

    # for the manifest and from it

    def levels(self):
        """For each stored level: the index of the first node in no whole page, and those nodes' bytes."""
        cdef int t = 0, level
        cdef int64_t begin, count
        cdef Block* tail
        found = []
        while t * self.shift < LEVELS and self.tier[t].tail != NULL:
            level, tail = t * self.shift, self.tier[t].tail
            begin = tail.page << self.shift
            count = max(self.end(level) - begin, 0)
            if count > 1LL << self.shift:  # all of them have left before they would have been made
                begin, count = self.end(level), 0
            found.append((begin, partials(self, tail, count)))
            t += 1
        return found

    def recover(self, int64_t head, int64_t tail, levels):
        """Take over what `levels` gave; the store is read when the window is loaded."""
        cdef int t
        cdef int64_t begin
        cdef bytes partials
        cdef Block* block
        for t, (begin, partials) in enumerate(levels):
            if not partials:
                continue
            reserve(self, 1)
            block = take(self)
            block.page = begin >> self.shift
            memset(block.heap, 0, (<size_t> 2 << self.shift) * self.p.width * sizeof(Slot))
            memcpy(block.heap + (<int64_t> self.p.width << self.shift), PyBytes_AS_STRING(partials), len(partials))
            self.tier[t].tail = block
        self.head, self.tail, self.recovered = head, tail, True

    cdef int begin(self, int64_t head) except -1:
        if not self.recovered or head != self.head:
            raise StoreError("store: a window that has one is opened from it, not loaded from leaves")
        return 0

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """Fetch what is needed around head and tail. Raises StoreError."""
        cdef int t = 0
        cdef int64_t page
        while t * self.shift < LEVELS and self.tier[t].tail != NULL:
            page = self.tier[t].tail.page
            build_tail(self, t)
            if self.head >> (t * self.shift) < page << self.shift:
                self.tier[t].before = fetch(self, t, page - 1)
            hold_head(self, t)
            if self.faulted:
                raise self.error
            t += 1

    cdef int verify(self) except -1:
        self.repair()
        Engine.verify(self)
        if self.faulted:
            raise self.error
        return 0


# nodes and blocks of memory

cdef Slot* distant(Paged self, int level, int64_t index) noexcept nogil:
    """A node of any other page: fetched at once; `blank` where the store fails, and the engine is faulted."""
    cdef int t = self.tier_of[level], bits = self.bits[level]
    cdef int64_t page = index >> bits
    cdef Tier* tier = &self.tier[t]
    if tier.browsed == NULL or tier.browsed.page != page:
        if self.faulted:
            return self.blank
        give(self, tier.browsed)
        tier.browsed = fetch(self, t, page)
        if tier.browsed == NULL:
            return self.blank
    return tier.browsed.heap + ((1LL << bits) | (index & ((1LL << bits) - 1))) * self.p.width


cdef Block* take(Paged self) noexcept nogil:
    """A free block; NULL: there is none, and no memory for one."""
    cdef Block* block = self.idle
    if block == NULL:
        return allocate(self)
    self.idle, self.idle_blocks = block.next, self.idle_blocks - 1
    return block


cdef Block* allocate(Paged self) noexcept nogil:
    cdef size_t slots = (<size_t> 2 << self.shift) * self.p.width
    cdef Block* block = <Block*> calloc(1, sizeof(Block) + slots * sizeof(Slot))  # unset places are stored, too
    if block != NULL:
        block.heap = <Slot*> (block + 1)
        self.blocks += 1
    return block


cdef void give(Paged self, Block* block) noexcept nogil:
    if block != NULL:
        block.next, self.idle, self.idle_blocks = self.idle, block, self.idle_blocks + 1


cdef int reserve(Paged self, int pages) except -1 nogil:
    """Have so many blocks free."""
    cdef Block* block
    while self.idle_blocks < pages:
        block = allocate(self)
        if block == NULL:
            with gil:
                raise MemoryError(f"paged engine: no memory for {pages} pages of {1 << self.shift} partials")
        give(self, block)
    return 0


# from the store and to it

cdef Block* fetch(Paged self, int tier, int64_t page) noexcept nogil:
    """A page with its inner nodes; NULL, and faulted, where the store fails."""
    cdef Block* block = take(self)
    cdef int failed
    with gil:
        failed = load(self, tier, page, block)
    if failed:
        self.faulted = True
        self.failures += 1
        give(self, block)
        return NULL
    build(self, block)
    return block


cdef int load(Paged self, int tier, int64_t page, Block* block) noexcept:
    cdef bytes partials
    cdef size_t size = (<size_t> self.p.width << self.shift) * sizeof(Slot)
    try:
        if block == NULL:
            raise MemoryError(f"paged engine: no memory for page {page} of level {tier * self.shift}")
        partials = self.pager.fetch(tier * self.shift, page)
        if <size_t> len(partials) != size:
            raise StoreError(f"page {page}: {len(partials)} bytes of partials, expected {size}")
        memcpy(block.heap + (<int64_t> self.p.width << self.shift), PyBytes_AS_STRING(partials), size)
        block.page = page
        return 0
    except BaseException as error:
        self.error = error
        return 1


cdef void build(Paged self, Block* block) noexcept nogil:
    """The inner nodes of a page whose nodes are all there."""
    cdef int64_t h, width = self.p.width
    for h in range((1LL << self.shift) - 1, 1, -1):
        combine(self.p, block.heap + h * width, block.heap + 2 * h * width, block.heap + (2 * h + 1) * width)


cdef void build_tail(Paged self, int tier) noexcept nogil:
    """The inner nodes that are there of a page that is not whole."""
    cdef int level
    cdef int64_t index, page = self.tier[tier].tail.page
    cdef Slot* node
    for level in range(tier * self.shift + 1, min((tier + 1) * self.shift, LEVELS)):
        for index in range(page << self.bits[level], min((page + 1) << self.bits[level], self.end(level - 1) >> 1)):
            node = self.node(level - 1, 2 * index)
            combine(self.p, self.node(level, index), node, node + self.p.width)


cdef int copy_outgoing(Paged self) except -1:
    """Copy the pages that the next leaf completes, and wait until the store can take them."""
    cdef int k, t
    cdef Block* whole
    cdef list pages = []
    for k in range(self.starts):
        t = self.start_tier[k]
        whole = self.tier[t].tail
        if whole == NULL or whole.page + 1 != self.start_page[k]:
            continue  # the first page of its tier, or one whose nodes had all left
        if (whole.page + 1) << self.shift > self.head >> (t * self.shift):
            pages.append((t * self.shift, whole.page, partials(self, whole, 1LL << self.shift)))
    if pages:
        self.pager.admit(len(pages))
    self.outgoing, self.leaving = pages, len(pages)
    return 0


cdef int finish_interrupted(Paged self) except -1 nogil:
    """Before anything changes: repair what failed, finish what was interrupted, raise what interrupted it."""
    with gil:
        interruption, self.interruption, self.interrupted = self.interruption, None, False
        if self.leaving:
            self.seal_pages()
        if interruption is not None:
            raise interruption
    return self.repair()


# at the head

cdef int hold_head(Paged self, int tier) noexcept nogil:
    """Have the page of a tier's oldest node in memory, where it has one."""
    cdef Tier* at = &self.tier[tier]
    cdef int level = tier * self.shift
    cdef int64_t page = self.head >> level >> self.shift
    if at.head != NULL and at.head.page == page:
        return 0
    give(self, at.head)
    at.head = NULL
    if self.head >> level >= self.end(level) or at.tail.page == page:
        return 0
    if at.before != NULL and at.before.page == page:
        return 0
    if at.browsed != NULL and at.browsed.page == page:
        at.head, at.browsed = at.browsed, NULL
        return 0
    at.head = fetch(self, tier, page)
    return 0 if at.head != NULL else -1


cdef void ask_ahead(Paged self, int tier, int64_t page) noexcept nogil:
    """Let the store's thread fetch what comes next at the head, where that is not in memory anyway."""
    cdef Tier* at = &self.tier[tier]
    if page >= at.tail.page or (at.before != NULL and at.before.page == page):
        return
    with gil:
        try:
            self.pager.want(tier * self.shift, page, at.tail.page)
        except BaseException as error:
            self.interruption, self.interrupted = error, True


cdef bytes partials(Paged self, Block* block, int64_t count):
    return PyBytes_FromStringAndSize(
        <const char*> (block.heap + (<int64_t> self.p.width << self.shift)), count * self.p.width * sizeof(Slot)
    )
