"""The oracle of windows by key, written from the definition: all readings by key, each window looked up among them.

A key's event time is the greatest time that it brought, or what `advance` said where that is later; with a shared clock
it is the greatest of all keys. A window by time holds now − length < time ≤ now, one by count what came last.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple


class Reading(NamedTuple):
    """Sorts by time, then by arrival."""

    time: int
    ordinal: int
    value: float


class Partition:
    """All readings of one key since it came."""

    def __init__(self, number: int) -> None:
        self.number, self.updates, self.updated, self.last = number, 0, 0, 0
        self.all: list[Reading] = []


class ByKey:
    """A window for each key, literally, and which partitions leave."""

    def __init__(
        self, length: int, by_time: bool, shared: bool = False, count: int = 0, readings: int = 0, age: int = 0,
        select: str = "lru",
    ) -> None:  # fmt: skip
        self.length, self.by_time, self.shared = length, by_time, shared
        self.count, self.readings, self.age, self.select = count, readings, age, select
        self.partitions: dict[Any, Partition] = {}
        self.said: int | None = None  # by `advance` or, with a shared clock, by any reading
        self.came = self.made = self.late = 0
        self.left: list[tuple[Any, str, list[tuple[int, float]]]] = []

    def now(self, key: Any) -> int | None:
        """The key's event time."""
        partition = self.partitions.get(key)
        times = [reading.time for reading in partition.all] if partition else []
        return max([*times, *([] if self.said is None else [self.said])], default=None)

    def inside(self, key: Any) -> list[Reading]:
        """Its window's readings, by time or by arrival."""
        found = self.partitions[key].all
        if not self.by_time:
            return found[-self.length :]
        now = self.now(key)
        return sorted(reading for reading in found if now is None or reading.time > now - self.length)

    def insert(self, key: Any, time: int, value: float) -> None:
        """A reading arrives."""
        now = self.now(key)
        if self.by_time and now is not None and time <= now - self.length:
            self.late += 1
            return
        if key not in self.partitions:
            while self.count and len(self.partitions) >= self.count:
                self.leave(self.chosen(), "count")
            self.partitions[key] = Partition(self.made)
            self.made += 1
        self.came += 1
        partition = self.partitions[key]
        partition.all.append(Reading(time, self.came, value))
        if self.shared:
            self.said = time if self.said is None else max(self.said, time)
        partition.updates += 1
        partition.last = self.came
        now = self.now(key)
        assert now is not None
        partition.updated = now
        while self.readings and sum(len(self.inside(each)) for each in self.partitions) > self.readings:
            self.leave(self.chosen(), "readings")
        if self.shared:
            self.aged()

    def advance(self, time: int) -> None:
        """It is at least this late."""
        self.said = time if self.said is None else max(self.said, time)
        self.aged()

    def aged(self) -> None:
        """Partitions without a new reading for the age leave, the least recently updated first."""
        assert self.said is not None
        for key in sorted(self.partitions, key=lambda each: self.partitions[each].last):
            if self.age and self.said - self.partitions[key].updated >= self.age:
                self.leave(key, "age")

    def chosen(self) -> Any:
        """Which leaves next."""
        order = {
            "lru": lambda key: self.partitions[key].last,
            "lfu": lambda key: (self.partitions[key].updates, self.partitions[key].number),
            "oldest": lambda key: self.partitions[key].number,
        }
        return min(self.partitions, key=order[self.select])

    def leave(self, key: Any, why: str) -> None:
        """It is told of with its window's readings, then gone."""
        self.left.append((key, why, [(reading.time, reading.value) for reading in self.inside(key)]))
        del self.partitions[key]

    def answers(self, key: Any) -> dict[str, Any]:
        """Each aggregate by its name."""
        inside = self.inside(key)
        x = [reading.value for reading in inside]
        if not x:
            none = ("mean", "min", "max", "range", "variance", "std", "first", "last", "argmin", "argmax")
            return {"count": 0, "sum": 0.0} | dict.fromkeys(none)
        exact = [Fraction(value) for value in x]
        variance = float(sum((each - sum(exact) / len(x)) ** 2 for each in exact) / len(x))
        return {
            "count": len(x), "sum": math.fsum(x), "mean": math.fsum(x) / len(x), "min": min(x), "max": max(x),
            "range": max(x) - min(x), "variance": variance, "std": math.sqrt(variance), "first": x[0], "last": x[-1],
            "argmin": next(each.time for each in inside if each.value == min(x)),
            "argmax": next(each.time for each in inside if each.value == max(x)),
        }  # fmt: skip


def near(found: Any, expected: Any, scale: float) -> bool:
    """Equal, or as far apart as sums in another order may round: `scale` is at least n · Σ|x|."""
    if expected is None or found is None:
        return found is expected
    return bool(abs(found - expected) <= 4 * 2.0**-52 * scale)
