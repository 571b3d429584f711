"""e to the power x: within a unit in the last place, the same bits in the twin, one at a time, several at once."""

from __future__ import annotations

import math
import random
from array import array
from decimal import Decimal, localcontext

import pytest
from bench.engines.compiled import probe
from thorough import number

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.core import core as compiled
from sluicegate.reference import core as pure
from sluicegate.reference.exponential import exponential

GREATEST = math.log(2.0**960)


def error_in_ulps(x: float) -> float:
    """How far from the exact power, in units of the last place of the nearest number."""
    with localcontext() as context:
        context.prec, context.Emin = 60, -9999
        exact = Decimal(x).exp()
        return float(abs(Decimal(exponential(x)) - exact) / Decimal(math.ulp(float(exact))))


@pytest.mark.parametrize("reach", [1e-300, 1e-9, 0.4, 1.0, 30.0, 700.0])
def test_it_is_within_a_unit_in_the_last_place(reach: float) -> None:
    """Of the exact power, for exponents near 0 and as far as numbers go."""
    rng = random.Random(reach)
    assert max(error_in_ulps(rng.uniform(-reach, reach)) for _ in range(400)) < 1.0


def test_it_is_so_where_two_reductions_meet_and_below_the_least_normal_number() -> None:
    """At odd halves of ln 2, between which the power of two changes, and where fewer digits are left."""
    halves = [(k + 0.5) * math.log(2.0) for k in range(-1000, 1000, 7)]
    meeting = [y for x in halves for y in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))]
    assert max(map(error_in_ulps, meeting)) < 1.0
    assert max(error_in_ulps(-708.0 - 0.05 * i) for i in range(730)) < 1.0


def test_the_ends() -> None:
    """Beyond float64: infinite, 0, or no number; and exactly 1 of 0."""
    assert [exponential(x) for x in (0.0, -0.0, 710.0, 1e300, math.inf)] == [1.0, 1.0, math.inf, math.inf, math.inf]
    assert [exponential(x) for x in (-746.0, -1e300, -math.inf)] == [0.0, 0.0, 0.0]
    assert math.isnan(exponential(math.nan))
    assert exponential(math.log(5e-324)) == 5e-324


def readings(n: int) -> array[float]:
    """Of all magnitudes that a window takes, the least and the greatest among them."""
    rng = random.Random(n)
    values = array("d", (math.exp(rng.uniform(-744.0, GREATEST)) for _ in range(n)))
    values.extend([5e-324] * 5 + [2.0**960] * 5 + [1.0] * 5)
    return values


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("engine", ["recalc", "amta", "two_stacks_lite"])
def test_the_compiled_bits_are_the_twins(engine: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window's geometric means: alone and by fours, compiled and not, beside another answer too."""
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
    """One by one through `Core.slide_one`, which has a quicker way to the power between the ends of the exponents."""
    values = readings(number(1_000, 300))
    values.extend(
        math.exp(x + 0.001 * i) for x in (-708.1, -707.1, 0.0, math.log(2.0**959)) for i in range(number(200, 60))
    )
    taking, sliding = (sg.Window({"g": sg.geometric_mean()}, policy=sg.policies.count(1), engine=engine) for _ in "ab")
    found = probe().answers_one_by_one(taking._core, values, None)
    assert found.tobytes() == array("d", (sliding.slide(x) for x in values)).tobytes()
