"""Payloads: from a message's bytes to readings, one module a format; nothing raises anything but `Unreadable`."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate_agent.config.formats import payload_of
from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Decoded, Message, Unreadable

__all__ = ["decode", "parts_of"]

_LIMITS = LimitsConfig()


def decode(source: SourceConfig, message: Message, arrival_us: int, limits: LimitsConfig | None = None) -> Decoded:
    """The readings of a message of `source` that arrived at `arrival_us`; raises Unreadable with the reason."""
    limits = limits if limits is not None else _LIMITS
    _refuse_large(message, limits)
    return payload_of(source.format).read(source, message.payload, arrival_us, limits)


def parts_of(source: SourceConfig, message: Message, limits: LimitsConfig) -> Iterable[Message]:
    """The messages in a message, each known for itself: mostly the one. Raises Unreadable where none can be told."""
    parts = payload_of(source.format).parts
    if parts is None:
        return (message,)
    _refuse_large(message, limits)
    found = parts(source, message.payload, limits)
    return (message if part is message.payload else message._replace(payload=part) for part in found)


def _refuse_large(message: Message, limits: LimitsConfig) -> None:
    size = message.whole or len(message.payload)
    if size > limits.payload:
        raise Unreadable(f"payload of {size} bytes is larger than limits.payload ({int(limits.payload)})")
