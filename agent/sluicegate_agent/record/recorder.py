"""Decides how a commit is written: as one frame of the record, or by writing the tables, which begins the record anew.

What a frame cannot say makes its commit write the tables: a stream that comes, leaves or changes its source or tags, a
message that waits. `docs/reference/state.md` names all of it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, cast

from sluicegate_agent import faults
from sluicegate_agent.checksums import BEFORE, BYTES, keep_time
from sluicegate_agent.record.file import Record, first_fold, new_fold
from sluicegate_agent.record.frame import ADD, ADD_IN_DOUBT, ADVANCE, CLOSE, FEED, Body, Steps
from sluicegate_agent.record.limits import limits
from sluicegate_agent.record.rows import Changes, NotRecordedError, Rows

if TYPE_CHECKING:
    from array import array
    from pathlib import Path

    from sluicegate_agent.config import Config
    from sluicegate_agent.state import State
    from sluicegate_agent.state.beside import Beside
    from sluicegate_agent.streams import Stream


def is_recorded(config: Config) -> bool:
    """Whether commits append to the record: not where the state is Couchbase Lite's, which writes documents."""
    return config.state.store == "sqlite" and config.commit.fold.seconds > 0


class Saves(Protocol):
    """Something that writes rows: the memory of what a source sent."""

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed."""


class Recorder:
    """The record of one pipeline; `must_fold`: the next commit writes the tables."""

    def __init__(self, config: Config, state: State) -> None:
        """Open the file. Raises OSError."""
        self._config, self._state = config, state
        self.limits = limits(config)
        self._file = Record(config.state.path, self.limits.file)
        state.store.guard(self._file)
        self._rows = Rows()
        self._steps = Steps()
        #: When the windows of a stream were told the time last, and which of these times stand in the record.
        self._told: dict[int, int] = {}
        self._said: dict[int, int] = {}
        self._since, self._readings = time.monotonic(), 0
        self._fold = 0
        self.must_fold = True

    # what streams do

    @property
    def has_steps(self) -> bool:
        """Whether a stream took a reading or closed a bucket, or a window lost one, since the last commit."""
        return len(self._steps) > 0

    def took(self, stream: int, values: array[float], times: array[int], begin: int, missing: int, doubt: int) -> None:
        """A stream took readings: those from `begin` on, in their order."""
        told = self._told.get(stream)
        if told is not None and self._said.get(stream) != told:
            self._say(stream, told)
        if begin:
            values, times = values[begin:], times[begin:]
        self._steps.run(stream, ADD_IN_DOUBT if doubt else ADD, missing, values, times)

    def closed(self, stream: int) -> None:
        """A stream was told to close its bucket."""
        self._steps.add(stream, CLOSE)

    def advanced(self, stream: int, now: int, *, changed: bool) -> None:
        """The windows of a stream were told the time: no news until it changes one, or a reading comes."""
        self._told[stream] = now
        if changed:
            self._say(stream, now)

    def _say(self, stream: int, now: int) -> None:
        self._steps.add(stream, ADVANCE, now)
        self._said[stream] = now

    def fed(self) -> None:
        """The windows were handed what had come."""
        self._steps.add(0, FEED)

    # commits

    def append(self, saved: Iterable[Saves], beside: Beside | None) -> None:
        """Write one frame of all that happened since the last commit; durable when it returns.

        Raises NotRecordedError, with the reason in a word, where the tables have to be written,
        sqlite3.OperationalError where the disk refuses.
        """
        self._require_recordable()
        changes = Changes()
        for each in [*saved, *([beside] if beside else [])]:
            each.save(cast(sqlite3.Connection, changes))
        faults.step("record: gathered")
        body = self._body(self._rows.pack(changes))
        packed = body.pack(self.limits.level)
        if not self._file.has_room(packed):
            raise NotRecordedError("bytes")
        try:
            self._file.append(packed)
        except sqlite3.OperationalError:
            self.must_fold = True  # nobody knows whether the frame is there: the tables supersede it
            raise
        self._rows.keep(changes)
        self._readings += self._steps.readings
        self._steps = Steps()

    def _require_recordable(self) -> None:
        state, now = self._state, time.monotonic()
        if self.must_fold or now - self._since >= self._config.commit.fold.seconds:
            raise NotRecordedError("due")
        if self._readings >= self.limits.readings:
            raise NotRecordedError("readings")
        if self._rows.bytes >= self.limits.rows:
            raise NotRecordedError("memory")
        if state.leaving or state.renumbered or _are_told_in_tables(state.streams.values()):
            raise NotRecordedError("streams")

    def _body(self, rows: bytes) -> Body:
        state, bucket = self._state, self._config.bucket
        letters = [(number, *letter) for number, letter in state.dead_letters.recent]
        counters = state.counters.recent
        return Body(bucket.readings, int(bucket.span), self._steps.pack(), counters, letters, rows)

    def fold(self, connection: sqlite3.Connection) -> None:
        """Write what frames said and the tables lack, before what happened since; inside the caller's transaction."""
        self._rows.save(connection)
        self._state.outbox.behind.write(connection)
        self._fold = begin(connection, self._config.state.path)

    def folded(self) -> None:
        """The tables are durable: frames are written from the beginning again."""
        self._rows.clear()
        there = {stream.number for stream in self._state.streams.values()}
        self._told = {number: now for number, now in self._told.items() if number in there}
        self._said.clear()  # a window that the time changed nothing of has no row that knows it
        self._file.begin(self._fold)
        self._steps = Steps()
        self._since, self._readings, self.must_fold = time.monotonic(), 0, False


def begin(connection: sqlite3.Connection, folder: Path | None) -> int:
    """Have the tables follow no frame that there is, inside the caller's transaction; the number of the fold.

    `folder`: of the record, which is written; None for a copy of the tables. An agent may be writing the record then,
    and what was read of it a moment ago must not be written over that.

    Raises sqlite3.OperationalError where the record cannot be read.
    """
    fold = new_fold()
    try:
        for name, value in zip((BEFORE, BYTES), first_fold(folder) if folder else (), strict=bool(folder)):
            keep_time(connection, name, value)
    except OSError as error:
        raise sqlite3.OperationalError(f"{folder}: {error}") from error
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('record', ?)", (fold,))
    connection.execute("DELETE FROM handed")
    return fold


def _are_told_in_tables(streams: Iterable[Stream]) -> bool:
    """Whether what changed of any stream has no words in a frame."""
    return any(
        stream.is_new or stream.has_new_tags or stream.is_fed_anew or (not stream.is_known and stream.builder)
        for stream in streams
    )
