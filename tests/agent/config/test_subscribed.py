"""What a [[source]] may subscribe to, and which two may not stand side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.config import ConfigError, build

FILE = Path("/etc/agent.toml")


def minimal(**tables: Any) -> dict[str, Any]:
    """The least configuration, with tables replaced or added."""
    base = {"device": {"id": "d"}, "state": {"path": "state"}, "source": [{"topic": "w", "streams": {"temp": "t"}}]}
    return base | tables


def findings(raw: dict[str, Any]) -> list[str]:
    """Every finding of a configuration that must be refused, as shown."""
    with pytest.raises(ConfigError) as caught:
        build(raw, FILE)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("$share/g/t", None),
        ("$share/g/a/b", None),
        ("$share/g//b", None),
        ("$SYS/broker/load", None),
        ("$shared/g/t", None),
        ("", "expected a topic of 1 to 1024 bytes"),
        ("a\0b", "expected a topic of 1 to 1024 bytes, without the character zero"),
        ("x" * 65536, "expected a topic of 1 to 1024 bytes"),
        ("$share", 'expected "$share/group/topic"'),
        ("$share/g", 'expected "$share/group/topic"'),
        ("$share/g/", 'expected "$share/group/topic"'),
        ("$share//t", 'expected "$share/group/topic"'),
        ("$share/+/t", 'expected "$share/group/topic"'),
        ("$share/g#/t", 'expected "$share/group/topic"'),
        ("$share/g/a/+", None),
        ("a/#", None),
        ("a/{site}/{site}", "expected each name once"),
        ("a/#/b", "it can only be the last one"),
        ("a/{site", "a wildcard is a whole level"),
        ("+", 'source[1].topic = "first" matches topics of it'),
    ],
)
def test_what_may_be_subscribed_to(topic: str, said: str | None) -> None:
    """MQTT 5, 4.7 and 4.8.2: a filter that a broker would refuse or that would mix senders is named with its place."""
    raw = minimal(source=[{"topic": "first", "streams": {"temp": "t"}}, {"topic": topic, "streams": {"hum": "h"}}])
    if said is None:
        build(raw, FILE)
        return
    (found,) = findings(raw)
    assert found.startswith("source[2].topic")
    assert said in found


def test_a_shared_subscription_is_its_topic() -> None:
    """Messages come with the topic behind the group: no other source, and no answer, may have the same."""
    config = build(minimal(source=[{"topic": "$share/g/a/b", "streams": {"temp": "t"}}]), FILE)
    assert (config.sources[0].topic, config.sources[0].subscribed) == ("a/b", "$share/g/a/b")
    both = [{"topic": "$share/g/a", "streams": {"temp": "t"}}, {"topic": "a", "streams": {"hum": "h"}}]
    assert "source[1] has it already" in findings(minimal(source=both))[0]
    answers = minimal(source=both[:1], results={"topic": "a"})
    assert "is also a source's topic" in findings(answers)[0]
    assert "without $ at its start" in findings(minimal(results={"topic": "$share/g/a"}))[0]


def test_a_stream_belongs_to_one_source() -> None:
    """Two sources cannot feed one stream: their sequence numbers would contradict each other."""
    twice = [{"topic": "a", "streams": {"temp": "t"}}, {"topic": "b", "streams": {"temp": "t"}}]
    assert findings(minimal(source=twice))[0].startswith('source[2].streams = "temp": source[1] has it already')
