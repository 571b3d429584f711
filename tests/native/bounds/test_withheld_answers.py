"""SumLike(withhold=True): every value that is given out keeps the user's limit, on streams where others do not."""

from __future__ import annotations

import math
import random
from array import array
from pathlib import Path
from typing import Any

import pytest
from twins import checks as pure

import sluicegate as sg
from sluicegate.core import checks
from sluicegate.errors import ConfigurationError

READINGS, SIZE = 9_000, 1_200


def drifting(seed: int) -> list[float]:
    """Noise about a mean that goes through zero."""
    rng = random.Random(seed)
    return [round(rng.gauss(0, 30)) + 40.0 * math.sin(i / 700) for i in range(READINGS)]


def exact_means(values: list[float]) -> list[float]:
    """By prefix sums of what is newest."""
    sums = [0.0]
    for x in values:
        sums.append(sums[-1] + x)
    return [(sums[i + 1] - sums[max(0, i + 1 - SIZE)]) / min(i + 1, SIZE) for i in range(len(values))]


def window(**limits: Any) -> sg.Window:
    """A mean and a maximum, of which the limit is one of the mean alone."""
    aggregates = {"mean": sg.mean(), "max": sg.max()}
    return sg.Window(aggregates, policy=sg.policies.count(SIZE), histograms=[sg.SumLike(of="mean", **limits)])


@pytest.mark.parametrize("limits", [{"error": 0.2}, {"error": 0.5}, {"error": 0.3, "atol": 0.05}], ids=str)
def test_what_is_given_out_keeps_the_limit(limits: dict[str, float]) -> None:
    """Without it some values are beyond the limit; with it none, some are withheld, and most are given."""
    values = drifting(3)
    means = exact_means(values)

    def beyond(found: Any) -> int:
        pairs = zip(found, means, strict=True)
        return sum(abs(x - m) > limits["error"] * abs(m) + limits.get("atol", 0.0) + 1e-9 for x, m in pairs)

    plain, careful = window(**limits), window(**limits, withhold=True)
    assert beyond(plain.insert_many(values)["mean"]) > 0
    found = careful.insert_many(values)
    withheld = sum(map(math.isnan, found["mean"]))
    assert beyond(found["mean"]) == 0
    assert 0 < withheld < READINGS // 2
    assert not any(map(math.isnan, found["max"]))
    assert len(careful) == len(plain)


def test_one_reading_at_a_time_says_the_same(tmp_path: Path) -> None:
    """query, slide and a batch withhold the same; bounds keep their ends; a store remembers it."""
    values = drifting(5)[:4_000]
    batch, single, bounded = (window(error=0.3, withhold=True) for _ in range(3))
    found = batch.insert_many(values)["mean"]
    columns = bounded.insert_many(values, bounds=True)["mean"]
    withheld = 0
    for i, x in enumerate(values):
        answer = single.slide(x)["mean"]
        expected = None if math.isnan(found[i]) else found[i]
        assert answer == expected
        if i % 9 == 0:
            ends = single.query(bounds=True)["mean"]
            assert (ends.value, ends.low, ends.high) == (expected, columns.low[i], columns.high[i])
        withheld += answer is None
    assert withheld == sum(map(math.isnan, columns.value)) > 0
    store = sg.stores.SQLite(tmp_path / "w.sqlite")
    kept = sg.Window(sg.mean(), policy=sg.policies.count(500), histograms=[sg.SumLike(0.3, withhold=True)], store=store)
    kept.insert_many(values[:700])
    kept.close()
    opened = sg.Window.open(sg.stores.SQLite(tmp_path / "w.sqlite"))
    assert opened._withheld == [0]
    opened.close()


def test_an_absolute_limit_needs_no_withholding() -> None:
    """atol alone: every value keeps it, so that none is withheld."""
    values = drifting(7)
    found = window(atol=0.4, withhold=True).insert_many(values)["mean"]
    plain = window(atol=0.4).insert_many(values)["mean"]
    means = exact_means(values)
    assert all(abs(x - m) <= 0.4 + 1e-9 for x, m in zip(plain, means, strict=True))
    assert sum(map(math.isnan, found)) < READINGS // 5


def test_which_aggregates_it_is_about_and_what_is_refused() -> None:
    """Sums, means and counts under control; a policy under which nothing is certain is refused."""
    kinds = [("a", "mean", 0), ("b", "max", 0), ("n", "count", 0), ("s", "sum", 1)]
    assert sg.SumLike(0.1).controlled(kinds) == [0, 2, 3]
    assert sg.SumLike(0.1, of="s").controlled(kinds) == [3]
    assert sg.SumLike(0.1, of=["a", "b"]).controlled(kinds) == [0]
    assert sg.SumLike(0.1, of="count").controlled(kinds) == [2]
    with pytest.raises(ConfigurationError, match="withhold"):
        sg.SumLike(0.1, withhold=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="monotone"):
        sg.Window(sg.mean(), policy=lambda total, old: False, histograms=[sg.SumLike(0.1, withhold=True)])


@pytest.mark.parametrize("withhold", [checks.withhold, pure.withhold], ids=["compiled", "pure"])
def test_the_rule_itself(withhold: Any) -> None:
    """At an end, across zero, and where there is no value."""
    value = array("d", [1.0, 1.0, 0.05, 0.5, math.nan, 2.0])
    low, high = array("d", [0.95, 0.8, -0.1, -0.1, math.nan, 2.0]), array("d", [1.05, 1.1, 0.1, 1.0, math.nan, 2.0])
    withhold(value, low, high, 0.1, 0.0)
    assert [None if math.isnan(x) else x for x in value] == [1.0, None, None, None, None, 2.0]
    value = array("d", [0.05, 1.0])
    withhold(value, array("d", [-0.1, 0.8]), array("d", [0.1, 1.1]), 0.0, 0.2)
    assert list(value) == [0.05, 1.0]
