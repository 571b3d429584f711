"""The readable twin of `sluicegate.keyed.core`: the same calls, answers, order of leaving and saved bytes.

A partition holds its rows in a list by time; an answer goes over all of them, where the compiled core has two stacks.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from sluicegate.constants import NEVER
from sluicegate.errors import ConfigurationError, InputError, InvariantError, PolicyError, SnapshotError
from sluicegate.keyed.definition import Cut, Definition, Left, More, Totals

_HEAD = struct.Struct("=8q")
_READING, _BUCKET = struct.Struct("=qd"), struct.Struct("=3q3d")
_REASONS = ("count", "readings", "age", "memory")


class Held:
    """One key's partition; a callable `select` is given these."""

    def __init__(self, key: int | str, number: int) -> None:
        """`number`: partitions made before this one."""
        self.key, self.number = key, number
        self.newest = NEVER
        self.updated = self.updates = self.held = 0
        self.rows: list[tuple[Any, ...]] = []
        self.saved, self.changed = False, True


def _walked(rows: list[tuple[int, float]]) -> More:
    """What a walk over readings tells; the earliest of equal extremes."""
    values = [value for _, value in rows]
    mean = math.fsum(values) / len(values)
    low, high = min(rows, key=lambda row: row[1]), max(rows, key=lambda row: row[1])
    return More(values[0], values[-1], low[0], high[0], math.fsum((value - mean) ** 2 for value in values))


class KeyedCore:
    """See `sluicegate.keyed.core.KeyedCore`."""

    def __init__(self, definition: Definition, leave: Callable[[Left], object] | None = None) -> None:
        """`leave` is called with each partition that leaves."""
        if definition.memory:
            raise ConfigurationError("memory: the readable twin, which a select of your own needs, counts no bytes")
        self.told, self.leave = definition, leave
        self.clock, self.accepted, self.late, self.made = NEVER, 0, 0, 0
        self.left, self.removed = [0, 0, 0, 0], list[int | str]()
        self.failed: tuple[str, Exception | None] | None = None
        self.by_key: OrderedDict[int | str, Held] = OrderedDict()  # the least recently updated first
        self.by_number: dict[int, Held] = {}

    @property
    def live(self) -> int:
        """Partitions."""
        return len(self.by_key)

    @property
    def readings(self) -> int:
        """Held by all."""
        return sum(each.held for each in self.by_key.values())

    @property
    def nbytes(self) -> int:
        """Python's objects are not counted."""
        raise ConfigurationError("nbytes: the readable twin, which a select of your own needs, counts no bytes")

    def insert_numbers(self, keys: Any, values: Any, times: Any) -> None:
        """As `insert_keys`."""
        self.insert_keys(list(keys), values, times)

    def insert_keys(self, keys: list[Any], values: Any, times: Any) -> None:
        """Readings in order of arrival."""
        for i, key in enumerate(keys):
            self._check(key, f"keys[{i}]")
        self.failed = None
        for i, key in enumerate(keys):
            self._enter(key, 0 if times is None else times[i], values[i])
        self._tell()

    def _check(self, key: Any, place: str) -> None:
        short = type(key) is int and -(2**63) <= key < 2**63
        if not short and not (type(key) is str and not any("\ud800" <= each <= "\udfff" for each in key)):
            raise InputError(f"{place}: {key!r:.80}, expected an int of 64 bits or a str; nothing was inserted")

    def _tell(self) -> None:
        failed, self.failed = self.failed, None
        if failed is not None:
            raise PolicyError(f"{failed[0]}; all readings are in, the partition has left") from failed[1]

    def _enter(self, key: int | str, time: int, value: float) -> None:
        told, partition = self.told, self.by_key.get(key)
        now = self.clock if partition is None else max(self.clock, partition.newest)
        if told.by_time and time <= now - told.length:
            self.late += 1
            return
        if partition is None:
            while told.partitions and self.live >= told.partitions:
                self._leave_selected(0)
            partition = self._add(key)
        if told.shared:
            self.clock = max(self.clock, time)
        partition.newest = max(partition.newest, time)
        now = max(now, time)
        (self._join if told.width else self._place)(partition, time, value)
        partition.held += 1
        self.accepted += 1
        self._evict(partition, now)
        partition.updates += 1
        partition.updated, partition.changed = now, True
        self.by_key.move_to_end(key)
        while told.readings and self.readings > told.readings:
            self._leave_selected(1)
        while told.shared and told.age and self.by_key:
            least = next(iter(self.by_key.values()))
            if self.clock - least.updated < told.age:
                break
            self._leave(least, 2)

    def _add(self, key: int | str) -> Held:
        partition = self.by_key[key] = self.by_number[self.made] = Held(key, self.made)
        self.made += 1
        return partition

    def _place(self, partition: Held, time: int, value: float) -> None:
        at = bisect_right(partition.rows, time, key=lambda row: row[0]) if self.told.by_time else len(partition.rows)
        partition.rows.insert(at, (time, value))

    def _join(self, partition: Held, time: int, value: float) -> None:
        rows, width, at = partition.rows, self.told.width, len(partition.rows)
        if self.told.by_time:
            at = bisect_right(rows, time // width, key=lambda row: row[0] // width)
            joins = at > 0 and rows[at - 1][0] // width == time // width
        else:
            joins = at > 0 and rows[at - 1][2] < width
        if not joins:
            rows.insert(at, (time, time, 1, value, value, value))
            return
        first, last, count, total, least, greatest = rows[at - 1]
        rows[at - 1] = (
            min(first, time), max(last, time), count + 1, total + value, min(least, value), max(greatest, value)
        )  # fmt: skip

    def _evict(self, partition: Held, now: int) -> bool:
        """The oldest rows that are wholly outside leave; whether any did."""
        told, rows, gone = self.told, partition.rows, 0
        for row in rows:
            count = row[2] if told.width else 1
            inside = partition.held - count < told.length
            if told.by_time:
                inside = row[1 if told.width else 0] > now - told.length
            if inside:
                break
            partition.held -= count
            gone += 1
        del rows[:gone]
        return gone > 0

    def _leave_selected(self, why: int) -> None:
        for partition in self._selected():
            self._leave(partition, why)

    def _selected(self) -> Iterable[Held]:
        select = self.told.select
        if callable(select):
            try:
                chosen = list(dict.fromkeys(select(self.by_number.values())))
                if chosen and all(key in self.by_key for key in chosen):
                    return [self.by_key[key] for key in chosen]
                self._fail(f"partitions.select: chose {chosen!r}, expected keys of partitions, one at least", None)
            except Exception as error:
                self._fail(f"partitions.select: raised {error!r}", error)
            select = "lru"
        if select == "lfu":
            return [min(self.by_number.values(), key=lambda each: (each.updates, each.number))]
        return [next(iter((self.by_key if select == "lru" else self.by_number).values()))]

    def _fail(self, what: str, error: Exception | None) -> None:
        self.failed = self.failed or (what, error)

    def _leave(self, partition: Held, why: int) -> None:
        self._evict_now(partition)
        if self.leave is not None:
            try:
                self.leave(Left(partition.key, _REASONS[why], list(partition.rows)))
            except Exception as error:
                self._fail(f"on_leave: raised {error!r}", error)
        self.left[why] += 1
        self._forget(partition)

    def _forget(self, partition: Held) -> None:
        if partition.saved:
            self.removed.append(partition.key)
        del self.by_key[partition.key], self.by_number[partition.number]

    def advance(self, time: int) -> None:
        """It is at least this late."""
        self.failed = None
        self.clock = max(self.clock, time)
        for partition in list(self.by_key.values()):
            self._evict_now(partition)
            if self.told.age and self.clock - partition.updated >= self.told.age:
                self._leave(partition, 2)
        self._tell()

    def _evict_now(self, partition: Held) -> None:
        if self.told.by_time and self._evict(partition, max(partition.newest, self.clock)):
            partition.changed = True

    def slot(self, key: Any) -> int:
        """The partition's number, −1 where there is none."""
        self._check(key, "key")
        return self.by_key[key].number if key in self.by_key else -1

    def piece(self, begin: int, size: int) -> tuple[list[tuple[int | str, Totals]], int]:
        """Up to `size` partitions from number `begin` on, and where the next piece begins (−1: no more)."""
        numbers = sorted(number for number in self.by_number if number >= begin)
        found = [(self.by_number[number].key, self.totals(number)) for number in numbers[:size]]
        return found, numbers[size] if len(numbers) > size else -1

    def totals(self, number: int) -> Totals:
        """What is inside, and the bucket that the edge cuts."""
        told, partition, cut = self.told, self.by_number[number], None
        self._evict_now(partition)
        rows = list(partition.rows)
        if told.width and rows:
            cut = self._cut(partition, rows[0])
            rows = rows[1:] if cut else rows
        if told.width:
            return Totals(
                sum(row[2] for row in rows), sum((row[3] for row in rows), 0.0),
                min((row[4] for row in rows), default=math.inf), max((row[5] for row in rows), default=-math.inf), cut,
            )  # fmt: skip
        values = [row[1] for row in rows]
        least, greatest = min(values, default=math.inf), max(values, default=-math.inf)
        more = _walked(rows) if told.more and rows else None
        return Totals(len(values), sum(values, 0.0), least, greatest, None, more)

    def _cut(self, partition: Held, row: tuple[Any, ...]) -> Cut | None:
        cutoff = max(partition.newest, self.clock) - self.told.length
        if self.told.by_time:
            return (*row, cutoff, -1) if row[0] <= cutoff else None
        outside = partition.held - self.told.length
        return (*row, 0, row[2] - outside) if outside > 0 else None

    def rows(self, number: int) -> list[tuple[Any, ...]]:
        """What it holds, the oldest first."""
        return list(self.by_number[number].rows)

    def save(self, whole: bool) -> bytes:
        """All, or what changed and which keys left since the last save."""
        saved = bytearray()
        row_of = _BUCKET if self.told.width else _READING
        for key in [] if whole else self.removed:
            saved += _head(key, (0, 0, 0, 0, 0, -1))
        self.removed = []
        for each in self.by_key.values():
            if whole or each.changed:
                told = (each.newest, each.updated, each.number, each.updates, each.held, len(each.rows))
                saved += _head(each.key, told) + b"".join(row_of.pack(*row) for row in each.rows)
            each.saved, each.changed = True, False
        return bytes(saved)

    def load(self, saved: bytes) -> None:
        """Put saved partitions in place of those of their keys."""
        at, row_of = 0, _BUCKET if self.told.width else _READING
        while at < len(saved):
            if len(saved) - at < _HEAD.size:
                raise SnapshotError(f"keyed windows: byte {at}: cut short")
            length, number_key, newest, updated, number, updates, held, rows = _HEAD.unpack_from(saved, at)
            at += _HEAD.size
            if not -1 <= length <= len(saved) - at or not -1 <= rows <= (len(saved) - at) // row_of.size:
                raise SnapshotError(f"keyed windows: byte {at}: no partition, or cut short")
            key = number_key if length < 0 else saved[at : at + length].decode()
            at += max(length, 0)
            partition = self.by_key.get(key)
            if rows < 0:
                if partition is not None:
                    self._forget(partition)
                continue
            partition = partition or self._add(key)
            if (partition.updates, partition.number) != (updates, number):
                self.by_key.move_to_end(key)
            del self.by_number[partition.number]
            partition.newest, partition.updated, partition.number = newest, updated, number
            partition.updates, partition.held, partition.saved, partition.changed = updates, held, True, False
            partition.rows = [row_of.unpack_from(saved, at + i * row_of.size) for i in range(rows)]
            at += rows * row_of.size
            self.by_number[number] = partition
            self.made = max(self.made, number + 1)
        self.by_number = dict(sorted(self.by_number.items()))
        self.removed = []

    @property
    def counters(self) -> tuple[int, ...]:
        """Clock, accepted, late, partitions made, and those that left, by reason."""
        return self.clock, self.accepted, self.late, self.made, *self.left

    @counters.setter
    def counters(self, saved: tuple[int, ...]) -> None:
        self.clock, self.accepted, self.late, self.made = saved[:4]
        self.left = list(saved[4:])

    def verify(self) -> None:
        """Raise InvariantError where counts and order are wrong."""
        for each in self.by_key.values():
            count = sum(row[2] if self.told.width else 1 for row in each.rows)
            times = [row[0] for row in each.rows]
            if count != each.held or (self.told.by_time and times != sorted(times)):
                raise InvariantError(f"key {each.key!r}: rows are miscounted or out of order")
        if {each.number for each in self.by_key.values()} != set(self.by_number):
            raise InvariantError("keyed windows: keys and numbers do not agree")


def _head(key: int | str, told: tuple[int, ...]) -> bytes:
    text = key.encode() if isinstance(key, str) else None
    head: bytes = _HEAD.pack(-1 if text is None else len(text), key if isinstance(key, int) else 0, *told)
    return head + (text or b"")
