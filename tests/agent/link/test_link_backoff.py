"""Connections of no use are waited after, longer and longer; one that stood counts as of use, and begins anew."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")

from sluicegate_agent.link.backoff import CUT_OFTEN, FIRST, LONGEST, LONGEST_WHEN_CUT, Backoff


def test_failures_double_to_a_minute() -> None:
    """Each delay is half to the whole of 0.25 s · 2ⁿ, at most a minute, and not always the same."""
    seen = []
    for seed in range(20):
        random.seed(seed)
        backoff = Backoff()
        delays = [backoff.failed() for _ in range(14)]
        for n, delay in enumerate(delays):
            assert min(FIRST * 2**n, LONGEST) / 2 <= delay <= min(FIRST * 2**n, LONGEST)
        seen.append(tuple(delays))
    assert len(set(seen)) == 20


def test_a_connection_that_stood_begins_anew() -> None:
    """Five seconds, one where messages came, and always twice what was waited for it; less is one more failure."""
    for messages, least in ((False, 5.0), (True, 1.0)):
        backoff = Backoff()
        assert backoff.ended(least, messages=messages) <= FIRST
        assert backoff.ended(least, messages=messages) <= FIRST
        backoff.ended(least * 0.99, messages=messages)
        assert backoff.failures == 2
        while backoff.delay < least:
            backoff.failed()
        waited, failures = backoff.delay, backoff.failures
        assert backoff.ended(waited * 1.9, messages=messages) > 0
        assert backoff.failures == failures + 1
        backoff.ended(backoff.delay * 2, messages=messages)
        assert backoff.failures == 1


def test_a_link_that_is_cut_while_it_works_is_not_left_alone_for_long() -> None:
    """Eight cuts a moment after messages came cost seconds, not minutes; then it is slowed down like any other."""
    backoff = Backoff()
    assert sum(backoff.ended(0.1, messages=True) for _ in range(7)) <= 7 * LONGEST_WHEN_CUT
    assert max(backoff.ended(0.1, messages=True) for _ in range(12)) > LONGEST / 2


def test_two_that_throw_each_other_out_come_to_rest() -> None:
    """Two clients of one name, each connection ending the other's: 20 minutes, and few connections in the last ten."""
    for messages in (False, True):
        random.seed(3)
        clients = Backoff(), Backoff()
        due, since, late, suspected = [0.0, 0.1], [None, None], 0, False
        now = 0.0
        while now < 1200:
            who = min((0, 1), key=lambda i: due[i])
            now, since[who], due[who] = due[who], due[who], float("inf")
            other = 1 - who
            if since[other] is not None:
                due[other] = now + clients[other].ended(now - since[other], messages=messages)
                since[other] = None
            late += now > 600
            suspected |= clients[0].is_cut_often or clients[1].is_cut_often
        assert late <= 80, late
        assert suspected


def test_cuts_are_told_from_failures() -> None:
    """Only connections whose subscriptions were granted and that ended early make another client suspected."""
    backoff = Backoff()
    for _ in range(20):
        backoff.failed()
    for _ in range(CUT_OFTEN - 1):
        backoff.ended(0.1, messages=False)
    assert not backoff.is_cut_often
    backoff.ended(0.1, messages=False)
    assert backoff.is_cut_often
    backoff.ended(1000.0, messages=False)
    assert not backoff.is_cut_often
