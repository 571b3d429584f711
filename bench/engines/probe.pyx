"""Times a window from compiled code, reading by reading, and holds the C loops it is compared with.

Built when a benchmark starts (bench.engines.compiled), never installed.
"""

from cpython cimport array
from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.base cimport Engine
from sluicegate.core.core cimport Core
from sluicegate.partials.program cimport Slot, lift


cdef extern from "tick.h" nogil:
    int BENCH_CYCLES
    uint64_t bench_tick()
    uint64_t bench_ns()
    double bench_thread_ns()


cdef extern from "loops.h" nogil:
    ctypedef struct Loop:
        pass
    int loop_open(Loop* w, int64_t size)
    void loop_close(Loop* w)
    void loop_sum(Loop* w, const double* x, double* out, int64_t n)
    void loop_max(Loop* w, const double* x, double* out, int64_t n)
    void loop_std(Loop* w, const double* x, double* out, int64_t n)
    void loop_geometric_mean(Loop* w, const double* x, double* out, int64_t n)

LOOPS = ("sum", "max", "std", "geometric_mean")
CYCLES = bool(BENCH_CYCLES)
"""Whether a tick is a cycle of the processor's time stamp counter; else it is a nanosecond."""


def compiled(window) -> bool:
    """Whether the window runs in compiled code, so that it can be timed from there."""
    return isinstance(window._core, Core)


def ticks_a_ns() -> float:
    """Ticks in a nanosecond, from 20 ms of both clocks."""
    cdef uint64_t start = bench_tick(), begun = bench_ns()
    with nogil:
        while bench_ns() - begun < 20_000_000:
            pass
    return (bench_tick() - start) / <double> (bench_ns() - begun)


def least_ticks() -> int:
    """What a pair of clock readings shows with nothing between them: the least of many."""
    cdef uint64_t start, least = 1 << 62
    cdef int i
    for i in range(10_000):
        start = bench_tick()
        least = min(least, bench_tick() - start)
    return least


def count_up(int64_t[::1] times not None, int64_t start):
    """start, start + 1 … into `times`: what Python would take fifty times as long for, with the processor's caches its own afterwards."""
    cdef Py_ssize_t i
    for i in range(times.shape[0]):
        times[i] = start + i


def jitter(int64_t[::1] times not None, int64_t start, int64_t step, int64_t most):
    """The same times `step`, each up to `most`, less than half a step, early or late by a hash of its number."""
    cdef Py_ssize_t i
    for i in range(times.shape[0]):
        times[i] = (start + i) * step + <int64_t> (hashed(start + i) % <uint64_t> (2 * most + 1)) - most


def arrive(int64_t[::1] times not None, int64_t start, int64_t last, double step):
    """Times after `last` with independent gaps, `step` on average: exponential, by a hash of the reading's number."""
    cdef Py_ssize_t i
    for i in range(times.shape[0]):
        last -= <int64_t> (step * log((<double> (hashed(start + i) >> 11) + 0.5) * 2.0 ** -53))
        times[i] = last
    return last


cdef inline uint64_t hashed(int64_t number) noexcept:
    cdef uint64_t x = (<uint64_t> number + 1) * 0x9E3779B97F4A7C15ULL
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL
    return x ^ (x >> 31)


cdef class Columns:
    """One cell per aggregate, which takes the results of one reading."""
    cdef double* cells
    cdef double** columns

    def __cinit__(self, int answers):
        cdef int k
        self.cells = <double*> calloc(answers, sizeof(double))
        self.columns = <double**> calloc(answers, sizeof(double*))
        if self.cells == NULL or self.columns == NULL:
            raise MemoryError
        for k in range(answers):
            self.columns[k] = self.cells + k

    def __dealloc__(self):
        free(self.cells)
        free(self.columns)


cdef class Feed:
    """A batch of readings, in arrays that are checked once."""
    cdef array.array values
    cdef array.array times
    cdef double* value
    cdef int64_t* time
    cdef int64_t count
    cdef int dimensions

    def __cinit__(self, Core core, array.array values not None, array.array times):
        self.values, self.times, self.dimensions = values, times, core.p.dimensions
        self.count = len(values) // self.dimensions
        if values.typecode != "d" or (times is not None and (times.typecode != "q" or len(times) < self.count)):
            raise ValueError("values: expected array('d'), times: array('q'), one each")
        self.value, self.time = values.data.as_doubles, NULL
        if times is not None:
            self.time = <int64_t*> times.data.as_longlongs


cdef inline int one(Core core, Feed feed, int64_t i, double* out) except -1 nogil:
    return core.slide_one(feed.value + i * feed.dimensions, NULL if feed.time == NULL else feed.time + i, out)


def each(Core core, values, times, array.array ticks not None):
    """Feed reading by reading; the ticks of each one's insert, eviction and result."""
    cdef Columns out = Columns(core.answers)
    cdef Feed feed = Feed(core, values, times)
    cdef uint64_t* taken = <uint64_t*> ticks.data.as_ulonglongs
    cdef int64_t i
    cdef uint64_t start
    if ticks.typecode != "Q" or len(ticks) < feed.count:
        raise ValueError(f"ticks: {len(ticks)} places for {feed.count} readings, expected array('Q')")
    with nogil:
        for i in range(feed.count):
            start = bench_tick()
            one(core, feed, i, out.cells)
            taken[i] = bench_tick() - start


def one_by_one(Core core, values, times) -> float:
    """Feed reading by reading, each with its result, as a caller in compiled code does; CPU nanoseconds in all."""
    cdef Columns out = Columns(core.answers)
    cdef Feed feed = Feed(core, values, times)
    cdef int64_t i
    cdef double start = bench_thread_ns()
    with nogil:
        for i in range(feed.count):
            one(core, feed, i, out.cells)
    return bench_thread_ns() - start


def answers_one_by_one(Core core, values, times) -> array.array:
    """The same, with the answers kept: a row a reading."""
    cdef Feed feed = Feed(core, values, times)
    cdef array.array found = array.array("d", bytes(8 * feed.count * core.answers))
    cdef int64_t i
    for i in range(feed.count):
        one(core, feed, i, found.data.as_doubles + i * core.answers)
    return found


def by_engine_alone(Core core, values) -> float:
    """Feed the engine of a window by count, each reading with its total; CPU nanoseconds in all.

    What twins in other languages are compared with: leaves are lifted before, totals are not lowered, and the window
    around the engine learns of nothing. So it is to be asked nothing else any more.
    """
    cdef Feed feed = Feed(core, values, None)
    cdef Engine engine = core.engine
    cdef int w = core.p.width
    cdef int64_t i, head = engine.head
    cdef double start
    cdef array.array room = array.array("d", bytes(8 * w * (feed.count + 1)))
    cdef Slot* leaves = <Slot*> room.data.as_doubles
    cdef Slot* total = leaves + w * feed.count
    for i in range(feed.count):
        lift(&core.p, leaves + i * w, feed.value + i * feed.dimensions, i, i, core.center)
    start = bench_thread_ns()
    with nogil:
        for i in range(feed.count):
            engine.slide_by(engine, leaves + i * w, head + 1 + i, total)
    return bench_thread_ns() - start


cdef class CLoop:
    """A count window of one aggregate written by hand in C."""
    cdef Loop loop
    cdef int kind

    def __cinit__(self, str kind, int64_t size):
        self.kind = LOOPS.index(kind)
        if not loop_open(&self.loop, size):
            raise MemoryError

    def __dealloc__(self):
        loop_close(&self.loop)

    def feed(self, array.array values not None, array.array out not None) -> float:
        """One result a reading; CPU nanoseconds in all."""
        cdef int64_t n = len(values)
        cdef const double* x = values.data.as_doubles
        cdef double* results = out.data.as_doubles
        cdef double start = bench_thread_ns()
        if values.typecode != "d" or out.typecode != "d" or len(out) < n:
            raise ValueError(f"{len(out)} places for {n} results, expected array('d')")
        with nogil:
            if self.kind == 0:
                loop_sum(&self.loop, x, results, n)
            elif self.kind == 1:
                loop_max(&self.loop, x, results, n)
            elif self.kind == 2:
                loop_std(&self.loop, x, results, n)
            else:
                loop_geometric_mean(&self.loop, x, results, n)
        return bench_thread_ns() - start
