"""What a stream's buckets are to carry beside their record, for windows that the cloud is to answer too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate_agent.config.aggregates import build_aggregate

if TYPE_CHECKING:
    from sluicegate_agent.config.model import Config


def asked_of(config: Config, stream: str) -> tuple[str, ...]:
    """The names of what a stream's buckets are to carry, in order."""
    windows = [window for window in config.windows_of(stream) if window.cloud]
    if not windows:
        return ()
    from sluicegate.format.extras import name_for

    named = {name_for(build_aggregate(text)) for window in windows for text in window.named}
    return tuple(sorted(name for name in named if name is not None))
