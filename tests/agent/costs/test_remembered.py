"""What is known of messages takes no more memory than is planned for it."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.config import build
from sluicegate_agent.costs.remembered import identities_of
from sluicegate_agent.identity.posted import AGAIN_MOST, KEYS_LEAST, Posted, Unanswered
from sluicegate_agent.state import State


def test_posted_requests_hold_no_more_than_planned(tmp_path: Path) -> None:
    """As many keys as are kept, and as many messages as may be posted again, while they are written."""
    source = {"topic": "p", "input": "http", "streams": {"x": "x"}}
    raw = {"device": {"id": "d"}, "state": {"path": "state"}, "source": [source], "http": {"listen": "127.0.0.1:1"}}
    config = build(raw, tmp_path / "agent.toml")
    planned = next(line for line in identities_of(config) if line.part == "posted requests")
    keys, bodies = [os.urandom(8).hex() for _ in range(KEYS_LEAST)], [b"%d" % i for i in range(2 * AGAIN_MOST)]
    with State(config) as state:
        connection = state.store.connection
        tracemalloc.start()
        try:
            posted, again = Posted(connection, "posts", KEYS_LEAST), Unanswered(connection)
            for key in keys:
                posted.take("p", key, 0, 255)
            again.add([body.ljust(8) for body in bodies[:AGAIN_MOST]])
            again.take_now([body.ljust(8) for body in bodies[AGAIN_MOST:]])
            again.save(connection)
            posted.save(connection)
            held = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert planned.memory / 4 < held <= planned.memory
