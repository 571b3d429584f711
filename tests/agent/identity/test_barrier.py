"""A ping promises: what its answer confirms was acknowledged before it, and never more than one is under way."""

from __future__ import annotations

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")

from sluicegate_agent.link.barrier import Barrier


def test_an_answer_confirms_what_was_asked_before_its_ping() -> None:
    """Two commits while a ping is out share the next one."""
    barrier = Barrier()
    assert barrier.ask(1, is_out=False)
    assert not barrier.ask(2, is_out=True)
    assert not barrier.ask(3, is_out=True)
    assert barrier.answered()
    assert barrier.passed == 1
    assert not barrier.answered()
    assert barrier.passed == 3


def test_the_answer_to_a_ping_that_keeps_the_connection_alive_confirms_nothing() -> None:
    """paho sent it before our acknowledgements: ours follows its answer."""
    barrier = Barrier()
    assert not barrier.ask(5, is_out=True)
    assert barrier.answered()
    assert barrier.passed == 0
    assert not barrier.answered()
    assert barrier.passed == 5
