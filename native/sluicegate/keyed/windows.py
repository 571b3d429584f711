"""`KeyedWindows`: a sliding window for each of many keys, by one definition, in little memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar
from zlib import crc32

from sluicegate import policies
from sluicegate.checks import is_whole
from sluicegate.errors import (
    BusyError,
    ConfigurationError,
    ForeignSnapshotError,
    InputError,
    InvariantError,
    NewerSnapshotError,
    SnapshotError,
)
from sluicegate.keyed import intervals
from sluicegate.keyed.core import KeyedCore
from sluicegate.keyed.definition import Definition, Left, Totals
from sluicegate.monoids import Monoid
from sluicegate.policies import Count, Policy, Time
from sluicegate.window.batches import flat_times, flat_values
from sluicegate.windowing.partitions import PartitionEviction
from sluicegate.windowing.spec import WindowSpec

Key = int | str
MOST_BUCKETS: Final = 1 << 16
LEAST_MEMORY: Final = 1 << 16
MOST_MEMORY: Final = 1 << 53
_MAGIC: Final = b"SGKEYED"
_VERSION: Final = 1
_REASONS: Final = ("count", "readings", "age", "memory")
Given = ParamSpec("Given")
Found = TypeVar("Found")


def _alone(call: Callable[Concatenate[Any, Given], Found]) -> Callable[Concatenate[Any, Given], Found]:
    @wraps(call)
    def guarded(self: Any, /, *args: Given.args, **named: Given.kwargs) -> Found:
        if self._busy:
            raise BusyError("keyed windows: in use, by another thread or by the on_leave that asks")
        self._busy = True
        try:
            return call(self, *args, **named)
        finally:
            self._busy = False

    return guarded


class KeyedWindows:
    """A window for each key: the newest n readings, or the last stretch of event time, whatever order they come in.

    `aggregates`: `sg.count()`, `sum`, `mean`, `min`, `max` or `range`, or several by name; of windows without `buckets`
    also `variance`, `std`, `first`, `last`, `argmin`, `argmax`, which walk over the readings when asked. `policy`:
    `sg.policies.count(n)` or `.time("1h")`. `buckets`: at most so many for each key instead of all readings; results
    then have intervals. `partitions`: which keys leave (`sg.PartitionEviction`); a callable `select` is given all of
    them, as `sluicegate.keyed.definition.Held`. `clock`: "key", each has its own event time; or "shared", one for all
    (a group-by). `memory`: bytes at most (`nbytes`); beyond, partitions leave. `on_leave` is given each that leaves by
    the limits, as `sluicegate.keyed.definition.Left`, before it is gone.

    A reading of a time that its key's window has left behind is counted (`late`) and changes nothing. Raises
    ConfigurationError for what cannot be.
    """

    def __init__(
        self, aggregates: Monoid | Mapping[str, Monoid], *, policy: Policy, buckets: int | None = None,
        partitions: PartitionEviction | None = None, clock: str = "key", memory: int | None = None,
        on_leave: Callable[[Left], object] | None = None,
    ) -> None:  # fmt: skip
        """See the class."""
        self._single = isinstance(aggregates, Monoid)
        self._kinds = _kinds(aggregates)
        self._definition = _definition(self._kinds, policy, buckets, partitions, clock, memory)
        self._timed = any(kind in ("argmin", "argmax") for kind in self._kinds.values())
        self._on_leave = on_leave
        self._busy = False
        self._base: int | None = None  # checksum of the last snapshot or changes
        self._core = self._new_core()

    @classmethod
    def of(cls, spec: WindowSpec, aggregates: Monoid | Mapping[str, Monoid], **options: Any) -> Self:
        """The windows of a definition: sliding, asked, by count or time, with a key that the caller gives.

        `options`: `buckets`, `clock`, `memory`, `on_leave`. Raises ConfigurationError naming what it has not.
        """
        if not spec.asked:
            raise ConfigurationError(f"kind: {spec.kind} with a trigger or an end; sg.operators.Aggregate runs it")
        if spec.key is None:
            raise ConfigurationError("key: missing; without one take sg.Window")
        policy: Any = spec.evict
        return cls(aggregates, policy=policy, partitions=spec.partitions, **options)

    def _new_core(self) -> Any:
        return KeyedCore(self._definition, self._on_leave)

    def __len__(self) -> int:
        """How many keys have a partition."""
        return int(self._core.live)

    def __contains__(self, key: object) -> bool:
        """Whether a key has a partition."""
        return type(key) in (int, str) and self._core.slot(key) >= 0

    @property
    def accepted(self) -> int:
        """Readings that entered."""
        return int(self._core.accepted)

    @property
    def late(self) -> int:
        """Readings that came too late for their key's window."""
        return int(self._core.late)

    @property
    def readings(self) -> int:
        """Readings held for all keys. A bucket counts whole; with a shared clock a silent key's count until asked."""
        return int(self._core.readings)

    @property
    def left(self) -> dict[str, int]:
        """How many partitions left by the count of partitions, of readings, by age and by memory."""
        return dict(zip(_REASONS, self._core.left, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes that all partitions take, with their allocations' own; `memory` bounds it."""
        return int(self._core.nbytes)

    @_alone
    def insert_many(self, keys: Any, values: Any, times: Any = None) -> None:
        """Readings in order of arrival: keys int64 or a list of int and str, values float64, times int64 µs; all (n,).

        Without `times` only by count, without age and with a clock a key. Raises InputError, naming the index, before
        anything has changed; PolicyError where `on_leave` or `select` raised, when all readings are in.
        """
        view, count, _ = flat_values(values, 1)
        if times is None and self._timed:
            raise InputError("times: missing; argmin and argmax are times")
        if times is not None:
            times = flat_times(times, count)
        elif self._definition.by_time or self._definition.age or self._definition.shared:
            raise InputError("times: missing; a window by time, an age and a shared clock need them")
        if isinstance(keys, list | tuple):
            self._check_length(len(keys), count)
            self._core.insert_keys(list(keys), view, times)
            return
        try:
            given = memoryview(keys)
        except TypeError:
            raise InputError(f"keys: {type(keys).__name__}, expected int64 or a list of int and str") from None
        if given.format not in ("q", "l", "@q", "@l", "=q") or given.itemsize != 8:
            raise InputError(f"keys: elements of format {given.format!r}, expected int64 ('q'), or a list for texts")
        if given.ndim != 1 or not given.c_contiguous:
            raise InputError(f"keys: of shape {given.shape}, expected (n,) and contiguous")
        self._check_length(len(given), count)
        self._core.insert_numbers(given.cast("B").cast("q") if count else given, view, times)

    def _check_length(self, keys: int, values: int) -> None:
        if keys != values:
            raise InputError(f"keys: {keys} of them for {values} readings; expected one each")

    def insert(self, key: Key, value: float, time: int | None = None) -> None:
        """One reading; as `insert_many`."""
        self.insert_many([key], [value], None if time is None else [time])

    @_alone
    def advance(self, time: int) -> None:
        """Say that it is at least `time` (µs) now for every key: readings and partitions that are too old leave.

        Takes time for each partition. Raises InputError for a window by count without age, and for what is no time.
        """
        if not (self._definition.by_time or self._definition.age):
            raise InputError("advance: a window by count has no time; use policy=sg.policies.time(…), or an age")
        self._core.advance(flat_times([time], 1)[0])

    @_alone
    def query(self, key: Key, *, bounds: bool = False) -> Any:
        """The key's result, or a dict of them; with `bounds` as `Bounded`. Raises KeyError without a partition."""
        slot = self._core.slot(key)
        if slot < 0:
            raise KeyError(key)
        return self._answer(self._core.totals(slot), self._readings(slot) if bounds else None)

    def query_all(self, *, bounds: bool = False, piece: int = 1024) -> Iterator[dict[Key, Any]]:
        """All keys' results, `piece` keys at a time.

        Between two pieces readings may enter: a key that is there throughout comes once.
        """
        if isinstance(piece, bool) or not isinstance(piece, int) or not 1 <= piece < 1 << 31:
            raise ConfigurationError(f"piece: {piece!r}, expected a whole number from 1 to 2^31 - 1")
        begin = 0
        while begin >= 0:
            found, begin = self._piece(begin, piece, bounds)
            if found:
                yield {key: self._answer(totals, readings) for key, totals, readings in found}

    @_alone
    def _piece(self, begin: int, size: int, bounds: bool) -> tuple[list[tuple[Key, Totals, list[float] | None]], int]:
        found, begin = self._core.piece(begin, size)
        slot = self._core.slot
        return [(key, totals, self._readings(slot(key)) if bounds else None) for key, totals in found], begin

    def _readings(self, slot: int) -> list[float]:
        """The values of a partition, which its intervals are told from; of one of buckets none are kept."""
        return [] if self._definition.width else [value for _, value in self._core.rows(slot)]

    def _answer(self, totals: Totals, readings: list[float] | None) -> Any:
        """With `readings` each as `Bounded`."""
        answers = {
            name: intervals.value(kind, totals) if readings is None else intervals.bounded(kind, totals, readings)
            for name, kind in self._kinds.items()
        }
        return answers[""] if self._single else answers

    @_alone
    def verify(self) -> None:
        """Raises InvariantError where the structures contradict one another. Takes time for each reading."""
        self._core.verify()

    @_alone
    def snapshot(self) -> bytes:
        """All partitions; `restore` takes it."""
        return self._saved(True)

    @_alone
    def changes(self) -> bytes:
        """What changed since the last `snapshot` or `changes`, by partition: `restore` takes them in this order.

        The first is a snapshot. Where one was lost, take a snapshot.
        """
        return self._saved(self._base is None)

    def _saved(self, whole: bool) -> bytes:
        head = {
            "window": self._identity(), "order": sys.byteorder, "base": None if whole else self._base,
            "counters": self._core.counters,
        }  # fmt: skip
        text = json.dumps(head).encode()
        saved: bytes = _MAGIC + bytes([_VERSION]) + len(text).to_bytes(4, "little") + text + self._core.save(whole)
        self._base = crc32(saved)
        return saved + self._base.to_bytes(4, "little")

    def _identity(self) -> list[Any]:
        """What a partition's rows mean; limits may be others after a restart."""
        return [*self._definition[:4], list(self._kinds.values()), self._definition.shared]

    @_alone
    def restore(self, snapshot: bytes, *changes: bytes) -> None:
        """Go on from a snapshot and all `changes` since it, in place of what is here.

        Answers are as they were; sums may round differently. Raises SnapshotError where one is damaged or missing,
        ForeignSnapshotError of another definition; then nothing has changed.
        """
        core, base = self._new_core(), None
        for i, saved in enumerate((snapshot, *changes)):
            place = f"changes[{i - 1}]" if i else "snapshot"
            head, payload, checksum = _opened(place, saved)
            mine = json.loads(json.dumps(self._identity()))
            if head["window"] not in (mine, mine[:-1]) or head["order"] != sys.byteorder:  # older ones without clock
                raise ForeignSnapshotError(f"{place}: of {head['window']}, this window is {mine}")
            if head["base"] != base:
                raise SnapshotError(f"{place}: does not follow the one before; give a snapshot and all changes since")
            try:
                core.load(payload)
            except UnicodeDecodeError as error:
                raise SnapshotError(f"{place}: damaged: a key is no text: {error}") from None
            core.counters = tuple(head["counters"])
            base = checksum
        try:
            core.verify()
        except InvariantError as error:
            raise SnapshotError(f"snapshot: contradicts itself: {error}") from error
        self._core, self._base = core, base


def _opened(place: str, saved: bytes) -> tuple[dict[str, Any], bytes, int]:
    """Header, partitions and checksum of what was saved."""
    if len(saved) < len(_MAGIC) + 9 or not saved.startswith(_MAGIC):
        raise SnapshotError(f"{place}: no snapshot of windows by key")
    if saved[len(_MAGIC)] > _VERSION:
        raise NewerSnapshotError(f"{place}: of version {saved[len(_MAGIC)]}, this Sluicegate reads {_VERSION}")
    checksum = int.from_bytes(saved[-4:], "little")
    if crc32(saved[:-4]) != checksum:
        raise SnapshotError(f"{place}: damaged or cut short: its checksum is another")
    begin = len(_MAGIC) + 5
    end = begin + int.from_bytes(saved[begin - 4 : begin], "little")
    try:
        return json.loads(saved[begin:end]), saved[end:-4], checksum
    except ValueError as error:
        raise SnapshotError(f"{place}: damaged: its header is no JSON: {error}") from None


def _kinds(aggregates: Any) -> dict[str, str]:
    """The kind of each aggregate by its name, "" where there is one alone."""
    named = {"": aggregates} if isinstance(aggregates, Monoid) else aggregates
    if not isinstance(named, Mapping) or not named:
        raise ConfigurationError(f"aggregates: {aggregates!r}, expected an aggregate or several by name")
    for name, each in named.items():
        place = f"aggregates[{name!r}]" if name else "aggregates"
        if not isinstance(each, Monoid) or each.kind not in intervals.NEEDS:
            given = each.kind if isinstance(each, Monoid) else repr(each)
            raise ConfigurationError(f"{place}: {given}; windows by key have {', '.join(intervals.NEEDS)}")
        if each.dimension is not None or each.options or each.ddof:
            raise ConfigurationError(f"{place}: {each.kind} with a dimension or options; windows by key have none")
    return {name: each.kind for name, each in named.items()}


def _definition(
    kinds: dict[str, str], policy: Any, buckets: Any, partitions: Any, clock: Any, memory: Any
) -> Definition:
    if not isinstance(policy, Count | Time) or policy.hop > 1 or policy.up_to:
        raise ConfigurationError(f"policy: {policy!r}, expected policies.count(n) or .time(span), no hop, no up_to")
    length = policy.limit if isinstance(policy, Count) else policy.span
    if buckets is not None and (type(buckets) is not int or not 2 <= buckets <= MOST_BUCKETS):
        raise ConfigurationError(f"buckets: {buckets!r}, expected a whole number from 2 to {MOST_BUCKETS}")
    if partitions is not None and not isinstance(partitions, PartitionEviction):
        raise ConfigurationError(f"partitions: {partitions!r}, expected sg.PartitionEviction(count=…)")
    if clock not in ("key", "shared"):
        raise ConfigurationError(f"clock: {clock!r}, expected 'key' or 'shared'")
    if memory is not None and not is_whole(memory, LEAST_MEMORY, MOST_MEMORY):
        raise ConfigurationError(f"memory: {memory!r}, expected bytes, {LEAST_MEMORY} to 2^53")
    limits = partitions or PartitionEviction(count=policies.MAX_COUNT)
    if limits.select == "user":
        raise ConfigurationError("partitions.select: 'user', but there is no handler; give a callable")
    if clock == "shared" and limits.readings is not None:
        raise ConfigurationError("partitions.readings: not with a shared clock: silent keys let go when they are asked")
    walked = [kind for kind in kinds.values() if kind in intervals.WALKED]
    if walked and buckets is not None:
        raise ConfigurationError(f"buckets: {buckets!r}, but {walked[0]} needs the readings; leave buckets out")
    ops = [op for op in ("sum", "min", "max") if any(op in intervals.NEEDS[kind] for kind in kinds.values())]
    width = 0 if buckets is None else -(-length // (buckets - 1))
    return Definition(
        isinstance(policy, Time), length, tuple(ops), width, (limits.count or 0) if partitions else 0,
        limits.readings or 0, limits.age or 0, limits.select, memory or 0, clock == "shared", bool(walked),
    )  # fmt: skip
