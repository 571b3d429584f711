"""The sketches' bytes are those of Apache DataSketches: its package reads them, merges them, and estimates the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

import sluicegate as sg
from sluicegate.monoids import hashing, hll

datasketches = pytest.importorskip("datasketches", reason="not installed: pip install 'sluicegate[dev]'")
pytestmark = pytest.mark.usefixtures("implementation_of_window")


def window(values: list[float], aggregate: sg.Monoid) -> Any:
    """The answer of a window over all values, inserted at once."""
    tested = sg.Window({"it": aggregate}, policy=sg.policies.count(10**6))
    tested.insert_many(values, results=False)
    return tested.query()["it"]


def test_a_value_is_hashed_as_theirs_is() -> None:
    """Sketches of single values have the same coupon, byte for byte; 0.0 and −0.0 too."""
    rng = random.Random(5)
    for x in [0.0, -0.0, 1.0, -1.5, 1e280, 5e-324, *(rng.gauss(0, 1e6) for _ in range(300))]:
        theirs = datasketches.hll_sketch(12, datasketches.HLL_8)
        theirs.update(x)
        assert theirs.serialize_compact()[8:12] == hashing.coupon(x).to_bytes(4, "little")


@pytest.mark.parametrize("lg_k", [8, 10, 12])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 24, 25, 96, 97, 384, 385, 900])
def test_distinct_count(lg_k: int, n: int) -> None:
    """Theirs reads ours at every stage (list, set, registers), keeps every register, and estimates nearly the same."""
    values = [random.Random(n).gauss(i, 1) for i in range(n)]
    ours = window(values, sg.distinct_count(lg_k=lg_k))
    read = datasketches.hll_sketch.deserialize(ours.sketch)
    union, theirs = datasketches.hll_union(lg_k), datasketches.hll_sketch(lg_k, datasketches.HLL_8)
    for x in values:
        theirs.update(x)
    assert (read.lg_config_k, read.tgt_type) == (lg_k, datasketches.HLL_8)
    assert read.get_estimate() == pytest.approx(ours.estimate, rel=0.02, abs=0.01)
    assert read.get_estimate() == pytest.approx(n, rel=4 * hll.standard_error(lg_k), abs=0.01)
    for each in (theirs, read):
        union.update(each)
    if n > hll.most_coupons(lg_k):
        registers = union.get_result(datasketches.HLL_8).serialize_compact()[40:]
        assert registers == ours.sketch[40:]
        assert read.get_estimate() == pytest.approx(union.get_estimate(), rel=1e-9)
    else:
        assert union.get_estimate() == pytest.approx(n, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("k", [8, 64, 200, 4096])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 63, 64, 65, 700])
def test_quantiles(k: int, n: int) -> None:
    """Theirs reads ours, and answers the same ranks and quantiles from it; it goes on merging."""
    rng = random.Random(n)
    values = [rng.gauss(0, 1) for _ in range(n)]
    ours = window(values, sg.quantiles(k=k))
    theirs = datasketches.kll_doubles_sketch.deserialize(ours.sketch)
    assert (theirs.n, theirs.k, theirs.is_empty()) == (n, k, n == 0)
    if n:
        assert (theirs.get_min_value(), theirs.get_max_value()) == (min(values), max(values))
        for i in range(1, 40):
            assert theirs.get_quantile(i / 40, True) == ours.quantile(i / 40)
            assert theirs.get_rank(values[i % n], True) == pytest.approx(ours.rank(values[i % n]), abs=1e-12)
    if ours.error:
        assert ours.error == pytest.approx(theirs.normalized_rank_error(False), rel=1e-3)
    merged = datasketches.kll_doubles_sketch(k)
    for value in (100.0, 200.0):
        merged.update(value)
    merged.merge(theirs)
    assert (merged.n, merged.get_max_value()) == (n + 2, 200.0)
