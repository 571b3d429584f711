"""What identities, inputs and alerts write, kept in memory until the tables are: a frame says only what changed in it.

A row is said as its difference from what it was, so that a number seen costs a few bytes. `Rows` is the same after
`apply`, whether a commit just wrote the frame or a restart reads it.
"""

from __future__ import annotations

import itertools
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from sluicegate_agent.checksums import checksum, named

Key = tuple[str, str, bytes]  # table (and column), name, the rest of the key
_SEQUENCE, _BYTES, _TEXT, _COUNTED, _KEPT = "sequence", "meta", "meta text", "retained", "retained kept"
#: In the place of a text: its row is deleted. No text is this one.
_GONE = b"\0"
#: Entries of one source stand together in rows of so many bytes.
_TOGETHER = 4096
#: Of a row in memory, beside its bytes: objects, key, place.
ROW_OBJECTS = 300


class NotRecordedError(Exception):
    """Raised for what a frame has no words for, with the reason in a word: the commit writes the tables instead."""


class _Said(msgspec.Struct, array_like=True):
    """Rows of one frame: keys named for the first time; how many rows have which length; their keys by number.

    `at`: each number less the one before. `columns`: their differences, of those of one length all first bytes, then
    all second ones, since the same bytes change in all of them. `there`: for each length, which of these are not zero
    throughout, a bit each; only those are in `columns` (all, where nothing is said: by an older Sluicegate).
    `entries`: (source, number of the newest, entries); `oldest`: (source, those up to this number are forgotten);
    `gone`: (source, key, from, to) of epochs that are forgotten.
    """

    keys: list[Key]
    lengths: dict[int, int]
    at: bytes
    columns: bytes
    entries: list[tuple[str, int, bytes]]
    oldest: list[tuple[str, int]]
    gone: list[tuple[str, bytes, bytes, bytes]]
    there: list[bytes] = []


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Said).decode


class Changes:
    """Takes the statements of one commit in a connection's place."""

    #: A frame has checksums of its own: see `checksums.checksum_for`.
    is_checked = True

    def __init__(self) -> None:
        self.rows: dict[Key, bytes] = {}
        self.entries: list[tuple[str, int, bytes]] = []
        self.oldest: dict[str, int] = {}
        self.gone: list[tuple[str, bytes, bytes, bytes]] = []

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """As a connection's."""
        for row in rows:
            self.execute(statement, row)

    def execute(self, statement: str, row: Sequence[Any] = ()) -> None:
        """As a connection's. Raises NotRecordedError."""
        note = _NOTED.get(statement)
        if note is None:
            raise NotRecordedError("other")
        note(self, *row)

    def _sequence(self, source: str, key: bytes, row: bytes, _: int) -> None:
        self.rows[_SEQUENCE, source, key] = row

    def _meta(self, name: str, value: str | bytes) -> None:
        if isinstance(value, str):
            self.rows[_TEXT, name, b""] = value.encode()
        else:
            self.rows[_BYTES, name, b""] = value

    def _meta_gone(self, name: str) -> None:
        self.rows[_TEXT, name, b""] = _GONE

    def _retained(self, topic: str, counted: bytes, kept: bytes, _: int) -> None:
        self.rows[_COUNTED, topic, b""] = counted
        self.rows[_KEPT, topic, b""] = kept

    def _identity(self, source: str, newest: int, entries: bytes, _: int) -> None:
        self.entries.append((source, newest, entries))

    def _forgotten(self, source: str, last: int) -> None:
        if last > 0:
            self.oldest[source] = last

    def _gone(self, source: str, head: bytes, low: bytes, high: bytes) -> None:
        self.gone.append((source, head, low, high))


_NOTED: dict[str, Any] = {
    "INSERT OR REPLACE INTO sequence VALUES (?, ?, ?, ?)": Changes._sequence,
    "INSERT OR REPLACE INTO meta VALUES (?, ?)": Changes._meta,
    "REPLACE INTO meta VALUES (?, ?)": Changes._meta,
    "DELETE FROM meta WHERE key = ?": Changes._meta_gone,
    "INSERT OR REPLACE INTO retained VALUES (?, ?, ?, ?)": Changes._retained,
    "INSERT OR REPLACE INTO identity VALUES (?, ?, ?, ?)": Changes._identity,
    "DELETE FROM identity WHERE source = ? AND last <= ?": Changes._forgotten,
    "DELETE FROM sequence WHERE source = ? AND (epoch = ? OR (epoch > ? AND epoch <= ?))": Changes._gone,
}


class Rows:
    """Rows that frames say and the tables do not hold yet."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """The tables hold them."""
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._rows: list[bytes | None] = []
        self._of: dict[str, list[Key]] = {}
        self._entries: dict[str, list[tuple[int, bytes]]] = {}
        self._oldest: dict[str, int] = {}
        self._deleted: list[tuple[str, bytes, bytes, bytes]] = []
        self.bytes = 0

    def pack(self, changes: Changes) -> bytes:
        """A commit's changes as a frame says them after those before."""
        keys, by_length = list[Key](), dict[int, list[tuple[int, bytes, bytes]]]()
        for key, row in changes.rows.items():
            number, known = self._numbers.get(key), b""
            if number is None:
                number = len(self._rows) + len(keys)
                keys.append(key)
            elif not (changes.gone and _is_gone(key, changes.gone)):
                known = self._rows[number] or b""
            by_length.setdefault(len(row), []).append((number, known, row))
        columns, there, steps, before = list[bytes](), list[bytes](), array("i"), 0
        for length, rows in by_length.items():
            rows.sort()
            known = b"".join([k if len(k) == length else k[:length].ljust(length, b"\0") for _, k, _ in rows])
            changed = _difference(known, b"".join([row for _, _, row in rows]))
            mask, turned = _without_zeros(changed, length, len(rows))
            columns.append(turned)
            there.append(mask)
            for number, _, _ in rows:
                steps.append(number - before)
                before = number
        lengths = {length: len(rows) for length, rows in by_length.items()}
        told = keys, lengths, _shuffled(steps), b"".join(columns)
        return _encode(_Said(*told, changes.entries, [*changes.oldest.items()], changes.gone, there))

    def apply(self, packed: bytes) -> None:
        """Take over what a frame says. Raises ValueError where it says nonsense."""
        try:
            said = _decode(packed)
        except msgspec.MsgspecError as error:
            raise ValueError(f"not rows of a frame: {error}") from error
        for gone in said.gone:
            self._forget_epoch(*gone)
        found, there_before = dict[Key, bytes](), len(self._keys)
        numbers = itertools.accumulate(_unshuffled(said.at))
        place = 0
        for length, count, there in itertools.zip_longest(said.lengths, said.lengths.values(), said.there):
            columns = _columns(said.columns, place, length, count, there)
            rows = _turned(columns, count)
            for row in range(count):
                number = next(numbers)
                key = self._keys[number] if number < there_before else said.keys[number - there_before]
                found[key] = _difference(self._row(key), rows[row * length : (row + 1) * length])
            place += count * (length if there is None else int.from_bytes(there, "little").bit_count())
        self._take(dict.fromkeys(said.keys, b"") | found, said.entries, said.oldest)

    def keep(self, changes: Changes) -> None:
        """The same of what a commit just wrote: what `apply` does with what `pack` made of it."""
        for gone in changes.gone:
            self._forget_epoch(*gone)
        self._take(changes.rows, changes.entries, changes.oldest.items())

    def _row(self, key: Key) -> bytes:
        number = self._numbers.get(key)
        return b"" if number is None else self._rows[number] or b""

    def _take(
        self, rows: dict[Key, bytes], entries: Iterable[tuple[str, int, bytes]], oldest: Iterable[tuple[str, int]]
    ) -> None:
        for key, row in rows.items():
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self._rows)
                self._rows.append(None)
                self._keys.append(key)
                self._of.setdefault(key[1], []).append(key)
                self.bytes += ROW_OBJECTS
            self.bytes += len(row) - len(self._rows[number] or b"")
            self._rows[number] = row
        for source, newest, more in entries:
            self._join(source, newest, more)
        for source, last in oldest:
            self._oldest[source] = last
            kept = self._entries.get(source, [])
            while kept and kept[0][0] <= last:
                self.bytes -= len(kept.pop(0)[1]) + ROW_OBJECTS

    def _forget_epoch(self, source: str, head: bytes, low: bytes, high: bytes) -> None:
        self._deleted.append((source, head, low, high))
        self.bytes += ROW_OBJECTS
        for key in self._of.get(source, ()):
            if _is_gone(key, [(source, head, low, high)]):
                number = self._numbers[key]
                self.bytes -= len(self._rows[number] or b"")
                self._rows[number] = None

    def _join(self, source: str, newest: int, entries: bytes) -> None:
        kept = self._entries.setdefault(source, [])
        if kept and len(kept[-1][1]) + len(entries) <= _TOGETHER:
            kept[-1] = newest, kept[-1][1] + entries
        else:
            kept.append((newest, entries))
            self.bytes += ROW_OBJECTS
        self.bytes += len(entries)

    def save(self, connection: sqlite3.Connection) -> None:
        """Write them, inside the caller's transaction."""
        delete = "DELETE FROM sequence WHERE source = ? AND (epoch = ? OR (epoch > ? AND epoch <= ?))"
        connection.executemany(delete, self._deleted)
        retained: dict[str, dict[str, bytes]] = {}
        for (table, name, key), number in self._numbers.items():
            row = self._rows[number]
            if row is None:
                continue
            if table == _SEQUENCE:
                values = name, key, row, checksum(name, key, row)
                connection.execute("INSERT OR REPLACE INTO sequence VALUES (?, ?, ?, ?)", values)
            elif table == _TEXT and row == _GONE:
                connection.execute("DELETE FROM meta WHERE key = ?", (name,))
            elif table in (_TEXT, _BYTES):
                value = row.decode() if table == _TEXT else row
                connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
            else:
                retained.setdefault(name, {})[table] = row
        rows = [(topic, parts[_COUNTED], parts[_KEPT]) for topic, parts in retained.items()]
        write = "INSERT OR REPLACE INTO retained VALUES (?, ?, ?, ?)"
        connection.executemany(write, [named("retained", *row) for row in rows])
        for source, kept in self._entries.items():
            entries = [(source, last, each, checksum(source, last, each)) for last, each in kept]
            connection.executemany("INSERT OR REPLACE INTO identity VALUES (?, ?, ?, ?)", entries)
        delete = "DELETE FROM identity WHERE source = ? AND last <= ?"
        connection.executemany(delete, self._oldest.items())


#: The digit 0 for a byte that is 0, else 1.
_IS_THERE = b"0" + b"1" * 255


def _is_gone(key: Key, gone: list[tuple[str, bytes, bytes, bytes]]) -> bool:
    """Whether a row is of an epoch that is forgotten."""
    table, name, rest = key
    return table == _SEQUENCE and any(
        name == each[0] and (rest == each[1] or each[2] < rest <= each[3]) for each in gone
    )


def _difference(before: bytes, row: bytes) -> bytes:
    """The row, each bit turned over that `before` has; so it is its own inverse for rows of that length."""
    size = len(row)
    return (int.from_bytes(before[:size], "little") ^ int.from_bytes(row, "little")).to_bytes(size, "little")


def _without_zeros(data: bytes, width: int, rows: int) -> tuple[bytes, bytes]:
    """Rows of so many bytes by column, and which columns are not zero throughout: these alone are in it."""
    there = int.from_bytes(data, "little")
    while rows > 1:  # one half over the other, each bit set that is in either
        rows -= rows // 2
        there = there >> 8 * width * rows | there & (1 << 8 * width * rows) - 1
    found = there.to_bytes(width, "big")
    mask = int(b"0" + found.translate(_IS_THERE), 2).to_bytes(-(-width // 8), "little")
    return mask, b"".join([data[byte::width] for byte in itertools.compress(range(width), reversed(found))])


def _columns(data: bytes, place: int, width: int, count: int, there: bytes | None) -> bytes:
    """All columns, from a place on, of rows of so many bytes. Raises ValueError where some are missing."""
    if there is None:
        return data[place : place + width * count]
    mask, parts = int.from_bytes(there, "little"), []
    for byte in range(width):
        is_there = mask >> byte & 1
        parts.append(data[place : place + count] if is_there else bytes(count))
        place += count * is_there
    if place > len(data) or mask >> width:
        raise ValueError("not rows of a frame: columns are missing")
    return b"".join(parts)


def _turned(data: bytes, width: int) -> bytes:
    """Rows of so many bytes by column."""
    return b"".join(data[byte::width] for byte in range(width))


def _shuffled(numbers: array[int]) -> bytes:
    return _turned(b"".join(number.to_bytes(4, "little", signed=True) for number in numbers), 4)


def _unshuffled(data: bytes) -> Iterator[int]:
    rows = _turned(data, len(data) // 4)
    return (int.from_bytes(rows[at : at + 4], "little", signed=True) for at in range(0, len(rows), 4))
