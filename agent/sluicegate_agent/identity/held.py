"""Messages that wait: durable and acknowledged, not counted yet; bounded in rows and bytes, the oldest goes first.

Three kinds wait: what a later message of the same source decides, readings that are too far ahead of a clock that may
be behind, and those without a time that come before the clock is set. Each is a row of the table `held` until it is
counted or refused.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from sluicegate_agent.checksums import checksum, require_sound
from sluicegate_agent.messages import Message

#: The word for what waits for the clock; what waits for a second message has the verdict that it would get without it.
FUTURE = "future"
#: What begins the word for what came before the clock was set; the name of the boot follows.
UNSET = "unset "


class Row(NamedTuple):
    """One message that waits, with the clock's judgement: its readings until `counted_to` µs were counted.

    Of one that came before the clock was set `counted_to` is when it came, in µs since the board's start.
    """

    why: str
    doubt: int
    arrival_us: int
    counted_to: int
    topic: str
    payload: bytes

    @property
    def came_unset(self) -> bool:
        """Whether it came before the clock was set."""
        return self.why.startswith(UNSET)

    @property
    def message(self) -> Message:
        """As it arrived; acknowledged long ago."""
        return Message(self.topic, self.payload, 0, 0)


class Held:
    """The rows of the table `held`; those of the open batch, and only those, stand in memory whole.

    Raises sqlite3.DatabaseError where one is not as it was written.
    """

    def __init__(self, connection: sqlite3.Connection, rows: int, size: int) -> None:
        self.rows, self.size = rows, size
        self._connection = connection
        self._new: dict[int, Row] = {}
        self._gone: set[int] = set()
        self._sizes: dict[int, int] = {}
        for number, *row, crc in connection.execute("SELECT * FROM held ORDER BY number"):
            require_sound("held", crc, number, *row)
            self._know(number, row[0], len(row[-1]))
        self.bytes_held = sum(size >> 1 for size in self._sizes.values())
        self._next = 1 + max(self._sizes, default=0)

    def _know(self, number: int, why: str, length: int) -> None:
        """The length of its payload, and in the lowest bit whether it waits for the clock: one number a row."""
        self._sizes[number] = length << 1 | (why == FUTURE or why.startswith(UNSET))

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def numbers(self) -> list[int]:
        """All that wait, the oldest first."""
        return list(self._sizes)

    @property
    def futures(self) -> list[int]:
        """Those that wait for the clock, the oldest first."""
        return [number for number, size in self._sizes.items() if size & 1]

    @property
    def has_futures(self) -> bool:
        """Whether any waits for the clock."""
        return any(size & 1 for size in self._sizes.values())

    @property
    def is_over(self) -> bool:
        """Whether the oldest has to go."""
        return len(self._sizes) > self.rows or self.bytes_held > self.size

    def add(self, row: Row) -> int:
        """Keep a message; its number."""
        number, self._next = self._next, self._next + 1
        self._new[number] = row
        self._know(number, row.why, len(row.payload))
        self.bytes_held += len(row.payload)
        return number

    def oldest(self) -> int:
        """The number of the one that goes first."""
        return next(iter(self._sizes))

    def change(self, number: int, row: Row) -> None:
        """Another judgement on the same message."""
        self._new[number] = row

    def get(self, number: int) -> Row:
        """One that waits. Raises sqlite3.DatabaseError where its row is gone."""
        if number in self._new:
            return self._new[number]
        query = "SELECT why, doubt, arrival_us, counted_to, topic, payload, crc FROM held WHERE number = ?"
        found = self._connection.execute(query, (number,)).fetchone()
        if found is None:
            raise sqlite3.DatabaseError("a row of the table held is malformed")
        *row, crc = found
        require_sound("held", crc, number, *row)
        return Row(*row)

    def take(self, number: int) -> Row:
        """One that waits no more."""
        row = self.get(number)
        self._new.pop(number, None)
        self.bytes_held -= self._sizes.pop(number) >> 1
        self._gone.add(number)
        return row

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what came and delete what went, inside the caller's transaction."""
        connection.executemany("DELETE FROM held WHERE number = ?", [(number,) for number in self._gone])
        rows = [(number, *row, checksum(number, *row)) for number, row in self._new.items()]
        connection.executemany("INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting to be written."""
        self._new.clear()
        self._gone.clear()
