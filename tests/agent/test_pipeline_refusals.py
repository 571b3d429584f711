"""A disk that refuses or is damaged: nothing is acknowledged into nothing, and what is whole goes on counting once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import timed
from test_pipeline import Board, batch, content

from sluicegate_agent.state import StoreDamaged


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Callable[..., Board]]:
    """Makes a board; closes it."""
    made: list[Board] = []

    def make(**tables: Any) -> Board:
        made.append(Board(tmp_path, **tables))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


class Refusing:
    """A connection whose n-th statement from now fails as on a dying or full disk."""

    def __init__(self, connection: sqlite3.Connection, at: int) -> None:
        self._connection, self.left = connection, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise sqlite3.OperationalError("database or disk is full")

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """The statement, or the failure; ROLLBACK always works."""
        if statement != "ROLLBACK":
            self._count()
        return self._connection.execute(statement, *values)

    def executemany(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """The statements, or the failure."""
        self._count()
        return self._connection.executemany(statement, *values)


def test_a_commit_refused_at_any_statement_is_tried_again_whole(tmp_path: Path) -> None:
    """Wherever the disk refuses, nothing is acknowledged and the store is as before; then it is as if nothing had been.

    The first 12 statements are refused one by one, then every other.
    In between the broker sends everything again, which is known although no commit has told the disk.
    """
    straight = Board(tmp_path / "straight", outbox={"rows": 12, "chunk_buckets": 4})
    for start in (0, 4, 8, 12):
        straight.take(*batch(start))
    expected = content(straight)
    straight.state.close()
    statements = 1
    while True:
        one = Board(tmp_path / f"refused-{statements}", outbox={"rows": 12, "chunk_buckets": 4})
        for start in (0, 4, 8):
            one.take(*batch(start))
        for message in batch(12):
            one.pipeline.accept(message)
        before = content(one)
        real = one.state.store.connection
        one.state.store.connection = Refusing(real, statements)  # type: ignore[assignment]
        try:
            acknowledged = one.pipeline.commit()
        except sqlite3.OperationalError:
            acknowledged = []
        one.state.store.connection = real
        if acknowledged:
            one.state.close()
            break
        assert content(one) == before
        one.pipeline.connected(session_present=True)
        for message in batch(12):
            one.pipeline.accept(message._replace(dup=True))
        assert one.pipeline.commit() == [message.packet_id for message in batch(12)]
        found = content(one)
        counted, wanted = (
            {name: value for name, value, _ in rows} for rows in (found.pop("counter"), expected["counter"])
        )
        assert counted["duplicates"] == 12
        assert counted["accepted"] == wanted["accepted"]
        assert found == {name: rows for name, rows in expected.items() if name != "counter"}, statements
        one.state.close()
        statements += 1 if statements < 12 else 2
    assert statements > 30, "the test has to reach every statement of a commit"


def test_a_full_disk_stops_acknowledging_and_nothing_else(board: Callable[..., Board]) -> None:
    """SQLite's own "disk is full": no PUBACK while it lasts, all of them when there is room, each reading once."""
    one = board(mqtt={"receive_maximum": 60000})
    one.take(timed(0, 1))
    connection = one.state.store.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    payloads = [timed(minute, minute + 1, value=minute / 8) for minute in range(1, 2000)]
    for message in payloads:
        one.pipeline.accept(message)
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError, match="full"):
            one.pipeline.commit()
    assert one.pipeline.pending == 1999
    connection.execute("PRAGMA max_page_count = 1000000")
    assert len(one.pipeline.commit()) == 1999
    one.restart()
    assert one.accepted() == {"heat": 2000}
    assert sum(bucket.n for bucket in one.outbox("heat")) == 2000


def test_damage_while_running_ends_the_agent_and_the_next_start_sets_it_aside(board: Callable[..., Board]) -> None:
    """The next incarnation begins from zero with what the broker still has, and says what happened."""
    one = board()
    one.take(*batch(0))
    incarnation = one.state.incarnation
    one.state.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = one.state.store.path
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    one.state.store.connection.close()
    one.state.store.connection = sqlite3.connect(path, isolation_level=None)
    one.state.store.watch()
    for message in batch(4):
        one.pipeline.accept(message)
    with pytest.raises(StoreDamaged):
        one.pipeline.commit()
    one.restart()
    one.take(*batch(4))
    assert one.accepted() == {"level": 4, "flow": 4, "heat": 4, "door": 4}
    assert one.state.incarnation > incarnation
    assert one.state.status()["stores_set_aside"] == 1


@pytest.mark.parametrize(
    ("table", "level", "heat"),
    [
        ("stream SET row", 40, 40),  # what was taken before waits under the old incarnation, and is known as seen
        ("sequence SET row", 120, 80),  # numbers seen before are not known any more
        ("outbox SET bucket", 80, 80),
        ("identity SET entries", 80, 120),
    ],
)
def test_rows_that_say_nonsense_are_damage_too(board: Callable[..., Board], table: str, level: int, heat: int) -> None:
    """The pages are whole, a row is not: at most one start fails, then only that table is lost."""
    one = board(outbox={"rows": 10, "chunk_buckets": 4})
    for start in range(0, 40, 4):
        one.take(*batch(start))
    one.state.store.connection.execute(f"UPDATE {table} = x'0102'")
    one.state.close()
    for _ in range(2):
        try:
            one.restart()
            for start in range(0, 80, 4):
                one.take(*batch(start))
        except StoreDamaged:
            one.state.close()
    assert one.state.status()["stores_set_aside"] == 1
    assert {"level": level, "flow": level, "heat": heat}.items() <= one.accepted().items()
