"""What an operator has to know although nothing stops: readings that are refused, a target that fails, its return."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sluicegate_agent.logs.repeats import Repeats

if TYPE_CHECKING:
    from sluicegate_agent.pipeline import Pipeline
    from sluicegate_agent.sync import Sync

log = logging.getLogger("sluicegate.sync")


class Notices:
    """Looks at the target's link after each turn, and has what comes again told by the minute."""

    def __init__(self, sync: Sync, pipeline: Pipeline) -> None:
        self._sync, self._pipeline = sync, pipeline
        self._repeats = Repeats(log)
        self._before = ("", 0)

    def look(self) -> None:
        """Tell a failure of the target and its return; a minute's count of what goes on."""
        link = self._sync.link
        state, failures = self._before
        self._before = link.state, link.failures
        if link.state == "down" and (state != "down" or link.failures != failures):
            self._repeats.tell(logging.WARNING, f"target {link.target}: {link.error}; all is kept and tried again")
        elif link.state == "up" and state == "down":
            self._repeats.tell(logging.INFO, f"target {link.target}: it takes documents again")
        self._repeats.tick()
        self._pipeline.repeats.tick()
