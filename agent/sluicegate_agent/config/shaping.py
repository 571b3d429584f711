"""The checks of `[source.values]`: what becomes of values before any window."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.formats import is_path
from sluicegate_agent.config.sources import SourceConfig, ValueConfig

_DOCUMENTS = ("json", "array", "cbor", "cbor-array", "msgpack", "msgpack-array")


def shaping_problems(source: SourceConfig, at: str) -> Iterator[Problem]:
    """Every finding in the values of a source."""
    for stream, asked in source.values.items():
        key = f"{at}.values.{stream}"
        if stream not in source.streams:
            yield Problem(key, None, f"is no stream of this source; there are: {', '.join(source.streams)}")
        yield from _numbers(asked, key)
        yield from _plus(source, stream, asked, key)
        yield from _second(source, stream, asked, key)
        if len(asked.unit) > 32 or not asked.unit.isprintable():
            yield Problem(f"{key}.unit", asked.unit, 'expected up to 32 printable characters, such as "°C"')
        if asked.every is not None and asked.every <= 0:
            yield Problem(f"{key}.every", int(asked.every), 'expected more than nothing, such as "10s"')


def _numbers(asked: ValueConfig, key: str) -> Iterator[Problem]:
    for name in ("scale", "offset", "min", "max", "deadband"):
        value = getattr(asked, name)
        if value is not None and not isfinite(value):
            yield Problem(f"{key}.{name}", value, "expected a finite number")
    if asked.scale == 0:
        yield Problem(f"{key}.scale", 0, "would make every value the same: expected another factor")
    if asked.deadband is not None and asked.deadband < 0:
        yield Problem(f"{key}.deadband", asked.deadband, "expected 0 or more, in the unit of the scaled value")
    if asked.min is not None and asked.max is not None and asked.min > asked.max:
        yield Problem(f"{key}.min", asked.min, f"is above max = {asked.max}")
    if asked.outside != "refuse" and asked.min is None and asked.max is None:
        yield Problem(f"{key}.outside", asked.outside, "says what happens beyond min and max: give one of them")


def _plus(source: SourceConfig, stream: str, asked: ValueConfig, key: str) -> Iterator[Problem]:
    if asked.plus and (source.format not in _DOCUMENTS or "{" in stream):
        yield Problem(f"{key}.plus", None, f"needs a message of several fields: {', '.join(_DOCUMENTS)}")
    for path, coefficient in asked.plus.items():
        if not is_path(path) or not isfinite(coefficient):
            yield Problem(f"{key}.plus.{path}", coefficient, "expected a path and its coefficient, a finite number")
    if len(asked.plus) > 16:
        yield Problem(f"{key}.plus", len(asked.plus), "expected at most 16 values")


def _second(source: SourceConfig, stream: str, asked: ValueConfig, key: str) -> Iterator[Problem]:
    if asked.second is None:
        return
    if source.format not in _DOCUMENTS or "{" in stream:
        yield Problem(f"{key}.with", asked.second, f"needs a message of several fields: {', '.join(_DOCUMENTS)}")
    if not is_path(asked.second):
        yield Problem(f"{key}.with", asked.second, 'expected the path of a second value, such as "humidity"')
