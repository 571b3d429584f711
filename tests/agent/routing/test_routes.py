"""Each topic that may be heard of is routed once, however many speak in turn; more than planned are not kept."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from sluicegate_agent.config.load import build
from sluicegate_agent.payloads.documents import plain_paths
from sluicegate_agent.plan import plan
from sluicegate_agent.routing.routes import READY_LEAST, ROUTE_OBJECTS, Routes


def routes_of(keys: int, **more: Any) -> Routes:
    """Of a plant with so many keys."""
    return Routes(config_of(keys, **more))


def config_of(keys: int, **more: Any) -> Any:
    """The configuration of that plant."""
    source = {"topic": "plant/{sensor}", "time": "t", "time_format": "s", "streams": {"temp": "v"}} | more
    raw = {
        "device": {"id": "d"}, "state": {"path": "s", "memory": "1GiB"}, "source": [source | {"keys": {"most": keys}}]
    }  # fmt: skip
    return build(raw, Path("/tmp/agent.toml"))  # noqa: S108  only relative paths are taken from it


@pytest.fixture
def routed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that were routed, each time."""
    found: list[str] = []
    made = Routes._route

    def noted(self: Routes, source: Any, topic: str, values: Any) -> Any:
        found.append(topic)
        return made(self, source, topic, values)

    monkeypatch.setattr(Routes, "_route", noted)
    return found


def test_as_many_topics_as_keys_are_routed_once(routed: list[str]) -> None:
    """10,000 sensors in turn: 4,096 were kept, so each message was routed anew."""
    kept, topics = routes_of(10_000), [f"plant/{i}" for i in range(10_000)]
    first = [kept.find(topic) for topic in topics]
    assert all(kept.find(topic) is route for topic, route in zip(topics, first, strict=True))
    assert len(routed) == 10_000


def test_who_speaks_stays_and_who_is_silent_longest_goes(routed: list[str]) -> None:
    """A flood of topics costs the others' routes, not those that are heard of in between."""
    kept = routes_of(10)
    for i in range(3 * READY_LEAST):
        kept.find("plant/speaks")
        kept.find(f"plant/{i}")
    assert routed.count("plant/speaks") == 1
    assert len(kept._ready) == READY_LEAST


def test_what_is_read_of_its_messages_is_the_same_for_all_topics_of_a_source() -> None:
    """Paths and formats are the source's; only where two names became one has a topic paths of its own."""
    kept = routes_of(10)
    one, other = kept.find("plant/1"), kept.find("plant/2")
    assert one
    assert other
    assert plain_paths(one) is plain_paths(other) is not None
    kept = routes_of(10, topic="plant/{a}/{b}", key="{a}", streams={"{a}": "v", "{b}": "w"})
    one, other = kept.find("plant/x/y"), kept.find("plant/x/x")
    assert one
    assert other
    assert [(plain := plain_paths(each)) and plain.paths for each in (one, other)] == [("v", "w"), ("w",)]


def test_routes_take_no_more_than_planned() -> None:
    """With a tag of the topic, the longest key there is and a stream more."""
    keys = 2_000
    config = config_of(keys, streams={"temp": "v", "load": "w"}, tags={"sensor": "{sensor}"})
    (line,) = (line for line in plan(config).lines if line.part == "routes of topics")
    kept, topics = Routes(config), [f"plant/{i:064d}" for i in range(keys)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for topic in topics:
        kept.find(topic)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken <= line.memory == keys * ROUTE_OBJECTS
