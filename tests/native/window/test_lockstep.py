"""Every engine × aggregate × policy gives what a plain list gives, after each step of any order of steps.

What is driven comes from sg.ENGINES and the registry of aggregates, so a new one is driven without a word here. One in
a few of the combinations runs each time, always the same; `make whole` runs all, with longer streams.
"""

from __future__ import annotations

from array import array
from typing import Any

import lockstep
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_windows import Plain
from thorough import WHOLE

import sluicegate as sg
from sluicegate.catalogue import FACTS

pytestmark = pytest.mark.usefixtures("implementation_of_window")


@pytest.mark.parametrize("engine", sg.ENGINES)
def test_each_combination(engine: str) -> None:
    """Inserted one by one and in batches, stored and taken up again: answers, length and structure are right."""
    driven = [lockstep.drive(each, 80 if WHOLE else 14) for each in lockstep.combinations(engine, 1 if WHOLE else 9)]
    assert sum(driven) > (6 if FACTS[engine].deducts else 16)


Readings = st.lists(st.tuples(st.integers(-12, 12).map(lambda x: x / 2), st.integers(-9, 25)), min_size=1, max_size=25)
Steps = st.lists(st.tuples(st.sampled_from(["insert", "slide", "batch", "quiet", "store"]), Readings), max_size=12)
Combinations = st.builds(
    lockstep.Combination,
    st.sampled_from(sg.ENGINES),
    st.sampled_from(sorted(set(lockstep.sets_of_aggregates()) - {"geometric_mean"})),
    st.sampled_from(sorted(lockstep.CASES)),
)


@settings(max_examples=3000 if WHOLE else 100, deadline=None)
@given(Combinations, Steps)
def test_any_order_of_steps(combination: lockstep.Combination, steps: list[tuple[str, Any]]) -> None:
    """Whatever hypothesis thinks of: the same, after each step."""
    window = lockstep.build(combination)
    if window is None:
        return
    plain, time = Plain(lockstep.CASES[combination.policy].leaving()), 0
    for what, ticks in steps:
        batch = []
        for x, tick in ticks[:1] if what in ("insert", "slide") else ticks:
            time += tick
            batch.append((x, time))
        if what == "store":
            window = lockstep.stored(combination, window)
            continue
        if what in ("insert", "slide"):
            getattr(window, what)(*batch[0])
        else:
            values, times = array("d", [x for x, _ in batch]), array("q", [t for _, t in batch])
            window.insert_many(values, times, results=what == "batch")
        for x, at in batch:
            plain.insert({None: x}, at)
        window.verify()
        lockstep.compare(combination, window.query(), plain.column(None))
