"""Geometric means: the same bits compiled and in the twin, one at a time and in batches."""

from __future__ import annotations

import math
import random
from array import array

import pytest
from bench.engines.compiled import probe
from thorough import number
from twins import core as pure

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.core import core as compiled

GREATEST = math.log(2.0**960)


def readings(n: int) -> array[float]:
    """Of all magnitudes that a window takes, the least and the greatest among them."""
    rng = random.Random(n)
    values = array("d", (math.exp(rng.uniform(-744.0, GREATEST)) for _ in range(n)))
    values.extend([5e-324] * 5 + [2.0**960] * 5 + [1.0] * 5)
    return values


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("engine", ["recalc", "amta", "two_stacks_lite"])
def test_the_compiled_bits_are_the_twins(engine: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window's geometric means: alone and in batches, compiled and not, beside another answer too."""
    values, found = readings(1000), []
    for module in (compiled, pure):
        monkeypatch.setattr(sluicegate.window.configure, "Core", module.Core)
        for batch in (1, 3, 4, 21, 1015):
            for question in ({"g": sg.geometric_mean()}, {"g": sg.geometric_mean(), "last": sg.last()}):
                window, column = sg.Window(question, policy=sg.policies.count(length), engine=engine), array("d")
                for i in range(0, len(values), batch):
                    column.extend(window.insert_many(values[i : i + batch])["g"])
                found.append(column.tobytes())
        single = sg.Window({"g": sg.geometric_mean()}, policy=sg.policies.count(length), engine=engine)
        found.append(array("d", (single.slide(x) for x in values)).tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("engine", ["soe", "amta", "two_stacks_lite", "daba_lite"])
def test_a_caller_in_compiled_code_gets_the_same_bits(engine: str) -> None:
    """One by one through `Core.slide_one`."""
    pytest.importorskip("Cython", reason="the caller is compiled by the test")
    values = readings(number(1_000, 300))
    values.extend(
        math.exp(x + 0.001 * i) for x in (-708.1, -707.1, 0.0, math.log(2.0**959)) for i in range(number(200, 60))
    )
    taking, sliding = (sg.Window({"g": sg.geometric_mean()}, policy=sg.policies.count(1), engine=engine) for _ in "ab")
    found = probe().answers_one_by_one(taking._core, values, None)
    assert found.tobytes() == array("d", (sliding.slide(x) for x in values)).tobytes()
