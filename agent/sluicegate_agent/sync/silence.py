"""Streams that say nothing: their open buckets close after `outbox.chunk_age`, and time goes on in their windows."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sluicegate_agent.doubts import Doubts
from sluicegate_agent.ticks import Ticks

if TYPE_CHECKING:
    from sluicegate_agent.pipeline import Pipeline
    from sluicegate_agent.state import State
    from sluicegate_agent.streams import Stream

#: Seconds between two looks.
LOOKED_FOR = 1.0


class Silence:
    """When each stream of a pipeline was heard last, in monotonic seconds; `waits`: what closed waits for a commit."""

    def __init__(self, pipeline: Pipeline, state: State, clock: Callable[[], int]) -> None:
        """Streams that were there before have just been heard; time has gone on at least since the start."""
        self._pipeline = pipeline
        self.looks_at, self.waits = float("-inf"), False
        self.heard = dict.fromkeys(state.streams, time.monotonic())
        self.ticks = Ticks(clock)
        for name, stream in state.streams.items():
            if stream.builder and stream.builder.newest is not None:
                self.ticks.resume(name, stream.builder.newest)

    def forget(self, name: str) -> None:
        """A stream left."""
        self.heard.pop(name, None)
        self.ticks.forget(name)

    def look(self, now: float) -> None:
        """Close open buckets of streams that have said nothing for `outbox.chunk_age`: their last readings go too."""
        if now < self.looks_at:
            return
        self.looks_at = now + LOOKED_FOR
        pipeline = self._pipeline
        pipeline.waiting_room.look()
        pipeline.waiting_room.age()
        self._tick()
        age = pipeline.config.outbox.chunk_age.seconds
        silent = [name for name, heard in self.heard.items() if now - heard >= age]
        for name in silent:
            self.heard[name] = now
            self.close(pipeline.state.streams[name])
            self.waits |= bool(pipeline.state.streams[name].closed)

    def close(self, stream: Stream) -> None:
        """Close a stream's open bucket, and say so in the record."""
        stream.close()
        if self._pipeline.recorder:
            self._pipeline.recorder.closed(stream.number)

    def _tick(self) -> None:
        """Let time go on in the windows of streams that say nothing: what it makes too old leaves them."""
        pipeline, guard = self._pipeline, self._pipeline.guard
        latest = guard.latest(pipeline.clock()) + guard.future // 24  # a little makes nothing impossible
        judges = not guard.is_unset()  # else it may be the clock that is wrong
        for stream, windows in pipeline.windows.items():
            for window in windows:
                if judges and window.is_ahead_of(latest):
                    self._begin_anew(stream, latest)
                    windows = pipeline.windows[stream]
                    break
            now = None if stream in pipeline.unfed else self.ticks.now(stream)
            if now is None:
                continue
            changed = [window for window in windows if window.advance(now)]
            pipeline.touched.update(dict.fromkeys((stream, name) for window in changed for name in window.names))
            pipeline.limits_wait |= bool(changed)
            if pipeline.recorder:
                pipeline.recorder.advanced(pipeline.state.streams[stream].number, now, changed=bool(changed))

    def _begin_anew(self, stream: str, latest: int) -> None:
        """The clock was set since, and does not allow the stream's event time: its windows by time begin anew."""
        pipeline = self._pipeline
        pipeline.feed_windows()
        try:
            if pipeline.recorder:
                pipeline.saving.fold()  # no frame may fill the new windows with what the old ones had
            doubts = pipeline.doubts.setdefault(stream, Doubts())
            begun = pipeline.windows.begin_anew(pipeline.state, stream, latest, doubts)
        except sqlite3.OperationalError as error:
            pipeline.repeats.tell(logging.WARNING, f"windows of {stream} cannot begin anew", f": {error}")
            return
        pipeline.note("windows.begun_anew", begun)
        self.ticks.forget(stream)
        pipeline.limits_wait = True
