"""A reading of a plain window: an exact one by count or time, whose engine has all at hand. Part of ingest.pyx."""

cdef inline const Slot* lift_plain(Ingesting self, const double* values, int64_t time) noexcept nogil:
    if self.p.alone == SUM or self.p.alone == MAX or self.p.alone == MIN:  # `lies_as_given`, without a call
        return <const Slot*> values
    lift(&self.p, self.reading, values, time, self.accepted, self.center)
    return self.reading


cdef inline int64_t head_by_count(Ingesting self) noexcept nogil:
    """Where the window begins with one reading more."""
    cdef int64_t cutoff = self.accepted + 1
    return max(self.engine.head, cutoff - self.value if self.hop == 1 else self.cut_off_at(cutoff))


cdef int64_t head_by_time(Ingesting self, int64_t time) except -1 nogil:
    """The same by time, which is kept."""
    cdef int64_t head = self.engine.head, cutoff
    self.keep_time(time)
    cutoff = max(self.newest, time)
    cutoff = cutoff - self.value if self.hop == 1 else self.cut_off_at(cutoff)
    if time_at(self.times, head) <= cutoff:
        return self.first_after(head, self.engine.tail + 1, cutoff)
    return head


cdef inline int ingest_plain(Ingesting self, const double* values, int64_t time, Slot* total) except -1 nogil:
    """Take a reading; the window's total after it where that is wanted. Gives whether the window holds any."""
    cdef const Slot* found
    cdef int64_t head
    cdef int holds
    if self.timed and time < self.newest:
        accept_any(self, values, time)
        found = self.engine.total()
        if found != NULL and total != NULL:
            copy(&self.p, total, found)
        return found != NULL
    if not self.centered:
        self.center_on_reading(values)
    head = head_by_time(self, time) if self.timed else head_by_count(self)
    holds = self.engine.slide_by(self.engine, lift_plain(self, values, time), head, total)
    if self.timed:
        self.forget_times()
    self.newest = max(self.newest, time)
    self.edge = max(self.edge, head - 1)
    self.created += 1
    self.accepted += 1
    return holds


cdef inline int slide_plain(Ingesting self, const double* values, int64_t time, double* out) except -1 nogil:
    """Take a reading; the answers to a row."""
    cdef Slot* total = <Slot*> out if self.as_is else self.reading + self.p.width + self.answers
    cdef const Output* o = self.outputs
    cdef int k
    if not ingest_plain(self, values, time, total):
        for k in range(self.answers):
            out[k] = of_nothing(o[k].kind)
        return 0
    for k in range(0 if self.as_is else self.answers):
        out[k] = in_column(o[k].kind, exact_answer(o + k, total, self.engine.tail - self.engine.head))
    return 0


cdef int slide_into_row(Ingesting self, const double* values, int64_t time, double** out, int64_t i) except -1 nogil:
    """The same to row i of the columns, where there are any."""
    cdef double* row = <double*> (self.reading + self.p.width)
    if out == NULL:
        ingest_plain(self, values, time, NULL)
        return 0
    slide_plain(self, values, time, row)
    to_columns(self, out, i)
    return 0


cdef inline void to_columns(Ingesting self, double** out, int64_t i) noexcept nogil:
    """The row of answers that stands behind the reading."""
    cdef const double* row = <const double*> (self.reading + self.p.width)
    cdef int k
    for k in range(self.answers):
        out[k][i] = row[k]
