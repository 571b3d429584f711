"""Payloads that are text: a JSON object of readings, a list of them, or one number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from sluicegate_agent.config.formats import Finding, Payload
from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Decoded, Unreadable
from sluicegate_agent.payloads.documents import finite, parts_of_list, reader_of_list, reader_of_object

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
#: A document of JSON. Raises ValueError, OverflowError, RecursionError.
parse = msgspec.json.Decoder().decode


def _json(payload: bytes) -> Any:
    try:
        return parse(payload)
    except RecursionError:
        raise Unreadable("JSON is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"payload is not JSON: {error}") from None


def number_in(payload: bytes) -> float | None:
    """The number that a text is, which may be infinite; None for any other."""
    text = payload.strip()
    return float(text) if len(text) <= 64 and _NUMBER.fullmatch(text) else None


def _number(source: SourceConfig, payload: bytes, arrival_us: int, limits: LimitsConfig) -> Decoded:
    stream = next(iter(source.streams))
    if payload.strip() in (b"", b"NA", b"null"):
        return Decoded(source.topic, None, None, arrival_us, [], absent=1)
    value = number_in(payload)
    if value is None:
        raise Unreadable("payload is not a number")
    return Decoded(source.topic, None, None, arrival_us, [(stream, arrival_us, finite(value))])


def _one_number(source: SourceConfig) -> Iterator[Finding]:
    if len(source.streams) > 1:
        yield Finding("streams", ", ".join(source.streams), "one number is one stream: name one")
    for stream, path in source.streams.items():
        if path:
            yield Finding(f"streams.{stream}", path, 'the message itself is the number: write ""')


JSON = Payload(reader_of_object(_json, "JSON"))
ARRAY = Payload(
    reader_of_list(_json, "JSON"), parts_of_list(_json, msgspec.json.Encoder().encode), has_many=True, has_items=True
)
NUMBER = Payload(_number, has_fields=False, findings=_one_number)
