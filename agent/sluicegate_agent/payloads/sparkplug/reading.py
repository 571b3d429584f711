"""Turns a resolved message of Sparkplug B into readings."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Decoded, Unreadable
from sluicegate_agent.payloads.documents import Findings


class Resolved(Struct, array_like=True):
    """A message with names for its aliases: read again at any time, whatever was born since.

    `values`: name, time in µs, and a number, None (null), or a text that says why it is none.
    """

    sender: str
    epoch: str
    sequence: int
    time_us: int
    values: list[tuple[str, int, float | int | str | None]]


encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Resolved).decode


def read(source: SourceConfig, payload: bytes, arrival_us: int, limits: LimitsConfig) -> Decoded:
    """The readings of what a session has made of a message. Raises Unreadable."""
    try:
        said = _decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"payload is not what a session made of Sparkplug B: {error}") from None
    found = Findings(source)
    streams = {name: stream for stream, name in found.streams(None)}
    for name, time_us, value in said.values:
        if isinstance(value, str):
            found.refused.append((streams.get(name, name), f"{name} is {value}, not a number"))
        elif name in streams:
            found.put(streams[name], name, value, time_us)
    told: dict[str, Any] = {"absent": found.absent, "refused": tuple(found.refused), "tags": found.tags}
    return Decoded(said.sender, said.sequence, said.epoch, said.time_us, found.readings, **told)
