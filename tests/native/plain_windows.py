"""What a window must hold and answer under each policy, by another way: a plain list, searched and summed anew.

Nothing here is shared with the package but the names of policies and aggregates.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Reading(NamedTuple):
    """One reading: the value of each dimension, and its time."""

    values: Mapping[str | None, float]
    time: int


def newest(count: int) -> Callable[[list[Reading]], int]:
    """How many of the oldest leave: all but the newest `count`."""
    return lambda kept: max(0, len(kept) - count)


class Lately:
    """By time, those of the last span before the greatest time ever seen; a late one where it belongs in time."""

    def __init__(self, span: int) -> None:
        self.span, self.latest = span, -(2**62)

    def __call__(self, kept: list[Reading]) -> int:
        """How many of the oldest leave."""
        newest = kept.pop()
        if newest.time > self.latest - self.span:
            kept.insert(bisect_right(kept, newest.time, key=lambda reading: reading.time), newest)
        self.latest = max(self.latest, newest.time)
        return leading(kept, lambda reading: reading.time <= self.latest - self.span)


def near(dimension: str | None, width: float) -> Callable[[list[Reading]], int]:
    """The oldest leave while farther than `width` from the newest reading's attribute."""

    def leaving(kept: list[Reading]) -> int:
        attribute = kept[-1].values[dimension]
        return leading(kept, lambda reading: abs(attribute - reading.values[dimension]) > width)

    return leaving


def summing_to(dimension: str | None, limit: float) -> Callable[[list[Reading]], int]:
    """The oldest leave while the sum of what is there exceeds the limit."""

    def leaving(kept: list[Reading]) -> int:
        for gone in range(len(kept)):
            if math.fsum(reading.values[dimension] for reading in kept[gone:]) <= limit:
                return gone
        return len(kept)

    return leaving


def from_maximum(dimension: str | None, limit: int) -> Callable[[list[Reading]], int]:
    """All but the newest `limit` leave, and what precedes the first occurrence of the greatest of those."""

    def leaving(kept: list[Reading]) -> int:
        values = [reading.values[dimension] for reading in kept][-limit:]
        return len(kept) - len(values) + values.index(max(values))

    return leaving


def from_longest_run(dimension: str | None, limit: int) -> Callable[[list[Reading]], int]:
    """All but the newest `limit` leave, and what precedes the first of the longest increasing runs among those."""

    def leaving(kept: list[Reading]) -> int:
        values = [reading.values[dimension] for reading in kept][-limit:]
        return len(kept) - len(values) + longest_run(values)[0]

    return leaving


def leading(kept: list[Reading], leaves: Callable[[Reading], bool]) -> int:
    """How many of the first leave one after the other."""
    return next((i for i, reading in enumerate(kept) if not leaves(reading)), len(kept))


def longest_run(values: Sequence[float]) -> tuple[int, int]:
    """Where the first of the longest strictly increasing runs begins, and its length."""
    best = (0, 0)
    start = 0
    for i in range(len(values)):
        if i and values[i] <= values[i - 1]:
            start = i
        if i - start + 1 > best[1]:
            best = start, i - start + 1
    return best


class Plain:
    """A window as a list."""

    def __init__(self, leaving: Callable[[list[Reading]], int]) -> None:
        """`leaving`: how many of the oldest leave after each reading."""
        self.leaving, self.kept = leaving, list[Reading]()

    def insert(self, values: Mapping[str | None, float], time: int) -> None:
        """Take a reading and evict."""
        self.kept.append(Reading(values, time))
        del self.kept[: self.leaving(self.kept)]

    def column(self, dimension: str | None) -> list[tuple[float, int]]:
        """Value and time of what is inside."""
        return [(reading.values[dimension], reading.time) for reading in self.kept]


Column = list[tuple[float, int]]


def _spread(column: Column, ddof: int) -> Any:
    if len(column) <= ddof:
        return None
    mean = math.fsum(x for x, _ in column) / len(column)
    return math.fsum((x - mean) ** 2 for x, _ in column) / (len(column) - ddof)


def _times(column: Column, pick: Callable[[list[float]], float]) -> list[int]:
    best = pick([x for x, _ in column])
    return [time for x, time in column if x == best]


ANSWERS: dict[str, Callable[[Column, int], Any]] = {
    "count": lambda column, _: len(column),
    "sum": lambda column, _: math.fsum(x for x, _ in column),
    "mean": lambda column, _: math.fsum(x for x, _ in column) / len(column),
    "min": lambda column, _: min(x for x, _ in column),
    "max": lambda column, _: max(x for x, _ in column),
    "argmin": lambda column, _: min(_times(column, min)),
    "argmax": lambda column, _: min(_times(column, max)),
    "first": lambda column, _: column[0][0],
    "last": lambda column, _: column[-1][0],
    "variance": _spread,
    "std": lambda column, ddof: None if len(column) <= ddof else math.sqrt(_spread(column, ddof)),
    "geometric_mean": lambda column, _: math.exp(math.fsum(math.log(x) for x, _ in column) / len(column)),
    "range": lambda column, _: max(x for x, _ in column) - min(x for x, _ in column),
    "min_count": lambda column, _: len(_times(column, min)),
    "max_count": lambda column, _: len(_times(column, max)),
}
EMPTY = {"count": 0, "sum": 0.0}


def answer(kind: str, column: Column, ddof: int = 0) -> Any:
    """What an aggregate of this kind answers over the column."""
    return ANSWERS[kind](column, ddof) if column else EMPTY.get(kind)
