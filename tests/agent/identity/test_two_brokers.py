"""Bare messages promise: under one name with two brokers behind it, each with a session of ours, nothing counts twice.

A standby takes over, and the first one comes back with what it never saw acknowledged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given, settings
from hypothesis import strategies as st
from identity.simulated_broker import Broker, Habit
from test_deliveries import ACTIONS, CONTENTS, Agent

from sluicegate_agent.config import build
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State

PAIRS: list[Habit] = ["counting", "anew", "least"]


class Failover:
    """An agent and its two brokers; sensors publish to the one that it has."""

    def __init__(self, habits: tuple[Habit, Habit], window: int, content: str) -> None:
        self.brokers = [Broker(habit, window) for habit in habits]
        self.agent = Agent(self.brokers[0])
        self.known = {0}
        self.content, self.serial = CONTENTS[content], 0

    def publish(self, count: int) -> None:
        for _ in range(count):
            self.agent.broker.publish(self.serial, self.content(self.serial))
            self.serial += 1

    def switch(self, *, killed: bool = False) -> None:
        """The other one has the name from now on."""
        now = 1 - self.brokers.index(self.agent.broker)
        self.agent.broker.cut()
        self.agent.broker = self.brokers[now]
        if killed:
            self.agent.broker.connected, present = False, now in self.known
            connect, self.agent.connect = self.agent.connect, lambda **_: None  # type: ignore[method-assign]
            self.agent.kill()
            self.agent.connect = connect  # type: ignore[method-assign]
            self.agent.connect(present=present)
        else:
            self.agent.connect(present=now in self.known)
        self.known.add(now)

    def end(self) -> None:
        """What both have comes."""
        for _ in range(3):
            self.agent.settle()
            self.switch()
        self.agent.settle()


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("content", sorted(CONTENTS))
@pytest.mark.parametrize("first", PAIRS)
@pytest.mark.parametrize("other", PAIRS)
def test_the_first_one_comes_back(first: Habit, other: Habit, content: str, *, killed: bool) -> None:
    """With ten messages that were counted, and whose acknowledgements it never saw."""
    both = Failover((first, other), 20, content)
    for _ in range(5):
        both.publish(1)
        both.agent.settle()
    both.publish(10)
    both.agent.take(10)
    both.agent.commit()
    both.switch(killed=killed)
    both.publish(3)
    both.agent.settle()
    both.switch(killed=killed)
    both.publish(3)
    both.end()
    assert both.agent.seen == set(range(both.serial))
    assert both.agent.accepted - both.agent.doubt <= both.serial <= both.agent.accepted


STEPS = st.lists(st.tuples(st.sampled_from([*ACTIONS, "switch", "gone"]), st.integers(1, 9)), max_size=40)


@settings(deadline=None, max_examples=200)
@given(
    habits=st.tuples(st.sampled_from(PAIRS), st.sampled_from(PAIRS)),
    content=st.sampled_from(sorted(CONTENTS)),
    window=st.sampled_from([3, 20]),
    steps=STEPS,
)
def test_the_true_count_is_within_what_is_said(
    habits: tuple[Habit, Habit], content: str, window: int, steps: list[tuple[str, int]]
) -> None:
    """Back and forth, with cuts and kills anywhere."""
    both = Failover(habits, window, content)
    agent = both.agent
    for what, count in steps:
        if what == "publish":
            both.publish(count)
        elif what in ("switch", "gone"):
            both.switch(killed=what == "gone")
        else:
            agent.does(what, count)
    both.end()
    assert agent.seen == set(range(both.serial)), "a broker lost something: the test is wrong"
    assert agent.accepted - agent.doubt <= both.serial <= agent.accepted
    assert not [text for text in agent.wrong if text.endswith("repeat")]


def test_what_a_gone_session_had_under_way_is_no_sender(tmp_path: Path) -> None:
    """Its row stands among those of senders; a plant's room is theirs alone."""
    config = build(
        {
            "device": {"id": "d"},
            "state": {"path": "state"},
            "source": [{"topic": "house/{room}", "format": "number", "streams": {"temp": ""}}],
        },
        tmp_path / "agent.toml",
    )
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.connected(session_present=False)
        pipeline.accept(Message("house/kitchen", b"20.5", 1, 1))
        pipeline.commit()
        pipeline.connected(session_present=False)
        pipeline.accept(Message("house/cellar", b"12", 1, 1))
        pipeline.commit()
    with State(config) as state:
        pipeline = Pipeline(config, state)
        assert sorted(pipeline.entry.senders._known) == ["house/cellar", "house/kitchen"]
        pipeline.connected(session_present=True)
        pipeline.accept(Message("house/kitchen", b"20.5", 7, 1, dup=True))
        pipeline.commit()
        assert (state.counters["accepted"], state.counters["undecidable"]) == (3, 1)
