"""What passes between the agent's stages: a message, what was read from it, why it could not be, and an answer."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class Message(NamedTuple):
    """One MQTT message as it arrived; `whole` is the payload's full length where it was larger than allowed and cut."""

    topic: str
    payload: bytes
    packet_id: int
    qos: int
    whole: int = 0


class Decoded(NamedTuple):
    """What one message holds: its identity's parts and its readings (stream, time in µs, value), in their order.

    `absent` counts metrics without a value (null, "NA", missing); `refused` names those whose value cannot be used,
    as (stream, reason): the others of the message count nevertheless.
    """

    source: str
    sequence: int | None
    epoch: str | int | None
    time_us: int
    readings: list[tuple[str, int, float]]
    absent: int = 0
    refused: tuple[tuple[str, str], ...] = ()


class Unreadable(Exception):  # noqa: N818  it is a verdict on a message, not a failure of the agent
    """Raised by `decode` for a message that cannot be used at all; `str()` is the dead letter's reason."""


class Result(Struct, frozen=True, gc=False):
    """One window's answer to one aggregate over one stream, as of reading `ordinal` at `time_us`."""

    stream: str
    window: str
    aggregate: str
    ordinal: int
    time_us: int
    value: float | int | None
    low: float | int | None
    high: float | int | None
    exact: bool
    count: int
    buckets: int
