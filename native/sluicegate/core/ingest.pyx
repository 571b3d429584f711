"""Readings: one by one and in batches, with the answers after each; see ingest.pxd."""

from cpython cimport array
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.math cimport fabs
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strcmp

from sluicegate.answers.results cimport BY_TIME, K_RATE, Output, View, bucket_answer, exact_answer
from sluicegate.core.answering cimport answer_now, in_column, number_of, of_nothing, view
from sluicegate.core.eviction cimport enforce
from sluicegate.joining.placing cimport join_run, place
from sluicegate.core.checks cimport first_beyond, first_not_entering
from sluicegate.partials.program cimport MAX, MIN, SUM, Slot, copy, lift
from sluicegate.memory.times cimport time_at

from sluicegate.errors import InputError
from sluicegate.constants import LARGEST as _LARGEST
from sluicegate.constants import LATEST as _LATEST

cdef double MAGNITUDE = _LARGEST
cdef int64_t TIMES = _LATEST
cdef array.array NO_DOUBLES = array.array("d")
cdef enum:
    LEAST_BATCH = 12  # readings: fewer are sooner taken one by one
    SHORT_BATCH = 128  # readings that are in before another thread could run
    MOST_COLUMNS = 16  # pointers on the stack


cdef class Ingesting(Batching):
    """A window into which readings go, one by one or in batches."""

    # readings

    def insert(self, values, int64_t time):
        """Take one reading and enforce a built-in policy."""
        cdef int i
        if self.busy:
            self.enter()
        for i in range(self.p.dimensions):
            self.row[i] = values[i]
        if self.rule.condition.growing:
            self.rule.refuse_fall(self.engine.total(), self.row, 1, self._layout.dimensions)
        accept(self, self.row, time)

    def serve(self, reader, when):
        """What reads values and times that are no plain float or int; from now on the core is asked itself."""
        self.names, self.reader, self.read_time = self._layout.names, reader, when
        self.positive = bool(self._layout.positive)

    def insert_one(self, value, time=None):
        """Take one reading: `Window.insert`, whose checks and words these are."""
        ingest_given(self, value, time)

    def slide(self, value, time=None):
        """Take one reading and answer: `Window.slide`, as above."""
        ingest_given(self, value, time)
        return answer(self)

    def named(self):
        """The answers by name: what `Window.query` gives without bounds."""
        self.look()
        found = answer(self)
        return {self.names[0]: found} if self.answers == 1 else found

    def columns_after(self, values, times, bint results):
        """`insert_many` of flat buffers or plain lists, where every aggregate has a column, which it gives by name.

        None, and nothing has changed: the batch is empty, of another type or shape, or some of it may not enter.
        """
        cdef double* out[MOST_COLUMNS]
        cdef array.array column
        cdef Flat flat
        cdef dict found = None
        cdef bint may
        cdef int k
        if self.answers > MOST_COLUMNS or (times is None and self.policy == BY_TIME):
            return None
        memset(&flat, 0, sizeof(Flat))
        try:
            if not lies_flat(&flat, values, times, self.p.dimensions):
                return None
            if flat.count <= SHORT_BATCH:
                may = may_enter_all(&flat)
            else:
                with nogil:
                    may = may_enter_all(&flat)
            if may:
                found = {}
                for k in range(self.answers if results else 0):
                    column = found[self.names[k]] = array.clone(NO_DOUBLES, flat.count, zero=False)
                    out[k] = column.data.as_doubles
                ingest_flat(self, &flat, out if results else NULL, False)
        finally:
            let_go_of(&flat)
        return found

    def insert_many(self, const double[::1] values not None, const int64_t[::1] times, int64_t count, list out):
        """Take a batch of readings in a flat buffer; each result column gets one value a reading.

        Three times as many columns as aggregates: the values, then the low and then the high ends of their intervals.
        """
        cdef Flat flat
        cdef double** columns = NULL
        cdef double[::1] column
        cdef int k, n = 0 if out is None else len(out)
        cdef bint bounds = n == 3 * self.answers and self.bucketed
        if values.shape[0] < count * self.p.dimensions or (times is not None and times.shape[0] < count):
            raise ValueError(f"insert_many: {values.shape[0]} values for {count} readings of {self.p.dimensions}")
        if n != 0 and n != self.answers and not bounds:
            raise ValueError(f"insert_many: {n} columns for {self.answers} aggregates")
        flat.values, flat.times, flat.count = &values[0], NULL if times is None else &times[0], count
        try:
            if out is not None:
                columns = <double**> calloc(max(n, 1), sizeof(double*))
                if columns == NULL:
                    raise MemoryError("insert_many: no memory for the columns")
            for k in range(n):
                column = out[k]
                if column.shape[0] < count:
                    raise ValueError(f"insert_many: a column of {column.shape[0]} for {count} readings")
                columns[k] = &column[0]
            ingest_flat(self, &flat, columns, bounds)
        finally:
            free(columns)

    cdef int slide_one(self, const double* values, const int64_t* time, double* out) except -1 nogil:
        """One reading, at its ordinal where `time` is NULL, and the answers after it: for compiled code."""
        cdef int64_t when = self.accepted if time == NULL else time[0]
        if self.plain:
            return slide_plain(self, values, when, out)
        accept_any(self, values, when)
        return answer_row(self, out)

    cdef int answer_all(self, Slot* out) noexcept nogil:
        """One answer per aggregate; −1 for an empty window."""
        cdef const Slot* total
        cdef View v
        cdef int k
        if not self.bucketed:
            total = self.engine.total()
            if total == NULL:
                return -1
            for k in range(self.answers):
                out[k] = exact_answer(&self.outputs[k], total, self.engine.tail - self.engine.head)
            return 0
        if not view(self, &v):
            return -1
        for k in range(self.answers):
            out[k] = bucket_answer(&self.outputs[k], &v, self.center[self.outputs[k].dimension])
        return 0


cdef inline bint may_enter(Ingesting self, double x) noexcept nogil:
    return fabs(x) <= MAGNITUDE and (x > 0.0 or not self.positive)


cdef int ingest_given(Ingesting self, value, time) except -1:
    """A reading as a caller gives it."""
    cdef int i
    if self.busy:
        self.enter()
    if PyFloat_CheckExact(value) and self.p.dimensions == 1 and may_enter(self, PyFloat_AS_DOUBLE(value)):
        self.row[0] = PyFloat_AS_DOUBLE(value)
    else:
        values = self.reader.row(value)
        for i in range(self.p.dimensions):
            self.row[i] = values[i]
    cdef int64_t when = self.accepted if time is None and self.policy != BY_TIME else time_from(self, time)
    if self.rule.condition.growing:
        self.rule.refuse_fall(self.engine.total(), self.row, 1, self._layout.dimensions)
    accept(self, self.row, when)
    return 0


cdef int64_t time_from(Ingesting self, time) except? -1:
    cdef int overflow = 0
    cdef int64_t when
    if time is None:
        raise InputError("time: missing, expected microseconds as int64, since the policy evicts by time")
    if PyLong_CheckExact(time):
        when = PyLong_AsLongLongAndOverflow(time, &overflow)
        if not overflow and -TIMES <= when <= TIMES:
            return when
    return self.read_time(time)


cdef object answer(Ingesting self):
    """The only aggregate's answer, or all by name."""
    cdef Slot* out = self.reading + self.p.width
    cdef int k
    cdef bint plain = True
    for k in range(self.answers):
        plain = plain and self.outputs[k].kind < K_RATE
    if not plain or self.answer_all(out) < 0:
        values = self.results()
        return values[0] if self.answers == 1 else dict(zip(self.names, values))
    if self.answers == 1:
        return number_of(&self.outputs[0], out[0])
    named = {}
    for k in range(self.answers):
        named[self.names[k]] = number_of(&self.outputs[k], out[k])
    return named


cdef int ingest_flat(Ingesting self, const Flat* flat, double** out, bint bounds) except -1:
    self.enter()
    try:
        if self.rule.condition.growing:
            self.rule.refuse_fall(self.engine.total(), flat.values, flat.count, self._layout.dimensions)
        if self.plain and flat.count <= SHORT_BATCH:
            run(self, flat.values, flat.times, flat.count, out, False)
        else:
            with nogil:
                run(self, flat.values, flat.times, flat.count, out, bounds)
    finally:
        self.busy = False
    return 0


cdef int run(
    Ingesting self, const double* values, const int64_t* times, int64_t count, double** out, bint bounds
) except -1 nogil:
    cdef int64_t i = 0, ordered = count
    if self.timed:
        ordered = self.in_order(times, count)
        if ordered < count and self.needs_order() and self.has_late_inside(times, count):
            self.refuse_late_leafless()
    if ordered >= LEAST_BATCH and self.ingests_blocks():
        self.run_blocks(values, times, ordered, out)
        i = ordered
    while i < count and self.plain:
        slide_into_row(self, values + i * self.p.dimensions, self.accepted if times == NULL else times[i], out, i)
        i += 1
    while i < count:
        if self.bucketed and out == NULL:
            i += join_run(self, values + i * self.p.dimensions, NULL if times == NULL else times + i, count - i)
        if i < count:
            accept_any(self, values + i * self.p.dimensions, self.accepted if times == NULL else times[i])
            if out != NULL and self.bucketed:
                answer_now(self, out, i, bounds)
            elif out != NULL:
                answer_row(self, <double*> (self.reading + self.p.width))
                to_columns(self, out, i)
            i += 1
    if self.bucketed:
        self.engine.return_spare(count >> 1)
    return 0


cdef int answer_row(Ingesting self, double* row) noexcept nogil:
    """The answers as they are now."""
    cdef Slot* answer = self.reading + self.p.width
    cdef bint holds = self.answer_all(answer) >= 0
    cdef int k, kind
    for k in range(self.answers):
        kind = self.outputs[k].kind
        row[k] = in_column(kind, answer[k]) if holds else of_nothing(kind)
    return 0


cdef int accept(Ingesting self, const double* values, int64_t time) except -1 nogil:
    if self.plain:
        return ingest_plain(self, values, time, NULL)
    return accept_any(self, values, time)


cdef int ingest_late(Ingesting self, const double* values, int64_t time) except -1 nogil:
    """A late reading of a window of buckets: beside those that came in order."""
    lift(&self.p, self.reading, values, time, self.accepted, self.center)
    if self.late_buckets.add(self.reading, time, self.time_cutoff()) < 0:
        with gil:
            raise MemoryError("window: no memory for late buckets")
    return 0


cdef int accept_any(Ingesting self, const double* values, int64_t time) except -1 nogil:
    """A reading that may come late, join a bucket or make any policy evict."""
    if time < self.newest and self.policy == BY_TIME:
        if not self.belongs(time):
            return 0
        if not self.timed and self.engine.head < self.engine.tail and time < self.time_of(self.engine.tail - 1):
            if self.late_buckets is not None:
                return ingest_late(self, values, time)
            self.refuse_late_leafless()
    if not self.centered:
        self.center_on_reading(values)
    self.up_to.newest = values[0]
    if self.bucketed:
        place(self, values, time)
        if not self.accepted & 7:  # what joins pushes nothing, and a push is what else gives chunks back
            self.engine.return_spare(1)
    else:
        lift(&self.p, self.reading, values, time, self.accepted, self.center)
        if self.sorted is not None or (self.timed and time < self.newest):
            self.insert_late(time)
        else:
            if self.timed:
                self.keep_time(time)
            self.engine.push(self.reading)
        self.created += 1
    self.accepted += 1
    if time > self.newest:
        self.newest = time
    return enforce(self, values)


include "ingest_flat.pxi"
include "ingest_plain.pxi"
