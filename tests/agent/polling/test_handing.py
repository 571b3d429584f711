"""What was read reaches the agent once whatever the agent does; what does not fit is counted, and shows as missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from desk import Desk

from sluicegate_agent.polling import handing
from sluicegate_agent.polling.handing import Handing

Answer = Callable[[list[dict[str, Any]]], tuple[int, bytes]]


class Listener:
    """An agent that answers as it is told, one answer a request; what it took, by number."""

    def __init__(self, *answers: int | type[Exception]) -> None:
        self._answers = list(answers)
        self.taken: list[dict[str, Any]] = []
        self.requests: list[int] = []

    def post(self, topic: str, body: bytes) -> tuple[int, bytes]:
        """The next answer; 200 when there are no more."""
        messages = [json.loads(line) for line in body.splitlines()]
        self.requests.append(len(messages))
        answer = self._answers.pop(0) if self._answers else 200
        if isinstance(answer, type):
            self.taken += messages  # it came, and the answer did not
            raise answer("gone")
        if answer == 200:
            self.taken += messages
        return answer, b'{"accepted": 1, "duplicates": 0, "refused": 0}'


def sent(listener: Listener, count: int, most: int = 1000) -> Handing:
    """A handing of `count` messages, run until nothing waits."""

    async def main() -> Handing:
        made = Handing(listener, "press", most, "boot")  # type: ignore[arg-type]
        for number in range(count):
            made.put(number, {"x": float(number)})
        task = asyncio.create_task(made.run())
        async with asyncio.timeout(20):
            while not made.is_empty:
                await asyncio.sleep(0.001)
        task.cancel()
        return made

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits."""
    monkeypatch.setattr(handing, "_FIRST_WAIT", 0.001)
    monkeypatch.setattr(handing, "_LONGEST_WAIT", 0.002)


def test_an_agent_that_is_away_gets_each_message_under_the_same_number() -> None:
    """Refused, failed and lost answers: every number comes at least once, in order, and never with other values."""
    listener = Listener(503, ConnectionRefusedError, 404, 500, TimeoutError)
    made = sent(listener, 1200, most=2000)
    numbers = [message["seq"] for message in listener.taken]
    assert sorted(set(numbers)) == list(range(1, 1201))
    assert {message["seq"]: message["values"]["x"] for message in listener.taken} == {
        number: float(number - 1) for number in range(1, 1201)
    }
    assert {message["boot"] for message in listener.taken} == {"boot"}
    assert (made.counters.read, made.counters.sent, made.counters.dropped) == (1200, 1200, 0)


def test_what_does_not_fit_is_counted_and_leaves_a_gap_in_the_numbers(tmp_path: Path) -> None:
    """The newest are kept, and the first: by it an agent that never heard of this start knows of the gap."""
    listener = Listener()
    made = sent(listener, 30, most=10)
    assert [message["seq"] for message in listener.taken] == [1, *range(22, 31)]
    assert (made.counters.read, made.counters.sent, made.counters.dropped) == (30, 10, 20)
    source = {"topic": "press", "sequence": "seq", "epoch": "boot", "streams": {"x": "values.x"}}
    desk = Desk(tmp_path, source | {"time": "time", "time_format": "ms"})
    desk.take(("press", json.dumps({"time": 0, "boot": "before", "seq": 1, "values": {"x": 1.0}}).encode()))
    desk.take(*[("press", json.dumps(message).encode()) for message in listener.taken])
    assert desk.pipeline.identities.missing("press") == 20
    desk.state.close()


def test_a_request_that_is_too_large_is_made_smaller() -> None:
    """By halves; one message that is too large alone is left out, counted."""
    listener = Listener(413, 413, 413)
    made = sent(listener, 8)
    assert listener.requests == [8, 4, 2, 1] + [1] * 7
    assert made.counters.sent == 8
    alone = Listener(413)
    assert sent(alone, 1).counters.refused == 1
