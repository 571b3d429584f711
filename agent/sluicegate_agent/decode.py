"""From a message's bytes to readings, or to the reason why not: nothing here raises anything but `Unreadable`.

Every size is bounded before it is used: the payload by `limits.payload` (the link cuts a longer one), the nesting by
the parser, the readings of a message by `limits.readings`, the steps of a path by the configuration's check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isfinite
from typing import Any

import msgspec

from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Decoded, Message, NotLetIn, Unreadable
from sluicegate_agent.naming.names import KEY_MOST
from sluicegate_agent.naming.templates import as_text
from sluicegate_agent.routing.routes import TAG_MOST, Route

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_SCALE = {"s": 1_000_000, "ms": 1_000, "us": 1}
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NO_VALUE = ("NA", "")
_MISSING: Any = object()
_parse_json = msgspec.json.Decoder().decode


def decode(source: SourceConfig, message: Message, arrival_us: int, limits: LimitsConfig | None = None) -> Decoded:
    """The readings of a message of `source` that arrived at `arrival_us`; raises Unreadable with the reason."""
    limits = limits if limits is not None else _LIMITS
    size = message.whole or len(message.payload)
    if size > limits.payload:
        raise Unreadable(f"payload of {size} bytes is larger than limits.payload ({int(limits.payload)})")
    return _readers[source.format](source, message.payload, arrival_us, limits)


def _number(source: SourceConfig, payload: bytes, arrival_us: int, limits: LimitsConfig) -> Decoded:
    text = payload.strip()
    stream = next(iter(source.streams))
    if text in (b"", b"NA", b"null"):
        return Decoded(source.topic, None, None, arrival_us, [], absent=1)
    if len(text) > 64 or not _NUMBER.fullmatch(text):
        raise Unreadable("payload is not a number")
    return Decoded(source.topic, None, None, arrival_us, [(stream, arrival_us, _finite(float(text)))])


def _object(source: SourceConfig, payload: bytes, arrival_us: int, limits: LimitsConfig) -> Decoded:
    document = _json(payload)
    if not isinstance(document, dict | list):
        raise Unreadable("payload is not a JSON object")
    sequence = None if source.sequence is None else _sequence(_at(document, source.sequence), source.sequence)
    epoch = None if source.epoch is None else _epoch(_at(document, source.epoch), source.epoch)
    time = arrival_us if source.time is None else _time(_at(document, source.time), source)
    found = _Findings(source)
    found.take(document, time)
    return found.decoded(sequence, epoch, time)


def _array(source: SourceConfig, payload: bytes, arrival_us: int, limits: LimitsConfig) -> Decoded:
    items = _at(_json(payload), source.items)
    if not isinstance(items, list):
        raise Unreadable(f"{source.items or 'payload'} is not a list of readings")
    if len(items) * len(source.streams) > limits.readings:
        raise Unreadable(f"{len(items)} items of a message are more than limits.readings ({limits.readings}) allows")
    found = _Findings(source)
    for number, item in enumerate(items):
        try:
            found.take(item, arrival_us if source.time is None else _time(_at(item, source.time), source))
        except Unreadable as reason:
            found.refused.extend((stream, f"item {number}: {reason}") for stream in source.streams)
    return found.decoded(None, None, found.readings[0][1] if found.readings else arrival_us)


_readers = {"json": _object, "number": _number, "array": _array}
_LIMITS = LimitsConfig()


class _Findings:
    """Collects one message's readings, its metrics without a value and those that cannot be used."""

    def __init__(self, source: SourceConfig) -> None:
        self.source, self.sender = source, source.topic
        self.tags: dict[str, dict[str, str]] = {}
        self.readings: list[tuple[str, int, float]] = []
        self.refused: list[tuple[str, str]] = []
        self.absent = 0

    def take(self, item: Any, time: int) -> None:
        for stream, path in self._streams(item):
            raw = _at(item, path)
            if raw is None or raw is _MISSING or (isinstance(raw, str) and raw in _NO_VALUE):
                self.absent += 1
                continue
            try:
                self.readings.append((stream, time, _value(raw)))
            except Unreadable as reason:
                self.refused.append((stream, f"{path or 'value'} {reason}"))

    def _streams(self, item: Any) -> Iterable[tuple[str, str]]:
        """The streams of an item with the paths of their values: where the payload has the key, by that."""
        route = self.source
        if not isinstance(route, Route) or not (route.unfilled or route.asked):
            return route.streams.items()
        streams: Iterable[tuple[str, str]] = route.streams.items()
        if route.unfilled is not None:
            key = route.key_at(lambda path: _part(item, path))
            streams = [*route.named(key)]
            if route.format == "json":
                self.sender = route.sender(key)
        tags = _tags(route, item)
        self.tags.update((stream, tags) for stream, _ in streams)
        return streams

    def decoded(self, sequence: int | None, epoch: str | int | None, time: int) -> Decoded:
        if self.refused and not self.readings:
            raise Unreadable(self.refused[0][1])
        found = self.readings, self.absent, tuple(self.refused)
        return Decoded(self.sender, sequence, epoch, time, *found, self.tags)


def _part(item: Any, path: str) -> str:
    """What stands at a path as part of a key."""
    raw = _at(item, path)
    if isinstance(raw, str) and len(raw) > KEY_MOST:
        raise NotLetIn(f"{path} (the key) is longer than {KEY_MOST} bytes")
    text = as_text(raw)
    if text is None:
        raise NotLetIn(f"{path} (the key) is {_kind(raw)}, not a text or a whole number")
    return text


def _text(item: Any, path: str) -> str:
    return as_text(_at(item, path)) or ""


def _tags(route: Route, item: Any) -> dict[str, str]:
    """The tags that a payload has; one without a value that could be one stays as it was."""
    found = {}
    for name, template in route.asked.items():
        if all(as_text(_at(item, path)) is not None for path in template.paths):
            found[name] = template.fill({}, partial(_text, item))[:TAG_MOST]
    return found


def _json(payload: bytes) -> Any:
    try:
        return _parse_json(payload)
    except RecursionError:
        raise Unreadable("JSON is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"payload is not JSON: {error}") from None


def _at(document: Any, path: str) -> Any:
    """What stands at a dotted path ("data.0.temp"; "" is the whole), or _MISSING."""
    for step in path.split(".") if path else ():
        if isinstance(document, dict):
            document = document.get(step, _MISSING)
        elif isinstance(document, list) and step.isascii() and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return _MISSING
    return document


def _value(raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Unreadable(f"is {_kind(raw)}, not a number")
    try:
        return _finite(float(raw))
    except OverflowError:
        raise Unreadable("is outside the range of a double") from None


def _finite(value: float) -> float:
    if not isfinite(value):
        raise Unreadable("is not finite")
    return value


def _time(raw: Any, source: SourceConfig) -> int:
    """Microseconds since 1970 UTC; a text without an offset is UTC."""
    if raw is _MISSING or raw is None:
        raise Unreadable(f"{source.time} (the time) is missing")
    time = _iso(raw, source) if source.time_format == "iso8601" else _since_1970(raw, source)
    if not _EARLIEST <= time <= _LATEST:
        raise Unreadable(f"{source.time} is outside the years 1 to 9999")
    return time


def _iso(raw: Any, source: SourceConfig) -> int:
    try:
        moment = datetime.fromisoformat(raw)
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    except (TypeError, ValueError, OverflowError):
        raise Unreadable(f"{source.time} is not an ISO 8601 time") from None


def _since_1970(raw: Any, source: SourceConfig) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Unreadable(f"{source.time} is {_kind(raw)}, not a number of {source.time_format} since 1970")
    scaled = raw * _SCALE[source.time_format]
    if isinstance(scaled, float) and not isfinite(scaled):
        raise Unreadable(f"{source.time} is not finite")
    return round(scaled)


def _sequence(raw: Any, path: str) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or not 0 <= raw < 2**63:
        raise Unreadable(f"{path} (the sequence) is {_kind(raw)}, not a whole number from 0")
    return raw


def _epoch(raw: Any, path: str) -> str | int:
    if isinstance(raw, str) and len(raw) <= 64:
        return raw
    if isinstance(raw, int) and not isinstance(raw, bool) and abs(raw) < 2**63:
        return raw
    raise Unreadable(f"{path} (the epoch) is {_kind(raw)}, not a whole number or a text of up to 64 characters")


def _kind(raw: Any) -> str:
    if raw is _MISSING:
        return "missing"
    names = {
        bool: "true or false",
        str: "a text",
        dict: "an object",
        list: "a list",
        int: "a number",
        float: "a number",
    }
    return names.get(type(raw), "null")
