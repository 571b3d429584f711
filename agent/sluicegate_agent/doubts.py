"""Readings in doubt as answers tell of them: whichever are repeats, the interval holds the answer without those.

A stream keeps the place and value of its newest ones in one small row; beyond BLOCKS the oldest two are told of
together. How many a window holds is never too few.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sluicegate_agent.messages import Told

if TYPE_CHECKING:
    from sluicegate_agent.config import WindowConfig

BLOCKS = 256
_BLOCK = struct.Struct("<qqqdddd")
_TOTAL = struct.Struct("<q")

#: What a stream's cost at most: a row, and the objects.
ROW, MEMORY = _TOTAL.size + BLOCKS * _BLOCK.size, BLOCKS * 400


class Block(NamedTuple):
    """`n` readings: the last ordinal and time, least and greatest value, sums of those above and below 0."""

    n: int
    ordinal: int
    time: int
    low: float
    high: float
    above: float
    below: float

    def joined(self, other: Block) -> Block:
        """Both as one."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        place = max(self.ordinal, other.ordinal), max(self.time, other.time)
        return Block(self.n + other.n, *place, low, high, self.above + other.above, self.below + other.below)


class Doubts:
    """The readings in doubt of one stream; `total` is all of this incarnation's."""

    def __init__(self, row: bytes | None = None) -> None:
        self.total, self.blocks = unpack(row) if row else (0, [])
        self.changed = False

    def add(self, ordinal: int, time: int, value: float) -> None:
        """A reading was accepted that may be a repeat."""
        self.blocks.append(Block(1, ordinal, time, value, value, max(value, 0.0), min(value, 0.0)))
        if len(self.blocks) > BLOCKS:
            self.blocks[:2] = [self.blocks[0].joined(self.blocks[1])]
        self.total += 1
        self.changed = True

    def within(self, window: WindowConfig, following: int, newest: int) -> Block | None:
        """Those that a window may hold, of a stream whose next ordinal and newest time are these."""
        policy, found = window.policy, None
        for block in reversed(self.blocks):
            if policy.time is not None:
                inside = block.time > newest - policy.time - policy.step
            else:
                inside = block.ordinal >= following - (policy.count or 0) - policy.step
            if inside:
                found = block if found is None else found.joined(block)
        return found

    def since(self, start: int) -> Block | None:
        """Those that a window may hold which begins at this time."""
        found = None
        for block in self.blocks:
            if block.time >= start:
                found = block if found is None else found.joined(block)
        return found

    def pack(self) -> bytes:
        """As one row."""
        return _TOTAL.pack(self.total) + b"".join(_BLOCK.pack(*block) for block in self.blocks)


def load_doubts(connection: sqlite3.Connection) -> dict[str, Doubts]:
    """Every stream's that has any."""
    query = "SELECT name, doubtful.row FROM doubtful JOIN stream ON stream.id = doubtful.stream"
    return {name: Doubts(row) for name, row in connection.execute(query)}


def unpack(row: bytes) -> tuple[int, list[Block]]:
    """What `pack` packed. Raises sqlite3.DatabaseError for anything else."""
    if len(row) % _BLOCK.size != _TOTAL.size:
        raise sqlite3.DatabaseError("a row of the table doubtful is malformed")
    return _TOTAL.unpack_from(row)[0], [Block(*found) for found in _BLOCK.iter_unpack(row[_TOTAL.size :])]


Answer = tuple[Told, Told, Told, bool]


def widened(aggregate: str, answer: Answer, window: WindowConfig, count: int, doubt: Block) -> Answer:
    """(value, low, high, exact) so that the interval holds the answer without any of the readings in doubt.

    None for a bound: it is not known. Of a window by count another reading would stand in the place of a repeat, and
    one up to an extreme lost readings to it: then only what no reading but those in doubt can change is known.
    """
    value, low, high, exact = answer
    by_count, up_to = window.policy.count is not None, window.policy.up_to is not None
    known = {"count"} if by_count else {"max", "min"} if up_to else _RULES.keys()
    rule = _RULES[aggregate] if aggregate in known else None
    if rule is None or not isinstance(low, int | float) or not isinstance(high, int | float):
        return value, None, None, False
    return value, *rule(low, high, exact, count, doubt)


Told3 = tuple[Told, Told, bool]


def _count(low: float, high: float, exact: bool, count: int, doubt: Block) -> Told3:
    return max(0, low - doubt.n), high, False


def _sum(low: float, high: float, exact: bool, count: int, doubt: Block) -> Told3:
    return low - doubt.above, high - doubt.below, False


def _mean(low: float, high: float, exact: bool, count: int, doubt: Block) -> Told3:
    left = count - doubt.n
    if not exact or left <= 0:
        return None, None, False
    return (
        min(low, low + doubt.n * (low - doubt.high) / left),
        max(high, high + doubt.n * (high - doubt.low) / left),
        False,
    )


def _max(low: float, high: float, exact: bool, count: int, doubt: Block) -> Told3:
    return (low, high, exact) if doubt.high < low else (None, high, False)


def _min(low: float, high: float, exact: bool, count: int, doubt: Block) -> Told3:
    return (low, high, exact) if doubt.low > high else (low, None, False)


_RULES: dict[str, Callable[[float, float, bool, int, Block], Told3]] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "max": _max,
    "min": _min,
}
