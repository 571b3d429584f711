"""Readings: one by one and in batches, with the answers after each; see taking.pxd."""

from libc.math cimport NAN
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from sluicegate.engines.answers cimport CUSTOM, K_DISTINCT, K_SUM, Cut, bucket_answer, exact_answer, is_whole
from sluicegate.engines.bucketing cimport Bucketing
from sluicegate.engines.program cimport Slot


cdef class Taking(Bucketing):
    """A window that takes readings."""

    # readings

    def insert(self, values, int64_t time):
        """Take one reading and enforce a built-in policy."""
        cdef int i
        if self.busy:
            self.enter()
        for i in range(self.p.dimensions):
            self.row[i] = values[i]
        if self.condition.growing:
            self.refuse_fall(self.row, 1)
        self.accept(self.row, time)

    def insert_many(self, const double[::1] values not None, const int64_t[::1] times, int64_t count, list out):
        """Take a batch of readings in a flat buffer; each result column gets one value a reading."""
        cdef const int64_t* when = NULL if times is None else &times[0]
        cdef double** columns = NULL
        cdef double[::1] column
        cdef int k
        if values.shape[0] < count * self.p.dimensions or (times is not None and times.shape[0] < count):
            raise ValueError(f"insert_many: {values.shape[0]} values for {count} readings of {self.p.dimensions}")
        self.enter()
        try:
            if out is not None:
                columns = <double**> calloc(self.answers, sizeof(double*))
                if columns == NULL:
                    raise MemoryError("insert_many: no memory for the columns")
            for k in range(self.answers if out is not None else 0):
                column = out[k]
                if column.shape[0] < count:
                    raise ValueError(f"insert_many: a column of {column.shape[0]} for {count} readings")
                columns[k] = &column[0]
            if self.condition.growing:
                self.refuse_fall(&values[0], count)
            with nogil:
                self.run(&values[0], when, count, columns)
        finally:
            self.busy = False
            free(columns)

    cdef int run(self, const double* values, const int64_t* times, int64_t count, double** out) except -1 nogil:
        cdef int64_t i = 0
        cdef int k, kind
        cdef Slot* answer = self.reading + self.p.width
        while out == NULL and i < count:
            if self.bucketed:
                i += self.join_run(values + i * self.p.dimensions, times + (0 if times == NULL else i), count - i)
            if i < count:
                self.accept(values + i * self.p.dimensions, self.accepted if times == NULL else times[i])
                i += 1
        for i in range(i, count):
            self.accept(values + i * self.p.dimensions, self.accepted if times == NULL else times[i])
            if self.answer_all(answer) < 0:
                for k in range(self.answers):
                    kind = self.outputs[k].kind
                    out[k][i] = 0.0 if kind <= K_SUM or kind == K_DISTINCT else NAN
                continue
            for k in range(self.answers):
                kind = self.outputs[k].kind
                out[k][i] = <double> answer[k].i if is_whole(kind) else answer[k].f
        return 0

    cdef int accept(self, const double* values, int64_t time) except -1 nogil:
        if not self.centered:
            if self.centers_itself:
                memcpy(self.center, values, self.p.dimensions * sizeof(double))
            self.centered = True
        if self.ruled and self.accepted >= self.rules.due_at:
            self.refresh_rules()
        self.latest = values[0]
        if self.bucketed:
            self.place(values, time)
        else:
            self.lift_reading(values, time)
            self.engine.push(self.reading)
            self.created += 1
        self.accepted += 1
        if time > self.newest:
            self.newest = time
        if self.policy != CUSTOM:
            self.enforce()
        elif self.condition.kind:
            self.enforce_rule(values)
        else:
            self.note_edge()
        return 0

    cdef int answer_all(self, Slot* out) noexcept nogil:
        """One answer per aggregate; −1 for an empty window."""
        cdef const Slot* total = self.engine.total()
        cdef const Slot* rest
        cdef const Slot* leaf
        cdef Cut where
        cdef int k
        if total == NULL:
            return -1
        if not self.bucketed:
            for k in range(self.answers):
                out[k] = exact_answer(&self.outputs[k], total, self.engine.tail - self.engine.head)
            return 0
        rest, leaf, where = self.engine.rest(), self.engine.leaf(self.engine.head), self.cut_oldest_leaf()
        for k in range(self.answers):
            out[k] = bucket_answer(&self.outputs[k], total, rest, leaf, where, self.center[self.outputs[k].dimension])
        return 0
