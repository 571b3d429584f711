"""A damaged store, row by row: what is whole goes into a new one, what is not is counted.

Rows are told by their shape, checksums and what they must hold. Outbox rows that do not meet any more (one between them
is lost) go on as streams of their own, retired ones, so that no document and no merged bucket spans a hole.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Bucket, Builder
from sluicegate_agent import doubts
from sluicegate_agent.backlog.rows import check_of, sound, unpacked
from sluicegate_agent.behind import unpacked as unpacked_rows
from sluicegate_agent.checksums import (
    BEFORE,
    BYTES,
    NAMED,
    SURE,
    TIMES,
    count,
    is_hexadecimal,
    is_sound,
    is_sound_time,
    require_sound,
)
from sluicegate_agent.identity.place import read_known, read_place
from sluicegate_agent.identity.posted import UNANSWERED, read_digests
from sluicegate_agent.identity.under_way import NAME as UNDER_WAY
from sluicegate_agent.identity.under_way import read as read_under_way
from sluicegate_agent.identity.unsure import NAME as UNSURE
from sluicegate_agent.identity.unsure import read as read_unsure
from sluicegate_agent.outbox import is_sound_chunk
from sluicegate_agent.state import schema
from sluicegate_agent.state.pages import Pages, Value
from sluicegate_agent.state.positions import POSITION, read_position
from sluicegate_agent.streams import Stream
from sluicegate_agent.tables.streams import Row as StreamRow
from sluicegate_agent.tables.streams import write_origin

log = logging.getLogger("sluicegate.state")
_READINGS = {"stream", "origin", "outbox", "packed", "handed", "chunk", "counter", "dead_letter"}
_COUNTER = re.compile(r"[a-z_][a-z0-9_.]*")
_META = ("link", "asked", "key", "record", BEFORE, BYTES, UNANSWERED, UNDER_WAY, UNSURE, *TIMES)
#: What tells repeats.
_MEMORY = ("sequence", "identity", "retained", "held", "replay", "meta")
_TYPES: dict[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "BLOB": (bytes,), "REAL": (float, int)}
Row = list[Value]


class Origin(NamedTuple):
    """What the outbox rows of a stream rest on."""

    name: str
    incarnation: str
    key: str
    center: float


class Table(NamedTuple):
    """A table's name, and for each column its types and whether it may be NULL; `by_number`: it has row numbers."""

    name: str
    by_number: bool
    columns: tuple[tuple[tuple[type, ...], bool], ...]

    def fits(self, row: Row) -> bool:
        """Whether a row could be one of this table's."""
        return len(row) == len(self.columns) and all(
            may_be_null if value is None else not types or isinstance(value, types)
            for value, (types, may_be_null) in zip(row, self.columns, strict=True)
        )


def salvage(damaged: Path, new: Path, incarnation: Callable[[], str], set_aside: int, reason: str) -> bool:
    """Make the store `new` of what can be read of a damaged one; whether there is anything to keep.

    A table that `reason` calls malformed is left out, since its pages are whole and its rows are not. Of a store that
    was salvaged before, only what the readings that wait rest on is kept: nothing is salvaged for ever.

    Raises OSError and sqlite3.Error where the disk refuses.
    """
    new.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as store:
        store.execute("BEGIN")
        schema.create(store)
        counted = _fill(store, damaged, reason)
        kept = any(name.startswith("rows.salvaged") for name in counted)
        if kept:
            _name(store, incarnation(), set_aside, counted)
            if _is_sure(reason, counted):
                store.execute("INSERT INTO meta VALUES (?, 1)", (SURE,))
        store.execute("COMMIT" if kept else "ROLLBACK")
    return kept


def _is_sure(reason: str, counted: Counter[str]) -> bool:
    """Whether all that was known as seen is still known: rows of other tables alone are damaged, and no page is."""
    is_of_row = re.search(r"\brow\b", reason) is not None
    return is_of_row and not any(table in reason or counted[f"rows.lost.{table}"] for table in _MEMORY)


def _fill(store: sqlite3.Connection, damaged: Path, reason: str) -> Counter[str]:
    tables, counted = list(_tables(store)), Counter[str]()
    malformed = {table.name for table in tables if f"table {table.name} is malformed" in reason} - _READINGS
    buckets: dict[int, list[tuple[Bucket, Row]]] = {}
    pages = Pages(damaged)
    try:
        if any(values[:1] == ["salvaged"] for _, values in pages.rows()):
            malformed = {table.name for table in tables} - _READINGS
        for number, values in pages.rows():
            for table, row in _candidates(tables, number, values):
                if table.name in malformed and row[0] != "record":
                    counted[f"rows.lost.{table.name}"] += 1
                elif table.name == "outbox":
                    _note_bucket(buckets, row, counted)
                elif table.name == "packed":
                    _note_packed(buckets, row, counted)
                elif table.name in ("window", "window_leaf", "window_run") and not pages.free_is_known:
                    continue  # a row that was deleted cannot be told from one that was not
                else:
                    _keep(store, table, row, counted)
    finally:
        pages.close()
    _place_streams(store, buckets, counted)
    store.execute("DELETE FROM doubtful WHERE stream NOT IN (SELECT id FROM stream)")
    store.execute("DELETE FROM window WHERE stream NOT IN (SELECT id FROM stream)")
    for name in ("window_leaf", "window_run"):
        store.execute(f"DELETE FROM {name} WHERE window NOT IN (SELECT id FROM window)")  # noqa: S608  our own names
    return counted


def _tables(store: sqlite3.Connection) -> Iterator[Table]:
    for name, text in store.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
        by_number = "WITHOUT ROWID" not in text
        info = store.execute(f'PRAGMA table_info("{name}")').fetchall()
        columns = tuple((_TYPES.get(kind, ()), not needed) for _, _, kind, needed, _, key in info)
        if by_number:  # its number stands beside the row
            columns = (((), True), *columns[1:])
        yield Table(name, by_number, columns)


def _candidates(tables: list[Table], number: int | None, values: Row) -> Iterator[tuple[Table, Row]]:
    """The one table that a row makes sense in, and the row as that has it now; nothing where it makes none."""
    for table in tables:
        if table.by_number != (number is not None):
            continue
        if table.by_number and values[0] is not None:
            continue
        lacking = len(table.columns) - len(values)
        later: Row = [*schema.LATER.get(table.name, [])]
        if not 0 <= lacking <= len(later):
            continue
        row = [*values, *later[len(later) - lacking :]]
        row = [number, *row[1:]] if table.by_number else row
        if table.fits(row) and _SENSE.get(table.name, _any)(row):
            yield table, row
            return


def _any(row: Row) -> bool:
    return True


def _is_counter(row: Row) -> bool:
    return bool(_COUNTER.fullmatch(str(row[0]))) and row[0] not in (
        "schema",
        "incarnation",
        "set_aside",
        *_META,
        "home",
    )


def _is_meta(row: Row) -> bool:
    return row[0] in _META or str(row[0]).startswith(("alert.", "budget", "tail ", "tailed ", POSITION))


def _is_sequence(row: Row) -> bool:
    """One looks like a row of `retained`: told by how a head begins, a block's key, its checksum or its shape."""
    *parts, crc = row
    _, key, packed = parts
    is_known = packed[:3] == b"SGQ" or len(key) == 24  # type: ignore[index,arg-type]  # they are bytes
    return is_known or (crc is not None and (is_sound(crc, *parts) or not _is_retained(row)))  # type: ignore[arg-type]


def _is_retained(row: Row) -> bool:
    return all(len(digests) % 16 == 0 for digests in row[1:3])  # type: ignore[arg-type]  # they are bytes


def _is_tagged(row: Row) -> bool:
    """One looks like a row of `departed`, whose senders begin like no object."""
    number, text, crc = row
    is_other = crc is not None and is_sound(crc, "departed", number, text)  # type: ignore[arg-type]  # compared
    return str(text).startswith("{") and not is_other


_SENSE = {
    "counter": _is_counter, "meta": _is_meta, "sequence": _is_sequence, "retained": _is_retained, "tagged": _is_tagged
}  # fmt: skip
#: Tables whose last column is a checksum of these columns.
_CHECKED = {
    "window": slice(3, 5),
    "window_leaf": slice(0, 4),
    "window_run": slice(1, 6),
    "sequence": slice(0, 3),
    "identity": slice(0, 3),
    "held": slice(0, 7),
    **{table: slice(0, -1) for table in ("tagged", "handed")},
}


def _keep(store: sqlite3.Connection, table: Table, row: Row, counted: Counter[str]) -> None:
    if not _is_whole(table.name, row):
        counted[f"rows.lost.{table.name}"] += 1
        return
    if table.name == "stream" and _is_older(store, row):
        return
    places = ", ".join("?" for _ in row)
    store.execute(f'INSERT OR REPLACE INTO "{table.name}" VALUES ({places})', row)  # noqa: S608  our own names
    counted[f"rows.salvaged.{table.name}"] += 1


def _is_whole(table: str, row: Row) -> bool:
    """Whether a row of these tables is as it was written, as far as that can be told."""
    try:
        if table == "stream":
            *columns, crc = row
            stream = StreamRow(*columns)  # type: ignore[arg-type]  # their types were compared
            if not stream.is_sound(crc):  # type: ignore[arg-type]
                return False
            Stream(0, stream.name, 1, 1).restore(stream.row)
        elif table == "chunk":
            return is_sound_chunk(*row) and bool(chunks.columns(row[7])["id"] == row[1])  # type: ignore[arg-type]
        elif table == "origin":
            row[4] = float(row[4])  # type: ignore[arg-type]  # SQLite stores whole numbers as integers
            return is_sound(row[5], *row[:5])  # type: ignore[arg-type]
        elif table in NAMED:
            return is_sound(row[-1], table, *row[:-1])  # type: ignore[arg-type]
        elif table == "tagged" and row[2] is None:
            json.loads(str(row[1]))
        elif table in _CHECKED:
            return is_sound(row[-1], *row[_CHECKED[table]])  # type: ignore[arg-type]  # their types were compared
        elif table == "doubtful":
            doubts.unpack(row[1])  # type: ignore[arg-type]  # its type was compared
        elif table == "meta" and row[0] == "key":
            return is_hexadecimal(row[1], 32)
        elif table == "meta" and str(row[0]).startswith("tail "):
            read_place(str(row[0]), row[1])
        elif table == "meta" and str(row[0]).startswith(POSITION):
            read_position(str(row[0]), row[1])
        elif table == "meta" and str(row[0]).startswith("tailed "):
            read_known(str(row[0]), row[1])
        elif table == "meta" and row[0] == UNANSWERED:
            read_digests(row[1])
        elif table == "meta" and row[0] == UNSURE:
            read_unsure(row[1])
        elif table == "meta" and row[0] == UNDER_WAY:
            read_under_way(row[1])
        elif table == "meta" and row[0] in (BEFORE, BYTES, *TIMES):
            return is_sound_time(str(row[0]), row[1])
        elif table == "meta" and row[0] in ("link", "asked"):
            json.loads(str(row[1]))
    except (sqlite3.DatabaseError, ValueError):
        return False
    return True


def _is_older(store: sqlite3.Connection, row: Row) -> bool:
    """Whether a stream's row that was found already is the later one."""
    found = store.execute("SELECT row FROM stream WHERE id = ?", (row[0],)).fetchone()
    if found is None:
        return False
    one, other = Stream(0, "", 1, 1), Stream(0, "", 1, 1)
    one.restore(found[0])
    other.restore(row[2])  # type: ignore[arg-type]  # it is whole
    return one.accepted >= other.accepted


def _note_bucket(buckets: dict[int, list[tuple[Bucket, Row]]], row: Row, counted: Counter[str]) -> None:
    stream, first, packed, readings, crc = row
    try:
        sound(stream, first, packed, readings, crc)  # type: ignore[arg-type]  # their types were compared
        bucket = unpacked(packed)  # type: ignore[arg-type]
        bucket.verify()
        if bucket.first != first:
            raise ValueError("another bucket's key")
    except (sqlite3.DatabaseError, ValueError):
        counted["rows.lost.outbox"] += 1
        return
    buckets.setdefault(int(stream), []).append((bucket, row))  # type: ignore[arg-type]


def _note_packed(buckets: dict[int, list[tuple[Bucket, Row]]], row: Row, counted: Counter[str]) -> None:
    number, stream, data, crc = row
    try:
        require_sound("packed", crc, number, stream, data)  # type: ignore[arg-type]  # their types were compared
        found = unpacked_rows(data)  # type: ignore[arg-type]
    except (sqlite3.DatabaseError, ValueError):
        counted["rows.lost.packed"] += 1
        return
    for each in found:
        check = check_of(stream, each.first, each.bucket, each.readings)  # type: ignore[arg-type]
        _note_bucket(buckets, [stream, each.first, each.bucket, each.readings, check], counted)


def _place_streams(
    store: sqlite3.Connection, buckets: dict[int, list[tuple[Bucket, Row]]], counted: Counter[str]
) -> None:
    """Put the outbox rows of each stream under it, run by run."""
    origins: dict[int, Origin] = {}
    for number, name, incarnation, key, center, _ in store.execute("SELECT * FROM origin").fetchall():
        origins[number] = Origin(name, incarnation, key, center)
    told = {number: _told(store, number) for number in buckets}
    numbers = [number for (number,) in store.execute("SELECT id FROM stream UNION SELECT stream FROM chunk")]
    free = 1 + max([0, *numbers, *origins, *buckets])  # a number that meant another stream must not mean a new one
    for number, rows in buckets.items():
        origin, ends = told[number] or (origins.get(number), -1)
        sealed = store.execute("SELECT first, first + readings FROM chunk WHERE stream = ?", (number,)).fetchall()
        for run in _runs(rows, sealed):
            counted[f"rows.{'lost' if origin is None else 'salvaged'}.outbox"] += len(run)
            if origin is None:
                continue
            end, owner = run[-1][0].first + run[-1][0].n, number
            if end != ends:
                owner, free = free, free + 1
                _retire(store, owner, origin, end)
            store.executemany("INSERT INTO outbox VALUES (?, ?, ?, ?, ?)", [_moved(row, owner) for _, row in run])


def _told(store: sqlite3.Connection, number: int) -> tuple[Origin, int] | None:
    """What a stream's row says of its rows, and the ordinal before which they end; None where it is lost."""
    found = store.execute("SELECT name, incarnation, key, row FROM stream WHERE id = ?", (number,)).fetchone()
    if found is None:
        return None
    stream = Stream(0, found[0], 1, 1)
    stream.restore(found[3])
    if stream.builder is None:
        return None
    bucket = stream.builder.bucket
    origin = Origin(found[0], found[1], found[2], stream.builder.center)
    return origin, bucket.first if bucket is not None else stream.accepted


def _runs(rows: list[tuple[Bucket, Row]], sealed: list[tuple[int, int]]) -> list[list[tuple[Bucket, Row]]]:
    """Rows in runs without a hole. Of rows that overlap the longest is the latest: buckets only ever grow."""
    runs: list[list[tuple[Bucket, Row]]] = []
    end = -1
    for bucket, row in sorted(rows, key=lambda pair: (pair[0].first, -pair[0].n)):
        if bucket.first < end or any(begin <= bucket.first < stop for begin, stop in sealed):
            continue
        if bucket.first == end:
            runs[-1].append((bucket, row))
        else:
            runs.append([(bucket, row)])
        end = bucket.first + bucket.n
    return runs


def _retire(store: sqlite3.Connection, number: int, origin: Origin, end: int) -> None:
    """A stream of which only rows are left that wait."""
    stream = Stream(0, origin.name, 1, 1)
    stream.builder = Builder(origin.center, end)
    StreamRow(number, origin.name, stream.pack(), origin.incarnation, origin.key, 1).write(store)
    write_origin(store, number, *origin)


def _moved(row: Row, owner: int) -> Row:
    """A row under another stream's number, with the checksum that it has there."""
    _, first, packed, readings, _ = row
    return [owner, first, packed, readings, check_of(owner, first, packed, readings)]  # type: ignore[arg-type]


def _name(store: sqlite3.Connection, incarnation: str, set_aside: int, counted: Counter[str]) -> None:
    """The store's own rows. Streams whose row is lost begin in the new incarnation; the others keep theirs."""
    store.execute("INSERT INTO meta VALUES ('incarnation', ?)", (incarnation,))
    store.execute("INSERT INTO meta VALUES ('set_aside', ?)", (set_aside,))
    store.execute("INSERT INTO meta VALUES ('salvaged', 1)")
    count(store, counted)
    log.error(
        "salvaged of the damaged store, rows by table: %s. Where what was known as seen is not whole, what may "
        "come again counts in doubt", dict(sorted(counted.items())),
    )  # fmt: skip
