"""After an outage sends what is new beside the backlog: streams go on in lanes of their own with a share of the link.

A stream with a backlog goes on under another number, with its ordinals, as one does whose tags change: what had closed
stays behind, and the two are sealed and merged each for itself. So a document still holds a run without holes, and the
cloud takes them in any order. Within the backlog, and within what is new, the oldest goes first.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluicegate_agent.pipeline import Pipeline
    from sluicegate_agent.streams import Stream
    from sluicegate_agent.sync import Sync

log = logging.getLogger("sluicegate.sync")


class Shares:
    """Whose turn it is to be sealed: what is new has `share` of the bytes while a backlog waits."""

    def __init__(self, share: float) -> None:
        self.share = share
        self._new = self._old = 0

    def sealed(self, stream: Stream, cost: int) -> None:
        """So many bytes of a stream were sealed."""
        if stream.is_retired:
            self._old += cost
        else:
            self._new += cost

    def in_turn(self, due: Iterable[Stream]) -> Iterator[Stream]:
        """Those that are due, each in its order; what `sealed` is told meanwhile counts."""
        waiting = [*due]
        old = deque(stream for stream in waiting if stream.is_retired)
        new = deque(stream for stream in waiting if not stream.is_retired)
        if not (self.share and old and new):
            self._new = self._old = 0
            yield from waiting
            return
        while old or new:
            is_new = not old or (new and self._new * (1 - self.share) <= self._old * self.share)
            yield (new if is_new else old).popleft()


class Fresh:
    """Parts streams from their backlog once the target is back."""

    def __init__(self, pipeline: Pipeline, sync: Sync) -> None:
        self._pipeline, self._sync = pipeline, sync
        self._was_away = not pipeline.state.retired  # what an earlier run left waits, unless it was parted then

    def look(self) -> None:
        """Call it after each step of the sync."""
        state = self._sync.link.state
        if state == "up" and self._was_away and self._sync.sealer.shares.share:
            self._part()
        self._was_away = state != "up" if state in ("up", "down") else self._was_away

    def _part(self) -> None:
        """Have each stream go on beside what it has waiting, where that is more than a document."""
        pipeline, sealer = self._pipeline, self._sync.sealer
        pipeline.feed_windows()
        parted = [name for name, stream in pipeline.state.streams.items() if sealer.has_backlog(stream)]
        for name in parted:
            if pipeline.state.retag(name, pipeline.state.streams[name].tags):
                pipeline.windows.renumber(name, pipeline.state.streams[name].number)
                pipeline.note("sync.parted")
        if parted:
            log.info("the target is back: %d streams go on beside their backlog", len(parted))
