"""A real agent process behind a broker that fails at numbered steps: the same zeros, whatever fails where."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluicegate_demo import proof
from sluicegate_demo.agents import AgentProcess, topic
from sluicegate_demo.broker import Broker, Fault
from sluicegate_demo.publish import Publisher, Step, schedule
from sluicegate_demo.readings import Feed, weather
from sluicegate_demo.truth import Streams

pytestmark = [pytest.mark.slow, pytest.mark.faults]
AGENT, GIVER = "sluicegate-", "publisher-"

PLANS: dict[str, list[Fault]] = {
    "cut while connecting": [Fault("connect", n, "cut", AGENT) for n in (1, 2)],
    "cut while subscribing": [Fault("subscribe", 1, "cut", AGENT)],
    # 660 messages go out, each at least once; how many go out again hangs on how many a commit acknowledges
    "cut at deliveries": [Fault("deliver", n, "cut", AGENT) for n in (1, 2, 150, 399, 650)],
    "cut at acknowledgements": [Fault("acknowledge", n, "cut", AGENT) for n in (1, 2, 200, 201, 450)],
    "cut the publisher": [Fault("keep", n, "cut", GIVER) for n in (2, 100, 333)]
    + [Fault("receive", n, "cut", GIVER) for n in (3, 250)],
    "duplicate deliveries": [Fault("deliver", n, "duplicate", AGENT) for n in (1, 2, 3, 100, 101, 400, 599)],
    "stall": [Fault("deliver", 50, "stall", AGENT, 0.7), Fault("acknowledge", 260, "stall", AGENT, 0.7)],
    "cut, duplicate and stall": [
        Fault("deliver", 60, "cut", AGENT),
        Fault("deliver", 90, "duplicate", AGENT),
        Fault("deliver", 210, "stall", AGENT, 0.3),
        Fault("acknowledge", 300, "cut", AGENT),
    ],
}


def until(true: Callable[[], Any], what: str, seconds: float = 180) -> None:
    """Wait for something to become true, or fail naming it."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def through(
    plan: list[Fault], folder: Path, *, kill: bool = False, forgets_by: int | None = None
) -> tuple[Broker, AgentProcess, proof.Custody]:
    """Publish 600 rows through a broker with these faults to one agent, and see what reached the target."""
    feed = weather(600)[0]
    target = folder / "chunks"
    target.mkdir()
    with Broker(faults=plan) as broker:
        agent = AgentProcess(feed, broker.port, folder / "agent", target)
        agent.start()
        try:
            publish(feed, broker, agent, kill=kill, forgets_by=forgets_by)
            until(lambda: broker.waiting(f"sluicegate-{feed.device}") == 0, "messages wait in the broker for ever")
            agent.stop()
        finally:
            agent.abandon()
    return broker, agent, proof.custody(target, Streams([feed]))


def publish(feed: Feed, broker: Broker, agent: AgentProcess, *, kill: bool, forgets_by: int | None) -> None:
    """Send all, a tenth of it twice; `kill` ends the agent on the way.

    At message `forgets_by` it waits until the broker has forgotten the agent's session and the agent has a new one, so
    that what follows shows the gap: the agent may lag behind the publisher, and it connects before it subscribes.
    """

    def restart() -> None:
        agent.kill()
        agent.start()

    def wait() -> None:
        until(lambda: broker.counts["sessions_forgotten"] == 1, "the broker forgets nothing")
        until(lambda: broker.is_served(f"sluicegate-{feed.device}"), "the agent does not come back")

    steps: list[Step] = [(300, restart)] if kill else []
    if forgets_by is not None:
        steps.append((forgets_by, wait))
    order = schedule(len(feed.rows), 0.1)
    publisher = Publisher(broker.port, feed.device, topic(feed), list(feed.payloads()), order, steps)
    publisher.start()
    while publisher.is_alive():
        if not kill:
            agent.observe()  # raises with the log's end when the agent ended by itself
        publisher.join(0.1)
    assert publisher.error is None


@pytest.mark.parametrize("kill", [False, True], ids=["", "and kill -9"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_nothing_is_lost_or_counted_twice(tmp_path: Path, plan: list[Fault], kill: bool) -> None:
    """Every fault fires, and every reading is in exactly one bucket that says of it what is true."""
    broker, agent, found = through(plan, tmp_path, kill=kill)
    assert (found.lost, found.double_counted, found.wrong, found.problems) == (0, 0, 0, [])
    assert set(broker.faults.fired) == set(plan)
    assert agent.kills == kill


def test_what_a_broker_forgets_is_told_as_missing(tmp_path: Path) -> None:
    """A session forgotten with what it held: nothing counts twice, and every loss is in the chunks as a gap."""
    broker, agent, found = through([Fault("deliver", 250, "forget", AGENT)], tmp_path, forgets_by=500)
    assert [fault.action for fault in broker.faults.fired] == ["forget"]
    status = agent.status()
    assert status["counters"]["mqtt.sessions_lost"] == 1
    taken = status["counters"]["messages"] - status["counters"].get("duplicates", 0)
    after = set(schedule(600, 0.1)[500:])  # of what was delivered before, the agent may have read little
    assert len(after) <= taken < 600
    assert sum(stream["accepted"] for stream in status["streams"].values()) == found.merged
    # Pressure is not in every message: what came late without it takes back what it was told.
    assert {stream["missing"] for stream in status["streams"].values()} == {600 - taken}
