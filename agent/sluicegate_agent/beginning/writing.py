"""A configuration of what was heard: a source for topics of one shape, streams by their fields, one window of each."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sluicegate_agent.beginning.shapes import Shape
from sluicegate_agent.config import Config, ConfigError, build
from sluicegate_agent.config.units import show_size
from sluicegate_agent.plan import plan

_OTHERS = re.compile(r"[^\w.\-]+", re.ASCII)
_MIB = 1 << 20
#: Topics that make one source; of fewer each is named.
TOGETHER = 3


class Answers(NamedTuple):
    """What was asked: the device, the broker, who we are there, and where the state is."""

    device: str
    host: str
    port: int | None
    username: str
    password_file: str
    state: str


def base(answers: Answers) -> dict[str, Any]:
    """The tables that do not depend on what is heard."""
    mqtt: dict[str, Any] = {"host": answers.host}
    if answers.port is not None:
        mqtt["port"] = answers.port
    if answers.username:
        mqtt["username"] = answers.username
    if answers.password_file:
        mqtt["password_file"] = answers.password_file
    return {"device": {"id": answers.device}, "state": {"path": answers.state}, "mqtt": mqtt}


def configuration(answers: Answers, shapes: dict[str, Shape], file: Path) -> str:
    """The text of a configuration that passes `check`, and fits its budget. Raises ConfigError."""
    for together in (True, False):
        sources = [*_sources(shapes, together=together)]
        raw = base(answers) | {"source": sources, "window": [_WINDOW]}
        try:
            config = build(raw, file)
        except ConfigError:
            if not together:
                raise
            continue  # topics of two shapes may lie within one another's wildcards
        break
    raw["state"] |= _budget(config)
    text = "\n".join(_written(raw))
    build(tomllib.loads(text), file)
    return text


_WINDOW = {"name": "last_hour", "policy": {"time": "1h"}, "aggregate": ["mean", "min", "max"]}


def _budget(config: Config) -> dict[str, str]:
    worst = plan(config)
    found = {}
    for name, need, budget in (
        ("memory", worst.memory, worst.memory_budget),
        ("disk", worst.disk, worst.disk_budget),
    ):
        if need > budget:
            found[name] = show_size(-(-need // _MIB) * _MIB).replace(".0 ", "").replace(" ", "")
    return found


def _sources(shapes: dict[str, Shape], *, together: bool) -> Iterator[dict[str, Any]]:
    names: set[str] = set()
    for topics, shape in _groups(shapes, together=together):
        pattern, varying = _pattern(topics)
        source: dict[str, Any] = {"topic": pattern, "format": shape.format}
        for key in ("time", "time_format", "sequence"):
            if getattr(shape, key) and getattr(shape, key) != "iso8601":
                source[key] = getattr(shape, key)
        if varying:
            source["keys"] = {"most": max(100, 2 * len(topics))}
        source["streams"] = {_name(path, pattern, names): path for path, _ in shape.fields}
        yield {key: value for key, value in source.items() if value != "json"}


def _groups(shapes: dict[str, Shape], *, together: bool) -> Iterator[tuple[list[str], Shape]]:
    """Topics of one shape and length that differ in one level, if they are several; else each for itself."""
    left = {topic: shape for topic, shape in shapes.items() if shape.fields}
    while left:
        topic, shape = next(iter(left.items()))
        levels = topic.split("/")
        group = [topic]
        for place in range(len(levels) if together else 0):
            alike = [each for each in left if left[each].kind == shape.kind and _differ(each, levels) == [place]]
            if len(alike) + 1 >= TOGETHER and len(alike) + 1 > len(group):
                group = [topic, *alike]
        for each in group:
            del left[each]
        yield group, shape


def _differ(topic: str, levels: list[str]) -> list[int]:
    others = topic.split("/")
    if len(others) != len(levels):
        return [-1]
    return [place for place, (a, b) in enumerate(zip(others, levels, strict=True)) if a != b]


def _pattern(topics: list[str]) -> tuple[str, bool]:
    levels = topics[0].split("/")
    varying = {place for topic in topics for place in _differ(topic, levels)}
    return "/".join("{which}" if place in varying else level for place, level in enumerate(levels)), bool(varying)


def _name(path: str, topic: str, taken: set[str]) -> str:
    """A name for a stream that no other has: of the field, else of the topic, with what is before it where needed."""
    parts = [level for level in topic.split("/") if "{" not in level] + (path.split(".") if path else [])
    cleaned = [part for each in parts if (part := _OTHERS.sub("_", each).strip("_.-"))] or ["value"]
    for count in range(1, len(cleaned) + 1):
        name = "_".join(cleaned[-count:])[-64:].lstrip(".-")
        if name not in taken:
            break
    number = 1
    while name in taken:
        number += 1
        name = f"{name[:58].rstrip('0123456789')}{number}"
    taken.add(name)
    return name


def _written(raw: dict[str, Any]) -> Iterator[str]:
    """The tables as TOML."""
    yield "# Written by `sluicegate init`; every option: sluicegate check --sample"
    for name, table in raw.items():
        for each in table if isinstance(table, list) else [table]:
            yield f"\n[[{name}]]" if isinstance(table, list) else f"\n[{name}]"
            yield from (f"{_key(key)} = {_value(value)}" for key, value in each.items())
    yield ""


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
