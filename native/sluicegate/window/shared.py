"""Several windows over one stream from one set of buckets: the longest keeps them, each shorter one has its own edge.

windows = sg.Windows({"mean": sg.mean()}, policies={"1h": time("1h"), "24h": time("24h"), "7d": time("7d")},
histograms=[sg.Constrained(256, merge="pairs")]) windows.insert(21.5, time=…) windows.query(bounds=True)["1h"]["mean"]

A bucket is a bucket for every window: where an edge lies between two of them a window is exact, where it cuts one the
answer is an interval as certain as the longest window's. What is held and stored is the longest window's alone.
Nothing is shared unless it is asked for: the shorter windows pay with wider intervals, but over a staircase.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

from sluicegate.constants import BY_COUNT, BY_TIME
from sluicegate.errors import ConfigurationError, SnapshotError
from sluicegate.histograms.composition import Histogram
from sluicegate.monoids import Monoid
from sluicegate.monoids.layout import COUNT, O_FIRST, T_LAST
from sluicegate.monoids.results import empty
from sluicegate.policies import Count, Time
from sluicegate.records import Bounded
from sluicegate.window import snapshot
from sluicegate.window.answers import of_nothing
from sluicegate.window.configure import Centers, Footprint, Value, Window

MOST = 64
_MAGIC = b"SGS\x1a"


class _Seen(NamedTuple):
    """Closed buckets as one partial: the ordinals first … end − 1."""

    first: int
    end: int
    partial: bytes


class _Part:
    """One shorter window: its policy, the greatest ordinal known to be evicted, what was folded last."""

    def __init__(self, policy: Count | Time) -> None:
        self.policy = policy
        self.kind = BY_COUNT if isinstance(policy, Count) else BY_TIME
        self.size = policy.limit if isinstance(policy, Count) else policy.span
        self.edge = -1
        self.seen: _Seen | None = None

    def cutoff(self, accepted: int, newest: int) -> int:
        """By time: readings of this time or earlier have left. By count: the ordinal of the first reading inside."""
        last = accepted if self.kind == BY_COUNT else newest
        return last // self.policy.hop * self.policy.hop - self.size


class Windows:
    """Several windows over one stream and one set of buckets: a name and a policy for each.

    `policies`: all by `count` or all by `time`, without `up_to`. The longest window keeps the buckets, and `histograms`
    decide where they end: `Constrained`, `MaxLike()`, which is exact for all of them, or `SumLike`, whose error is the
    longest window's. Raises ConfigurationError.

    A reading costs what it costs the longest window. A query of a shorter one takes O(log n) bucket reads, and combines
    what was closed since the last query; when its edge leaves a bucket, all buckets inside.
    """

    def __init__(
        self,
        aggregates: Mapping[str, Monoid] | Monoid,
        *,
        policies: Mapping[str, Any],
        histograms: Sequence[Histogram],
        center: Centers | None = None,
    ) -> None:
        name = _longest(policies, histograms)
        longest = Window(aggregates, policy=policies[name], histograms=histograms, center=center)
        self._take(longest, name, policies)

    @classmethod
    def over(cls, longest: Window, name: str, policies: Mapping[str, Any]) -> Self:
        """Shorter windows over the buckets of one that there is, called `name`; that stays the caller's to store.

        `policies`: theirs alone. What had left before is not known: intervals are certain all the same. Raises
        ConfigurationError.
        """
        if name in policies:
            raise ConfigurationError(f"windows: {name!r} is the longest one's name; expected another for a shorter one")
        all_of_them = {name: longest._policy, **policies}
        found = _longest(all_of_them, longest._histograms.histograms)
        if found != name:
            raise ConfigurationError(
                f"windows: {found!r} is longer than {name!r}; expected the longest to share its buckets"
            )
        windows = cls.__new__(cls)
        windows._take(longest, name, all_of_them)
        return windows

    def _take(self, longest: Window, name: str, policies: Mapping[str, Any]) -> None:
        self.longest, self._name = longest, name
        self._parts = {other: _Part(policy) for other, policy in policies.items() if other != name}
        self._names = tuple(policies)

    # readings

    def insert(self, value: float | Mapping[str, float] | Sequence[float], time: int | None = None) -> None:
        """Take one reading. Raises as `Window.insert`."""
        self.longest.insert(value, time)

    def insert_many(self, values: Any, times: Any = None) -> None:
        """Take a batch. Raises as `Window.insert_many`."""
        self.longest.insert_many(values, times, results=False)

    # answers

    @overload
    def query(self, bounds: Literal[False] = False) -> dict[str, dict[str, Value]]: ...
    @overload
    def query(self, bounds: Literal[True]) -> dict[str, dict[str, Bounded]]: ...

    def query(self, bounds: bool = False) -> dict[str, Any]:
        """Each window's results by name, as `Window.query` gives them; with `bounds` each with its certain interval."""
        return {name: self.answer(name, bounds) for name in self._names}

    @overload
    def answer(self, name: str, bounds: Literal[False] = False) -> dict[str, Value]: ...
    @overload
    def answer(self, name: str, bounds: Literal[True]) -> dict[str, Bounded]: ...
    @overload
    def answer(self, name: str, bounds: bool) -> dict[str, Any]: ...

    def answer(self, name: str, bounds: bool = False) -> dict[str, Any]:
        """One window's results, as `Window.query` gives them. Raises KeyError for a name that there is not."""
        if name == self._name:
            return self.longest.query(bounds=True) if bounds else self.longest.query()
        if name not in self._parts:
            raise KeyError(f"windows: {name!r}, expected one of {list(self._names)}")
        return self._answer(self._parts[name], bounds)

    def held(self, name: str) -> int:
        """The buckets that a window reaches into, whole or cut."""
        core = self.longest._core
        if name == self._name or core.head == core.tail:
            return len(self.longest)
        part = self._parts[name]
        cutoff = part.cutoff(core.accepted, core.newest)
        index = self._oldest(part, cutoff)
        return 0 if _left(part.kind, self._slots(core.leaf(index)), cutoff) else core.tail - index

    def _answer(self, part: _Part, bounds: bool) -> dict[str, Any]:
        core, layout = self.longest._core, self.longest._layout
        cutoff = part.cutoff(core.accepted, core.newest)
        index = self._oldest(part, cutoff) if core.head < core.tail else -1
        # after a silence all may have left; what came late is no newer than the newest bucket
        if index < 0 or _left(part.kind, self._slots(core.leaf(index)), cutoff):
            return {name: _nothing(monoid, bounds) for name, monoid in zip(layout.names, layout.monoids, strict=True)}
        oldest, newer = core.leaf(index), self._newer(part, index) or b""
        every = bounds or bool(self.longest._withheld)
        answers = core.answers_over(oldest, newer, part.kind, cutoff, part.edge, every)
        if every:
            given = self.longest._withhold(answers)
            answers = given if bounds else [each.value for each in given]
        return dict(zip(layout.names, answers, strict=True))

    def _oldest(self, part: _Part, cutoff: int) -> int:
        """The bucket that the window begins in, and what is known to have left: looked for from where it was last."""
        core = self.longest._core
        index = self._find(max(part.edge, 0))
        leaf = self._slots(core.leaf(index))
        while index < core.tail - 1 and _left(part.kind, leaf, cutoff):
            index += 1
            leaf = self._slots(core.leaf(index))
        part.edge = max(part.edge, int(leaf[O_FIRST]) - 1)
        if part.kind == BY_COUNT:
            part.edge = max(part.edge, cutoff - 1)
        return index

    def _newer(self, part: _Part, index: int) -> bytes | None:
        """The buckets after that one as one partial; the closed ones are kept folded."""
        core = self.longest._core
        if index == core.tail - 1:
            return None
        newest = core.leaf(core.tail - 1)
        closed = self._closed(part, index + 1)
        return newest if closed is None else core.combine(closed, newest)

    def _closed(self, part: _Part, begin: int) -> bytes | None:
        core, end = self.longest._core, self.longest._core.tail - 1
        if begin == end:
            return None
        first, last = self._first(begin), self._first(end)
        folded, at = self._known(part, first, begin)
        while at < end:
            leaf = core.leaf(at)
            folded = leaf if folded is None else core.combine(folded, leaf)
            at += 1
        assert folded is not None  # noqa: S101  begin < end
        part.seen = _Seen(first, last, folded)
        return folded

    def _known(self, part: _Part, first: int, begin: int) -> tuple[bytes | None, int]:
        """What was folded before, where it begins here and ends where a bucket does; and the bucket after it."""
        seen = part.seen
        if seen is None or seen.first != first:
            return None, begin
        at = self._find(seen.end)
        return (seen.partial, at) if self._first(at) == seen.end else (None, begin)

    def _find(self, ordinal: int) -> int:
        """The bucket that holds this reading; the oldest where it has left."""
        low, high = self.longest._core.head, self.longest._core.tail - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._first(middle) <= ordinal:
                low = middle
            else:
                high = middle - 1
        return low

    def _first(self, index: int) -> int:
        return self.longest._first(index)

    def _slots(self, packed: bytes) -> list[Any]:
        return list(self.longest._layout.format.unpack(packed))

    # what it costs, and how it survives

    @property
    def footprint(self) -> Footprint:
        """The longest window's: there is nothing else but a partial a window."""
        return self.longest.footprint

    @property
    def accepted(self) -> int:
        """Readings taken so far."""
        return self.longest.accepted

    @property
    def edges(self) -> dict[str, int]:
        """The greatest ordinal known to have left each shorter window: all that is kept of it besides the longest."""
        return {name: part.edge for name, part in self._parts.items()}

    def know(self, edges: Mapping[str, int]) -> None:
        """Take over what was known to have left. Raises SnapshotError for what cannot be; nothing changed then."""
        for name, edge in edges.items():
            if name not in self._parts or not -1 <= edge < max(self.longest.accepted, 1):
                raise SnapshotError(f"windows: {edge} of {name!r} cannot have left of {self.longest.accepted} readings")
        for name, edge in edges.items():
            self._parts[name].edge = edge

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or pickled, as a window does. Raises TypeError."""
        return self.longest.__reduce_ex__(protocol)

    def snapshot(self) -> bytes:
        """All of it, exactly; `restore` continues with the same intervals."""
        edges = struct.pack(f"<{len(self._parts)}q", *(part.edge for part in self._parts.values()))
        return _MAGIC + self._owner() + edges + self.longest.snapshot()

    @classmethod
    def restore(
        cls,
        data: bytes,
        aggregates: Mapping[str, Monoid] | Monoid,
        *,
        policies: Mapping[str, Any],
        histograms: Sequence[Histogram],
        center: Centers | None = None,
    ) -> Self:
        """The windows that `data` is a snapshot of, given the same configuration. Raises as `Window.restore`."""
        name = _longest(policies, histograms)
        windows = cls.__new__(cls)
        head = len(_MAGIC) + 16 + 8 * (len(policies) - 1)
        made = Window.restore(data[head:], aggregates, policy=policies[name], histograms=histograms, center=center)
        windows._take(made, name, policies)
        if data[: len(_MAGIC) + 16] != _MAGIC + windows._owner():
            raise SnapshotError("windows: these bytes are of other policies, or none of Windows.snapshot's")
        edges = struct.unpack(f"<{len(policies) - 1}q", data[len(_MAGIC) + 16 : head])
        for part, edge in zip(windows._parts.values(), edges, strict=True):
            if not -1 <= edge < made.accepted:
                raise SnapshotError(f"windows: {edge} readings have left of {made.accepted}; the bytes are damaged")
            part.edge = edge
        return windows

    def _owner(self) -> bytes:
        return snapshot.fingerprint([f"{name}:{part.policy.name}" for name, part in self._parts.items()])


def _left(kind: int, leaf: Sequence[Any], cutoff: int) -> bool:
    """Whether nothing of a bucket is inside, where all before it has left."""
    return bool(leaf[O_FIRST] + leaf[COUNT] <= cutoff if kind == BY_COUNT else leaf[T_LAST] <= cutoff)


def _nothing(monoid: Monoid, bounds: bool) -> Any:
    value = empty(monoid)
    return of_nothing(monoid, value) if bounds else value


def _longest(policies: Mapping[str, Any], histograms: Sequence[Histogram]) -> str:
    """The name of the one that keeps the buckets; refuses what cannot share them."""
    if not isinstance(policies, Mapping):
        raise ConfigurationError(
            f"windows: policies {policies!r}, expected names with a policy each: {{'1h': time('1h')}}"
        )
    if not policies or len(policies) > MOST:
        raise ConfigurationError(f"windows: {len(policies)} policies, expected 1 to {MOST}")
    if not histograms:
        raise ConfigurationError(
            "windows: no histograms, so there are no buckets to share; give Constrained(n) or another, or take "
            "a Window each"
        )
    kinds = {type(policy) for policy in policies.values()}
    if not (kinds == {Count} or kinds == {Time}) or any(policy.up_to for policy in policies.values()):
        names = [getattr(policy, "name", repr(policy)) for policy in policies.values()]
        raise ConfigurationError(
            f"windows: policies {names}, expected all by count or all by time, without up_to: else no one of them "
            "holds what the others need"
        )
    name = max(policies, key=lambda each: _size(policies[each]))
    for other, policy in policies.items():
        if other != name and _size(policy) + policy.hop - 1 > _size(policies[name]):
            raise ConfigurationError(
                f"windows: {other!r} holds up to {_size(policy) + policy.hop - 1} while it waits for its hop, more "
                f"than {name!r}; expected a longer one, or a smaller hop"
            )
    return name


def _size(policy: Count | Time) -> int:
    return policy.limit if isinstance(policy, Count) else policy.span
