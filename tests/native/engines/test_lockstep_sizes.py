"""Every engine at every window size from 0 to 99 and every eviction length holds exactly the readings it should.

The aggregate is a hash of the readings in their order, so one number tells whether any is lost, doubled or misplaced.
`make test` takes about half of the sizes, and few for the readable twins; `make whole` all.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from compiled_code import Keep, order, order_of
from thorough import WHOLE

import sluicegate as sg
from sluicegate.catalogue import FACTS

ALL = 10**9
FEW = (0, 1, 2, 3, 4, 7, 8, 9, 17, 33)


def sizes(implementation: str) -> Sequence[int]:
    """Window sizes to go through."""
    if WHOLE:
        return range(100)
    return (*range(40), 63, 64, 65, 99) if implementation == "compiled" else FEW


def batches(readings: list[tuple[float, int]]) -> tuple[array[float], array[int]]:
    """As insert_many takes them."""
    return array("d", [x for x, _ in readings]), array("q", [t for _, t in readings])


@pytest.mark.parametrize("monotone", [True, False], ids=["bulk", "one by one"])
@pytest.mark.parametrize("engine", [name for name in sg.ENGINES if not FACTS[name].deducts])
def test_every_size_and_eviction_length(engine: str, monotone: bool, implementation_of_window: str) -> None:
    """A window of each size lets each number of its oldest go at once, the newest too, fills again, and goes on."""
    keep, verified = Keep(ALL), 0
    for size in sizes(implementation_of_window):
        window = sg.Window(
            {"order": order(), "count": sg.count()}, policy=keep.policy(monotone=monotone), engine=engine
        )
        kept, at = list[tuple[float, int]](), 0
        for length in range(size + 2):
            keep.context.value = ALL
            coming = [(float(i * 7919 % 509 - 250), i) for i in range(at, at + size - len(kept))]
            if coming:
                window.insert_many(*batches(coming), results=False)
            kept, at = kept + coming, at + len(coming)
            keep.context.value = len(kept) + 1 - length
            kept = [*kept, (float(at % 11), at)][length:]
            window.insert(float(at % 11), at)
            at += 1
            assert window.query() == {"order": order_of(kept), "count": len(kept)}, (size, length)
            if size < 12 or length in (0, 1, size // 2, size, size + 1):
                window.verify()
                verified += 1
    assert verified > 50


@pytest.mark.parametrize("engine", sg.ENGINES)
def test_every_size_of_a_count_window(engine: str, implementation_of_window: str) -> None:
    """A count window of each size fills, slides through all of its states in batches of every length, and is right."""
    for size in sizes(implementation_of_window)[1:]:
        window = sg.Window({"order": order()}, policy=sg.policies.count(size), engine=engine)
        readings = [(float(i * 31 % 61), 3 * i) for i in range(2 * size + 70)]
        at = 0
        for length in (1, 2, size, 1, 3, size - 1, 64, 7):
            coming = readings[at : at + length]
            if not coming:
                continue
            results = window.insert_many(*batches(coming))["order"]
            at += len(coming)
            assert results[-1] == window.query()["order"] == order_of(readings[max(0, at - size) : at]), (size, at)
            assert results[0] == order_of(readings[max(0, at - len(coming) + 1 - size) : at - len(coming) + 1])
            window.verify()
