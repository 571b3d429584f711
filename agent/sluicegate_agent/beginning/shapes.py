"""What a topic's payloads are: their format, the fields that are numbers, the time and the number of a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_TIMES = ("time", "timestamp", "ts", "at", "t", "date", "datetime", "created", "last_seen")
_NUMBERS = ("seq", "sequence", "n", "msgid", "message_id", "counter", "count")
#: Fields of one topic; steps of a path.
FIELDS, DEPTH = 32, 4
#: The years 2001 to 2100 in seconds since 1970, which milliseconds and microseconds are told by.
_FIRST, _LAST = 978_307_200, 4_102_444_800


class Shape(NamedTuple):
    """How a topic is read: `fields` are paths with an example; empty where nothing of it can be a reading."""

    format: str
    fields: tuple[tuple[str, Any], ...]
    time: str = ""
    time_format: str = ""
    sequence: str = ""

    @property
    def kind(self) -> tuple[Any, ...]:
        """What topics of one source have in common."""
        return self.format, tuple(path for path, _ in self.fields), self.time, self.time_format, self.sequence

    @property
    def is_telling(self) -> bool:
        """Whether topics that have it in common are most likely of one kind of sensor."""
        return len(self.fields) > 1 or bool(self.time or self.sequence)


def shape_of(topic: str, payloads: list[bytes]) -> Shape:
    """What the payloads of a topic have in common."""
    if topic.startswith("spBv1.0/"):
        return Shape("sparkplug", ())
    if payloads and all(_NUMBER.fullmatch(payload.strip()) for payload in payloads):
        return Shape("number", (("", float(payloads[0])),))
    documents = [document for payload in payloads if isinstance(document := _json(payload), dict)]
    if not documents or len(documents) < len(payloads):
        return Shape("", ())
    found = [dict(_leaves(document)) for document in documents]
    common = [path for path in found[0] if all(path in each for each in found)]
    time, form = next(((p, f) for p in common if (f := _time_format(p, [each[p] for each in found]))), ("", ""))
    sequence = next((path for path in common if _counts(path, [each[path] for each in found])), "")
    numbers = [path for path in common if path not in (time, sequence) and _is_number(found[0][path])]
    return Shape("json", tuple((path, found[0][path]) for path in numbers[:FIELDS]), time, form, sequence)


def _json(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (ValueError, RecursionError, OverflowError):
        return None


def _leaves(document: dict[str, Any], at: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if not key or "." in key or not key.isprintable():
            continue
        if isinstance(value, dict) and depth < DEPTH:
            yield from _leaves(value, f"{at}{key}.", depth + 1)
        else:
            yield f"{at}{key}", value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _time_format(path: str, values: list[Any]) -> str:
    """The unit of a field that is a time by its name and its values; empty for another."""
    if path.rpartition(".")[2].lower() not in _TIMES:
        return ""
    if all(isinstance(value, str) and _is_iso(value) for value in values):
        return "iso8601"
    scales = {"s": 1, "ms": 1_000, "us": 1_000_000}
    for name, scale in scales.items():
        if all(_is_number(value) and _FIRST <= value / scale <= _LAST for value in values):
            return name
    return ""


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) > 10  # a date alone is no time of a reading


def _counts(path: str, values: list[Any]) -> bool:
    """Whether a field grows by one a message, as far as was seen."""
    if path.rpartition(".")[2].lower() not in _NUMBERS or len(values) < 2:
        return False
    whole = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 0]
    return len(whole) == len(values) and all(b == a + 1 for a, b in pairwise(whole))
