"""Rows that frames say: after any commits the tables are as if each statement had been executed at once."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import number

from sluicegate_agent.checksums import checksum, named
from sluicegate_agent.identity.stored import save_entries
from sluicegate_agent.record.rows import Changes, NotRecordedError, Rows
from sluicegate_agent.state import schema

SOURCES = st.sampled_from(["", "plant/1", "plant/2"])
KEYS = st.sampled_from([b"epoch-a", b"epoch-a\x00\x00\x00\x01", b"epoch-b"])
BLOBS = st.binary(max_size=40)
PUT = "INSERT OR REPLACE INTO {} VALUES ({})"
GONE = "DELETE FROM sequence WHERE source = ? AND (epoch = ? OR (epoch > ? AND epoch <= ?))"


def _sequence(source: str, key: bytes, row: bytes) -> tuple[str, tuple[object, ...]]:
    return PUT.format("sequence", "?, ?, ?, ?"), (source, key, row, checksum(source, key, row))


STATEMENTS = st.one_of(
    st.builds(
        lambda s, k, row: (PUT.format("sequence", "?, ?, ?, ?"), (s, k, row, checksum(s, k, row))), SOURCES, KEYS, BLOBS
    ),
    st.builds(lambda s, row: (PUT.format("meta", "?, ?"), (f"clock {s}", row)), SOURCES, BLOBS),
    st.builds(lambda row: (PUT.format("meta", "?, ?"), ("deliveries", row)), st.text("a€", max_size=9)),
    st.just(("DELETE FROM meta WHERE key = ?", ("deliveries",))),
    st.builds(
        lambda s, a, b: (PUT.format("retained", "?, ?, ?, ?"), named("retained", s, a, b)),
        SOURCES,
        BLOBS,
        BLOBS,
    ),
    st.builds(lambda s: (GONE, (s, b"epoch-a", b"epoch-a", b"epoch-a\xff\xff\xff\xff")), SOURCES),
)
ENTRIES = st.tuples(SOURCES, st.integers(1, 3))


def tables() -> sqlite3.Connection:
    """An empty store."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    return connection


def told(connection: sqlite3.Connection) -> list[list[Any]]:
    """What the tables say."""
    names = ("sequence", "meta", "retained")
    return [sorted(connection.execute(f"SELECT * FROM {name}"), key=str) for name in names]  # noqa: S608


@settings(max_examples=number(3000, 40), deadline=None)
@given(commits=st.lists(st.lists(STATEMENTS, max_size=6), max_size=6), saved_at=st.integers(0, 6))
def test_the_tables_are_those_of_the_statements(commits: list[list[Any]], saved_at: int) -> None:
    """Who writes frames and who reads them at a restart, and one that is written in the middle."""
    with contextlib.closing(tables()) as direct, contextlib.closing(tables()) as late:
        rows, again = Rows(), Rows()
        for place, statements in enumerate(commits):
            # as identities do: of one commit first what is forgotten, then what is written
            ordered = sorted(statements, key=lambda each: each[0] != GONE)
            changes = Changes()
            for statement, values in ordered:
                direct.execute(statement, values)
                changes.execute(statement, values)
            frame = rows.pack(changes)
            rows.keep(changes)
            again.apply(frame)
            if place == saved_at:
                rows.save(late)
                rows.clear()
                again.clear()
        again.save(late)
        assert told(late) == told(direct)
        assert rows.bytes == again.bytes >= 0


@settings(max_examples=number(3000, 40), deadline=None)
@given(commits=st.lists(st.lists(ENTRIES, max_size=4, unique_by=lambda each: each[0]), max_size=30))
def test_the_newest_entries_of_each_source_are_kept(commits: list[list[tuple[str, int]]]) -> None:
    """Those within the horizon, under their numbers, whatever commits they came in."""
    rows, count, said = Rows(), 0, dict[str, bytes]()
    totals: dict[str, int] = {}
    for commit in commits:
        changes = Changes()
        for source, amount in commit:
            entries = [(count + each).to_bytes(16, "big") for each in range(amount)]
            count += amount
            save_entries(changes, source, totals.get(source, 0), entries, 8)  # type: ignore[arg-type]
            totals[source] = totals.get(source, 0) + amount
            said[source] = said.get(source, b"") + b"".join(entries)
        rows.apply(rows.pack(changes))
    with contextlib.closing(tables()) as connection:
        rows.save(connection)
        for source, entries in said.items():
            query = "SELECT last, entries, crc FROM identity WHERE source = ? ORDER BY last"
            found = connection.execute(query, (source,)).fetchall()
            assert b"".join(each[1] for each in found)[-8 * 16 :] == entries[-8 * 16 :]
            assert found[-1][0] == totals[source]
            assert all(crc == checksum(source, last, each) for last, each, crc in found)


@pytest.mark.parametrize(
    "statement", ["SELECT last, entries FROM identity", "DELETE FROM identity WHERE source = ?", "COMMIT"]
)
def test_what_has_no_words_is_refused(statement: str) -> None:
    """Such a commit writes the tables."""
    with pytest.raises(NotRecordedError):
        Changes().execute(statement, ("",))


def test_rows_with_columns_of_zeros_are_read() -> None:
    """As Sluicegate wrote them first: all columns of the differences, of each length one after the other."""
    key = ["sequence", "plant/1", b"epoch-a"]
    frame = msgspec.msgpack.encode([[key], {3: 1}, bytes(4), b"\0\x07\0", [], [], []])
    rows = Rows()
    rows.apply(frame)
    with contextlib.closing(tables()) as connection:
        rows.save(connection)
        assert connection.execute("SELECT row FROM sequence").fetchall() == [(b"\0\x07\0",)]


@pytest.mark.parametrize("there", [b"\x0f", b"\x07"])
def test_columns_that_are_missing_are_refused(there: bytes) -> None:
    """More of them than the row has, or than there are."""
    key = ["sequence", "plant/1", b"epoch-a"]
    frame = msgspec.msgpack.encode([[key], {3: 1}, bytes(4), b"\x07", [], [], [], [there]])
    with pytest.raises(ValueError, match="columns are missing"):
        Rows().apply(frame)


def test_bytes_that_are_no_rows_are_refused() -> None:
    """By a ValueError that the recovery waits for."""
    with pytest.raises(ValueError, match="not rows"):
        Rows().apply(b"\x00")
