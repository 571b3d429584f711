"""The checks of topics: what a source may subscribe to, and where answers may be published."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.model import Config
from sluicegate_agent.config.plants import filter_problems
from sluicegate_agent.config.sources import SourceConfig

_LONGEST = 1024
_SHARE = "$share"


def source_problems(source: SourceConfig, at: str) -> Iterator[Problem]:
    """Every finding in the topic of a source: its length, its parts, wildcards."""
    topic = source.subscribed
    if not topic or len(topic.encode()) > _LONGEST or "\0" in topic:
        yield Problem(f"{at}.topic", topic, f"expected a topic of 1 to {_LONGEST} bytes, without the character zero")
        return
    if topic == _SHARE or topic.startswith(f"{_SHARE}/"):
        group, _, rest = topic.removeprefix(_SHARE).removeprefix("/").partition("/")
        if not group or not rest or any(c in group for c in "+#"):
            remedy = 'expected "$share/group/topic": a group without wildcards, and the topic that it shares'
            yield Problem(f"{at}.topic", topic, remedy)
            return
    yield from filter_problems(source, at)


def result_problems(config: Config) -> Iterator[Problem]:
    """Every finding in `results.topic`."""
    results = config.results
    topic = results.topic.replace("{device}", config.device.id)
    for name in ("stream", "window", "aggregate"):
        topic = topic.replace(f"{{{name}}}", "x")
    if any(c in topic for c in "+#{}\0") or len(topic.encode()) > _LONGEST or topic.startswith("$"):
        remedy = "expected a topic without wildcards, and without $ at its start; known: {device}, {stream}, …"
        yield Problem("results.topic", config.results.topic, remedy)
    if any(source.filter.match(topic) is not None for source in config.sources):
        yield Problem(
            "results.topic", config.results.topic, "is also a source's topic: the agent would read its own answers"
        )
    if not (isfinite(results.deadband) and results.deadband >= 0):
        yield Problem("results.deadband", results.deadband, "expected 0 or more, in the units of the answers")
    if results.deadband and not results.on_change:
        yield Problem("results.deadband", results.deadband, "says what is a change: add on_change = true")
    prefix = results.home_assistant
    if prefix and (any(c in prefix for c in "+#{}\0") or prefix.startswith("$") or len(prefix) > 64):
        yield Problem("results.home_assistant", prefix, 'expected the prefix of its topics, such as "homeassistant"')
    if prefix and not ("{stream}" in results.topic and "{window}" in results.topic):
        remedy = "a sensor needs a topic of its own: add {stream} and {window} to results.topic"
        yield Problem("results.home_assistant", prefix, remedy)
