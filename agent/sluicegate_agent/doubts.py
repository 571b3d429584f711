"""Tracks readings in doubt, so that an answer's interval holds the result whichever of them are repeats.

A stream keeps the place and value of its newest ones in one small row; beyond BLOCKS the oldest two are told of
together. How many a window holds is never too few. Readings that were counted and are lost (a damaged record) stand
beside them: nobody knows how many and of which value, so an interval is open where they may lie.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from sluicegate_agent.messages import Told

if TYPE_CHECKING:
    from sluicegate_agent.config import WindowConfig

BLOCKS, LOSSES = 256, 4
_BLOCK = struct.Struct("<qqqdddd")
_TOTAL = struct.Struct("<q")
_CHECK = struct.Struct("<I")
_LOST = -1  # in a block's place of n
_NAMED = 4  # windows that one loss names

#: What a stream's cost at most: a row, and the objects.
ROW, MEMORY = _TOTAL.size + (BLOCKS + LOSSES) * _BLOCK.size + _CHECK.size, (BLOCKS + LOSSES) * 400


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


class Loss(NamedTuple):
    """Readings that windows lack: before this ordinal, none later than this time.

    `windows`: the only ones that lack them, by `mark_of`; none: all do.
    """

    ordinal: int
    time: int
    windows: frozenset[int] = frozenset()

    def joined(self, other: Loss) -> Loss:
        """Both as one."""
        windows = self.windows | other.windows if self.windows and other.windows else frozenset()
        few = windows if len(windows) <= _NAMED else frozenset()
        return Loss(max(self.ordinal, other.ordinal), max(self.time, other.time), few)

    def concerns(self, window: WindowConfig) -> bool:
        """Whether a window lacks them."""
        return not self.windows or mark_of(window.name) in self.windows


def mark_of(window: str) -> int:
    """A window's name in 32 bits, at least 1."""
    return max(1, crc32(window.encode()))


class Doubts:
    """The readings in doubt of one stream; `total` is all of this incarnation's."""

    def __init__(self, row: bytes | None = None) -> None:
        self.total, self.blocks, self.losses = unpack(row) if row else (0, [], [])
        self.changed = False

    def lose(self, ordinal: int, time: int, windows: Iterable[str] = ()) -> None:
        """Readings before this ordinal are lost, none of them later than this; of these windows alone if there are."""
        marks = [*map(mark_of, windows)]
        for at in range(0, max(1, len(marks)), _NAMED):
            self.losses.append(Loss(ordinal, time, frozenset(marks[at : at + _NAMED])))
        while len(self.losses) > LOSSES:
            self.losses[:2] = [self.losses[0].joined(self.losses[1])]
        self.changed = True

    def lacks_within(self, window: WindowConfig, following: int, newest: int) -> bool:
        """Whether readings are lost that a window may hold, as in `within`."""
        return any(
            loss.concerns(window) and _is_inside(window, loss.ordinal, loss.time, following, newest)
            for loss in self.losses
        )

    def lacks_since(self, window: WindowConfig, start: int) -> bool:
        """Whether readings are lost that one of these windows may hold which begins at this time."""
        return any(loss.concerns(window) and loss.time >= start for loss in self.losses)

    def add(self, ordinal: int, time: int, value: float) -> None:
        """A reading was accepted that may be a repeat."""
        self.blocks.append(Block(1, ordinal, time, value, value, max(value, 0.0), min(value, 0.0)))
        if len(self.blocks) > BLOCKS:
            self.blocks[:2] = [self.blocks[0].joined(self.blocks[1])]
        self.total += 1
        self.changed = True

    def within(self, window: WindowConfig, following: int, newest: int) -> Block | None:
        """Those that a window may hold, of a stream whose next ordinal and newest time are these."""
        found = None
        for block in reversed(self.blocks):
            if _is_inside(window, block.ordinal, block.time, following, newest):
                found = block if found is None else found.joined(block)
        return found

    def since(self, start: int) -> Block | None:
        """Those that a window may hold which begins at this time."""
        found = None
        for block in self.blocks:
            if block.time >= start:
                found = block if found is None else found.joined(block)
        return found

    def save(self, connection: sqlite3.Connection, stream: int) -> None:
        """Write the row of a stream's number, inside the caller's transaction."""
        connection.execute("INSERT OR REPLACE INTO doubtful VALUES (?, ?)", (stream, self.pack()))

    def pack(self) -> bytes:
        """As one row, its CRC-32 last: streams are numbered anew, so their number is not in it."""
        losses = b"".join(_packed(loss) for loss in self.losses)
        said = _TOTAL.pack(self.total) + b"".join(_BLOCK.pack(*block) for block in self.blocks) + losses
        return said + _CHECK.pack(crc32(said))


def _packed(loss: Loss) -> bytes:
    """As a block: the marks of windows stand where that has its values."""
    marks = [*map(float, sorted(loss.windows)), *[0.0] * _NAMED][:_NAMED]
    return _BLOCK.pack(_LOST, loss.ordinal, loss.time, *marks)


def _is_inside(window: WindowConfig, ordinal: int, time: int, following: int, newest: int) -> bool:
    policy = window.policy
    if policy.time is not None:
        return time > newest - policy.time - policy.step
    return ordinal >= following - (policy.count or 0) - policy.step


def load_doubts(connection: sqlite3.Connection) -> dict[str, Doubts]:
    """Every stream's that has any."""
    query = "SELECT name, doubtful.row FROM doubtful JOIN stream ON stream.id = doubtful.stream"
    return {name: Doubts(row) for name, row in connection.execute(query)}


def unpack(row: bytes) -> tuple[int, list[Block], list[Loss]]:
    """What `pack` packed; a row of before has no checksum. Raises sqlite3.DatabaseError for anything else."""
    if len(row) % _BLOCK.size == _TOTAL.size + _CHECK.size:
        row, check = row[: -_CHECK.size], row[-_CHECK.size :]
        if check != _CHECK.pack(crc32(row)):
            raise sqlite3.DatabaseError("a malformed row in the table doubtful: its checksum is wrong")
    if len(row) % _BLOCK.size != _TOTAL.size:
        raise sqlite3.DatabaseError("a malformed row in the table doubtful")
    blocks = [Block(*found) for found in _BLOCK.iter_unpack(row[_TOTAL.size :])]
    losses = [
        Loss(each.ordinal, each.time, frozenset(int(mark) for mark in each[3:] if mark))
        for each in blocks if each.n == _LOST
    ]  # fmt: skip
    return _TOTAL.unpack_from(row)[0], [each for each in blocks if each.n != _LOST], losses


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


def opened(aggregate: str, answer: Answer, window: WindowConfig) -> Answer:
    """(value, low, high, exact) where readings are lost that the window may hold: a bound that they may exceed is None.

    Of a window by count, and of one up to an extreme, others may stand in their place: only its count has a bound then.
    """
    value, low, high, _ = answer
    is_sure = window.policy.count is None and window.policy.up_to is None
    keeps_low = (aggregate == "count" and window.policy.up_to is None) or (aggregate == "max" and is_sure)
    keeps_high = aggregate == "min" and is_sure
    return value, low if keeps_low else None, high if keeps_high else None, False


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
