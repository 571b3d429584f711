"""One window's evolution, from a reading to the evicted edge, compiled; the twin is sluicegate.reference.core."""

cimport cython
from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.math cimport isnan
from libc.stdint cimport int64_t

from sluicegate.answers.results cimport BY_TIME, CUSTOM, Cut, bucket_answer, exact_answer, is_slot, is_whole, may_lack
from sluicegate.engines.base cimport Engine
from sluicegate.core.filling cimport fill_outputs, fill_program, fill_slots
from sluicegate.engines.tree.pairs cimport GIVEN, TOOK, Pairs
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, H_T_LAST, Slot, combine
from sluicegate.joining.small cimport takes_small
from sluicegate.engines.tree.staged cimport Staged
from sluicegate.core.state cimport KEPT_LEVELS
from sluicegate.core.taking cimport Taking
from sluicegate.memory.times cimport begin_times, clear_times, held_times
from sluicegate.partials.wide cimport make_extra
from sluicegate.histograms._rules cimport Rules

from sluicegate import catalogue
from sluicegate.errors import InvariantError
from sluicegate.monoids.layout import Op
from sluicegate.monoids.results import cut_bins, empty, lowered
from sluicegate.constants import FINER as _FINER
from sluicegate.constants import NEVER as _NEVER
from sluicegate.records import Saved, kept_slots
from sluicegate.records import Cut as CutTuple

cdef array.array DOUBLES = array.array("d")


@cython.final
cdef class Core(Taking):
    """A window's leaves, their engine, and what has been evicted."""

    def __cinit__(
        self, layout, str engine, int policy, int64_t value, int64_t limit, centers, Rules rules=None, int64_t hop=1,
        int up_to=0, eviction=None, merging=None, staging=None,
    ):
        self._layout = layout
        self.stored, self.timed = layout.width, policy == BY_TIME and not layout.header
        self.timed = self.timed and not engine.startswith("kvs_")  # those keep no more than O(log n) outside their store
        self.newest_slot = H_T_LAST if layout.header else layout.slot(Op.T_LAST)
        if self.timed:
            layout = layout.untimed
            begin_times(&self.times)
        self.latest_late = self.step = -1
        self.policy, self.value, self.hop, self.up_to = policy, value, hop, up_to
        self.bucketed, self.rules, self.ruled = layout.bucketed, rules, rules is not None
        self.centers_itself = layout.centered
        self.extreme_slot = layout.extreme_slot(up_to)
        self.accepted = self.created = self.mark = 0
        self.newest, self.edge, self.level, self.held = _NEVER, -1, 0, _NEVER
        self.known_head = -1
        self.p.width, self.p.steps = layout.width, len(layout.components)
        self.p.dimensions, self.answers = len(layout.dimensions), len(layout.monoids)
        self.allocate()
        self.p.extra = make_extra(layout)
        self.composites = self._layout.composites()  # of a partial as Python sees it
        fill_program(&self.p, layout)
        fill_outputs(self.outputs, &self.p, layout)
        self.keep_to(limit)
        self.room_for_runs()
        if self.ruled and self.rules.has_sums:
            fill_slots(self, layout)
        facts, self.engine_name = catalogue.check(engine, layout), engine
        self.kept = layout.width if facts.keeps_leaves else kept_slots(policy, layout, up_to)
        self.engine = <Engine?> catalogue.make(engine)
        self.merging, self.finer = merging is not None, _FINER if merging is not None else 1
        self.staging = staging is not None
        if self.staging:
            self.engine = self.staged = Staged()
            self.staged.guard(staging[0], staging[1], None if rules is None else rules.most, merging)
            self.pairs = self.staged.stored
        elif self.merging:
            self.engine = self.pairs = Pairs()
            self.pairs.measure(merging)
        self.engine.setup(&self.p, limit)
        self.engine.keep(self.kept)
        self.center_on(centers)
        self.take_condition(eviction)
        self.small = takes_small(self)
        self.plain = self.takes_blocks() and not engine.startswith("kvs_")
        self.as_is = self.answers == 1 and self.p.width == 1 and is_slot(self.outputs[0].kind)
        self.take_by = self.way_of()

    # answers

    def cut_oldest(self):
        """Where the edge cuts the oldest leaf of a window of buckets, None for an empty window."""
        self.look()
        if self.engine.head == self.engine.tail:
            return None
        cdef Cut where = self.cut_oldest_leaf()
        return CutTuple(where.least, where.most, where.taken)

    def results(self):
        """One answer per aggregate."""
        self.look()
        cdef Slot* out = self.reading + self.p.width
        values = self.as_values(NULL if self.answer_all(out) < 0 else out)
        if self.composites and self.engine.head < self.engine.tail:
            self.lower_composites(self.engine.total(), values)
            if self.bucketed:
                self.cut_composites(values)
        return values

    cdef int cut_composites(self, list values) except -1:
        """Those of a window whose edge cuts its oldest bucket: of the aggregates that buckets keep, histograms."""
        cdef Cut where = self.cut_oldest_leaf()
        cdef int64_t n = self.engine.leaf(self.engine.head)[H_COUNT].i
        if where.taken == n and where.least == n:
            return 0
        unpack = self._layout.format.unpack
        leaf, rest = unpack(self.pack(self.engine.leaf(self.engine.head))), self.pack(self.engine.rest())
        inside = unpack(rest) if rest else None
        for place, monoid, at in self.composites:
            values[place] = cut_bins(monoid.options, inside[at] if rest else None, leaf[at], n, where.taken)
        return 0

    cdef int lower_composites(self, const Slot* partial, list values) except -1:
        """The answers that are more than one number."""
        slots = self._layout.format.unpack(self.pack(partial))
        for place, monoid, where in self.composites:
            values[place] = lowered(monoid, slots[where])
        return 0

    def lower(self, bytes packed not None):
        """The answers for a partial by itself."""
        self.look()  # answers are put together where a batch puts its own
        cdef Slot* out = self.reading + self.p.width
        cdef const Slot* partial = self.partial_of(self.unpack(packed))
        cdef Cut where
        cdef int k
        cdef int64_t n = partial[H_COUNT].i if self._layout.header else 1
        where.least = where.most = where.taken = n
        for k in range(self.answers):
            if not self.bucketed:
                out[k] = exact_answer(&self.outputs[k], partial, n)
            else:
                out[k] = bucket_answer(
                    &self.outputs[k], partial, NULL, partial, where, self.center[self.outputs[k].dimension]
                )
        values = self.as_values(out)
        if self.composites:
            self.lower_composites(partial, values)
        return values

    cdef list as_values(self, const Slot* out):
        cdef int k, kind
        if out == NULL:
            return [empty(monoid) for monoid in self._layout.monoids]
        values = []
        for k in range(self.answers):
            kind = self.outputs[k].kind
            values.append(out[k].i if is_whole(kind) else None if may_lack(kind) and isnan(out[k].f) else out[k].f)
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
        cdef int level
        return [self.level_heads[level] for level in range(self.level % KEPT_LEVELS)]

    @property
    def centers(self):
        """μ₀ per dimension, None until the first reading decides it."""
        cdef int k
        return tuple([self.center[k] for k in range(self.p.dimensions)]) if self.centered else None

    @property
    def allocated(self):
        """Bytes of partials allocated."""
        return self.engine.bytes() + held_times(&self.times)

    # storage

    @property
    def engine_object(self):
        """The engine itself, for whoever gives it a store."""
        return self.engine

    def enforce_now(self):
        """Let leave what a built-in policy says, where a failure of the store kept it."""
        if self.policy != CUSTOM:
            self.enforce()
            return
        if self.condition.kind:
            self.evict_by_rule()
        self.note_edge()
        if self.ruled:
            self.settle()

    def save(self):
        """All but the closed leaves."""
        cdef Engine engine = self.engine
        self.look()
        self.require_leaves()
        newest = self.pack(engine.leaf(engine.tail - 1)) if self.bucketed and engine.head < engine.tail else b""
        return Saved(
            self.accepted, self.newest, self.edge, self.created, engine.head, engine.tail, self.mark, self.level,
            tuple(self.heads), self.centers or (), self.pack(engine.result(0)), self.pack(engine.result(1)), newest,
            self.histograms_state(), self.limit, self.held,
        )

    cdef bytes histograms_state(self):
        """Merged pairs first, which sluicegate.window.rebuilding.chain reads."""
        kept = self.staged if self.staging else self.pairs
        return (kept.state() if self.merging else b"") + (self.rules.state() if self.ruled else b"")

    def take_fresh(self):
        """(first ordinal, ordinal after the last, partial, took over others) of closed buckets not yet given out."""
        cdef int64_t index
        cdef int state
        self.look()
        found = []
        for index in range(self.engine.head, self.engine.tail - 1 if self.merging else 0):
            state = self.staged.take_state(index) if self.staging else self.pairs.take_state(index)
            if state != GIVEN:
                leaf = self.engine.leaf(index)
                after = leaf[H_O_FIRST].i + leaf[H_COUNT].i
                found.append((leaf[H_O_FIRST].i, after, self.pack(leaf), state == TOOK))
        return found

    def load(self, saved, leaves):
        """Take over a saved window whose leaves, oldest first, include the open one."""
        cdef int level
        cdef bytes leaf
        self.accepted, self.newest, self.edge = saved.accepted, saved.newest, saved.edge
        self.created, self.mark = saved.created, saved.mark
        self.level = saved.level
        self.held = saved.held
        self.keep_to(saved.limit)
        for level in range(self.level % KEPT_LEVELS):
            self.level_heads[level] = saved.heads[level]
        self.center_on(saved.centers or None)
        rules = saved.rules
        if self.staging:
            self.staged.load(rules[: self.staged.size], len(leaves))
            rules = rules[self.staged.size :]
        elif self.merging:
            self.pairs.load(rules[: self.pairs.size])
            rules = rules[self.pairs.size :]
        if self.ruled:
            self.rules.load(rules)
        self.engine.begin(saved.head)
        self.known_head = -1
        clear_times(&self.times)
        self.latest_late, self.newest = -1, _NEVER
        for leaf in leaves:
            if self.timed:
                self.keep_time(self.unpack(leaf).i)
                self.newest = max(self.newest, self.unpack(leaf).i)
            self.engine.push(self.partial_of(self.unpack(leaf)))
        self.newest, self.condition.wakes = saved.newest, 0
        left, right = saved.left, saved.right
        self.engine.finish(
            self.partial_of(self.unpack(left)) if left else NULL, self.partial_of(self.unpack(right)) if right else NULL
        )

    def verify(self):
        """Raise InvariantError where the window contradicts itself."""
        cdef Engine engine = self.engine
        cdef int64_t index, after = -1
        self.look()
        engine.check()
        if not self.bucketed:
            return
        if self.limit and self.constrained() > self.limit:
            raise InvariantError(f"{self.constrained()} buckets, the limit is {self.limit}")
        for index in range(engine.head, engine.tail):
            leaf = engine.leaf(index)
            if after >= 0 and leaf[H_O_FIRST].i != after:
                raise InvariantError(f"leaf {index} begins at ordinal {leaf[H_O_FIRST].i}, expected {after}")
            after = leaf[H_O_FIRST].i + leaf[H_COUNT].i
        if after >= 0 and after != self.accepted:
            raise InvariantError(f"the newest leaf ends before ordinal {after}, expected {self.accepted}")
