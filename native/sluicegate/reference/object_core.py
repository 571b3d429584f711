"""A window over Python objects: the readable core, with a user's code kept from ever leaving it half-way.

A partial is the list of slots as everywhere, with an object in each slot of an `Op.OBJECT`. Where the user's operation
raises, the slot holds a `Failed` in place of its result: counts, times and all other aggregates stay right, eviction
goes on, and an answer that needs the slot is computed anew from the leaves, which are single lifted readings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial as partial_of
from threading import RLock
from typing import Any

from sluicegate.errors import AggregateError, BusyError
from sluicegate.monoids.layout import Layout, Op
from sluicegate.monoids.monoid import OBJECTS
from sluicegate.monoids.objects import Own, own_of
from sluicegate.reference.core import ExactCore
from sluicegate.reference.eviction import Rule
from sluicegate.reference.program import Partial, combiner
from sluicegate.reference.results import exact_results
from sluicegate.window.one_thread import alone


class Kept:
    """An object in a slot; equal to any other, since a user's objects need not know when they are (see `verify`)."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]  # as every mutable that compares

    def __init__(self, value: Any) -> None:
        """Keep an object; of a `Failed`, what was raised."""
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Whether a slot holds an object too."""
        return isinstance(other, Kept)


class Failed(Kept):
    """In place of a partial that the user's operation did not give, with what it raised."""

    __slots__ = ()


class ObjectCore(ExactCore):
    """A window of which some aggregates keep Python objects; the calls of `Core`, but nothing of it is stored."""

    def __init__(self, layout: Layout, engine: str, *rest: Any, **options: Any) -> None:
        """As `Core`."""
        self._own = [(place, layout.names[place], own_of(monoid), *_place(layout, place))
                     for place, monoid in enumerate(layout.monoids) if monoid.kind in OBJECTS]  # fmt: skip
        self._slots = list({slot: own for _, _, own, slot, _ in self._own}.items())
        self._engine_name = engine
        self._lifted: list[Any] = []
        self._alone = RLock()
        self._inside = False  # the user's code runs
        self._interrupt: BaseException | None = None
        super().__init__(layout, engine, *rest, **options)
        self._point_rule()

    # readings

    @alone
    def insert(self, values: Sequence[float], time: int) -> None:
        """Take one reading; AggregateError from `lift`: nothing has changed."""
        self._refuse_inside()
        self._lifted = [self._lift_own(name, own, values, reads, time) for _, name, own, _, reads in self._own]
        try:
            super().insert(values, time)
        finally:
            self._pass_on()

    insert_many = alone(ExactCore.insert_many)
    evict_oldest = alone(ExactCore.evict_oldest)

    def _lift_own(self, name: str, own: Own, values: Sequence[float], reads: tuple[int, ...], time: int) -> Any:
        value = values[reads[0]] if len(reads) == 1 else tuple(values[k] for k in reads)
        return self._answer(name, "lift; the reading is refused", lambda: own.lift(value, time))

    def _lift(self, values: Sequence[float], time: int) -> Partial:
        reading: list[Any] = super()._lift(values, time)
        for (_, _, _, slot, _), lifted in zip(self._own, self._lifted, strict=True):
            reading[slot] = Kept(lifted)
        return reading

    @alone
    def evict(self, leaves: Callable[[Any, Any], bool], monotone: bool) -> None:
        """Evict by a user's rule of (total, old)."""
        self._refuse_inside()
        try:
            super().evict(leaves, monotone)
        finally:
            self._pass_on()

    # the user's operation

    def _combiner(self, layout: Layout) -> Callable[[Partial, Partial], Partial]:
        plain = combiner(layout)

        def combine(a: Partial, b: Partial) -> Partial:
            out: list[Any] = plain(a, b)
            for slot, own in self._slots:
                out[slot] = self._guarded(own.combine, a[slot], b[slot])
            return out

        return combine

    def _guarded(self, operation: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        if isinstance(a, Failed) or isinstance(b, Failed):
            return a if isinstance(a, Failed) else b
        self._inside = True
        try:
            return Kept(operation(a.value, b.value))
        except BaseException as error:
            if not isinstance(error, Exception):
                self._interrupt = error
            return Failed(error)
        finally:
            self._inside = False

    def _answer(self, name: str, what: str, ask: Callable[[], Any]) -> Any:
        """What the user's code gives; AggregateError where it raises."""
        self._inside = True
        try:
            return ask()
        except Exception as error:
            raise AggregateError(f"aggregates[{name!r}]: {error!r} was raised by {what}") from error
        finally:
            self._inside = False

    def _refuse_inside(self) -> None:
        if self._inside:
            raise BusyError("window: busy combining; an aggregate may not use the window that it belongs to")

    def _pass_on(self) -> None:
        """Raise what is no error of the aggregate (KeyboardInterrupt, SystemExit), now that all is in its place."""
        if self._interrupt is not None:
            raised, self._interrupt = self._interrupt, None
            raise raised

    # answers

    @alone
    def results(self) -> list[Any]:
        """One answer per aggregate; AggregateError where the user's code raises, however often it is asked."""
        self._refuse_inside()
        total = self._engine.total()
        if total is not None and any(isinstance(total[slot], Failed) for slot, _ in self._slots):
            self._rebuild()
            total = self._engine.total()
        self._pass_on()
        return self._lowered(total, self._engine.tail - self._engine.head)

    def lower(self, packed: Any) -> list[Any]:
        """The answers for a partial by itself."""
        return self._lowered(packed, int(packed[0]) if self._layout.header else 1)

    def _lowered(self, total: Partial | None, leaves: int) -> list[Any]:
        answers = exact_results(self._layout, total, leaves)
        for place, name, own, slot, _ in self._own:
            if total is None and not hasattr(own, "neutral"):
                answers[place] = None
                continue
            partial = getattr(own, "neutral", None) if total is None else self._given(name, total[slot])
            answers[place] = self._answer(name, "lower; nothing has changed", partial_of(own.lower, partial))
        return answers

    def _given(self, name: str, slot: Any) -> Any:
        if isinstance(slot, Failed):
            where = "combine; the readings are in, and it is tried anew when asked again"
            raise AggregateError(f"aggregates[{name!r}]: {slot.value!r} was raised by {where}") from slot.value
        return slot.value

    def _rebuild(self) -> None:
        """Combine the leaves anew: what failed may work by now."""
        leaves = [self.leaf(index) for index in range(self._engine.head, self._engine.tail)]
        if self._sorted is not None:
            self._sort(leaves)
        else:
            fresh = self._make(self._engine_name)
            fresh.load(self._engine.head, leaves, None, None)
            self._engine = fresh
        self._point_rule()

    def _point_rule(self) -> None:
        """A built-in rule evicts from the engine there is; a compiled one reads 0 where a partial holds an object."""
        if self._eviction is not None:
            self._rule = Rule(self._eviction, self._engine, self._plain, self._evict)

    def _plain(self, partial: Partial | None) -> bytes:
        slots = [0 if isinstance(slot, Kept) else slot for slot in partial or ()]
        return self._layout.format.pack(*slots) if slots else b""

    verify = alone(ExactCore.verify)

    def require_leaves(self) -> None:
        """Its engines have them."""

    @alone
    def leaf(self, index: int) -> Any:
        """A leaf of the window, head ≤ index < tail; the partial itself."""
        return self._engine.leaf(index)

    def _pack(self, partial: Partial | None) -> Any:
        return b"" if partial is None else partial


def _place(layout: Layout, place: int) -> tuple[int, tuple[int, ...]]:
    """The slot of an aggregate over objects, and the indices of the dimensions it reads."""
    monoid = layout.monoids[place]
    slot = layout.exact_slots(monoid)[0]
    return slot, next(each.options[-1] for each in layout.components if each.slot == slot and each.op == Op.OBJECT)
