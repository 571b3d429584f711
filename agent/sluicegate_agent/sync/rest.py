"""Imports the REST target when another target first needs it: few agents ever do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.lean import import_http
from sluicegate_agent.sync.contract import Document, Outcome, Target

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.sync.sync_gateway import SyncGatewayTarget


def rest_target(config: Config) -> SyncGatewayTarget:
    """The REST target of a configuration, now. Raises EnvironmentRefused for a missing secret or certificate."""
    import_http()
    from sluicegate_agent.sync import sync_gateway

    return sync_gateway.from_config(config)


class Later:
    """The target that `make` makes, made at the first `put`."""

    def __init__(self, make: Callable[[], Target]) -> None:
        self._make = make
        self._made: Target | None = None

    def put(self, documents: Sequence[Document]) -> Outcome:
        """As the target does; where it cannot be made, the documents wait and the reason is told."""
        try:
            self._made = self._made or self._make()
        except EnvironmentRefused as error:
            return Outcome(retry_after=0.0, error=str(error))
        return self._made.put(documents)

    def close(self) -> None:
        """Let it go, where it was made."""
        if self._made is not None:
            self._made.close()
