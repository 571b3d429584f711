"""The checks of sources whose streams come as they are heard of: wildcards, keys, devices, tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, permutations

from sluicegate.format.tags import NAME, TAGS_MOST
from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.model import Config
from sluicegate_agent.config.sources import SourceConfig, used_levels
from sluicegate_agent.naming.templates import Template, key_template
from sluicegate_agent.naming.topics import REST, name_of

_KEYS_MOST = 100_000
_LITERAL = re.compile(r"[\w.\-]*", re.ASCII)


def filter_problems(source: SourceConfig, at: str) -> Iterator[Problem]:
    """Every finding in the levels of a topic."""
    levels, topic = source.filter.levels, source.subscribed
    names = [name for name in map(name_of, levels) if name is not None]
    for level in levels:
        if name_of(level) is None and any(c in level for c in "+#{}") and level not in ("+", REST):
            remedy = f'level "{level}": a wildcard is a whole level: "+", "{{name}}" or, at the end, "#"'
            yield Problem(f"{at}.topic", topic, remedy)
    if REST in levels[:-1]:
        yield Problem(f"{at}.topic", topic, '"#" stands for all levels that follow: it can only be the last one')
    if len(set(names)) != len(names) or "payload" in names:
        yield Problem(f"{at}.topic", topic, "expected each name once, and none that is called payload")


def plant_problems(config: Config) -> Iterator[Problem]:
    """Every finding in keys, devices and tags, and in topics that two sources would read."""
    for i, source in enumerate(config.sources, 1):
        at = f"source[{i}]"
        yield from _templates(source, at)
        yield from _tags(source, at)
        if source.is_plant:
            yield from _keys(source, at)
            yield from _one_sender(source, at)
            yield from _room(config, source, at)
        elif source.horizon is None and source.devices is not None:
            yield Problem(f"{at}.devices", source.devices, "says which devices are let in: give `device` too")
        if source.horizon is not None and not 1 <= source.horizon <= 1 << 20:
            yield Problem(f"{at}.horizon", source.horizon, "expected 1 to 1048576 messages")
    yield from _overlaps(config)


def _templates(source: SourceConfig, at: str) -> Iterator[Problem]:
    """Places that nothing fills, and those that would make two names look alike."""
    known = {name for name in source.filter.names if name is not None}
    texts = {f"{at}.tags.{name}": value for name, value in source.tags.items()}
    texts |= {f"{at}.device": source.device or ""} | {f"{at}.streams": name for name in source.streams if "{" in name}
    texts |= {f"{at}.key": key_template(source.key).written} if source.key is not None else {}
    for key, text in texts.items():
        template = Template(text)
        for level in set(template.levels) - known:
            listed = ", ".join(sorted(known)) or "none"
            remedy = f"{{{level}}} is no level of the topic (there are: {listed}) and no {{payload.…}}"
            yield Problem(key, text, remedy)
        if template.paths and not key.startswith((f"{at}.key", f"{at}.tags")):
            yield Problem(key, text, "only a key and tags can come from the payload: use a level of the topic")
        if source.format == "number" and template.paths:  # no other format is without fields
            yield Problem(key, text, 'a message that is one number has no fields: use format = "json"')
    for key, text in texts.items():
        if not key.startswith(f"{at}.tags") and any("/" not in each for each in Template(text).texts[1:-1]):
            yield Problem(key, text, 'put "/" between two places, so that two names never look alike')


def _tags(source: SourceConfig, at: str) -> Iterator[Problem]:
    if len(source.tags) > TAGS_MOST:
        yield Problem(f"{at}.tags", None, f"expected at most {TAGS_MOST}")
    for name, value in source.tags.items():
        if not NAME.fullmatch(name) or not (value.isprintable() and len(value) <= 256):
            yield Problem(
                f"{at}.tags.{name}", value, "expected a name of letters, digits, `_`, `-`, `.` and a short text"
            )


def _keys(source: SourceConfig, at: str) -> Iterator[Problem]:
    keys = source.keys
    if not 1 <= keys.most <= _KEYS_MOST:
        yield Problem(f"{at}.keys.most", keys.most, f"expected 1 to {_KEYS_MOST}")
    for key, expression in ((f"{at}.keys.allow", keys.allow), (f"{at}.devices", source.devices)):
        try:
            re.compile(expression or "")
        except re.error as error:
            yield Problem(key, expression, f"is no regular expression: {error}")
    if source.device is not None and source.devices is None:
        remedy = 'is required where devices come from topics: which are let in, such as devices = "press-[0-9]+"'
        yield Problem(f"{at}.devices", None, remedy)
    if source.device is not None and not Template(source.device).levels:
        yield Problem(f"{at}.device", source.device, 'names no level of the topic: expected such as "{machine}"')
    if source.device is not None and not all(_LITERAL.fullmatch(text) for text in Template(source.device).texts):
        yield Problem(f"{at}.device", source.device, "expected letters, digits, `_`, `-`, `.` beside its place")
    if source.key is not None and not source.key:
        yield Problem(f"{at}.key", "", 'expected a path in the payload, or such as "{machine}"')


def _one_sender(source: SourceConfig, at: str) -> Iterator[Problem]:
    """Where numbers say what is missing, each stream has to have one sender."""
    if source.key is None or source.sequence is None:
        return
    used = used_levels(source) | set(key_template(source.key).levels)
    if left := [
        name or "a wildcard without a name" for name in source.filter.names if name is None or name not in used
    ]:
        remedy = (
            f"{', '.join(left)} is not part of it: two senders would number one stream; write it into the key, such as "
            f'"{{{left[0] if " " not in left[0] else "name"}}}/…"'
        )
        yield Problem(f"{at}.key", source.key, remedy)


def _room(config: Config, source: SourceConfig, at: str) -> Iterator[Problem]:
    streams = source.keys.most * len(source.streams)
    if streams > config.outbox.rows // 2:
        remedy = (
            f"with its streams that is {streams}, and outbox.rows = {config.outbox.rows} has two rows for each at least"
        )
        yield Problem(f"{at}.keys.most", source.keys.most, remedy)


def _overlaps(config: Config) -> Iterator[Problem]:
    """Two sources of one topic: a message would have two meanings, and a broker may send it twice."""
    for (i, one), (j, other) in combinations(enumerate(config.sources, 1), 2):
        if one.topic != other.topic and one.filter.overlaps(other.filter):
            remedy = f'source[{i}].topic = "{one.subscribed}" matches topics of it: give each topic to one source'
            yield Problem(f"source[{j}].topic", other.subscribed, remedy)
    names = [(i, name) for i, source in enumerate(config.sources, 1) for name in source.streams]
    for (i, name), (j, beside) in permutations(names, 2):
        if i != j and "{" in name and _alike(name, beside):
            yield Problem(f"source[{j}].streams", beside, f'could be a "{name}" of source[{i}]: name it otherwise')


def _alike(template: str, other: str) -> bool:
    """Whether a stream's name may be made of both: where neither begins otherwise."""
    before, beside = template.partition("{")[0], other.partition("{")[0]
    return before.startswith(beside) or beside.startswith(before) if "{" in other else Template(template).fits(other)
