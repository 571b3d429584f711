"""A retained message promises: it counts once, however often a subscription brings it, and a live one is never lost."""

from __future__ import annotations

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import sqlite3

from memory_stores import empty

from sluicegate_agent.identity import Bare, Verdict
from sluicegate_agent.messages import Message

NEW, DUPLICATE = Verdict.NEW, Verdict.DUPLICATE


class Session:
    """One agent's memory of the topic `door`, and the packet ids of its session."""

    def __init__(self) -> None:
        self.store: sqlite3.Connection = empty()
        self.packet_id = 0
        self.start()

    def start(self) -> None:
        self.bare = Bare(self.store, {"door"}, 100)

    def connect(self, *, present: bool) -> None:
        self.bare.connected(session_present=present)

    def take(self, payload: bytes, *, retain: bool = False) -> Verdict:
        self.packet_id += 1
        message = Message("door", payload, self.packet_id, 1, retain=retain)
        self.bare.passed(message)
        verdict = self.bare.check(message)
        self.bare.save(self.store)
        self.bare.saved()
        return verdict


@pytest.fixture
def session() -> Session:
    """A first connection."""
    made = Session()
    made.connect(present=False)
    return made


def test_each_start_brings_it_and_it_counts_once(session: Session) -> None:
    """Without a session of before, with it, and after a restart."""
    assert session.take(b"20.5", retain=True) is NEW
    for present in (False, True, False):
        session.start()
        session.connect(present=present)
        assert session.take(b"20.5", retain=True) is DUPLICATE


def test_what_was_counted_live_is_known_when_it_comes_retained(session: Session) -> None:
    """Also when something else, that was not retained, was counted since."""
    assert session.take(b"20.5") is NEW
    session.connect(present=False)
    assert session.take(b"20.5", retain=True) is DUPLICATE
    assert session.take(b"21.0") is NEW
    session.connect(present=False)
    assert session.take(b"20.5", retain=True) is DUPLICATE


def test_one_that_says_something_new_counts(session: Session) -> None:
    """It was published while nobody was subscribed: it is all that is left of that time."""
    session.take(b"20.5", retain=True)
    session.connect(present=False)
    assert session.take(b"22.5", retain=True) is NEW
    assert session.take(b"22.5") is NEW, "a live one after it is another reading: no session kept one for us"


def test_one_that_comes_ahead_of_the_queue_counts_once(session: Session) -> None:
    """A broker that sends what is retained before what it kept for us: 21, 22, 22 and the last of them retained."""
    session.take(b"20.5")
    session.connect(present=True)
    assert [session.take(b"22", retain=True), session.take(b"21"), session.take(b"22")] == [NEW, NEW, DUPLICATE]
    assert session.take(b"22") is NEW
