"""How far a file was replayed: known by its content, written with the readings, so that each line counts once.

A file is known by a digest of its first bytes, as many as were taken: one that has grown since goes on where it ended,
wherever it lies and whatever it is called.
"""

from __future__ import annotations

import logging
import sqlite3
from hashlib import blake2b
from pathlib import Path

from sluicegate_agent.checksums import FILES, kept_time, named
from sluicegate_agent.state import State

log = logging.getLogger("sluicegate.replay")
#: Files that are known; beyond, the one that began first is forgotten, those that were read to their end before others.
FILES_KEPT = 1024
_PIECE = 1 << 20
_DIGEST = 16


class Replayed:
    """One file on its way into one source: `taken` bytes were counted before this run, `read` is where this one is."""

    #: Only lines move it, and each waits for a commit itself.
    changed = False

    def __init__(self, state: State, topic: str, file: Path, *, again: bool = False) -> None:
        """Find where an earlier run of this content ended; with `again`, only one that did not reach its end."""
        self._state, self._topic, self._again = state, topic, again
        query = "SELECT id, bytes, digest, lines, done FROM replay WHERE topic = ? ORDER BY bytes, id"
        rows = state.store.connection.execute(query, (topic,)).fetchall()
        self._row: int | None = None
        self.taken = self.lines = self.lines_before = 0
        for row, taken, lines in _found(file, [row[:4] for row in rows if not (again and row[4])]):
            self._row, self.taken, self.lines, self.lines_before = row, taken, lines, lines
        self.read = self._line = 0
        self._digest = blake2b(digest_size=_DIGEST)

    def passed(self, line: bytes) -> None:
        """A line was read."""
        self._line = self.read
        self.read += len(line)
        self._digest.update(line)

    @property
    def may_be_forgotten(self) -> int:
        """Until when it may have been counted although nothing says so, since a damaged store lost that; 0: not, µs."""
        known = self._row is not None or self._again
        return 0 if known else kept_time(self._state.store.connection, FILES) or 0

    @property
    def is_known(self) -> bool:
        """Whether what was read last was counted by an earlier run; also a last line that had no end and has grown."""
        return self._line < self.taken

    def counted(self) -> None:
        """What was read last waits for the commit."""
        self.lines += 1

    def save(self, connection: sqlite3.Connection, *, done: bool = False) -> None:
        """Write how far it is, inside the caller's transaction."""
        if self.read <= self.taken and not done:
            return
        is_new = self._row is None
        if self._row is None:
            self._row = int(connection.execute("SELECT coalesce(max(id), 0) + 1 FROM replay").fetchone()[0])
        row = self._row, self._topic, max(self.read, self.taken), self._digest.digest(), self.lines, int(done)
        connection.execute("INSERT OR REPLACE INTO replay VALUES (?, ?, ?, ?, ?, ?, ?)", named("replay", *row))
        if is_new:
            self._forget(connection)

    def saved(self) -> None:
        """Its row is durable: nothing of it waits in memory."""

    def _forget(self, connection: sqlite3.Connection) -> None:
        """Keep FILES_KEPT files: a forgotten one would count again, so it is told."""
        beyond = connection.execute("SELECT count(*) FROM replay").fetchone()[0] - FILES_KEPT
        query = "SELECT id FROM replay WHERE id != ? ORDER BY done DESC, id LIMIT ?"
        gone = connection.execute(query, (self._row, max(beyond, 0))).fetchall()
        if gone:
            connection.executemany("DELETE FROM replay WHERE id = ?", gone)
            self._state.counters.add("replays_forgotten", len(gone))
            log.warning("more than %d files were replayed: the first of them would count again", FILES_KEPT)

    def finish(self) -> None:
        """The file's end was reached."""
        if self.lines:
            with self._state.transaction() as connection:
                self.save(connection, done=True)


def _found(file: Path, rows: list[tuple[int, int, bytes, int]]) -> list[tuple[int, int, int]]:
    """Those of (row, bytes, digest, lines) whose bytes the file begins with, the most bytes last."""
    digest, at, found = blake2b(digest_size=_DIGEST), 0, []
    try:
        with file.open("rb") as handle:
            for row, taken, expected, lines in rows:
                while at < taken and (piece := handle.read(min(_PIECE, taken - at))):
                    digest.update(piece)
                    at += len(piece)
                if at < taken:
                    break
                if digest.digest() == expected:
                    found.append((row, taken, lines))
    except OSError:
        return []  # the replay itself says what is wrong with the file
    return found
