"""The checks of topics: what a source may subscribe to, and where answers may be published."""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.model import Config, SourceConfig

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
    if "+" in topic or "#" in topic:
        remedy = "wildcards would mix several senders into one stream: write one [[source]] for each topic"
        yield Problem(f"{at}.topic", topic, remedy)


def result_problems(config: Config) -> Iterator[Problem]:
    """Every finding in `results.topic`."""
    topic = config.results.topic.replace("{device}", config.device.id)
    if any(c in topic for c in "+#{}\0") or len(topic.encode()) > _LONGEST or topic.startswith("$"):
        remedy = "expected a topic without wildcards, and without $ at its start; `{device}` stands for the device's id"
        yield Problem("results.topic", config.results.topic, remedy)
    if topic in {source.topic for source in config.sources}:
        yield Problem(
            "results.topic", config.results.topic, "is also a source's topic: the agent would read its own answers"
        )
