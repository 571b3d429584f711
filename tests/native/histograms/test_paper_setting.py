"""The experiment of A2MTA (III-C) at a tenth of its scale, on other traces: limits kept, maxima exact, few leaves."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from thorough import number

pytest.importorskip("numpy", reason="the traces are made with numpy, of the extra cloud")
sys.path.append(str(Path(__file__).parents[3]))
from bench.histograms import tenth

pytestmark = pytest.mark.slow
WINDOWS = 5
KINDS = ["calm", "regimes"]
SCALE = number(10, 25)  # of the paper's windows so much


@pytest.fixture(scope="module", params=KINDS)
def given(request: pytest.FixtureRequest) -> Any:
    """A seeded trace like a server's memory."""
    return tenth.setting(SCALE, request.param, WINDOWS)


@pytest.mark.parametrize("error", tenth.SUM_LIKE)
def test_every_mean_keeps_the_users_limit(given: Any, error: float) -> None:
    """No value beyond error · |exact mean|; after warm-up at most ten times Table I's footprint."""
    (row,) = tenth.sum_like(given, [error])
    assert row["beyond the limit, %"] == row["outside"] == row["falsely sure"] == 0
    assert row["paper, %"] is None or row["after warm-up, %"] <= row["paper, %"]


@pytest.mark.parametrize("atol", [0.2, 2.0])
def test_near_zero_the_absolute_floor_is_kept(atol: float) -> None:
    """A mean that changes sign: a relative limit far below the floor leaves the floor in force, and it is kept."""
    (row,) = tenth.sum_like(tenth.setting(SCALE, "signs", WINDOWS), [1e-4], atol)
    assert row["beyond the limit, %"] == row["outside"] == row["falsely sure"] == 0
    assert row["after warm-up, %"] < 0.5


def test_near_zero_a_relative_limit_says_which_answers_keep_it() -> None:
    """Ten percent and hardly a floor: some values are beyond it, none of those that are said to be surely within it."""
    (row,) = tenth.sum_like(tenth.setting(SCALE, "signs", 2 * WINDOWS), [0.1], 1e-3)
    assert row["outside"] == row["falsely sure"] == 0
    assert row["beyond the limit, %"] > 0
    assert 50 < row["surely kept, %"] < 100


@pytest.mark.parametrize("kind", KINDS)
def test_maxima_that_evict_up_to_the_current_one_are_exact(kind: str) -> None:
    """Blocks of a third of the window: at least 99.9 % of the answers, from less than a third of the leaves."""
    (row,) = tenth.max_like(tenth.setting(10, kind, WINDOWS), (10**6,))
    assert row["exact, %"] >= 99.9
    assert row["after warm-up, %"] < 100 / 3
