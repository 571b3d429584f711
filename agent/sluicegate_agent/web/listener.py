"""The listener as the agent has it: opened with it where it is configured, served in each turn, closed with it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sluicegate_agent.web.access import Access
from sluicegate_agent.web.desk import Desk
from sluicegate_agent.web.errors import LastErrors
from sluicegate_agent.web.routes import Routes
from sluicegate_agent.web.server import Server
from sluicegate_agent.web.view import View

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.inputs.no_broker import NoLink
    from sluicegate_agent.link import Link
    from sluicegate_agent.pipeline import Pipeline
    from sluicegate_agent.sync import Sync
    from sluicegate_agent.web.commits import CommitTimes

log = logging.getLogger("sluicegate.web")


class Listener:
    """Listens, and answers from what `view` sees; `serve` runs in the agent's thread."""

    def __init__(
        self, config: Config, pipeline: Pipeline, sync: Sync, link: Link | NoLink, commits: CommitTimes, planned: int
    ) -> None:
        """Raises EnvironmentRefused where the address or the token cannot be used."""
        access = Access(config.metrics)
        self._errors = LastErrors()
        self.view = View(config, pipeline, sync, link, commits, self._errors, planned)
        self.desk = Desk(lambda: self._server.wake())
        try:
            self._server = Server(config.metrics, Routes(self.view, self.desk, access).handle)
        except BaseException:
            self.desk.close()
            self._errors.close()
            raise
        link.wake_for(self.desk.wake)
        self._server.start()
        log.info("listening on %s", config.metrics.listen)

    def close(self) -> None:
        """Stop listening."""
        self._server.close()
        self.desk.close()
        self._errors.close()
