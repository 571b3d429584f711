"""`Join`: two windows, each reading matched with what the other side's window holds. Source: 6.1.2.

A reading enters its own side's window (evict → insert → trigger), and the trigger matches it. The inner join gives
matches; an outer one also what leaves its window without ever having been matched, when it leaves.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

from sluicegate.errors import ConfigurationError, ForeignSnapshotError, SnapshotError
from sluicegate.windowing.events import Clock, WindowHandler
from sluicegate.windowing.operator import WindowOperator, wall_clock
from sluicegate.windowing.partitions import Partition
from sluicegate.windowing.reading import check_key, key_reader
from sluicegate.windowing.saving import as_kept, key_of, key_table, opened, sealed
from sluicegate.windowing.spec import WindowSpec
from sluicegate.windowing.triggers import CountTrigger

OUTER = {"inner": (False, False), "left": (True, False), "right": (False, True), "full": (True, True)}
_MAGIC: Final = b"SGJOINED"
Condition = Callable[[Any, Any], Any]


class Match(NamedTuple):
    """A pair; the side that is missing in an outer join is None."""

    left: Any
    right: Any


class _Entry:
    """A reading that waits in its window."""

    __slots__ = ("matched", "ordinal", "place", "reading")

    def __init__(self, reading: Any, place: Hashable, ordinal: int) -> None:
        self.reading, self.place, self.ordinal, self.matched = reading, place, ordinal, False


class _Side(WindowHandler):
    """One window with its index. It keeps the entries itself, in the window's order."""

    keeps_readings = False

    def __init__(self, join: Join, spec: WindowSpec | None, on: Any, outer: bool, clock: Clock) -> None:
        self.join, self.outer, self.on, self.asked = join, outer, key_reader(on), (spec, on, outer, clock)
        self.partition = key_reader(None if spec is None else spec.key)
        self.keyed = spec is not None and spec.key is not None
        self.index: dict[Hashable, dict[int, _Entry]] = {}
        self.entries: dict[Hashable, deque[_Entry]] = {}
        self.arrived = 0
        self.newest: _Entry | None = None
        self.window = None if spec is None else WindowOperator(spec, self, clock)

    def entry(self, reading: Any) -> _Entry:
        """What is known of a reading before it enters. Raises InputError where its keys cannot be read."""
        place = self._place(reading)
        check_key(place)
        self.arrived += 1
        return _Entry(reading, place, self.arrived)

    def state(self) -> dict[str, Any]:
        """Its window, and the entries by partition, of what JSON has."""
        window = None if self.window is None else b64encode(self.window.snapshot()).decode()
        waiting = (
            (key_table(key), [(as_kept("join", each.reading), each.ordinal, each.matched) for each in entries])
            for key, entries in self.entries.items()
        )
        return {"window": window, "arrived": self.arrived, "entries": list(waiting)}

    def taken_up(self, state: dict[str, Any]) -> _Side:
        """A side alike that goes on from what one said. Raises SnapshotError, KeyError, TypeError, ValueError."""
        made = _Side(self.join, *self.asked)
        if (made.window is None) != (state["window"] is None):
            raise ForeignSnapshotError("snapshot: of a join with other windows")
        if made.window is not None:
            made.window.restore(b64decode(state["window"]))
        made.arrived = state["arrived"]
        for key, waiting in state["entries"]:
            made.entries[key_of(key)] = deque(made._again(*each) for each in waiting)
        every = (entry for entries in made.entries.values() for entry in entries)
        for entry in sorted(every, key=lambda each: each.ordinal):
            made.index.setdefault(entry.place, {})[entry.ordinal] = entry
        return made

    def _again(self, reading: Any, ordinal: int, matched: bool) -> _Entry:
        entry = _Entry(reading, self._place(reading), ordinal)
        entry.matched = matched
        return entry

    def _place(self, reading: Any) -> Hashable:
        return self.on(reading), self.partition(reading) if self.join.keyed else None

    def after_insert(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """Into the index."""
        entry = self.newest
        if entry is not None:
            self.entries.setdefault(key, deque()).append(entry)
            self.index.setdefault(entry.place, {})[entry.ordinal] = entry

    def trigger(self, window: WindowOperator, key: Hashable) -> None:
        """Its reading is matched with the other side."""
        if self.newest is not None:
            self.join._match(self, self.newest)

    def before_evict(self, window: WindowOperator, key: Hashable, reading: Any) -> None:
        """What leaves unmatched is an outer join's."""
        self._remove(self.entries[key].popleft())

    def partition_eviction(self, window: WindowOperator, partitions: Sequence[Partition]) -> None:
        """All of a partition leave, the oldest first."""
        for each in partitions:
            for entry in self.entries.pop(each.key, ()):
                self._remove(entry)

    def _remove(self, entry: _Entry) -> None:
        waiting = self.index[entry.place]
        del waiting[entry.ordinal]
        if not waiting:
            del self.index[entry.place]
        self.join._unmatched(self, entry)


class Join:
    """Joins the readings of two streams, `left(reading)` and `right(reading)`, each of which returns the matches.

    `left_window`, `right_window`: sliding windows with the trigger `sg.triggers.count(1)`; None keeps nothing of that
    side, whose readings are then matched only with what has come before. `on`: an attribute, several, or a callable,
    equal on both sides (None equals nothing); `left_on` and `right_on` where they differ. `where(left, right)`: a
    condition besides. `how`: "inner", "left", "right" or "full".
    Where both windows have a key, readings of one partition match those of the same partition of the other.
    """

    def __init__(
        self,
        left_window: WindowSpec | None,
        right_window: WindowSpec | None,
        *,
        on: Any = None,
        left_on: Any = None,
        right_on: Any = None,
        where: Condition | None = None,
        how: str = "inner",
        clock: Clock | None = None,
    ) -> None:
        _check(left_window, right_window, on, left_on, right_on, how)
        self._clock = wall_clock if clock is None else clock
        self._now, self._how = 0, how
        self._where, self._given = where, on is not None or left_on is not None
        self.keyed = all(spec is not None and spec.key is not None for spec in (left_window, right_window))
        self._emitted: list[Match] = []
        left_on, right_on = (left_on, right_on) if on is None else (on, on)
        self._left = _Side(self, left_window, left_on, OUTER[how][0], self._frozen)
        self._right = _Side(self, right_window, right_on, OUTER[how][1], self._frozen)

    def _frozen(self) -> int:
        """One time for both windows while a reading is matched."""
        return self._now

    def left(self, reading: Any) -> list[Match]:
        """A reading of the left stream."""
        return self._insert(self._left, reading)

    def right(self, reading: Any) -> list[Match]:
        """A reading of the right stream."""
        return self._insert(self._right, reading)

    def advance(self, to: int | None = None) -> list[Match]:
        """Time passes in both windows."""
        self._now = self._clock() if to is None else to
        self._pass()
        return self._taken()

    def drain(self) -> list[Match]:
        """At the end of the streams: what an outer join still holds unmatched, by side and in order of arrival."""
        for side in (self._left, self._right):
            waiting = [entry for entries in side.entries.values() for entry in entries if not entry.matched]
            for entry in sorted(waiting, key=lambda each: each.ordinal):
                self._unmatched(side, entry)
                entry.matched = True
        return self._taken()

    def snapshot(self) -> bytes:
        """What both windows hold, what has been matched, and matches not returned yet, as bytes without code.

        Raises ConfigurationError for readings and keys that are not what JSON has.
        """
        told = {"how": self._how, "now": self._now, "emitted": self._emitted}
        return sealed(told | {"sides": [self._left.state(), self._right.state()]}, _MAGIC)

    def restore(self, saved: bytes) -> None:
        """Go on from a snapshot of the same join. Raises SnapshotError, and nothing has changed."""
        told = opened(saved, _MAGIC)
        if told["how"] != self._how:
            raise ForeignSnapshotError(f"snapshot: of how={told['how']!r}, this join is {self._how!r}")
        try:
            left, right = (
                side.taken_up(state) for side, state in zip((self._left, self._right), told["sides"], strict=True)
            )
            emitted = [Match(*each) for each in told["emitted"]]
        except SnapshotError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"snapshot: contradicts itself: {error!r}") from error
        self._left, self._right, self._emitted, self._now = left, right, emitted, told["now"]

    def _insert(self, side: _Side, reading: Any) -> list[Match]:
        entry = side.entry(reading)
        self._now = self._clock()
        self._pass()
        if side.window is None:
            self._match(side, entry)
            self._unmatched(side, entry)
        else:
            side.newest = entry
            side.window.insert(reading)
        return self._taken()

    def _pass(self) -> None:
        """What the other side's window holds must be what it holds now."""
        for side in (self._left, self._right):
            if side.window is not None:
                side.window.advance(self._now)

    def _match(self, side: _Side, entry: _Entry) -> None:
        on_left = side is self._left
        if self._given and _empty(entry.place[0]):  # type: ignore[index]
            return
        for other in list((self._right if on_left else self._left).index.get(entry.place, {}).values()):
            pair = Match(entry.reading, other.reading) if on_left else Match(other.reading, entry.reading)
            if self._where is None or self._where(*pair):
                entry.matched = other.matched = True
                self._emitted.append(pair)

    def _unmatched(self, side: _Side, entry: _Entry) -> None:
        if side.outer and not entry.matched:
            left = side is self._left
            self._emitted.append(Match(entry.reading if left else None, None if left else entry.reading))

    def _taken(self) -> list[Match]:
        emitted, self._emitted = self._emitted, []
        return emitted


def _empty(key: Any) -> bool:
    """A missing value equals nothing, as in SQL."""
    return key is None or (isinstance(key, tuple) and None in key)


def _check(left: WindowSpec | None, right: WindowSpec | None, on: Any, left_on: Any, right_on: Any, how: str) -> None:
    if left is None and right is None:
        raise ConfigurationError("Join: neither side has a window, so nothing could ever match")
    for place, spec in (("left_window", left), ("right_window", right)):
        if spec is not None and (spec.kind != "sliding" or spec.trigger != CountTrigger(1) or not spec.partial):
            raise ConfigurationError(
                f"Join: {place}: each reading is matched as it comes: expected kind='sliding', partial windows and the "
                "trigger sg.triggers.count(1)"
            )
    if how not in OUTER:
        raise ConfigurationError(f"Join: how={how!r}, expected one of {', '.join(OUTER)}")
    if (left_on is None) != (right_on is None) or (on is not None and left_on is not None):
        raise ConfigurationError("Join: expected on, or left_on and right_on, or none of them")
