"""Works out which extras a stream's buckets carry for windows that the cloud answers too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.format.pairs import PAIR
from sluicegate_agent.config.aggregates import build_aggregate
from sluicegate_agent.naming.names import base_of

if TYPE_CHECKING:
    from sluicegate_agent.config.model import Config


def asked_of(config: Config, stream: str) -> tuple[str, ...]:
    """The names of what a stream's buckets are to carry, in order."""
    pair = {PAIR} if has_second(config, stream) else set[str]()
    windows = [window for window in config.windows_of(stream) if window.cloud]
    if not windows:
        return (*pair,)
    from sluicegate.format.extras import name_for

    named = {name_for(build_aggregate(text)) for window in windows for text in window.named}
    return tuple(sorted(name for name in named | pair if name is not None))


def has_second(config: Config, stream: str) -> bool:
    """Whether a stream's readings have two values."""
    asked = (source.values.get(base_of(stream)) for source in config.sources)
    return any(each is not None and each.second is not None for each in asked)
