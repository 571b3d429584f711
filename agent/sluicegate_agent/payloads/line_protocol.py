"""Payloads in InfluxDB's line protocol: fields become readings, tags and the measurement may become keys and tags.

The path of a value is "measurement.field", or "*.field" and "field" for any measurement. Each line with a time of its
own is known for itself, so that a sender may put lines together otherwise when it sends again. The syntax is that of
https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import structs

from sluicegate_agent.config.formats import Finding, Payload
from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.config.units import Duration
from sluicegate_agent.messages import Decoded, Unreadable
from sluicegate_agent.payloads.documents import MISSING, Findings

#: A line and its end; a text in quotes may go over several.
_LINES = re.compile(rb'(?:="(?:[^"\\]|\\.)*+"|[^\n])++', re.DOTALL)
_MEASUREMENT = re.compile(r"(?:[^\\, \n]|\\[^\n])++")
_KEY = re.compile(r"(?:[^\\,= \n]|\\[^\n])++")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_PLAIN = re.compile(r'[^, \n"]++')
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,20}[iu]", re.ASCII)
_TIME = re.compile(r"-?\d{1,19}", re.ASCII)
_ESCAPED = re.compile(r"\\([,= \\])")
_TRUTH = dict.fromkeys(("t", "T", "true", "True", "TRUE"), True) | dict.fromkeys(
    ("f", "F", "false", "False", "FALSE"), False
)


class Point(NamedTuple):
    """One line: its measurement, tags, fields, and its time in the unit that it was written in, if any."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, Any]
    time: int | None


class _Scanner:
    """Reads one line from its begin to its end."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise Unreadable(f"line protocol: expected {what} at character {self.at + 1}")
        self.at = found.end()
        return found

    def skip(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        return False


def point_of(text: str) -> Point:
    """A line as what it says. Raises Unreadable."""
    scanner = _Scanner(text)
    measurement = _plain(scanner.take(_MEASUREMENT, "a measurement")[0])
    tags, fields = {}, {}
    while scanner.skip(","):
        key = _key(scanner, "a tag")
        tags[key] = _plain(scanner.take(_KEY, "a tag's value")[0])
    _blanks(scanner, "fields")
    while True:
        key = _key(scanner, "a field")
        fields[key] = _value(scanner)
        if not scanner.skip(","):
            break
    time = None
    if scanner.at < len(text):
        _blanks(scanner, "a time")
        if scanner.at < len(text):
            time = int(scanner.take(_TIME, "a time")[0])
    if scanner.at < len(text):
        raise Unreadable(f"line protocol: expected the end of the line at character {scanner.at + 1}")
    return Point(measurement, tags, fields, time)


def _key(scanner: _Scanner, what: str) -> str:
    key = _plain(scanner.take(_KEY, what)[0])
    if not scanner.skip("="):
        raise Unreadable(f"line protocol: expected = at character {scanner.at + 1}")
    return key


def _blanks(scanner: _Scanner, what: str) -> None:
    if not scanner.skip(" "):
        raise Unreadable(f"line protocol: expected a blank and {what} at character {scanner.at + 1}")
    while scanner.skip(" "):
        pass


def _value(scanner: _Scanner) -> Any:
    if scanner.text.startswith('"', scanner.at):
        return re.sub(r'\\(["\\])', r"\1", scanner.take(_TEXT, "a text's end")[1])
    text = scanner.take(_PLAIN, "a field's value")[0]
    if _FLOAT.fullmatch(text):
        return float(text)
    if _WHOLE.fullmatch(text):
        return int(text[:-1])
    if text in _TRUTH:
        return _TRUTH[text]
    raise Unreadable(f"line protocol: {text[:32]!r} is no value: texts are in quotes")


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def each_line(payload: bytes) -> Iterator[bytes]:
    """The lines without blank ones and comments."""
    stripped = (line[0].strip() for line in _LINES.finditer(payload))
    return (line for line in stripped if line and not line.startswith(b"#"))


def _parts(source: SourceConfig, payload: bytes, limits: LimitsConfig) -> list[bytes]:
    """The lines, where each has a time to be known by."""
    if source.time is None:
        return [payload]
    lines = [*each_line(payload)]
    _bound(source, lines, limits)
    return lines


def _bound(source: SourceConfig, lines: list[bytes], limits: LimitsConfig) -> None:
    if len(lines) * len(source.streams) > limits.readings:
        raise Unreadable(f"{len(lines)} lines of a message are more than limits.readings ({limits.readings}) allows")


def _read(source: SourceConfig, payload: bytes, arrival_us: int, limits: LimitsConfig) -> Decoded:
    lines = [*each_line(payload)]
    _bound(source, lines, limits)
    found = Findings(source, is_one=source.time is not None)
    time = arrival_us
    for number, line in enumerate(lines):
        try:
            time = _take(found, line, arrival_us)
        except Unreadable as reason:
            if len(lines) == 1:
                raise
            found.refused.extend((stream, f"line {number + 1}: {reason}") for stream in source.streams)
    return found.decoded(None, None, found.readings[0][1] if found.readings else time)


def _take(found: Findings, line: bytes, arrival_us: int) -> int:
    """Collect a line's readings; its time."""
    try:
        point = point_of(line.decode())
    except UnicodeDecodeError:
        raise Unreadable("line protocol: not text (UTF-8)") from None
    said = {"measurement": point.measurement, "tags": point.tags, "timestamp": point.time}
    time = found.time(said, arrival_us)
    for stream, path in found.streams(said):
        measurement, dot, field = path.rpartition(".")
        if not dot or measurement in ("*", point.measurement):
            raw = point.fields.get(field, MISSING)
            if raw is not MISSING:
                found.put(stream, path, raw, time)
    return time


def _implied(source: SourceConfig) -> SourceConfig:
    """Each line has its time, in nanoseconds, unless the configuration says otherwise; "" says that none has one.

    The same line is the same point, however coarse the clock is: so the protocol has it.
    """
    if source.time == "":
        return structs.replace(source, time=None)
    form = "ns" if source.time_format == "iso8601" else source.time_format
    step = Duration(0) if source.resolution is None else source.resolution
    return structs.replace(source, time=source.time or "timestamp", time_format=form, resolution=step)


def _findings(source: SourceConfig) -> Iterator[Finding]:
    if source.time not in (None, "timestamp"):
        yield Finding("time", source.time, 'a line has one time: leave it out, or write "" where lines have none')
    for key in ("sequence", "epoch"):
        if getattr(source, key) is not None:
            yield Finding(key, getattr(source, key), "a line is known by its time and what it says: leave it out")


def _is_value(path: str) -> bool:
    measurement, dot, field = path.rpartition(".")
    return 0 < len(path) <= 256 and bool(field) and (bool(measurement) or not dot)


#: Of this module and what it compiles (0.6 MiB measured).
MEMORY = 1 << 20
LINE = Payload(_read, _parts, has_many=True, is_value=_is_value, findings=_findings, implied=_implied, memory=MEMORY)
