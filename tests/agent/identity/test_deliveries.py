"""Bare messages promise: however a broker numbers and repeats them, the true count is accepted less doubt … accepted.

And there is no doubt where packet ids or contents decide.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given, settings
from hypothesis import strategies as st
from identity.simulated_broker import Broker, Habit
from memory_stores import empty
from thorough import number

from sluicegate_agent.identity.deliveries import Deliveries
from sluicegate_agent.identity.verdict import Verdict, digest_of
from sluicegate_agent.messages import Message

KEPT = 3000


@dataclass
class Agent:
    """Takes what the broker sends, commits, acknowledges and pings, as the agent does; keeps the truth beside."""

    broker: Broker
    store: sqlite3.Connection = field(default_factory=empty)
    seen: set[int] = field(default_factory=set)
    accepted: int = 0
    doubt: int = 0
    generation: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deliveries = Deliveries(self.store, KEPT)
        self.ids: list[int] = []
        self._durable = (set(self.seen), self.accepted, self.doubt)
        self.connect(present=False)

    def connect(self, *, present: bool = True) -> None:
        self.deliveries.connected(session_present=present)
        self.ids = []
        self.broker.connect()

    def take(self, most: int) -> None:
        for _ in range(min(most, len(self.broker.down))):
            sent = self.broker.down.popleft()
            message = Message("door", sent.content.encode(), sent.packet_id, 1, dup=sent.dup)
            self.deliveries.passed(message)
            verdict = self.deliveries.check(message, digest_of(message))
            self.ids.append(sent.packet_id)
            if verdict is Verdict.DUPLICATE and sent.serial not in self.seen:
                self.wrong.append(f"{sent} is new")
            if verdict is Verdict.NEW and sent.serial in self.seen:
                self.wrong.append(f"{sent} is a repeat")
            self.seen.add(sent.serial)
            self.accepted += verdict is not Verdict.DUPLICATE
            self.doubt += verdict is Verdict.UNDECIDABLE

    def commit(self) -> None:
        self.deliveries.save(self.store)
        self.deliveries.saved()
        self.generation += 1
        self.deliveries.committed(self.generation)
        self._durable = (set(self.seen), self.accepted, self.doubt)
        self.broker.up.extend(("ack", packet_id) for packet_id in self.ids)
        self.broker.up.append(("ping", self.generation))
        self.ids = []

    def hear(self) -> None:
        for generation in self.broker.answers if not self.broker.down else []:
            self.deliveries.confirmed(generation)

    def cut(self) -> None:
        self.broker.cut()
        self.connect()

    def kill(self) -> None:
        self.broker.cut()
        seen, self.accepted, self.doubt = self._durable
        self.seen = set(seen)
        self.deliveries = Deliveries(self.store, KEPT)
        self.connect()

    def settle(self) -> None:
        """Everything that is on its way arrives, and is confirmed."""
        while self.ids or self.broker.down or self.broker.up or self.broker.under_way:
            if not self.broker.down:
                self.broker.repeat()
            self.take(len(self.broker.down))
            self.commit()
            self.broker.read(len(self.broker.up))
            self.hear()

    def does(self, what: str, count: int) -> None:
        """One of ACTIONS but publishing."""
        if what == "take":
            self.take(count)
        elif what == "read":
            self.broker.read(count)
        elif what == "repeat":
            self.broker.repeat()
        elif what == "calm":
            self.settle()
        else:
            getattr(self, what)()


CONTENTS: dict[str, Callable[[int], str]] = {
    "constant": lambda serial: "20.5",
    "coarse": lambda serial: str(random.Random(serial).randrange(3)),
    "sawtooth": lambda serial: str(serial % 7),
    "distinct": str,
}
ACTIONS = ("publish", "take", "commit", "read", "hear", "cut", "kill", "calm", "repeat")
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(1, 9)), max_size=60)
HABITS: tuple[Habit, ...] = get_args(Habit)


def run(habit: Habit, content: str, window: int, steps: list[tuple[str, int]], calm: int) -> Agent:
    """One session: `calm` messages that come one by one, then what `steps` say, then all that is left."""
    agent, serial = Agent(Broker(habit, window)), 0

    def publish(count: int) -> None:
        nonlocal serial
        for _ in range(count):
            agent.broker.publish(serial, CONTENTS[content](serial))
            serial += 1

    for _ in range(calm):
        publish(1)
        agent.settle()
    for what, count in steps:
        if what == "publish":
            publish(count)
        else:
            agent.does(what, count)
    agent.settle()
    assert agent.seen == set(range(serial)), "the broker lost something: the test is wrong"
    return agent


@settings(deadline=None, max_examples=number(400, 150))
@given(
    habit=st.sampled_from(HABITS),
    content=st.sampled_from(sorted(CONTENTS)),
    window=st.sampled_from([1, 3, 20]),
    steps=STEPS,
    calm=st.sampled_from([0, 1, 5]),
)
def test_the_true_count_is_within_what_is_said(
    habit: Habit, content: str, window: int, steps: list[tuple[str, int]], calm: int
) -> None:
    """Cuts and kills anywhere, with acknowledgements and repeats lost on the way."""
    agent = run(habit, content, window, steps, calm)
    assert agent.accepted - agent.doubt <= len(agent.seen) <= agent.accepted
    assert agent.wrong == []


@settings(deadline=None, max_examples=number(150, 60))
@given(content=st.sampled_from(sorted(CONTENTS)), window=st.sampled_from([1, 3, 20]), steps=STEPS)
def test_ids_that_count_upward_leave_no_doubt(content: str, window: int, steps: list[tuple[str, int]]) -> None:
    """Once that was seen: a few messages, and a connection that went on with them and marked what it repeated."""
    steps = [("cut", 1), ("publish", 1), ("take", 1), ("cut", 1), ("calm", 1), *steps]
    agent = run("counting", content, window, steps, calm=5)
    assert (agent.accepted, agent.doubt) == (len(agent.seen), 0)


@settings(deadline=None, max_examples=50)
@given(habit=st.sampled_from(["counting", "anew", "least"]), window=st.sampled_from([3, 20]), steps=STEPS)
def test_contents_that_never_repeat_leave_no_doubt(habit: Habit, window: int, steps: list[tuple[str, int]]) -> None:
    """Of a topic that has said hundreds of things and nothing twice, a content says which message it is."""
    agent = run(habit, "distinct", window, steps, calm=300)
    assert (agent.accepted, agent.doubt) == (len(agent.seen), 0)


@settings(deadline=None, max_examples=number(150, 60))
@given(
    content=st.sampled_from(sorted(CONTENTS)),
    before=st.integers(0, 40),
    between=st.integers(0, 40),
    after=st.integers(0, 60),
    taken=st.integers(0, 20),
)
def test_a_broker_that_goes_back_costs_doubt_and_no_reading(
    content: str, before: int, between: int, after: int, taken: int
) -> None:
    """Killed after one save: what it sends again without DUP is in doubt at most, and all that is new is accepted."""
    agent = Agent(Broker("counting", 20))
    for serial in range(before):
        agent.broker.publish(serial, CONTENTS[content](serial))
    agent.take(taken)
    saved = agent.broker.save()
    agent.settle()
    for serial in range(before, before + between):
        agent.broker.publish(serial, CONTENTS[content](serial))
        agent.settle()
    agent.broker.go_back(saved)
    agent.connect()
    new = range(before + between, before + between + after)
    for serial in new:
        agent.broker.publish(serial, CONTENTS[content](serial))
        if serial % 5 == 0:
            agent.settle()
    agent.settle()
    assert agent.seen == set(range(before + between + after))
    assert agent.accepted - agent.doubt <= len(agent.seen) <= agent.accepted
    assert not [text for text in agent.wrong if text.endswith("new")]


def test_a_broker_that_begins_its_ids_anew_with_each_connection() -> None:
    """RabbitMQ, a sensor that always says the same, five restarts of the agent: 100 published, 100 accepted."""
    agent = Agent(Broker("anew", 10))
    for serial in range(100):
        agent.broker.publish(serial, "20.5")
        agent.settle()
        if serial % 20 == 19:
            agent.kill()
    agent.settle()
    assert agent.accepted == 100
    assert agent.doubt <= 20


def test_a_session_that_is_gone_is_gone_for_good() -> None:
    """Its messages are not held against those of the next one, nor after a restart."""
    agent = Agent(Broker("counting", 20))
    for serial in range(10):
        agent.broker.publish(serial, "1")
    agent.settle()
    agent.broker = Broker("counting", 20)
    agent.connect(present=False)
    agent.commit()
    agent.kill()
    for serial in range(10, 20):
        agent.broker.publish(serial, "1")
    agent.settle()
    assert (agent.accepted, agent.doubt) == (20, 0)


def test_what_is_kept_is_bounded() -> None:
    """However long nothing is confirmed: in memory and in the store."""
    store = empty()
    deliveries = Deliveries(store, 50)
    deliveries.connected(session_present=False)
    for packet_id in range(1, 500):
        message = Message("door", b"1", packet_id, 1)
        deliveries.passed(message)
        deliveries.check(message, digest_of(message))
        deliveries.save(store)
        deliveries.saved()
        deliveries.committed(packet_id)
    assert len(deliveries._log) == 50
    assert store.execute("SELECT count(*) FROM identity").fetchone() == (50,)


def test_an_id_that_may_have_been_used_again_decides_nothing() -> None:
    """The least free id, a constant sensor: acknowledged, used again, lost on the way, and sent again with DUP."""
    agent = Agent(Broker("least", 3))
    for serial in range(3):
        agent.broker.publish(serial, "20.5")
    agent.take(3)
    agent.commit()
    agent.broker.read(1)
    agent.cut()
    assert [sent.packet_id for sent in agent.broker.down] == [2, 3], "its ids go on over connections"
    agent.take(2)
    agent.commit()
    agent.broker.read(2)
    for serial in range(3, 6):
        agent.broker.publish(serial, "20.5")
    agent.cut()
    assert [(sent.packet_id, sent.dup) for sent in agent.broker.down] == [(1, True), (2, True), (3, True)]
    agent.settle()
    assert agent.wrong == []
    assert agent.accepted - agent.doubt <= 6 <= agent.accepted


def taken(deliveries: Deliveries, content: str, packet_id: int, *, dup: bool = False) -> Verdict:
    """The verdict on one message."""
    message = Message("door", content.encode(), packet_id, 1, dup=dup)
    deliveries.passed(message)
    return deliveries.check(message, digest_of(message))


@pytest.mark.parametrize("dup", [True, False])
def test_what_comes_again_on_the_same_connection_is_no_reading_for_certain(dup: bool) -> None:
    """Sent before the broker took our PUBACK, as Moquette and NATS do by a timer, and mochi without DUP."""
    deliveries = Deliveries(empty(), KEPT)
    deliveries.connected(session_present=False)
    verdicts = [taken(deliveries, content, packet_id) for packet_id, content in enumerate("abc", 1)]
    deliveries.committed(1)
    verdicts.append(taken(deliveries, "b", 2, dup=dup))
    assert verdicts == [Verdict.NEW] * 3 + [Verdict.UNDECIDABLE]


def test_an_id_that_is_free_again_may_say_the_same() -> None:
    """A constant sensor at a broker that gives out the least free id, as HiveMQ does: all readings, without doubt."""
    deliveries = Deliveries(empty(), KEPT)
    deliveries.connected(session_present=False)
    for generation in range(1, 9):
        assert taken(deliveries, "20.5", 1) is Verdict.NEW
        assert taken(deliveries, "20.5", 2) is Verdict.NEW
        deliveries.committed(generation)
