"""The compiled loops of the merge promise what their NumPy twins promise: counts to the bit, sums within rounding."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from cloud_streams import frame_rows, older, random_stream
from test_cloud_doubt import marked

from sluicegate.fleet import cuts, folds, means, spreads, sums
from sluicegate_cloud import compiled
from sluicegate_cloud.bounds import cut
from sluicegate_cloud.estimates import spread
from sluicegate_cloud.estimates.means import least_mean
from sluicegate_cloud.sliding import Slide


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    """Buckets of many streams: in and out of order, of both formats, in doubt."""
    rng, found = random.Random(3), []
    for seed in range(60):
        told, _ = marked(random_stream(seed, incarnations=2, readings=200), rng, rng.choice([0.0, 0.3]))
        found += [older(row) | {"doubt": row["doubt"]} if rng.random() < 0.2 else row for row in told if row["n"] > 1]
    rows = frame_rows([row | {"incarnation": str(at)} for at, row in enumerate(found)], 1)
    return {name: column for name, column in rows.items() if name != "incarnation"}


@pytest.fixture(scope="module")
def pairs(rows: dict[str, Any]) -> tuple[Any, Any, int]:
    """(row, start, length): windows of one length that cut the buckets at their start, at their end or at both."""
    rng = np.random.default_rng(5)
    row = np.repeat(np.arange(rows["n"].size), 6)
    length = 400
    low, high = rows["t_first"][row] - length + 1, rows["t_last"][row]
    start = rng.integers(low, high + 1)
    inside = (start <= rows["t_first"][row]) & (start + length > rows["t_last"][row])
    return row[~inside], start[~inside], length


def test_cuts_are_those_of_the_twin(rows: dict[str, Any], pairs: tuple[Any, Any, int]) -> None:
    """Counts, extremes, sums around any number and squares of every pair."""
    row, start, length = pairs
    fast = compiled.cut_pairs(rows, compiled.records_of(rows), row, start, length)
    slow = cut({name: column[row] for name, column in rows.items()}, start, start + length)
    for name in ("count_low", "count_high", "min_low", "min_high", "max_low", "max_high"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name
    reach = np.maximum(np.abs(rows["low"]), np.abs(rows["high"]))[row] + np.abs(rows["center"][row])
    size = rows["n"][row] * reach
    for name in ("count", "total"):
        assert np.all(np.abs(getattr(fast, name) - getattr(slow, name)) <= 1e-9 * (size + 1)), name
    window = np.arange(row.size) // 2
    around = rows["center"][row[::2]] + np.linspace(-3, 3, (row.size + 1) // 2)
    found, expected = fast.sums_and_raw(around, window), slow.sums_and_raw(around, window)
    for one, other in zip(found, expected, strict=True):
        assert np.all(np.abs(one - other) <= 1e-9 * (size + 1))
    own = np.minimum(rows["center"][row] + 0.25, 1e9)  # far from 0 and near the values: nothing of these is lost
    near_own = np.abs(rows["high"] - rows["center"])[row] + np.abs(rows["low"] - rows["center"])[row] + 1
    one, other = fast.sums_and_raw(own, np.arange(row.size)), slow.sums_and_raw(own, np.arange(row.size))
    for found_end, expected_end in zip(one[:2], other[:2], strict=True):
        assert np.all(np.abs(found_end - expected_end) <= 1e-13 * rows["n"][row] ** 2 * near_own)
    near = np.full(around.size, 2.0)
    found, expected = fast.squares_off(around, near, window), spread._offs(slow, around[window], near[window])
    for one, other in zip(found, expected, strict=True):
        held = slow.count_high > 0
        far = reach + np.abs(around[window]) + 4
        assert np.all(np.abs(one - other)[held] <= (1e-9 * rows["n"][row] * far**2)[held])


@pytest.mark.parametrize("width", [1, 2, 7, 40])
def test_folds_are_those_of_the_twin(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments within rounding, how often an extreme occurs to the bit, with rows that share or span positions."""
    rng = np.random.default_rng(width)
    first = rng.integers(0, 190, 300)
    last = np.minimum(first + rng.integers(0, 3, 300), 199)
    slide = Slide(first, last, width, 200 - width)
    n, total, squares = rng.integers(1, 9, 300).astype(float), rng.normal(0, 9, 300), rng.random(300)
    values, counts = rng.integers(-3, 3, 300).astype(float), rng.integers(0, 4, (2, 300)).astype(float)
    found = slide.fold_squares(n, total, squares), slide.fold_occurrences(values, (counts[0], counts[1]))
    monkeypatch.setattr(compiled, "COMPILED", False)
    plain = slide.fold_squares(n, total, squares), slide.fold_occurrences(values, (counts[0], counts[1]))
    for one, other in zip(found[0], plain[0], strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-9)
    for one, other in zip(found[1], plain[1], strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("width", [1, 2, 7, 40])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_sums_and_extremes_are_those_of_the_twin(width: int, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, also where a window is asked for in the middle of a block, and NaN where a row of it is."""
    rng = np.random.default_rng(width)
    first = np.sort(rng.integers(0, 190, 150))
    slide = Slide(first, np.minimum(first + rng.integers(0, 3, 150), 199), width, 99, np.arange(3, 201, 2))
    values = rng.normal(0, 1e6, 150).astype(kind)
    if kind is np.float64:
        values[40] = np.nan
    asked = [(np.add, 0), (np.minimum, 9e6), (np.maximum, -9e6)]
    found = [slide.fold(values, operation, neutral) for operation, neutral in asked]
    monkeypatch.setattr(compiled, "COMPILED", False)
    for (operation, neutral), one in zip(asked, found, strict=True):
        other = slide.fold(values, operation, neutral)
        assert one.dtype == other.dtype == kind
        assert np.array_equal(one, other, equal_nan=kind is np.float64), operation


def test_the_least_mean_is_that_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit: with and without readings inside, where any count is possible and where one is."""
    rng = np.random.default_rng(4)
    size = 4_000
    low = rng.integers(0, 3, size)
    parts = {"n": rng.integers(0, 3, size), "count_low": low, "count_high": low + rng.integers(0, 5, size)}
    least = np.where(rng.random(size) < 0.2, rng.choice([0.0, np.inf, -np.inf, np.nan], size), rng.normal(0, 3, size))
    part = np.where(rng.random(size) < 0.1, rng.choice([0.0, np.inf, np.nan], size), rng.normal(0, 9, size))
    total = rng.normal(0, 9, size)
    with np.errstate(all="ignore"):
        found = least_mean(parts, total, part, least)
        monkeypatch.setattr(compiled, "COMPILED", False)
        plain = least_mean(parts, total, part, least)
    assert np.array_equal(found, plain, equal_nan=True)
    assert np.isfinite(found).mean() > 0.7


def test_the_greatest_variance_is_that_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without readings inside, with and without cut buckets."""
    rng = np.random.default_rng(2)
    size = 4_000
    low = rng.integers(0, 4, size)
    parts = {"n": rng.integers(0, 9, size), "count_low": low, "count_high": low + rng.integers(0, 30, size)}
    parts |= {"ref": rng.normal(0, 3, size), "part_low": rng.normal(-20, 9, size), "part_high": rng.normal(20, 9, size)}
    parts |= {"part_min": rng.normal(-9, 2, size), "part_max": rng.normal(9, 2, size)}
    mean, squares = rng.normal(0, 2, size), rng.random(size) * 40
    with np.errstate(all="ignore"):
        found = spread._high(parts, parts["n"].astype(float), mean, squares)
        monkeypatch.setattr(compiled, "COMPILED", False)
        plain = spread._high(parts, parts["n"].astype(float), mean, squares)
    assert np.allclose(found, plain, rtol=1e-9, equal_nan=True)
    assert np.isfinite(found).mean() > 0.8


def test_arrays_that_do_not_fit_are_refused() -> None:
    """Nothing is read or written beyond an array, whatever the caller hands over."""
    records, whole = np.zeros((2, len(cuts.FIELDS)), np.int64), np.zeros(3, np.int64)
    told, lines = np.zeros((len(cuts.TOLD), 3)), np.zeros((3, cuts.LINES))
    with pytest.raises(ValueError, match="names what is not there"):
        cuts.cut(records, np.array([0, 1, 2]), whole, 5, whole.copy(), whole.copy(), told, lines)
    with pytest.raises(ValueError, match="not of one length"):
        cuts.cut(records, whole[:2], whole, 5, whole.copy(), whole.copy(), told, lines)
    with pytest.raises(ValueError, match="names what is not there"):
        sums.sums(lines, whole, whole, whole + 9, np.zeros(2), *(np.zeros(3) for _ in range(4)))
    with pytest.raises(ValueError, match="no room"):
        folds.squares(whole + 8, whole + 8, np.zeros((3, 3)), whole, 4, np.zeros((2, 8, 3)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="other shapes"):
        folds.occurrences(whole, whole, np.zeros((3, 3)), whole, 4, np.zeros((2, 8, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="no room"):
        folds.numbers(whole + 8, whole + 8, np.zeros(3), whole, 4, 0.0, 0, np.zeros((2, 8)), np.zeros(3))
    with pytest.raises(ValueError, match="not of one length"):
        means.least(whole, whole, whole, *(np.zeros(2) for _ in range(3)), np.zeros(3))
    with pytest.raises(ValueError, match="not of one length"):
        spreads.greatest(whole, *(np.zeros(2) for _ in range(6)), whole, whole, 12, np.zeros(3))
