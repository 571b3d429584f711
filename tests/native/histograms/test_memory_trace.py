"""The papers' setting at a hundredth of its scale on a trace like theirs: limits, footprints, intervals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from thorough import number

pytest.importorskip("numpy", reason="the trace is made with numpy, of the extra cloud")
sys.path.append(str(Path(__file__).parents[3]))
from bench.histograms import tenth

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def given() -> Any:
    """622,080 readings into windows of 25,920."""
    return tenth.setting(100)


def test_the_users_limit_is_kept_by_every_value_and_the_intervals_hold(given: Any) -> None:
    """Sum and count under control: no value beyond the limit, none outside its interval, footprints as the paper's."""
    for row in tenth.sum_like(given, [1e-1, 1e-2, 1e-3, 1e-4]):
        assert row["limit kept"], row
        assert row["outside"] == 0, row
        assert row["after warm-up, %"] <= row["paper, %"], row


def test_so_many_buckets_are_never_exceeded_and_the_intervals_hold(given: Any) -> None:
    """Table II's footprints, within a tenth."""
    for row in tenth.constrained(given):
        assert row["outside"] == 0, row
        assert row["paper, %"] is None or row["after warm-up, %"] <= 1.1 * row["paper, %"], row


def test_maxima_hold_their_intervals_and_are_exact_where_blocks_see_a_cycle(given: Any) -> None:
    """Eviction up to the current maximum; the paper's best block (a 26th of the window), the automatic, a tiny one."""
    automatic, best, tiny = tenth.max_like(given, (None, 100_000, 10))
    assert automatic["outside"] == best["outside"] == tiny["outside"] == 0
    assert min(automatic["exact, %"], best["exact, %"]) >= 98.55  # the paper's best
    assert max(automatic["after warm-up, %"], best["after warm-up, %"]) < 50


def test_hops_are_met_exactly() -> None:
    """Seventy hops of N(8,640, 10), or half as long: every value returned is that of the plain readings."""
    (row,) = tenth.hop(tenth.setting(number(100, 200)))
    assert row["row"].startswith("hop, 70 hops")
    assert row["exact, %"] == 100.0
    assert row["after warm-up, %"] < 5
