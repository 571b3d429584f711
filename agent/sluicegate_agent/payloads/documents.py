"""From a document (objects, lists, texts, numbers) to readings: what JSON, CBOR and MessagePack have in common.

Every size is bounded before it is used: the payload by `limits.payload` (the link cuts a longer one), the nesting by
the parser, the readings of a message by `limits.readings`, the steps of a path by the configuration's check.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

from sluicegate.constants import LARGEST
from sluicegate.format.items import columns
from sluicegate.format.pairs import Pair
from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Columns, Decoded, NotLetIn, Unreadable
from sluicegate_agent.naming.names import KEY_MOST, base_of
from sluicegate_agent.naming.templates import as_text
from sluicegate_agent.routing.routes import TAG_MOST, Route

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: Years that no sensor means, and that windows by the calendar can go beyond on both sides, which has 1 to 9999.
EARLIEST = (datetime(1000, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
LATEST = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND - 1
_SCALE = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1000)}
_NO_VALUE = ("NA", "")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
MISSING: Any = object()
#: The greatest sequence number; integers up to this size are doubles.
_MOST, _EXACT = 2**63 - 1, 2**53
Read = Callable[[SourceConfig, bytes, int, LimitsConfig], Decoded]


def reader_of_object(parse: Callable[[bytes], Any], name: str) -> Read:
    """Reads a message that is one object of readings; `parse` raises Unreadable, `name` is the format's."""

    def read(source: SourceConfig, payload: bytes, arrival_us: int, limits: LimitsConfig) -> Decoded:
        return read_object(source, parse(payload), arrival_us, name)

    return read


def epoch_of(plain: Plain, document: dict[str, Any]) -> str | int | None:
    """The epoch of an object whose parts are plain; None where its source has none. Raises Unreadable."""
    return None if plain.epoch is None else _epoch(document.get(plain.epoch, MISSING), plain.epoch)


def read_object(source: SourceConfig, document: Any, arrival_us: int, name: str) -> Decoded:
    """The readings of one object. Raises Unreadable."""
    if (decoded := _plain_object(source, document, arrival_us)) is not None:
        return decoded
    if not isinstance(document, dict | list):
        raise Unreadable(f"payload is not a {name} object")
    found = Findings(source, is_one=True)
    sequence, epoch = number_of(source, document)
    time = found.time(document, arrival_us)
    found.take(document, time)
    return found.decoded(sequence, epoch, time)


def _plain_object(source: SourceConfig, document: Any, arrival_us: int) -> Decoded | None:
    """The same, quickly, of an object whose parts are all numbers in their places, as most are; else None."""
    plain = plain_paths(source)
    if plain is None or not plain.is_numbered or document.__class__ is not dict:
        return None
    sequence, time = None, arrival_us
    get = document.get
    if plain.sequence is not None:
        sequence = get(plain.sequence)
        if sequence.__class__ is not int or not 0 <= sequence <= _MOST:
            return None
    if plain.time is not None:
        raw = get(plain.time)
        if raw.__class__ is int:
            time = raw * plain.scale
        elif raw.__class__ is float and isfinite(raw * plain.scale):
            time = round(raw * plain.scale)
        else:
            return None
        if not EARLIEST <= time <= LATEST:
            return None
    readings = []
    for stream, path in source.streams.items():
        value = get(path)
        if value.__class__ is int and -_EXACT <= value <= _EXACT:
            value = float(value)
        if value.__class__ is not float or value - value != 0.0:  # as infinities and NaN are
            return None
        readings.append((stream, time, value))
    return Decoded(source.topic, sequence, epoch_of(plain, document), time, readings)


def reader_of_list(parse: Callable[[bytes], Any], name: str) -> Read:
    """Reads a message with a list of readings, or one of them where they are numbered each for itself."""

    def read(source: SourceConfig, payload: bytes, arrival_us: int, limits: LimitsConfig) -> Decoded:
        document = parse(payload)
        if is_parted(source):
            return read_object(source, document, arrival_us, name)
        sequence, epoch = number_of(source, document)
        items = items_of(source, document, limits)
        if (readings := plain_readings(source, items, arrival_us)) is not None:
            return Decoded(source.topic, sequence, epoch, readings.times[0], readings)
        found = Findings(source)
        for number, item in enumerate(items):
            try:
                found.take(item, found.time(item, arrival_us))
            except Unreadable as reason:
                found.refused.extend((stream, f"item {number}: {reason}") for stream in source.streams)
        return found.decoded(sequence, epoch, found.readings[0][1] if found.readings else arrival_us)

    return read


def plain_readings(source: SourceConfig, items: list[Any], arrival_us: int) -> Columns | None:
    """The readings of plain items, as most are: a column at a time, in a twentieth of the time.

    None where anything asks for a closer look: a part that is missing, null or no number, a path of several steps, a
    time as text, keys, tags or sums of fields.
    """
    plain = plain_paths(source)
    if plain is None or not items:
        return None
    found = columns(items, source.time, plain.scale, EARLIEST, LATEST, plain.paths)
    if found is None:
        return None
    times, values, newest, largest = found
    if source.time is None:
        times, newest = array("q", (arrival_us,)) * len(items), arrival_us
    return Columns(source.streams, times, values, newest, largest)


class Plain(NamedTuple):
    """The paths of a source's parts, each one step, and by what its times are multiplied.

    `paths`: of the values, as in its `streams`. `is_numbered`: whether the other parts are one step, too.
    """

    paths: tuple[str, ...]
    scale: int
    time: str | None
    sequence: str | None
    epoch: str | None
    is_numbered: bool


def plain_paths(source: SourceConfig) -> Plain | None:
    """What to read of a source's objects where they are plain; None where that takes a closer look each time.

    The same for all topics of a source.
    """
    asked = source.configured if isinstance(source, Route) else source
    if len(asked.streams) != len(source.streams):  # two of its names became one there
        return _plain_paths(source)
    found = _PLAIN.get(id(asked))
    if found is None or found[0] is not asked:
        if len(_PLAIN) >= _PLAIN_MOST:
            _PLAIN.clear()
        found = _PLAIN[id(asked)] = asked, _plain_paths(source)
    return found[1]


#: Sources of configurations whose paths are kept.
_PLAIN_MOST = 4096
#: By id, with the source itself, so that none is taken for another that has its place.
_PLAIN: dict[int, tuple[SourceConfig, Plain | None]] = {}


def _plain_paths(source: SourceConfig) -> Plain | None:
    is_routed = isinstance(source, Route) and bool(source.unfilled or source.asked)
    asked = [*source.streams.values(), *([source.time] if source.time else [])]
    if is_routed or any(each.plus or each.second for each in source.values.values()) or not all(map(_is_key, asked)):
        return None
    scale, parts = _SCALE.get(source.time_format, (0, 0))
    if source.time is not None and parts != 1:
        return None
    is_numbered = all(map(_is_key, (path for path in (source.sequence, source.epoch) if path is not None)))
    paths = (*source.streams.values(),)
    return Plain(paths, scale, source.time, source.sequence, source.epoch, is_numbered)


def _is_key(path: str) -> bool:
    """Whether a path is one step, which cannot be a number."""
    return bool(path) and "." not in path and not _INTEGER.fullmatch(path)


def parts_of_list(
    parse: Callable[[bytes], Any], encode: Callable[[Any], bytes]
) -> Callable[[SourceConfig, bytes, LimitsConfig], list[bytes]]:
    """Parts a message with a list into its items, where each has a number of its own."""

    def parts(source: SourceConfig, payload: bytes, limits: LimitsConfig) -> list[bytes]:
        if not is_parted(source):
            return [payload]
        items = items_of(source, parse(payload), limits)
        try:
            return [encode(item) for item in items]
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise Unreadable(f"an item cannot be told apart: {error}") from None

    return parts


def is_parted(source: SourceConfig) -> bool:
    """Whether each item of a message is known by a number of its own."""
    return source.sequence is not None and source.sequence_in == "item"


def items_of(source: SourceConfig, document: Any, limits: LimitsConfig) -> list[Any]:
    """The items of a message, no more than `limits.readings` allows. Raises Unreadable."""
    items = at(document, source.items)
    if not isinstance(items, list):
        raise Unreadable(f"{source.items or 'payload'} is not a list of readings")
    if len(items) * len(source.streams) > limits.readings:
        raise Unreadable(f"{len(items)} items of a message are more than limits.readings ({limits.readings}) allows")
    return items


def number_of(source: SourceConfig, document: Any) -> tuple[int | None, str | int | None]:
    """The sequence number and the epoch of a message, None where the source has none. Raises Unreadable."""
    sequence = None if source.sequence is None else _sequence(at(document, source.sequence), source.sequence)
    return sequence, None if source.epoch is None else _epoch(at(document, source.epoch), source.epoch)


class Findings:
    """Collects one message's readings, its metrics without a value and those that cannot be used."""

    def __init__(self, source: SourceConfig, *, is_one: bool = False) -> None:
        """`is_one`: the message is one object, whose key is the message's."""
        self.source, self.sender, self._is_one = source, source.topic, is_one
        self.tags: dict[str, dict[str, str]] = {}
        self.readings: list[tuple[str, int, float]] = []
        self.refused: list[tuple[str, str]] = []
        self.absent = 0
        self._plus = {name: asked.plus for name, asked in source.values.items() if asked.plus}
        self._second = {name: asked.second for name, asked in source.values.items() if asked.second is not None}

    def time(self, item: Any, arrival_us: int) -> int:
        """The time of an item, that of its arrival where it has none of its own. Raises Unreadable."""
        return arrival_us if self.source.time is None else time_of(at(item, self.source.time), self.source)

    def take(self, item: Any, time: int) -> None:
        """Collect the readings of one item."""
        for stream, path in self.streams(item):
            raw = at(item, path)
            terms = self._plus.get(base_of(stream)) if self._plus else None
            beside = self._second.get(base_of(stream)) if self._second else None
            second = None if beside is None else (beside, at(item, beside))
            self.put(stream, path, self._sum(item, path, raw, terms) if terms else raw, time, second)

    def _sum(self, item: Any, path: str, raw: Any, terms: dict[str, float]) -> Any:
        """The value with others of the item added; if one of these is no number, that one, to be refused."""
        found = 0.0
        for each, factor in [(path, 1.0), *terms.items()]:
            value = raw if each == path else at(item, each)
            if isinstance(value, bool) or not isinstance(value, int | float):
                return value
            found += factor * value_of(value)
        return found

    def put(self, stream: str, path: str, raw: Any, time: int, second: tuple[str, Any] | None = None) -> None:
        """Collect what stands at the path of a stream; `second`: the path of its other value, and what stands there.

        Where one of the two is absent there is no reading.
        """
        if _is_absent(raw) or (second is not None and _is_absent(second[1])):
            self.absent += 1
            return
        try:
            value = value_of(raw)
            if second is not None:
                path = second[0]
                value = Pair(value, _second_of(second[1]))
            self.readings.append((stream, time, value))
        except Unreadable as reason:
            self.refused.append((stream, f"{path or 'value'} {reason}"))

    def streams(self, item: Any) -> Iterable[tuple[str, str]]:
        """The streams of an item with the paths of their values: where the payload has the key, by that."""
        route = self.source
        if not isinstance(route, Route) or not (route.unfilled or route.asked):
            return route.streams.items()
        streams: Iterable[tuple[str, str]] = route.streams.items()
        if route.unfilled is not None:
            key = route.key_at(lambda path: _part(item, path))
            streams = [*route.named(key)]
            if self._is_one:
                self.sender = route.sender(key)
        tags = _tags(route, item)
        self.tags.update((stream, tags) for stream, _ in streams)
        return streams

    def decoded(self, sequence: int | None, epoch: str | int | None, time: int) -> Decoded:
        """All of it. Raises Unreadable where nothing can be used."""
        if self.refused and not self.readings:
            raise Unreadable(self.refused[0][1])
        found = self.readings, self.absent, tuple(self.refused)
        return Decoded(self.sender, sequence, epoch, time, *found, self.tags)


def _is_absent(raw: Any) -> bool:
    return raw is None or raw is MISSING or (isinstance(raw, str) and raw in _NO_VALUE)


def _second_of(raw: Any) -> float:
    """A second value. Raises Unreadable."""
    value = value_of(raw)
    if abs(value) > LARGEST:
        raise Unreadable("is too large to be summed")
    return value


def _part(item: Any, path: str) -> str:
    """What stands at a path as part of a key."""
    raw = at(item, path)
    if isinstance(raw, str) and len(raw) > KEY_MOST:
        raise NotLetIn(f"{path} (the key) is longer than {KEY_MOST} bytes")
    text = as_text(raw)
    if text is None:
        raise NotLetIn(f"{path} (the key) is {_kind(raw)}, not a text or a whole number")
    return text


def _text(item: Any, path: str) -> str:
    return as_text(at(item, path)) or ""


def _tags(route: Route, item: Any) -> dict[str, str]:
    """The tags that a payload has; one without a value that could be one stays as it was."""
    found = {}
    for name, template in route.asked.items():
        if all(as_text(at(item, path)) is not None for path in template.paths):
            found[name] = template.fill({}, partial(_text, item))[:TAG_MOST]
    return found


def at(document: Any, path: str) -> Any:
    """What stands at a dotted path ("data.0.temp"; "" is the whole), or MISSING."""
    for step in path.split(".") if path else ():
        if isinstance(document, dict):
            found = document.get(step, MISSING)
            # Keys of CBOR and MessagePack may be numbers.
            document = document.get(int(step), MISSING) if found is MISSING and _INTEGER.fullmatch(step) else found
        elif isinstance(document, list) and step.isascii() and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return MISSING
    return document


def value_of(raw: Any) -> float:
    """A value as a finite double. Raises Unreadable."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Unreadable(f"is {_kind(raw)}, not a number")
    try:
        return finite(float(raw))
    except OverflowError:
        raise Unreadable("is outside the range of a double") from None


def finite(value: float) -> float:
    """The same. Raises Unreadable."""
    if not isfinite(value):
        raise Unreadable("is not finite")
    return value


def time_of(raw: Any, source: SourceConfig) -> int:
    """Microseconds since 1970 UTC; a text without an offset is UTC."""
    if raw is MISSING or raw is None:
        raise Unreadable(f"{source.time} (the time) is missing")
    if isinstance(raw, datetime):  # CBOR and MessagePack have a type for it
        time = _since_epoch(raw, source)
    else:
        time = _iso(raw, source) if source.time_format == "iso8601" else _since_1970(raw, source)
    if not EARLIEST <= time <= LATEST:
        raise Unreadable(f"{source.time} is outside the years 1000 to 8999")
    return time


def _iso(raw: Any, source: SourceConfig) -> int:
    try:
        moment = datetime.fromisoformat(raw)
    except (TypeError, ValueError):
        example = "2026-03-01T10:00:00Z; of a number set time_format"
        raise Unreadable(f"{source.time} is not an ISO 8601 time such as {example}") from None
    return _since_epoch(moment, source)


def _since_epoch(moment: datetime, source: SourceConfig) -> int:
    try:
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    except OverflowError:
        raise Unreadable(f"{source.time} is not an ISO 8601 time") from None


def _since_1970(raw: Any, source: SourceConfig) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Unreadable(f"{source.time} is {_kind(raw)}, not a number of {source.time_format} since 1970")
    times, parts = _SCALE[source.time_format]
    if parts > 1 and isinstance(raw, int):
        return raw // parts
    scaled = raw * times / parts if parts > 1 else raw * times
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
    if raw is MISSING:
        return "missing"
    names = {
        bool: "true or false",
        str: "a text",
        dict: "an object",
        list: "a list",
        int: "a number",
        float: "a number",
    }
    return "null" if raw is None else names.get(type(raw), f"of the type {type(raw).__name__}")
