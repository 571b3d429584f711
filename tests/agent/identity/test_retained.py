"""Retained messages of bare topics count once: ahead of what waits in the session, over connections, after a loss."""

from __future__ import annotations

import sqlite3

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from memory_stores import empty

from sluicegate_agent.identity import Bare, Verdict
from sluicegate_agent.messages import Message


def said(value: str, packet_id: int, *, retain: bool = False, dup: bool = False) -> Message:
    """What the door says."""
    return Message("door", value.encode(), packet_id, 1, retain=retain, dup=dup)


def told(bare: Bare, message: Message) -> Verdict:
    """The verdict, as the pipeline asks for it."""
    bare.passed(message)
    return bare.check(message)


def reopened(store: sqlite3.Connection, bare: Bare) -> Bare:
    """After a commit, in another process."""
    bare.committed(1)
    bare.save(store)
    bare.saved()
    return Bare(store, {"door"}, 100)


@pytest.mark.parametrize("restarted", [False, True])
def test_one_that_came_ahead_by_a_connection(restarted: bool) -> None:
    """The same message out of the session, later: in doubt, and only once."""
    store = empty()
    bare = Bare(store, {"door"}, 100)
    bare.connected(session_present=True)
    assert told(bare, said("21", 9, retain=True)) is Verdict.NEW
    bare = reopened(store, bare) if restarted else bare
    bare.connected(session_present=True)
    assert told(bare, said("22", 9, retain=True)) is Verdict.NEW
    assert told(bare, said("21", 10)) is Verdict.UNDECIDABLE
    assert told(bare, said("22", 11)) is Verdict.DUPLICATE
    assert told(bare, said("21", 12)) is Verdict.NEW


def test_what_was_ahead_of_a_session_that_is_lost_is_forgotten() -> None:
    """What it waited for is gone: the same content is another reading."""
    bare = Bare(empty(), {"door"}, 100)
    bare.connected(session_present=True)
    assert told(bare, said("21", 9, retain=True)) is Verdict.NEW
    bare.connected(session_present=False)
    assert told(bare, said("21", 1, retain=True)) is Verdict.DUPLICATE
    assert told(bare, said("21", 2)) is Verdict.NEW


def test_one_that_was_said_before_others() -> None:
    """Published retained, counted as it came, followed by others: after a lost session it comes again, in doubt."""
    bare = Bare(empty(), {"door"}, 100)
    bare.connected(session_present=True)
    assert told(bare, said("21", 1)) is Verdict.NEW
    assert told(bare, said("22", 2)) is Verdict.NEW
    bare.connected(session_present=False)
    assert told(bare, said("21", 1, retain=True)) is Verdict.UNDECIDABLE


@pytest.mark.parametrize("restarted", [False, True])
def test_one_that_comes_again_behind_a_newer_one(restarted: bool) -> None:
    """Two connections, a retained message each, none acknowledged: the session brings both again, with DUP."""
    store = empty()
    bare = Bare(store, {"door"}, 100)
    bare.connected(session_present=False)
    assert told(bare, said("21", 1, retain=True)) is Verdict.NEW
    for number in (22, 23):
        assert told(bare, said(str(number), number)) is Verdict.NEW
    for again in (False, True):
        bare = reopened(store, bare) if restarted else bare
        bare.connected(session_present=True)
        assert told(bare, said("21", 1, retain=True, dup=True)) is Verdict.DUPLICATE
        assert told(bare, said("23", 24, retain=True, dup=again)) is Verdict.DUPLICATE


def test_one_that_was_said_in_a_lost_session_before_a_restart() -> None:
    """What that session said is forgotten with the process: the first retained message of a topic is in doubt."""
    store = empty()
    bare = Bare(store, {"door"}, 100)
    bare.connected(session_present=True)
    assert told(bare, said("21", 1)) is Verdict.NEW
    assert told(bare, said("22", 2)) is Verdict.NEW
    bare.connected(session_present=False)
    bare = reopened(store, bare)
    bare.connected(session_present=True)
    assert told(bare, said("21", 1, retain=True)) is Verdict.UNDECIDABLE
    assert told(bare, said("30", 2, retain=True)) is Verdict.NEW


def test_two_sessions_that_are_lost() -> None:
    """What the first of them said is known as well."""
    bare = Bare(empty(), {"door"}, 100)
    bare.connected(session_present=True)
    assert told(bare, said("21", 1)) is Verdict.NEW
    assert told(bare, said("22", 2)) is Verdict.NEW
    for number in (23, 24):
        bare.connected(session_present=False)
        assert told(bare, said(str(number), 1)) is Verdict.NEW
    assert told(bare, said("21", 2, retain=True)) is Verdict.UNDECIDABLE
