"""A commit of the pipeline: one frame of the record where there is one, else all rows that changed in one transaction.

Both are durable before anything is acknowledged. Where one fails, what waits keeps waiting, and the next commit writes
the tables with whatever came since.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from sluicegate.memory.chunks import give_back_heap
from sluicegate_agent import faults
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.record.rows import NotRecordedError

if TYPE_CHECKING:
    from sluicegate_agent.pipeline import Pipeline
    from sluicegate_agent.streams import Stream


class Saving:
    """Writes what a pipeline holds; `recorder` is None where every commit writes the tables."""

    def __init__(self, pipeline: Pipeline, recorder: Recorder | None) -> None:
        self._pipeline, self.recorder = pipeline, recorder

    def commit(self) -> None:
        """Make all that waits durable.

        Raises sqlite3.OperationalError where the store refuses, StoreDamaged.
        """
        why = "" if self.recorder is None else self._refused(self.recorder)
        if self.recorder is None or why:
            if why:
                self._pipeline.note(f"record.folds.{why}")
            self.fold()

    def _refused(self, recorder: Recorder) -> str:
        """Why no frame can say it all; empty where one does now."""
        pipeline, state = self._pipeline, self._pipeline.state
        if pipeline.waiting_room.changed or pipeline.entry.senders.changed:
            return "waiting"
        saved = [*pipeline.identities.touched(), *pipeline.entry.kept]
        state.check()
        try:
            recorder.append(saved, pipeline.beside)
        except NotRecordedError as reason:
            return str(reason)
        state.check()  # whoever acknowledges may rely on the file being there
        for stream in state.streams.values():
            if stream.closed:
                state.outbox.take(stream.number, stream.closed)
                stream.closed.clear()
        for each in saved:
            each.saved()
        if pipeline.beside:
            pipeline.beside.saved()
        state.dead_letters.recorded()
        state.counters.recorded()
        return ""

    @property
    def is_asked(self) -> bool:
        """Whether an alert waits for a commit that no message asks for."""
        beside = self._pipeline.beside
        return beside is not None and beside.changed

    @property
    def has_changes(self) -> bool:
        """Whether a stream, or an alert, changed since the last commit."""
        if self.is_asked:
            return True
        if self.recorder is None or self.recorder.must_fold:
            return any(stream.changed for stream in self._pipeline.state.streams.values())
        return self.recorder.has_steps

    def make_room(self) -> None:
        """After a commit: keep the outbox's budget; where closed buckets in memory are many pack them, then write them.

        Where the store refuses, the next commit writes the tables, and says so.
        """
        outbox = self._pipeline.state.outbox
        if not self.recorder or outbox.behind.is_empty:
            return
        if outbox.behind.bytes > self.recorder.limits.buckets and not outbox.is_over:
            outbox.behind.shrink()
        if outbox.behind.bytes > self.recorder.limits.buckets or outbox.is_over:
            self._write_buckets(self.recorder)

    def _write_buckets(self, recorder: Recorder) -> None:
        outbox = self._pipeline.state.outbox
        try:
            with self._pipeline.state.transaction() as connection:
                if self._pipeline.state.squeeze(connection):
                    faults.step("commit: squeezed")
                outbox.behind.write(connection)
                faults.step("record: buckets written")
        except sqlite3.OperationalError:
            recorder.must_fold = True

    def fold(self) -> None:
        """Write every row that changed. Raises what a commit raises."""
        if self.recorder:
            self.recorder.must_fold = True  # until it has succeeded: nobody knows what a failed one left behind
        with self._pipeline.state.transaction() as connection:
            self._save(connection)
        self._saved()

    def _save(self, connection: sqlite3.Connection) -> None:
        pipeline, state = self._pipeline, self._pipeline.state
        if self.recorder:
            self.recorder.fold(connection)
        changed = [stream for stream in state.streams.values() if stream.changed]
        pipeline.entry.save(connection)
        for stream in changed:
            self._save_stream(connection, stream)
        faults.step("commit: streams")
        for window in pipeline.windows.all():
            window.save(connection)
        faults.step("commit: windows")
        for identity in pipeline.identities:
            identity.save(connection)
        pipeline.entry.senders.save(connection)
        pipeline.waiting_room.save(connection)
        if pipeline.beside:
            pipeline.beside.save(connection)
        faults.step("commit: identities")
        state.dead_letters.save(connection)
        state.counters.save(connection)
        faults.step("commit: counters")
        if state.squeeze(connection):
            faults.step("commit: squeezed")

    def _save_stream(self, connection: sqlite3.Connection, stream: Stream) -> None:
        self._pipeline.state.outbox.insert(connection, stream.number, stream.closed)
        stream.keep(connection)
        doubts = self._pipeline.doubts.get(stream.name)
        if doubts and doubts.changed:
            doubts.save(connection, stream.number)

    def _saved(self) -> None:
        """The transaction is durable: nothing waits any more."""
        pipeline, state = self._pipeline, self._pipeline.state
        pipeline.entry.saved()
        for stream in state.streams.values():
            stream.saved()
        for doubts in pipeline.doubts.values():
            doubts.changed = False
        are_away = [window.saved() for window in pipeline.windows.all()]
        for identity in pipeline.identities:
            identity.saved()
        pipeline.waiting_room.saved()
        state.dead_letters.saved()
        state.counters.saved()
        if pipeline.beside:
            pipeline.beside.saved()
        if self.recorder:
            self.recorder.folded()
        if pipeline.entry.senders.put_away_silent() or any(are_away):
            give_back_heap()
