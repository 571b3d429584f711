"""The paper's experiment at a tenth of its scale (A2MTA, III-C): limits kept, maxima and hops exact, few leaves."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

READINGS = 5 * 259_200
SPEC = importlib.util.spec_from_file_location("histograms_bench", Path(__file__).parents[2] / "bench" / "histograms.py")
assert SPEC is not None
assert SPEC.loader is not None
bench: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bench)
LIMITS = list(bench.TABLE_1)
HOPS = int(os.environ.get("SLUICEGATE_HOPS", "16"))


@pytest.fixture(scope="module", params=["calm", "regimes"])
def trace(request: pytest.FixtureRequest) -> Any:
    """A seeded trace like a server's memory."""
    return bench.TRACES[request.param](READINGS)


@pytest.mark.slow
@pytest.mark.parametrize("error", LIMITS)
def test_every_mean_keeps_the_users_limit(trace: Any, error: float) -> None:
    """No value beyond error · |exact mean|; after warm-up at most ten times Table I's footprint."""
    row = bench.sum_like(trace, error, 0.0)
    assert row["over the limit"] == 0
    assert row["footprint"] <= min(1.0, bench.TABLE_1[error] / 10)


@pytest.mark.slow
@pytest.mark.parametrize("atol", [0.2, 2.0])
def test_near_zero_the_absolute_floor_is_kept(atol: float) -> None:
    """A mean that changes sign: a relative limit far below the floor leaves the floor in force, and it is kept."""
    row = bench.sum_like(bench.signs(READINGS), 1e-4, atol)
    assert row["over the limit"] == 0
    assert row["footprint"] < 0.005


@pytest.mark.slow
def test_maxima_that_evict_up_to_the_current_one_are_exact(trace: Any) -> None:
    """Blocks of a third of the window: at least 99.9 % of the answers, from less than a third of the leaves."""
    row = bench.max_like(trace, 100_000)
    assert row["exact"] >= 0.999
    assert row["footprint"] < 1 / 3


@pytest.mark.slow
def test_hops_are_exact() -> None:
    """N(86,400, 10) readings leave at once: every answer is that of the plain readings; few singles after warm-up.

    SLUICEGATE_HOPS=70 runs the paper's seventy, which takes minutes.
    """
    row = bench.hop(bench.calm(259_200), None, HOPS)
    assert row["hops"] == HOPS
    assert row["exact"] == 1.0
    assert row["footprint"] < 0.00523
