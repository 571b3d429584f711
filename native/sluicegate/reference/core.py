"""An exact window in Python: its readings go through a readable engine, and leave by count, by time or by a rule.

`object_core` makes it a window over Python objects. The tests' twin of the compiled core has it below its buckets.
Input is checked by the caller.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sluicegate import catalogue
from sluicegate.constants import BY_COUNT, BY_TIME, CUSTOM, NEVER
from sluicegate.errors import BusyError, ConfigurationError, InputError
from sluicegate.monoids.layout import T_LAST, Layout, Op
from sluicegate.monoids.results import as_number
from sluicegate.policies.eviction import EvictionRule
from sluicegate.reference.engines.daba import Daba
from sluicegate.reference.engines.engine import Engine
from sluicegate.reference.engines.fiba import Fiba
from sluicegate.reference.eviction import Rule
from sluicegate.reference.program import Partial, combiner, lift
from sluicegate.reference.results import exact_results

FAR_CENTER = 2.0**32  # a first reading from here on is no center: moments around it would lose their digits


class ExactCore:
    """A window's leaves, each of one reading, their engine, and what has been evicted.

    `policy`: BY_COUNT, BY_TIME or CUSTOM; `value`: its readings or µs; `hop`: the window moves on by so much at once.
    """

    def __init__(
        self,
        layout: Layout,
        engine: str,
        policy: int,
        value: int,
        limit: int = 0,
        centers: Sequence[float] | None = None,
        rules: None = None,
        hop: int = 1,
        up_to: int = 0,
        eviction: EvictionRule | None = None,
        merging: None = None,
        staging: None = None,
    ) -> None:
        """As the compiled `Core`; what makes buckets, or evicts up to an extreme, is not for windows like this."""
        self._layout, self.limit, self._policy, self._value, self._hop = layout, limit, policy, value, hop
        catalogue.check(engine, layout)
        self._combine = self._combiner(layout)
        self._engine = self._make(engine)
        self._timed = policy == BY_TIME and not layout.header  # leaves are single readings by time
        self._sorted = self._engine if self._timed and isinstance(self._engine, Fiba) else None
        self._newest_slot = T_LAST if layout.header else layout.slot(Op.T_LAST)
        self.centers: tuple[float, ...] | None = None if centers is None else tuple(centers)
        self.accepted, self.newest, self.edge, self.created, self.late = 0, NEVER, -1, 0, 0
        self._evicting = False
        self._eviction = eviction
        self._rule = None if eviction is None else Rule(eviction, self._engine, self._pack, self._evict)

    def _combiner(self, layout: Layout) -> Callable[[Partial, Partial], Partial]:
        return combiner(layout)

    def _make(self, engine: str) -> Engine:
        """Each keeps whole leaves."""
        return Fiba(self._combine) if engine == "fiba" else Daba(self._combine)

    def _make_sorted(self) -> Fiba:
        return Fiba(self._combine)

    # readings

    def insert(self, values: Sequence[float], time: int) -> None:
        """Take one reading and enforce a built-in policy."""
        self._refuse_evicting()
        self._refuse_fall([values])
        if not self._enters(values, time):
            return
        if self.centers is None:
            self.centers = self._centers_of(values)
        reading = self._lift(values, time)
        if self._timed and (self._sorted is not None or time < self.newest):
            self._insert_late(time, reading)
            self.created += 1
        else:
            self._place(values, reading, time)
        self.accepted += 1
        self.newest = max(self.newest, time)
        if self._policy != CUSTOM:
            self._enforce()
        elif self._rule is not None and self._eviction is not None:
            with self._eviction_under_way():
                self._rule.enforce(values[self._eviction.dimension])
        else:
            self._note_edge()

    def insert_many(
        self, values: memoryview[float], times: memoryview[int] | None, count: int, out: list[array[float]] | None
    ) -> None:
        """Take a batch of readings in a flat buffer; each result column gets one value a reading."""
        dimensions = len(self._layout.dimensions)
        rows = [[values[k] for k in range(i * dimensions, (i + 1) * dimensions)] for i in range(count)]
        self._refuse_fall(rows)
        for i, row in enumerate(rows):
            self.insert(row, times[i] if times is not None else self.accepted)
            if out is not None:
                for column, value in zip(out, self.results(), strict=True):
                    column[i] = as_number(value)

    def _enters(self, values: Sequence[float], time: int) -> bool:
        return not self._timed or time >= self.newest or self._belongs(time)

    def _centers_of(self, values: Sequence[float]) -> tuple[float, ...]:
        """The first reading, around which moments keep their digits, but where it would cost them all."""
        return tuple(x if self._layout.centered and abs(x) < FAR_CENTER else 0.0 for x in values)

    def _lift(self, values: Sequence[float], time: int) -> Partial:
        return lift(self._layout, values, time, self.accepted, self.centers or ())

    def _place(self, values: Sequence[float], reading: Partial, time: int) -> None:
        self._engine.push(reading)
        self.created += 1

    # event time

    def advance(self, time: int) -> None:
        """It is at least this late now: what that makes too old leaves."""
        if self._policy != BY_TIME:
            raise ConfigurationError("advance: only a window with policies.time has a time that goes on")
        if time > self.newest:
            self.newest = time
            self._enforce()

    @property
    def _time_cutoff(self) -> int:
        """Readings of this time or earlier are out."""
        return self.newest // self._hop * self._hop - self._value

    def _belongs(self, time: int) -> bool:
        """Whether a reading of this time is inside; one that is not is counted."""
        inside = time > self._time_cutoff
        self.late += not inside
        return inside

    def _insert_late(self, time: int, reading: Partial) -> None:
        """Put a reading where it belongs in time; an engine that needs order gives its leaves to one that does not."""
        if self._sorted is None:
            if time >= self._last_time():  # after `advance`
                self._engine.push(reading)
                return
            self._go_by_time()
        assert self._sorted is not None  # noqa: S101  it is by now
        self._sorted.insert(time, reading)

    def _last_time(self) -> int:
        engine = self._engine
        return int(engine.leaf(engine.tail - 1)[self._newest_slot]) if engine.head < engine.tail else NEVER

    def _go_by_time(self) -> None:
        """From here on the leaves stand by their times."""
        self._sort([self._engine.leaf(index) for index in range(self._engine.head, self._engine.tail)])

    def _sort(self, leaves: list[Partial]) -> None:
        head, self._sorted = self._engine.head, self._make_sorted()
        self._sorted.load_times(head, [int(leaf[self._newest_slot]) for leaf in leaves], leaves)
        self._engine = self._sorted

    # eviction

    @property
    def cutoff(self) -> int:
        """By time: readings of this time or earlier leave. By count: the ordinal of the first reading inside."""
        last = self.accepted if self._policy == BY_COUNT else self.newest
        return last // self._hop * self._hop - self._value

    def _enforce(self) -> None:
        if self._policy == BY_COUNT:
            self._engine.pop_to(max(self.cutoff, self._engine.head))
        elif self._sorted is not None:
            self._sorted.evict_through(self.cutoff)
        else:
            self._engine.pop_to(self._first_after(self.cutoff))
        self._settle()

    def _first_after(self, cutoff: int) -> int:
        """The first leaf that does not leave by time."""
        head = self._engine.head
        while head < self._engine.tail and self._engine.leaf(head)[self._newest_slot] <= cutoff:
            head += 1
        return head

    def _settle(self) -> None:
        self._note_edge()

    def _note_edge(self) -> None:
        """Where the window begins now."""
        self.edge = max(self.edge, self._engine.head - 1)
        if self._policy == BY_COUNT:
            self.edge = max(self.edge, self.cutoff - 1)

    def evict_oldest(self, count: int) -> None:
        """Evict so many of the oldest readings now. Raises InputError for more than it holds."""
        self._refuse_evicting()
        held = self._engine.tail - self._engine.head
        if not 0 <= count <= held:
            raise InputError(f"evict({count}): expected 0 to {held}, the readings the window holds")
        self._engine.pop_to(self._engine.head + count)
        self._note_edge()

    def evict(self, leaves: Callable[[Any, Any], bool], monotone: bool) -> None:
        """Evict by a user's rule of (total, old); what it raises leaves a consistent window."""
        self._refuse_evicting()
        with self._eviction_under_way():
            self._evict(lambda old: leaves(self._pack(self._engine.total()), self._pack(old)), monotone)

    def _evict(self, leaves: Callable[[Partial], bool], monotone: bool) -> None:
        """Single evictions first, then, after a log n of them, a bulk one where the policy is monotone."""
        engine = self._engine
        singles = (engine.tail - engine.head).bit_length() + 1 if monotone else engine.tail - engine.head
        for _ in range(singles):
            if engine.head == engine.tail or not leaves(engine.leaf(engine.head)):
                return
            engine.pop()
        if engine.head < engine.tail:
            engine.bulk(leaves)

    @contextmanager
    def _eviction_under_way(self) -> Iterator[None]:
        """A rule may not enter its own window."""
        self._evicting = True
        try:
            yield
        finally:
            self._evicting = False
            self._settle()

    def _refuse_evicting(self) -> None:
        if self._evicting:
            raise BusyError("window: busy with an eviction; a policy may not change its own window")

    def _refuse_fall(self, rows: Sequence[Sequence[float]]) -> None:
        """Refuse a batch whose growing attribute falls, before any of it enters."""
        if self._rule is None or self._eviction is None or not self._eviction.growing:
            return
        name, newest = self._layout.dimensions[self._eviction.dimension], self._rule.newest()
        for row in rows:
            newest = self._rule.refuse_fall(newest, row[self._eviction.dimension], name)

    # answers

    def results(self) -> list[Any]:
        """One answer per aggregate."""
        engine = self._engine
        return exact_results(self._layout, engine.total(), engine.tail - engine.head)

    def _pack(self, partial: Partial | None) -> Any:
        """A partial as a rule is given it."""
        raise NotImplementedError

    @property
    def head(self) -> int:
        """Absolute index of the oldest leaf."""
        return self._engine.head

    @property
    def tail(self) -> int:
        """Absolute index after the newest leaf."""
        return self._engine.tail

    @property
    def allocated(self) -> int:
        """Bytes of the partials held, about twice the leaves'."""
        return 16 * self._layout.width * (self._engine.tail - self._engine.head)

    def verify(self) -> None:
        """Raise InvariantError where the window contradicts itself."""
        self._engine.verify()
