"""A batch gives bit for bit what its readings give one by one, on every engine (soe: but for rounding)."""

from __future__ import annotations

import math
import random
from array import array
from typing import Any

import pytest

import sluicegate as sg
from sluicegate.errors import ConfigurationError

QUESTIONS = {
    "sum": sg.sum(), "max": sg.max(), "min": sg.min(), "std": sg.std(), "geometric_mean": sg.geometric_mean(),
    "several": {"sum": sg.sum(), "min": sg.min(), "last": sg.last(), "argmax": sg.argmax()},
    "order": {"first": sg.first(), "last": sg.last()},
}  # fmt: skip
REFUSED = {"soe": ("max", "min", "several", "order")}
"""What an engine does not take; everything else it has to."""
SIZES = (1, 2, 3, 5, 16, 17, 127, 128, 129, 1000)
BATCHES = (1, 3, 4, 5, 100, 512, 513, 1500)
ROUNDS = 12


def policies(rng: random.Random, size: int) -> tuple[Any, bool]:
    """By count or by time, now and then hopping."""
    hop = rng.choice((1, 1, 1, 2, 50))
    by_time = rng.random() < 0.5
    return (sg.policies.time(size, hop=hop) if by_time else sg.policies.count(size, hop=hop)), by_time


def steps(rng: random.Random, count: int, size: int, now: int) -> array[int]:
    """Times that stand, go on, and now and then leave most or all of the window behind."""
    out = array("q")
    for _ in range(count):
        now += rng.choice((0, 1, 1, 1, 2, rng.choice((0, 0, 0, size // 2, size, 3 * size))))
        out.append(now)
    return out


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("engine", sg.ENGINES)
def test_a_batch_is_its_readings_one_by_one(engine: str, question: str) -> None:
    """Results after each reading, the number held, and both windows' invariants, over several batches."""
    rng = random.Random(f"{engine} {question}")
    if question in REFUSED.get(engine, ()):
        with pytest.raises(ConfigurationError, match="cannot be deducted again; use"):
            sg.Window(QUESTIONS[question], policy=sg.policies.count(9), engine=engine)
        return
    for _ in range(ROUNDS):
        size = rng.choice(SIZES if engine != "recalc" else SIZES[:7])
        policy, by_time = policies(rng, size)
        whole, single = (sg.Window(QUESTIONS[question], policy=policy, engine=engine) for _ in range(2))
        now = 0
        for _ in range(rng.randrange(1, 5)):
            count = rng.choice(BATCHES)
            values = array(
                "d", (rng.choice((1.0, 2.0, rng.uniform(1, 9), 1e9 * rng.random() + 1)) for _ in range(count))
            )
            times = steps(rng, count, size, now) if by_time else None
            now = times[-1] if times else now
            results = whole.insert_many(values, times)
            for i in range(count):
                single.insert(values[i], times[i] if times else None)
                for name, expected in single.query().items():
                    assert same(engine, results[name][i], expected, name), (policy, i, name)
            assert len(whole) == len(single)
            whole.verify()
            alone = single.query()
            assert all(same(engine, found, alone[name]) for name, found in whole.query().items())


def same(engine: str, found: Any, expected: Any, name: str = "") -> bool:
    """To the bit; in a batch soe exchanges a reading for another at once, and amta adds few in another order."""
    rounds = engine == "soe" or (engine == "amta" and name in ("sum", "std"))
    return bool(found == expected) or (rounds and math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12))
