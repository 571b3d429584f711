"""What is made coarser at once is what would be, step by step: the largest stream gives way, the oldest first."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from memory_stores import empty

from sluicegate_agent.backlog.squeeze import Squeeze
from sluicegate_agent.outbox import Outbox
from sluicegate_agent.streams import Stream

#: Bytes that have room for one row.
CHEAP = 700


def filled(seed: int) -> Outbox:
    """Streams of some rows, of all sizes, with single readings and without, and a budget that is too small for them."""
    rng, store = random.Random(seed), empty()
    outbox = Outbox(store, rng.choice([4, 30, 1000]), rng.choice([CHEAP, 9000, 20_000]))
    for number in range(1, rng.choice([2, 3, 6])):
        stream = Stream(number, f"s{number}", 1 << 30, 1 << 60)
        for _ in range(rng.randint(1, 60)):
            for _ in range(rng.choice([1, 1, 2, 5, 16, 80])):
                stream.add(rng.randrange(-800, 800) / 8, stream.accepted * 10, 0)
            stream.close()
        outbox.take(number, stream.closed)
    return outbox


def shape(outbox: Outbox) -> list[object]:
    """All that the index says."""
    lanes = [(s, [*lane.firsts], lane.classes, lane.singles, lane.held) for s, lane in sorted(outbox.lanes.items())]
    return [outbox.rows, outbox.bytes_held, outbox.merges, *lanes]


@pytest.mark.parametrize("seed", range(40))
def test_at_once_as_step_by_step(seed: int) -> None:
    """And as in two goes."""
    at_once, by_steps, in_two = (filled(seed) for _ in range(3))
    whole, one_by_one, halves = Squeeze(at_once), Squeeze(by_steps), Squeeze(in_two)
    taken, steps = whole.decide(1 << 62), 0
    while one_by_one.decide(1):
        steps += 1
    assert taken == steps
    assert halves.decide(taken // 2) + halves.decide(1 << 62) == taken
    assert shape(at_once) == shape(by_steps) == shape(in_two)
    assert whole.changed == one_by_one.changed
