"""What both Okasaki aggregators do with their cells. Part of foa.pyx and ioa.pyx: `Lists` is the engine of either, and
a `Cell` of both begins with its tail, which links the free ones."""


cdef void free_blocks(void* block) noexcept:
    """Blocks of cells; each begins with a pointer to the next."""
    cdef void* next
    while block != NULL:
        next = (<void**> block)[0]
        free(block)
        block = next


cdef int reserve_cells(Lists self) except -1 nogil:
    """Have the cells that an operation may take."""
    cdef size_t size = sizeof(Cell) + self.size
    cdef char* block
    cdef Cell* cell
    cdef int k
    if self.free_count >= RESERVE:
        return 0
    block = <char*> malloc(sizeof(void*) + BLOCK * size)
    if block == NULL:
        with gil:
            raise MemoryError(f"{type(self).__name__}: no memory for {BLOCK} cells")
    (<void**> block)[0] = self.blocks
    self.blocks, self.block_count = block, self.block_count + 1
    for k in range(BLOCK):
        cell = <Cell*> (block + sizeof(void*) + k * size)
        cell.agg = <Slot*> (cell + 1)
        free_cell(self, cell)
    return 0


cdef inline void free_cell(Lists self, Cell* cell) noexcept nogil:
    cell.tail, self.free_cells = self.free_cells, cell
    self.free_count += 1


cdef inline Cell* new_cell(Lists self, int64_t index) noexcept nogil:
    cdef Cell* cell = self.free_cells
    self.free_cells, self.free_count = cell.tail, self.free_count - 1
    cell.index = index
    return cell


cdef inline void fold_back(Lists self, Cell* cell, const Slot* leaf) noexcept nogil:
    """The partial of the newest cell: what B holds, then its leaf."""
    if self.b == NULL:
        copy(self.p, cell.agg, leaf)
    else:
        combine(self.p, cell.agg, self.b.agg, leaf)


cdef inline const Slot* both(Lists self, const Cell* front, Slot* out) noexcept nogil:
    if front == NULL or self.b == NULL:
        return front.agg if front != NULL else self.b.agg if self.b != NULL else NULL
    combine(self.p, out, front.agg, self.b.agg)
    return out


cdef inline int64_t bytes_of(Lists self) noexcept nogil:
    return Queued.bytes(self) + self.block_count * <int64_t> (sizeof(void*) + BLOCK * (sizeof(Cell) + self.size))


cdef int check_lists(Lists self) except -1:
    """|N| = |F| − |B|; the leaves in order; B is folded from its end. A suspended rotation stays so."""
    cdef const Cell* cell = self.b
    cdef list front = self.listed(self.f), todo = self.listed(self.n), back = self.listed(self.b)
    sizes = f"|F|, |N|, |B| are {len(front)}, {len(todo)}, {len(back)}"
    self.insist(len(todo) == len(front) - len(back), sizes)
    self.insist(front + back[::-1] == list(range(self.head, self.tail)), "its lists do not hold the leaves in order")
    while cell != NULL:
        copy(self.p, self.spare, self.leaf(cell.index))
        if cell.tail != NULL:
            combine(self.p, self.spare, cell.tail.agg, self.spare)
        if not self.same(self.spare, cell.agg):
            self.insist(False, f"aggregate of {cell.index} in the back list")
        cell = cell.tail
    return 0
