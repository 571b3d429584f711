"""Decides whether inputs should wait, so that nothing is coarsened while the target takes documents."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sluicegate_agent.logs.repeats import Repeats

if TYPE_CHECKING:
    from sluicegate_agent.sync import Sync

log = logging.getLogger("sluicegate.sync")
#: The outbox's share in use from which on inputs wait: what one commit brings has room above it.
FULL = 0.75
#: Below this share a wait has ended: the next one has all its seconds again.
RELIEVED = 0.5
#: Seconds that a broker's messages wait at most until the outbox is relieved. A broker's queue is finite (Mosquitto
#: keeps 1,000 messages by default), and coarser buckets are better than readings that it drops.
LONGEST = 10.0


class Backpressure:
    """Decides for the inputs of an agent; times are the caller's monotonic seconds."""

    def __init__(self, sync: Sync, longest: float = LONGEST) -> None:
        self._sync, self._longest, self._repeats = sync, longest, Repeats(log)
        self._since: float | None = None
        self._waited = 0.0

    def holds(self, now: float) -> bool:
        """Whether nothing is to be read now."""
        used = self._sync.sealer.used
        if used < RELIEVED:
            self._waited = 0.0
        if used < FULL or not self._sync.is_taking(now):
            self._end(now)
            return False
        if self._since is None:
            self._since = now
            if not self._waited:
                self._sync.state.counters.add("inputs.waited")
        if self._waited + now - self._since <= self._longest:
            return True
        if self._waited <= self._longest:
            self._sync.state.counters.add("inputs.waited_in_vain")
            told = "readings come faster than the target takes them: when the outbox is full, buckets are merged"
            self._repeats.tell(logging.WARNING, told)
        self._end(now)
        self._waited = max(self._waited, self._longest + 1.0)
        return False

    def _end(self, now: float) -> None:
        """Add up what was waited."""
        if self._since is not None:
            self._waited += now - self._since
            self._since = None
