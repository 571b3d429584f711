"""What passes between the agent's stages: a message, what was read from it, why it could not be, and an answer."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """One MQTT message as it arrived; `truncated` is the whole length where the payload was larger than allowed."""

    topic: str
    payload: bytes
    packet_id: int
    qos: int
    truncated: int = 0


class Decoded(NamedTuple):
    """The readings of one message: (stream, time in µs, value), in the message's order; `absent` metrics had none."""

    source: str
    sequence: int | None
    epoch: str | int | None
    time_us: int
    readings: list[tuple[str, int, float]]
    absent: int = 0


class Unreadable(Exception):
    """Raised by `decode` for a message without a usable reading; `str()` is the dead letter's reason."""


class Result(NamedTuple):
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
