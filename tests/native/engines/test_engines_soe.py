"""Subtract-on-Evict: a total that neither drifts nor stays poisoned."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import struct
from array import array
from typing import Any

import pytest

import sluicegate as sg


def soe(aggregate: Any, n: int) -> sg.Window:
    """A count window of one aggregate."""
    return sg.Window({"x": aggregate}, policy=sg.policies.count(n), engine="soe")


def test_sums_do_not_drift() -> None:
    """After thousands of turns over values of all magnitudes the sum is still the exactly rounded one."""
    rng = random.Random(5)
    values = [rng.gauss(0, 1) * 10.0 ** rng.randrange(-8, 9) for _ in range(4000)]
    found = soe(sg.sum(), 10).insert_many(array("d", values))["x"]
    for i in range(10, len(values)):
        assert found[i] == pytest.approx(math.fsum(values[i - 9 : i + 1]), rel=1e-15, abs=0)


@pytest.mark.parametrize("large", [1e280, -1e200, 2.0**960, 1e16])
def test_a_large_value_leaves_no_trace(large: float) -> None:
    """As soon as it has left, the sum is what it would be had it never come."""
    values = [0.1 * i for i in range(40)]
    values[7] = large
    found = soe(sg.sum(), 8).insert_many(array("d", values))["x"]
    for i in range(15, 40):
        assert found[i] == pytest.approx(math.fsum(values[i - 7 : i + 1]), rel=1e-15)


def test_several_large_values_leave_no_trace() -> None:
    """Also what two floats cannot hold together."""
    values = [0.1 * i for i in range(80)]
    values[7], values[9], values[11] = 1e280, 1e150, 1e80
    found = soe(sg.sum(), 8).insert_many(array("d", values))["x"]
    for i in range(19, 80):
        assert found[i] == pytest.approx(math.fsum(values[i - 7 : i + 1]), rel=1e-15)


@pytest.mark.parametrize("kind", ["std", "variance"])
@pytest.mark.parametrize("large", [1e8, -1e12, 1e100])
def test_a_large_value_leaves_no_trace_in_deviations(kind: str, large: float) -> None:
    """The same for squared deviations, whose digits it takes: they are taken anew from the leaves when it has left."""
    rng = random.Random(2)
    values = [20 + rng.random() for _ in range(200)]
    values[20] = values[100] = large
    aggregate = getattr(sg, kind)()
    oracle = sg.Window({"x": aggregate}, policy=sg.policies.count(16), engine="recalc")
    expected, found = (w.insert_many(array("d", values))["x"] for w in (oracle, soe(aggregate, 16)))
    for i in range(200):
        if not any(i - 15 <= at <= i for at in (20, 100)):
            assert found[i] == pytest.approx(expected[i], rel=1e-9)


def test_deviations_do_not_drift() -> None:
    """Hundreds of turns around a far center leave the standard deviation as close as the oracle's."""
    rng = random.Random(9)
    values = array("d", [1e6 + rng.random() for _ in range(6000)])
    oracle = sg.Window({"x": sg.std()}, policy=sg.policies.count(12), engine="recalc")
    expected, found = oracle.insert_many(values)["x"], soe(sg.std(), 12).insert_many(values)["x"]
    assert max(abs(a / b - 1) for a, b in zip(found[1:], expected[1:], strict=True)) < 1e-9


def test_constant_readings_deviate_by_nothing() -> None:
    """A plateau after noise has a deviation of (nearly) zero, not the noise's rounding, and the mean is the value."""
    rng = random.Random(3)
    values = array("d", [rng.gauss(0, 100) for _ in range(50)] + [7.25] * 100)
    window = sg.Window({"std": sg.std(), "mean": sg.mean()}, policy=sg.policies.count(20), engine="soe")
    found = window.insert_many(values)
    assert max(found["std"][90:]) < 1e-9
    assert list(found["mean"][90:]) == [7.25] * 60


def test_geometric_means_are_the_oracles() -> None:
    """Logarithms are sums too: no drift there either."""
    rng = random.Random(4)
    values = array("d", [math.exp(rng.gauss(0, 30)) for _ in range(2000)])
    oracle = sg.Window({"x": sg.geometric_mean()}, policy=sg.policies.count(30), engine="recalc")
    expected, found = oracle.insert_many(values)["x"], soe(sg.geometric_mean(), 30).insert_many(values)["x"]
    assert max(abs(a / b - 1) for a, b in zip(found, expected, strict=True)) < 1e-12


def test_overflown_deviations_are_inf_and_then_right_again() -> None:
    """A squared deviation beyond float64 is inf while it is inside, and no longer."""
    values = array("d", [float(i % 7) for i in range(120)])
    values[20] = 1e200
    oracle = sg.Window({"x": sg.variance()}, policy=sg.policies.count(16), engine="recalc")
    expected, found = (w.insert_many(values)["x"] for w in (oracle, soe(sg.variance(), 16)))
    for i in range(120):
        assert found[i] == pytest.approx(expected[i], rel=1e-12) or (found[i] == math.inf and 20 <= i < 36)


def test_a_single_reading_deviates_by_nothing_and_sums_to_itself() -> None:
    """A window of one, in a batch: exactly 0 and exactly the reading, whatever came before."""
    rng = random.Random(6)
    values = array("d", [rng.gauss(0, 1) * 10.0 ** rng.randrange(-9, 9) for _ in range(300)])
    assert set(soe(sg.std(), 1).insert_many(values)["x"]) == {0.0}
    assert soe(sg.sum(), 1).insert_many(values)["x"] == values


@pytest.mark.parametrize("size", [3, 16, 100, 1000])
@pytest.mark.parametrize("kind", ["alike", "of all sizes", "single precision"])
def test_sums_in_batches_are_the_nearest_but_one(size: int, kind: str) -> None:
    """Within a unit in the last place of the exact sum, also where much cancels, however the batches are cut."""
    rng = random.Random(f"{size} {kind}")
    draw = {
        "alike": lambda: rng.uniform(-1, 1),
        "of all sizes": lambda: rng.gauss(0, 1) * 10.0 ** rng.randrange(-8, 9),
        "single precision": lambda: struct.unpack("f", struct.pack("f", rng.gauss(20, 3)))[0],
    }[kind]
    values, found = array("d", (draw() for _ in range(6000))), array("d")
    window = soe(sg.sum(), size)
    while len(found) < len(values):
        many = rng.choice((1, 5, 100, 700, 3000))
        found.extend(window.insert_many(values[len(found) : len(found) + many])["x"])
    for i in range(0, len(values), 7):
        exact = math.fsum(values[max(0, i + 1 - size) : i + 1])
        assert abs(found[i] - exact) <= math.ulp(exact), (i, found[i], exact)


@pytest.mark.parametrize("size", [3, 100, 700, 5000])
@pytest.mark.parametrize("reach", [2**20, 2**40])
def test_sums_of_integers_in_batches_are_exact(size: int, reach: int) -> None:
    """Below 2^53 no bit is lost: stretches of any length, across the queue's chunks, as magnitudes grow and cancel."""
    rng = random.Random(f"{size} {reach}")
    whole = [rng.randrange(-reach, reach) >> rng.choice((0, 0, 7, 15)) for _ in range(12000)]
    window, found = soe(sg.sum(), size), array("d")
    while len(found) < len(whole):
        many = rng.choice((4, 255, 256, 257, 258, 515, 3000))
        found.extend(window.insert_many(array("d", whole[len(found) : len(found) + many]))["x"])
    sums = [0, *itertools.accumulate(whole)]
    assert list(found) == [sums[i + 1] - sums[max(0, i + 1 - size)] for i in range(len(whole))]


@pytest.mark.parametrize("spread", [1.0, 1e-6])
def test_standard_deviations_in_long_batches(spread: float) -> None:
    """Mean first and squares after, or one exchanged for another: as the deviations say, far from zero too."""
    rng = random.Random(spread)
    values = array("d", (1000.0 + spread * rng.gauss(0, 1) for _ in range(9000)))
    found = soe(sg.std(), 250).insert_many(values)["x"]
    for i in range(300, len(values), 333):
        assert found[i] == pytest.approx(statistics.pstdev(values[i - 249 : i + 1]), rel=1e-7)


@pytest.mark.parametrize("policy", [sg.policies.count(1), sg.policies.time(1)], ids=["count", "time"])
@pytest.mark.parametrize("name", ["sum", "mean", "geometric_mean", "std", "variance"])
def test_a_batch_through_a_window_of_one(name: str, policy: Any) -> None:
    """Each answer is the reading's own, to the bit as by single readings; what follows starts from the newest."""
    rng = random.Random(name)
    sign = 1.0 if name == "geometric_mean" else -1.0
    batch, single = (sg.Window({"x": getattr(sg, name)()}, policy=policy, engine="soe") for _ in range(2))
    for count in (1, 7, 1500, 3, 600):
        values = array(
            "d", (rng.choice([1.0, 0.1, 1e280, 1e-280, 3e15, sign * 1e200, sign * 2.5]) for _ in range(count))
        )
        if name in ("sum", "mean"):
            values[count // 2] = values[-1] = -0.0
        times = array("q", range(batch.accepted, batch.accepted + count))
        found = batch.insert_many(values, times)["x"]
        alone = array("d", (single.slide(x, t) for x, t in zip(values, times, strict=True)))
        assert found.tobytes() == alone.tobytes(), count
        assert batch.snapshot() == single.snapshot()
        batch.verify()
