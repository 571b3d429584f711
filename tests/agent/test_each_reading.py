"""`results.every = "reading"`: each reading is answered, in order, with what the window said just after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import LISTED, LISTS, NOON, SECOND, WITH_ENDS, bare, configured, sequenced, timed
from test_results import Sender, answer

from sluicegate_agent.config import ConfigError, build
from sluicegate_agent.config.schema import schema
from sluicegate_agent.each_reading import EachReading
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.results import PER_MESSAGE, Results
from sluicegate_agent.state import State

ENDED = {each["name"] for each in WITH_ENDS}


@pytest.fixture
def piped(tmp_path: Path) -> Any:
    """Makes pipelines of a configuration; `results`: its table."""
    states = []

    def make(name: str, **results: Any) -> Pipeline:
        (tmp_path / name).mkdir()
        state = State(configured(tmp_path / name, WITH_ENDS, [LISTS], results=results))
        states.append(state)
        return Pipeline(state.config, state, clock=lambda: NOON)

    yield make
    for state in states:
        state.close()


def test_each_reading_gets_what_its_windows_say_just_after_it(piped: Callable[..., Pipeline]) -> None:
    """Of all kinds of windows, those that share buckets among them; repeats of doubtful readings are counted."""
    each, asked = piped("each", every="reading"), piped("asked")
    messages = [sequenced(n, n + 1) for n in range(40)] + [timed(n / 3, 100 + n, n % 7) for n in range(40)]
    messages += [bare(n % 3, 200 + n) for n in range(20)]
    expected: list[Any] = []
    for message in messages:
        each.accept(message)
        before = {name: stream.accepted for name, stream in asked.state.streams.items()}
        asked.accept(message)
        for name, stream in asked.state.streams.items():
            if stream.accepted > before[name]:
                windows = [kept for stored in asked.windows[name] for kept in stored.names if kept not in ENDED]
                expected += [found for kept in windows for found in asked.answers(name, kept)]
    assert each.each is not None
    assert [*each.each.waiting] == expected
    assert len(expected) > 1000


def test_a_list_is_answered_item_by_item(piped: Callable[..., Pipeline]) -> None:
    """Though its readings would be folded together."""
    each = piped("each", every="reading")
    items = [{"t": NOON + n * SECOND, "x": n, "y": -n} for n in range(50)]
    each.accept(Message(LISTED, json.dumps(items).encode(), 1, 1))
    assert each.each is not None
    for stream, sign in (("x", 1), ("y", -1)):
        found = [every for every in each.each.waiting if (every.stream, every.window) == (stream, "last9")]
        assert [(every.ordinal, every.value) for every in found if every.aggregate == "first"] == [
            (n, sign * max(0, n - 8)) for n in range(50)
        ]


def test_what_is_not_asked_for_keeps_nothing(piped: Callable[..., Pipeline]) -> None:
    """Without the word, and where nothing is published."""
    assert piped("default").each is None
    assert piped("nowhere", every="reading", topic="").each is None


def test_so_many_wait_and_the_oldest_are_dropped_and_counted(piped: Callable[..., Pipeline]) -> None:
    """Whoever asked for all of them hears how many nobody will get."""
    pipeline = piped("each", every="reading")
    assert pipeline.each is not None
    pipeline.each.most = 10
    for n in range(9):
        pipeline.accept(bare(n, n + 1))
    waiting = [every.ordinal for every in pipeline.each.waiting]
    assert len(waiting) == 10
    assert waiting[-1] == 8
    answered = sum(len(each.aggregates) for each in pipeline.config.windows if each.name not in ENDED)
    assert pipeline.state.counters["results.dropped"] == 9 * answered - 10


def results(tmp_path: Path, sender: Sender, **table: Any) -> tuple[Results, EachReading]:
    """Results of a device `d` that answer each reading."""
    raw = {
        "device": {"id": "d"},
        "state": {"path": "state"},
        "mqtt": {"host": "h"},
        "source": [{"topic": "t", "streams": {"s": "s", "r": "r"}}],
        "window": [{"name": "w", "policy": {"count": 3}, "aggregate": ["mean", "max"]}],
        "results": {"every": "reading", **table},
    }
    config = build(raw, tmp_path / "agent.toml")
    each = EachReading(config, lambda name, amount: None)
    return Results(config, sender, None, each), each


def told(sender: Sender) -> list[tuple[str, int]]:
    """Stream and ordinal of all that was sent."""
    return [(each["stream"], each["ordinal"]) for _, message in sender.sent for each in message["results"]]


def test_all_are_sent_in_their_order_and_wait_while_the_link_takes_none(tmp_path: Path) -> None:
    """In messages of so many at most; the newest answers of the same windows are not told beside them."""
    sender = Sender()
    publisher, each = results(tmp_path, sender)
    publisher.offer([answer("s", -1)], 0.0)
    assert told(sender) == [("s", -1)], "once after a start, whatever the process before had not sent"
    each.waiting.extend(answer("sr"[n % 2], n) for n in range(100))
    assert publisher.due(0.0)
    sender.room = 1
    publisher.offer([answer("s", 99)], 0.0)
    assert len(told(sender)) == 1 + PER_MESSAGE
    sender.room = 9
    publisher.offer([], 0.0)
    assert told(sender)[1:] == [("sr"[n % 2], n) for n in range(100)]
    assert not each.waiting


def test_a_message_is_of_one_topic_and_of_what_changed(tmp_path: Path) -> None:
    """Where each stream has a topic of its own, and `on_change` asks for differences alone."""
    sender = Sender()
    publisher, each = results(tmp_path, sender, topic="r/{stream}", on_change=True, deadband=0.5)
    each.waiting.extend(answer("s" if n < 6 else "r", n, low=n // 3) for n in range(12))
    publisher.offer([], 0.0)
    assert [topic for topic, _ in sender.sent] == ["r/s", "r/r"]
    assert told(sender) == [("s", 0), ("s", 3), ("r", 6), ("r", 9)]
    each.waiting.append(answer("r", 12, low=3))
    publisher.offer([], 0.0)
    assert len(told(sender)) == 4


def test_the_key_takes_a_length_or_the_word(tmp_path: Path) -> None:
    """Anything else is refused by its place, and an editor's schema says so too."""
    with pytest.raises(ConfigError, match=r'results\.every.*or "reading"'):
        results(tmp_path, Sender(), every="readings")
    with pytest.raises(ConfigError, match=r'results\.every.*or "reading"'):
        results(tmp_path, Sender(), every="2d")
    assert not build({"device": {"id": "d"}, "state": {"path": "s"}, "mqtt": {"host": "h"}, "source": [
        {"topic": "t", "streams": {"s": "s"}}], "window": [], "results": {"every": "2s"}},
        tmp_path / "agent.toml").results.every.is_each  # fmt: skip
    found = schema()["$defs"]["ResultsConfig"]["properties"]["every"]
    assert "reading" in found["description"]
