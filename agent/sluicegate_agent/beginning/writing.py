"""A configuration of what was heard: a source for topics of one shape, streams by their fields, one window of each."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sluicegate_agent.beginning.shapes import Shape
from sluicegate_agent.config import Config, ConfigError, build
from sluicegate_agent.config.units import show_size
from sluicegate_agent.naming.topics import Filter
from sluicegate_agent.plan import plan

_OTHERS = re.compile(r"[^\w.\-]+", re.ASCII)
_MIB = 1 << 20
#: Topics that differ in one level make a source where they are so many; of fewer each is named.
TOGETHER = 3
#: What was not asked for yet, such as a window more, has room in a budget of so many times what is needed.
ROOM = 2


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
            found[name] = show_size(-(-need * ROOM // _MIB) * _MIB).replace(".0 ", "").replace(" ", "")
    return found


def _sources(shapes: dict[str, Shape], *, together: bool) -> Iterator[dict[str, Any]]:
    groups = [(_pattern(topics), len(topics), shape) for topics, shape in _groups(shapes, together=together)]
    names = _names([(path, pattern) for pattern, _, shape in groups for path, _ in shape.fields])
    for pattern, topics, shape in groups:
        source: dict[str, Any] = {"topic": pattern, "format": shape.format}
        for key in ("time", "time_format", "sequence"):
            if getattr(shape, key) and getattr(shape, key) != "iso8601":
                source[key] = getattr(shape, key)
        if "{" in pattern:
            source["keys"] = {"most": max(100, 2 * topics)}
        source["streams"] = {names[path, pattern]: path for path, _ in shape.fields}
        yield {key: value for key, value in source.items() if value != "json"}


def _groups(shapes: dict[str, Shape], *, together: bool) -> Iterator[tuple[list[str], Shape]]:
    """Topics of one shape, where no other topic that was heard would be among them; else each for itself."""
    left = {topic: shape for topic, shape in shapes.items() if shape.fields}
    while left:
        topic, shape = next(iter(left.items()))
        alike = [each for each in left if each != topic and left[each].kind == shape.kind]
        wanted = _wanted(topic, alike, is_telling=shape.is_telling) if together else ()
        group = next((each for each in wanted if _holds_no_other(each, shapes)), [topic])
        for each in group:
            del left[each]
        yield group, shape


def _wanted(topic: str, alike: list[str], *, is_telling: bool) -> Iterator[list[str]]:
    """The topic with others of its shape: all under one root, if the shape tells enough; those of one level."""
    levels = topic.split("/")
    under = [each for each in alike if 0 < len(_differ(each, levels)) < len(levels) and _differ(each, levels)[0] > 0]
    if under and is_telling:
        yield [topic, *under]
    beside = [[each for each in alike if _differ(each, levels) == [place]] for place in range(len(levels))]
    most = max(beside, key=len)
    if len(most) + 1 >= TOGETHER:
        yield [topic, *most]


def _holds_no_other(group: list[str], shapes: dict[str, Shape]) -> bool:
    pattern = Filter(_pattern(group))
    return all(topic in group or pattern.match(topic) is None for topic in shapes)


def _differ(topic: str, levels: list[str]) -> list[int]:
    others = topic.split("/")
    if len(others) != len(levels):
        return [-1]
    return [place for place, (a, b) in enumerate(zip(others, levels, strict=True)) if a != b]


def _pattern(topics: list[str]) -> str:
    """One topic for them all, with names for the levels in which they differ."""
    levels = topics[0].split("/")
    varying = sorted({place for topic in topics for place in _differ(topic, levels)})
    for number, place in enumerate(varying, 1):
        levels[place] = "{which}" if len(varying) == 1 else f"{{which{number}}}"
    return "/".join(levels)


def _names(values: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A name for each (path, topic) that no other has: the last steps of topic and path, as many as tell them apart."""
    found: dict[tuple[str, str], str] = {}
    steps = {each: _steps(*each) for each in values}
    for count in range(1, max(map(len, steps.values()), default=0) + 1):
        names = {each: "_".join(steps[each][-count:])[-64:].lstrip(".-") for each in values if each not in found}
        often = Counter(names.values())
        taken = {*found.values()}
        found |= {each: name for each, name in names.items() if often[name] == 1 and name not in taken}
    for number, each in enumerate((each for each in values if each not in found), 1):
        found[each] = f"{'_'.join(steps[each])[-58:].lstrip('.-')}_{number}"
    return found


def _steps(path: str, topic: str) -> list[str]:
    parts = [level for level in topic.split("/") if "{" not in level] + (path.split(".") if path else [])
    return [part for each in parts if (part := _OTHERS.sub("_", each).strip("_.-"))] or ["value"]


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
