"""The proof can fail: the truth is right by brute force, and every kind of wrong answer is caught."""

from __future__ import annotations

import ast
import random
import statistics
from math import fsum, isnan, sqrt
from pathlib import Path
from typing import Any

import pytest

import sluicegate_demo
from sluicegate_demo import proof
from sluicegate_demo.proof import Answer, Tally
from sluicegate_demo.publish import schedule
from sluicegate_demo.readings import Feed
from sluicegate_demo.truth import AGGREGATES, Sliding, Streams, Truth

HOUR = 3_600_000_000


def feed(device: str, times: list[int], values: list[float]) -> Feed:
    """One device with the stream `x`."""
    return Feed(device, ("x",), [(time, (value,)) for time, value in zip(times, values, strict=True)])


def random_streams(seed: int) -> Streams:
    """Two devices with repeated times, times that go back, and values of both signs."""
    rng = random.Random(seed)
    feeds = []
    for device in "ab":
        size = rng.randrange(1, 40)
        times = [rng.randrange(0, 30) * HOUR // 2 for _ in range(size)]
        feeds.append(feed(device, times, [rng.gauss(0, 9) for _ in times]))
    return Streams(feeds)


@pytest.mark.parametrize("name", ["truth", "readings"])
def test_the_truth_shares_no_code_with_the_product(name: str) -> None:
    """The independent path imports nothing of sluicegate, the agent or the cloud."""
    source = Path(sluicegate_demo.__file__).with_name(f"{name}.py").read_text()
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in found}
    assert not [m for m in modules if m and m.startswith("sluicegate") and not m.startswith("sluicegate_demo")]


@pytest.mark.parametrize("seed", range(20))
def test_windows_are_what_a_plain_loop_says(seed: int) -> None:
    """Bisection over sorted lists gives what filtering all readings gives, and no occupied window is forgotten."""
    streams = random_streams(seed)
    everything = [(d, t, x) for (d, _), (ts, xs) in streams.published.items() for t, x in zip(ts, xs, strict=True)]
    occupied = streams.occupied(3 * HOUR, HOUR)
    for device in ("a", "b", None):
        for start in range(-5 * HOUR, 20 * HOUR, HOUR):
            inside = [x for d, t, x in everything if device in (None, d) and start <= t < start + 3 * HOUR]
            truth = streams.between((device, "x"), start, start + 3 * HOUR)
            assert truth.count == len(inside)
            assert (start in occupied[device, "x"]) == bool(inside)
            if inside:
                assert (truth.sum, truth.min, truth.max) == (fsum(inside), min(inside), max(inside))
                assert truth.variance == pytest.approx(statistics.pvariance(inside), rel=1e-12, abs=1e-300)
                assert (truth.std, truth.range) == (sqrt(truth.variance), max(inside) - min(inside))
                assert isnan(truth.geometric_mean) == (min(inside) <= 0)


def test_the_further_truths_are_what_statistics_says() -> None:
    """Repeated extremes are counted; a geometric mean is there where all readings are above 0."""
    truth = Truth.of([1.0, 4.0, 1.0, 16.0])
    assert (truth.min_count, truth.max_count, truth.range) == (2, 1, 15.0)
    assert truth.variance == statistics.pvariance([1, 4, 1, 16])
    assert truth.geometric_mean == pytest.approx(statistics.geometric_mean([1, 4, 1, 16]), rel=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_a_devices_window_is_what_a_plain_loop_says(seed: int) -> None:
    """By event time, in whatever order readings came, asked in any order of ordinals, at once or after a silence."""
    times, values = random_streams(seed).published["a", "x"]
    window = Sliding(times, values, 4 * HOUR)
    for place, ordinal in enumerate([*range(len(times)), 0, len(times) // 2]):
        newest = max(times[: ordinal + 1])
        now = newest + place % 3 * HOUR
        inside = [values[k] for k in range(ordinal + 1) if now - 4 * HOUR < times[k]]
        found = window.after(ordinal, now)
        assert (found[0], sorted(found[1])) == (newest, sorted(inside))


def test_a_tenth_is_held_up() -> None:
    """Rows keep their numbers and all come; some by more than the longest window's seven days; the seed decides."""
    whole = feed("a", [hour * HOUR for hour in range(5_000)], [float(hour) for hour in range(5_000)])
    late = whole.held_up()
    assert sorted(late.rows) == whole.rows
    assert [time // HOUR for time, _ in late.rows] == late.numbers != whole.numbers
    newest, lags = 0, []
    for number in late.numbers:
        lags.append(max(newest - number, 0))
        newest = max(newest, number)
    assert 0.08 < sum(lag > 0 for lag in lags) / len(lags) < 0.12
    assert sum(lag > 7 * 24 for lag in lags) > 5
    assert whole.held_up() == late
    assert feed("a", [0], [1.0]).held_up().rows == [(0, (1.0,))]


def tally_of(answer: Answer, aggregate: str = "mean") -> Tally:
    """The tally of one window that holds 1, 2 and 6."""
    tally = Tally()
    tally.window("w", Truth.of([1.0, 2.0, 6.0]), {aggregate: answer}, 6.0)
    return tally


@pytest.mark.parametrize(
    ("answer", "outside"),
    [
        (Answer(3.0, 3.0, 3.0, True), 0),
        (Answer(2.5, 2.0, 3.0, False), 0),
        (Answer(2.5, 2.0, 2.9, False), 1),
        (Answer(3.5, 3.1, 4.0, False), 1),
        (Answer(2.9, 2.0, 4.0, True), 1),
        (Answer(None, None, None, False), 1),
    ],
)
def test_a_wrong_interval_is_caught(answer: Answer, outside: int) -> None:
    """An interval that misses the truth, an "exact" that is not, and no answer at all, each count as outside."""
    assert tally_of(answer).outside == outside


def test_counts_and_extremes_are_held_to_the_bit() -> None:
    """An exact maximum may not be off by the smallest step; an exact sum may, by rounding."""
    step = 2.0**-50
    assert tally_of(Answer(6.0 + 4 * step, 5.0, 7.0, True), "max").outside == 1
    assert tally_of(Answer(9.0 + 8 * step, 8.0, 10.0, True), "sum").outside == 0
    assert tally_of(Answer(9.0 + 1e-6, 8.0, 10.0, True), "sum").outside == 1


@pytest.mark.parametrize(
    ("aggregate", "right", "wrong"),
    [
        ("variance", Answer(14 / 3, 4.6, 4.7, True), Answer(14 / 3, 4.7, 4.8, False)),
        ("std", Answer(sqrt(14 / 3), 2.1, 2.2, True), Answer(2.15, 2.1, 2.2, True)),
        ("range", Answer(5.0, 5.0, 5.0, True), Answer(5.0, 5.1, 6.0, False)),
        ("geometric_mean", Answer(12 ** (1 / 3), 2.2, 2.3, True), Answer(2.25, 2.2, 2.28, False)),
        ("min_count", Answer(1, 1, 1, True), Answer(2, 1, 2, True)),
        ("max_count", Answer(2, 1, 2, False), Answer(2, 2, 2, True)),
    ],
)
def test_the_further_aggregates_are_held_to_the_truth(aggregate: str, right: Answer, wrong: Answer) -> None:
    """Of each a right answer passes; one beside the truth, or called exact and not equal, does not."""
    assert tally_of(right, aggregate).outside == 0
    assert tally_of(wrong, aggregate).outside == 1


def test_a_geometric_mean_that_does_not_exist_must_not_be_told() -> None:
    """With a reading of 0 there is none; where some reading of the stream is 0, a window may go without."""
    for answer, values, positive, outside in (
        (Answer(None, None, None, False), [0.0, 2.0], False, 0),
        (Answer(1.0, 0.5, 2.0, False), [0.0, 2.0], False, 1),
        (Answer(None, None, None, False), [1.0, 2.0], False, 0),
        (Answer(None, None, None, False), [1.0, 2.0], True, 1),
    ):
        tally = Tally()
        tally.window("w", Truth.of(values), {"geometric_mean": answer}, 2.0, positive=positive)
        assert tally.outside == outside


def row(start: int, truth: Truth, **changed: Any) -> dict[str, Any]:
    """A cloud window that answers rightly, but for what is changed."""
    found: dict[str, Any] = {"device": "a", "stream": "x", "window_start": start, "window_end": start + 2 * HOUR}
    for name in AGGREGATES:
        value = getattr(truth, name)
        found |= {name: value, f"{name}_low": value, f"{name}_high": value, f"{name}_exact": True}
    return found | changed


def test_missing_doubled_and_wrong_cloud_windows_are_caught() -> None:
    """Every window that holds a reading is there once and right, or it is counted against the run."""
    streams = Streams([feed("a", [0, HOUR, 3 * HOUR], [1.0, 5.0, 2.0])])
    starts = sorted(streams.occupied(2 * HOUR, HOUR)["a", "x"])
    right = [row(start, streams.between(("a", "x"), start, start + 2 * HOUR)) for start in starts]
    fleet = [{**one, "device": None} for one in right]
    clean = proof.cloud(right + fleet, streams, 2 * HOUR, HOUR)
    assert (clean.checked, clean.outside, clean.missing) == (2 * len(starts), 0, 0)
    assert clean.exact == clean.checked
    assert proof.cloud(right[1:] + fleet, streams, 2 * HOUR, HOUR).missing == 1
    assert proof.cloud(right + right[:1] + fleet, streams, 2 * HOUR, HOUR).outside == 1
    wrong = [{**right[0], "count": 7, "count_low": 7, "count_high": 7}, *right[1:], *fleet]
    assert proof.cloud(wrong, streams, 2 * HOUR, HOUR).outside == 1


def test_a_span_is_held_to_each_of_its_windows() -> None:
    """One row for many windows: right where its interval holds what each of them has, and they are not missing."""
    streams = Streams([feed("a", [0, 4 * HOUR, 9 * HOUR], [1.0, 5.0, 2.0])])
    key = ("a", "x")
    starts = sorted(streams.occupied(2 * HOUR, HOUR)[key])
    right = [row(start, streams.between(key, start, start + 2 * HOUR)) for start in starts]
    fleet = [{**one, "device": None} for one in right]
    inner = [one for one in right if not 2 * HOUR <= one["window_start"] <= 6 * HOUR]
    span = {**row(2 * HOUR, streams.between(key, 3 * HOUR, 5 * HOUR)), "window_end": 8 * HOUR}
    for name in AGGREGATES:
        span |= {f"{name}_low": 0.0, f"{name}_exact": False}
    told = proof.cloud([*inner, span, *fleet], streams, 2 * HOUR, HOUR)
    assert (told.outside, told.missing) == (0, 0)
    assert proof.cloud([*inner, {**span, "count_high": 0.0, "count": 0}, *fleet], streams, 2 * HOUR, HOUR).outside >= 1


def result(ordinal: int, value: float, **changed: Any) -> dict[str, Any]:
    """An agent's answer about the stream `x` of `a`."""
    base = {"device": "a", "stream": "x", "window": "w", "aggregate": "max", "ordinal": ordinal}
    return {**base, "time_us": ordinal * HOUR, "value": value, "low": value, "high": value, "exact": True, **changed}


def test_an_agents_wrong_answers_are_caught() -> None:
    """A maximum that has left the window, in silence too, and an ordinal that was never published."""
    streams = Streams([feed("a", [0, HOUR, 2 * HOUR], [9.0, 1.0, 2.0])])
    windows = {"w": 2 * HOUR}
    assert proof.agents([result(1, 9.0), result(2, 2.0)], streams, windows).outside == 0
    assert proof.agents([result(2, 9.0)], streams, windows).outside == 1
    assert proof.agents([result(3, 2.0)], streams, windows).outside == 1
    assert proof.agents([result(1, 1.0, time_us=2 * HOUR)], streams, windows).outside == 0
    assert proof.agents([result(1, 9.0, time_us=2 * HOUR)], streams, windows).outside == 1
    assert proof.agents([result(1, 9.0, time_us=0)], streams, windows).outside == 1


def test_repeats_come_after_their_originals() -> None:
    """A tenth is sent again, each after its original; originals keep their order; the seed decides which."""
    order = schedule(5_000, 0.1)
    assert len(order) == 5_500
    seen: set[int] = set()
    originals = []
    for number in order:
        if number not in seen:
            originals.append(number)
            seen.add(number)
    assert originals == list(range(5_000))
    assert schedule(5_000, 0.1) == order
    assert schedule(3, 0.0) == [0, 1, 2]
