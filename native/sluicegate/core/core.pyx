"""One window's evolution, from a reading to the evicted edge, compiled; the twin is tests/native/twins/core.py."""

cimport cython
from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcpy

from sluicegate.answers.results cimport BY_TIME, CUSTOM, Cut, View, bucket_answer, exact_answer, is_slot
from sluicegate.engines.base cimport Engine
from sluicegate.engines.fiba cimport Fiba
from sluicegate.partials.filling cimport blueprint_of
from sluicegate.engines.tree.pairs cimport GIVEN, TOOK
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, H_T_LAST, Slot, combine
from sluicegate.core.answering cimport answers_over, bounded, number_of, seen, view
from sluicegate.core.eviction cimport enforce_now, evict_by_callable, evict_oldest
from sluicegate.policies.rule cimport Rule
from sluicegate.joining.buckets cimport Buckets
from sluicegate.joining.placing cimport limit_to
from sluicegate.joining.late cimport Late
from sluicegate.memory.times cimport clear_times, held_times
from sluicegate.histograms._rules cimport Rules

from sluicegate import catalogue
from sluicegate.bounds import told
from sluicegate.errors import InvariantError, SnapshotError
from sluicegate.monoids.layout import Op
from sluicegate.monoids.monoid import TOLD as _TOLD
from sluicegate.monoids.results import empty, lowered
from sluicegate.constants import NEVER as _NEVER
from sluicegate.constants import SORTED as _SORTED
from sluicegate.records import Saved, kept_slots

cdef array.array DOUBLES = array.array("d")
cdef Rule NO_RULE = Rule()  # of all windows by count or time


@cython.final
cdef class Core(Ingesting):
    """A window's leaves, their engine, and what has been evicted."""

    def __cinit__(
        self, layout, str engine, int policy, int64_t value, int64_t limit, centers, rules=None, int64_t hop=1,
        int up_to=0, eviction=None, merging=None, staging=None,
    ):
        self._layout = layout
        self.stored, self.timed = layout.width, policy == BY_TIME and not layout.header
        self.timed = self.timed and not engine.startswith("kvs_")  # they keep at most O(log n) outside their store
        self.newest_slot = H_T_LAST if layout.header else layout.slot(Op.T_LAST)
        self.blueprint = blueprint_of(layout, self.timed)
        layout, self.p, self.outputs = self.blueprint.layout, self.blueprint.p, self.blueprint.outputs
        self.policy, self.value, self.hop, self.up_to.sign = policy, value, hop, up_to
        self.bucketed, self.buckets = layout.bucketed, Buckets()
        self.rule = Rule() if policy == CUSTOM else NO_RULE
        self.buckets.setup(None if rules is None else Rules(*rules), limit, layout)
        self.centers_itself = layout.centered
        self.up_to.slot = layout.extreme_slot(up_to)
        self.accepted = self.created = 0
        self.newest, self.edge, self.up_to.held = _NEVER, -1, _NEVER
        self.known.index = -1
        self.answers = len(layout.monoids)
        self.allocate()
        told_by_python = layout.told() if layout.bucketed else self._layout.composites()
        self.composites = told_by_python or None
        facts, self.engine_name = catalogue.check(engine, layout), engine
        self.kept = layout.width if facts.keeps_leaves else kept_slots(policy, layout, up_to)
        self.engine = <Engine?> (self.buckets.own_engine(merging, staging) or catalogue.make(engine, self.bucketed))
        self.engine.setup(&self.p, limit)
        self.engine.keep(self.kept)
        self.late_since = INT64_MAX
        if self.bucketed and policy == BY_TIME:
            self.late_buckets = Late()
            self.late_buckets.p, self.late_buckets.centers = &self.p, self.center
        if self.timed and isinstance(self.engine, Fiba):
            self.sorted = self.engine
        self.center_on(centers)
        self.rule.take(eviction)
        self.plain = self.ingests_blocks() and not engine.startswith("kvs_")
        self.as_is = self.answers == 1 and self.p.width == 1 and is_slot(self.outputs[0].kind)

    # answers

    def bounded(self):
        """Each aggregate's result with its certain interval; None of a window that is empty or has no buckets."""
        self.look()
        return bounded(self)

    def answers_over(
        self, bytes oldest not None, bytes newer not None, int policy, int64_t cutoff, int64_t evicted, bint bounds
    ):
        """Each aggregate's result, with `bounds` its interval, of a shorter window over the same buckets.

        `oldest`: the bucket that it begins in; `newer`: those after it as one partial, empty where there is none.
        `cutoff`, `evicted`: as of a window under that policy, what is known to have left.
        """
        self.look()
        return answers_over(self, oldest, newer, policy, cutoff, evicted, bounds)

    def results(self):
        """One answer per aggregate."""
        self.look()
        cdef Slot* out = self.reading + self.p.width
        values = as_values(self, NULL if self.answer_all(out) < 0 else out)
        if self.composites is not None and self.engine.head < self.engine.tail:
            if self.bucketed:
                cut_composites(self, values)
            else:
                lower_composites(self, self.engine.total(), values)
        return values

    def lower(self, bytes packed not None):
        """The answers for a partial by itself."""
        self.look()  # answers are put together where a batch puts its own
        cdef Slot* out = self.reading + self.p.width
        cdef const Slot* partial = self.partial_of(self.unpack(packed))
        cdef View v
        cdef int k
        cdef int64_t n = partial[H_COUNT].i if self._layout.header else 1
        v.total = v.leaf = partial
        v.where.least = v.where.taken = n
        for k in range(self.answers):
            if not self.bucketed:
                out[k] = exact_answer(&self.outputs[k], partial, n)
            else:
                out[k] = bucket_answer(&self.outputs[k], &v, self.center[self.outputs[k].dimension])
        values = as_values(self, out)
        if self.composites is not None and self.bucketed:
            window = told.alone(self._layout, self._layout.format.unpack(packed))
            return [told.answer(window, monoid) if monoid.kind in _TOLD else value
                    for monoid, value in zip(self._layout.monoids, values)]
        if self.composites is not None:
            lower_composites(self, partial, values)
        return values

    def total(self):
        """The partial of all leaves, empty for an empty window."""
        self.look()
        return self.pack(self.engine.total(), self.newest)

    def rest(self):
        """The partial of all leaves but the oldest, empty where there is none."""
        self.look()
        return self.pack(self.engine.rest(), self.newest)

    def leaf(self, int64_t index):
        """A leaf of the window, head ≤ index < tail."""
        self.require_leaves()
        self.look()
        if not self.engine.head <= index < self.engine.tail:
            raise IndexError(f"leaf {index}: the window holds {self.engine.head} to {self.engine.tail - 1}")
        return self.pack(self.engine.leaf(index), self.time_of(index) if self.timed else 0)

    def slot_of_leaves(self, int slot):
        """A slot of float64 of each leaf's partial, oldest first."""
        cdef Engine engine = self.engine
        cdef int64_t index
        self.require_leaves()
        self.look()
        if not self.timed <= slot < self.stored:
            raise IndexError(f"slot {slot}: expected {<int> self.timed} to {self.stored - 1}")
        cdef array.array found = array.clone(DOUBLES, engine.tail - engine.head, zero=False)
        for index in range(engine.head, engine.tail):
            found.data.as_doubles[index - engine.head] = engine.leaf(index)[slot - self.timed].f
        return found

    def combine(self, bytes a not None, bytes b not None):
        """Two neighbouring leaves as one."""
        cdef const Slot* left = self.unpack(a)
        cdef const Slot* right = self.unpack(b)
        cdef bytes out = PyBytes_FromStringAndSize(NULL, self.stored * sizeof(Slot))
        cdef Slot* slots = <Slot*> PyBytes_AS_STRING(out)
        if self.timed:
            slots.i = max(left.i, right.i)
        if self.stored > self.timed:
            combine(&self.p, slots + self.timed, left + self.timed, right + self.timed)
        return out

    @property
    def cutoff(self):
        """By time: readings of this time or earlier leave. By count: the ordinal of the first reading inside."""
        return self.cut_off()

    @property
    def head(self):
        """Absolute index of the oldest leaf, at the current level."""
        return self.engine.head

    @property
    def tail(self):
        """Absolute index after the newest leaf."""
        return self.engine.tail

    @property
    def heads(self):
        """The head of each lower level when it was evicted, since the last multiple of 16."""
        return list(self.buckets.heads())

    @property
    def limit(self):
        """The most buckets now, 0: none."""
        return self.buckets.limit

    @property
    def level(self):
        """Level evictions so far."""
        return self.buckets.level

    @property
    def mark(self):
        """Leaves before this index have been given out."""
        return self.buckets.mark

    @mark.setter
    def mark(self, int64_t index):
        self.buckets.mark = index

    @property
    def centers(self):
        """μ₀ per dimension, None until the first reading decides it."""
        cdef int k
        return tuple([self.center[k] for k in range(self.p.dimensions)]) if self.centered else None

    @property
    def allocated(self):
        """Bytes of partials allocated."""
        cdef int64_t late = 0 if self.late_buckets is None else self.late_buckets.bytes()
        return self.engine.bytes() + (held_times(self.times) if self.timed else 0) + late

    @property
    def joined_late(self):
        """Late readings that a window of buckets took beside those in order, which `accepted` does not count."""
        return 0 if self.late_buckets is None else self.late_buckets.joined

    @property
    def held_late(self):
        """How many of them it still holds."""
        if self.late_buckets is None:
            return 0
        self.late_buckets.evict(self.time_cutoff())
        return self.late_buckets.count()

    # storage

    @property
    def engine_object(self):
        """The engine itself, for whoever gives it a store."""
        return self.engine

    def enforce_now(self):
        """Let leave what a built-in policy says, where a failure of the store kept it."""
        enforce_now(self)

    def evict_oldest(self, int64_t count):
        """Evict so many of the oldest readings of an exact window now. Raises InputError for more than it holds."""
        evict_oldest(self, count)

    def evict(self, leaves, bint monotone):
        """Evict by a user's rule of (total, old); what it raises leaves a consistent window."""
        evict_by_callable(self, leaves, monotone)

    def limit_to(self, int64_t limit):
        """From now on at most `limit` buckets; neighbours are merged until no more are there."""
        self.enter()
        try:
            limit_to(self, limit)
        finally:
            self.busy = False

    def save(self):
        """All but the closed leaves."""
        cdef Engine engine = self.engine
        self.look()
        self.require_leaves()
        newest = self.pack(engine.leaf(engine.tail - 1)) if self.bucketed and engine.head < engine.tail else b""
        return Saved(
            self.accepted, self.newest, self.edge, self.created, engine.head, engine.tail,
            self.buckets.mark, self.buckets.level, self.buckets.heads(), self.centers or (),
            self.pack(engine.result(0)), self.pack(engine.result(1)), newest, self.buckets.state(),
            self.buckets.limit, self.up_to.held, late_state(self),
        )

    def take_fresh(self):
        """(first ordinal, ordinal after the last, partial, took over others) of closed buckets not yet given out."""
        cdef int64_t index
        cdef int state
        self.look()
        found = []
        for index in range(self.engine.head, self.engine.tail - 1 if self.buckets.pairs is not None else 0):
            state = self.buckets.take_state(index)
            if state != GIVEN:
                leaf = self.engine.leaf(index)
                after = leaf[H_O_FIRST].i + leaf[H_COUNT].i
                found.append((leaf[H_O_FIRST].i, after, self.pack(leaf), state == TOOK))
        return found

    def load(self, saved, leaves):
        """Take over a saved window whose leaves, oldest first, include the open one."""
        cdef bytes leaf
        self.accepted, self.newest, self.edge = saved.accepted, saved.newest, saved.edge
        self.created, self.up_to.held = saved.created, saved.held
        self.buckets.limit = saved.limit
        self.center_on(saved.centers or None)
        self.buckets.load(saved, len(leaves))
        self.engine.begin(saved.head)
        self.known.index = -1
        if self.timed:
            clear_times(self.times)
        self.newest = _NEVER
        load_late(self, saved.late)
        for leaf in leaves:
            if self.timed:
                load_leaf(self, self.unpack(leaf).i, self.partial_of(self.unpack(leaf)))
            else:
                self.engine.push(self.partial_of(self.unpack(leaf)))
        self.newest, self.rule.condition.wakes = saved.newest, 0
        left, right = saved.left, saved.right
        self.engine.finish(
            self.partial_of(self.unpack(left)) if left else NULL, self.partial_of(self.unpack(right)) if right else NULL
        )

    def verify(self):
        """Raise InvariantError where the window contradicts itself."""
        cdef Engine engine = self.engine
        cdef int64_t index, after = -1
        self.look()
        if self.kept == self.p.width:
            engine.verify()
        for index in range(engine.head + 1, engine.tail if self.sorted is not None else 0):
            if self.time_of(index - 1) > self.time_of(index):
                raise InvariantError(f"leaf {index} is earlier than the one before it")
        if not self.bucketed:
            return
        if self.buckets.limit and self.buckets.counted(engine) > self.buckets.limit:
            raise InvariantError(f"{self.buckets.counted(engine)} buckets, the limit is {self.buckets.limit}")
        for index in range(engine.head, engine.tail):
            leaf = engine.leaf(index)
            if after >= 0 and leaf[H_O_FIRST].i != after:
                raise InvariantError(f"leaf {index} begins at ordinal {leaf[H_O_FIRST].i}, expected {after}")
            after = leaf[H_O_FIRST].i + leaf[H_COUNT].i
        if after >= 0 and after != self.accepted:
            raise InvariantError(f"the newest leaf ends before ordinal {after}, expected {self.accepted}")


cdef list as_values(Core self, const Slot* out):
    cdef int k
    if out == NULL:
        return [empty(monoid) for monoid in self._layout.monoids]
    return [number_of(&self.outputs[k], out[k]) for k in range(self.answers)]


cdef int cut_composites(Core self, list values) except -1:
    """Those of a window of buckets."""
    cdef View v
    view(self, &v)
    window = seen(self, &v)
    for place, monoid in self.composites:
        values[place] = told.answer(window, monoid)
    return 0


cdef int lower_composites(Core self, const Slot* partial, list values) except -1:
    """The answers that are more than one number."""
    slots = self._layout.format.unpack(self.pack(partial))
    for place, monoid, where in self.composites:
        values[place] = lowered(monoid, slots[where])
    return 0


cdef bytes late_state(Core self):
    """How many came too late, and the late buckets; of an exact window whether leaves have moved for late ones."""
    cdef bytes held
    if self.late_buckets is not None:
        self.late_buckets.evict(self.time_cutoff())  # else it would depend on who asked last
        held = self.late_buckets.save()
    else:
        held = _SORTED if self.sorted is not None and self.engine_name != "fiba" else b""
    return PyBytes_FromStringAndSize(<char*> &self.late, sizeof(int64_t)) + held if self.late or held else b""


cdef int load_late(Core self, bytes saved) except -1:
    """Before the leaves, in an empty window."""
    self.late = 0
    if saved:
        if len(saved) < <int64_t> sizeof(int64_t):
            raise SnapshotError(f"window state: {len(saved)} bytes of late readings, expected 8 at least")
        memcpy(&self.late, <const char*> saved, sizeof(int64_t))
    if self.late_buckets is not None:
        self.late_buckets.load(saved[sizeof(int64_t):])
    elif self.timed and len(saved) > <int64_t> sizeof(int64_t) and self.sorted is None:
        self.go_by_time()
    return 0


cdef int load_leaf(Core self, int64_t time, const Slot* leaf) except -1:
    """Of a stored window by time; older ones may hold late readings in order of arrival."""
    if self.sorted is None and time < self.newest:
        self.go_by_time()
    if self.sorted is not None:
        self.sorted.insert(time, leaf)
    else:
        self.keep_time(time)
        self.engine.push(leaf)
    self.newest = max(self.newest, time)
    return 0
