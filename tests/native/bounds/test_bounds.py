"""The error algebra promises that a window's exact result lies inside its interval, and that the interval is not idle.

Values are integers times a power of two, so the exact sum of any window is an integer and comparing it is exact.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce

import error_algebra as bounds
import pytest
from cut_buckets import count_interval, cut_by_time, pool, prefix, run, suffix, whole
from error_algebra import NOTHING, Inside, Interval, Part
from shares import in_processes
from thorough import WINDOWS, number

from sluicegate.format.bucket import LATE, ORDERED, Bucket, merge


@dataclass
class Stream:
    """Readings as integers in units of 2^exponent, their times, and the buckets they were folded into."""

    units: list[int]
    times: list[int]
    exponent: int
    center: float
    buckets: list[Bucket]
    parts: dict[tuple[int, int | None, int | None], Part] = field(default_factory=dict)

    def part(self, i: int, begin: int | None, end: int | None) -> Part:
        """What bucket i adds to a window, kept: an edge beyond the bucket is as good as none."""
        bucket = self.buckets[i]
        if (begin is not None and bucket.t_last < begin) or (end is not None and bucket.t_first >= end):
            return NOTHING
        begin, end = (t if t is not None and bucket.t_first < t <= bucket.t_last else None for t in (begin, end))
        if (i, begin, end) not in self.parts:
            self.parts[i, begin, end] = cut_by_time(bucket, self.center, begin, end)
        return self.parts[i, begin, end]

    def value(self, i: int) -> float:
        """Reading i as the buckets see it."""
        return math.ldexp(self.units[i], self.exponent)


def tree(stream: Stream, first: int, n: int, rng: random.Random) -> Bucket:
    """Readings first … first + n − 1 merged in a random tree."""
    if n == 1:
        return Bucket.single(stream.value(first), stream.times[first], stream.center, first)
    cut = rng.randrange(1, n)
    return merge(tree(stream, first, cut, rng), tree(stream, first + cut, n - cut, rng))


def make(rng: random.Random, n: int, *, back: float = 0.0, width: int = 51, mean: int = 9) -> Stream:
    """A random stream: both signs or an offset, repeated times and values, a magnitude from 2^-40 to 2^40."""
    offset = rng.choice([0, 0, 1, -1]) * rng.randrange(2**width)
    spread = 2 ** rng.randrange(1, width)
    units = [offset + rng.randrange(-spread, spread + 1) for _ in range(n)]
    if rng.random() < 0.3:
        units = [rng.choice(units) for _ in units]
    time, times = 0, []
    for _ in range(n):
        time += rng.choice([0, 0, 1, 1, 2, 7]) if rng.random() >= back else -rng.randrange(1, 6)
        times.append(time)
    exponent = rng.choice([-40, -40, 0, 40])
    center = rng.choice([math.ldexp(units[0], exponent), 0.0, math.ldexp(rng.randrange(2**width), exponent)])
    stream = Stream(units, times, exponent, center, [])
    at = 0
    while at < n:
        size = min(n - at, 1 + int(rng.expovariate(1 / mean)))
        stream.buckets.append(tree(stream, at, size, rng))
        at += size
    return stream


def totals(parts: list[Part]) -> tuple[Inside, Part]:
    """What certainly is inside as totals, the rest pooled."""
    inside, rest = Inside(), NOTHING
    for part in parts:
        if part.n_in == part.count_low == part.count_high == part.size:
            low, high = min(inside.low, part.low), max(inside.high, part.high)
            inside = Inside(inside.n + part.size, inside.total + part.s_in, low, high)
        elif part.count_high:
            rest = pool(rest, part)
    return inside, rest


def results(inside: Inside, part: Part, center: float) -> dict[str, Interval]:
    """All intervals of a window."""
    return {
        "count": count_interval(inside, part),
        "sum": bounds.sum_interval(inside, part, center),
        "mean": bounds.mean_interval(inside, part, center),
        "min": bounds.min_interval(inside, part),
        "max": bounds.max_interval(inside, part),
    }


def holds(stream: Stream, chosen: list[int], got: dict[str, Interval]) -> bool:
    """Whether the exact results of the chosen readings, computed in integers, are where the intervals say."""
    n, scale = len(chosen), -stream.exponent
    for name, (value, low, high, exact, maybe_empty) in got.items():
        if n == 0 and name in ("mean", "min", "max"):
            if not maybe_empty:
                return False
            continue
        if not (low <= value <= high) or (exact and name in ("count", "min", "max") and low != high):
            return False
        low, high = (low, high) if name == "count" else (_scaled(low, scale), _scaled(high, scale))
        units = [stream.units[i] for i in chosen]
        exact_result = (
            n if name == "count" else min(units) if name == "min" else max(units) if name == "max" else sum(units)
        )
        times = n if name == "mean" else 1
        if not _below(low, times, exact_result) or not _below(-high, times, -exact_result):
            return False
    return True


def _scaled(x: float, scale: int) -> float:
    return x if math.isinf(x) else math.ldexp(x, scale)


def _below(low: float, times: int, units: int) -> bool:
    """Whether low × times ≤ units, in exact arithmetic."""
    if math.isinf(low):
        return low < 0
    over, under = low.as_integer_ratio()
    return over * times <= units * under


def by_time(stream: Stream, begin: int | None, end: int | None) -> tuple[dict[str, Interval], list[int], bool]:
    """The intervals of a window in time, the readings in it, and whether it cut a bucket."""
    parts = [stream.part(i, begin, end) for i in range(len(stream.buckets))]
    inside, part = totals(parts)
    chosen = [i for i, t in enumerate(stream.times) if (begin is None or begin <= t) and (end is None or t < end)]
    return results(inside, part, stream.center), chosen, part.size > 0


def windows(stream: Stream) -> Iterator[tuple[int | None, int | None]]:
    """Every window whose edges tell any two readings apart, and those open on one side."""
    edges = [None, *range(min(stream.times), max(stream.times) + 2)]
    for i, begin in enumerate(edges):
        yield from ((begin, end) for end in edges[max(i, 1) :])
        yield begin, None


def count_checked(seed: int, goal: int, **shape: float) -> int:
    """Check every window of random streams until `goal` of them cut a bucket; the number of cut windows."""
    rng, cut = random.Random(seed), 0
    while cut < goal:
        stream = make(rng, rng.randrange(2, 26), **shape)  # type: ignore[arg-type]
        for begin, end in windows(stream):
            got, chosen, cuts = by_time(stream, begin, end)
            cut += cuts
            assert holds(stream, chosen, got), (stream, begin, end, got)
    return cut


def by_ordinal(stream: Stream, rng: random.Random) -> tuple[dict[str, Interval], list[int], bool]:
    """A window of ordinals of which each edge is only known to lie in a range, as of a window whose policy hides it."""
    n = len(stream.units)
    begin, end = sorted((rng.randrange(n + 1), rng.randrange(n + 1)))
    before, after = (max(0, begin - rng.randrange(4)), begin), (end, min(n, end + rng.randrange(4)))
    before, after = (before[0], begin + rng.randrange(end - begin + 1)), (max(begin, end - rng.randrange(4)), after[1])
    parts = []
    for bucket in stream.buckets:
        start, stop = (_clamped(edge, bucket) for edge in (before, after))
        parts.append(run(bucket, stream.center, start, stop))
    inside, part = totals(parts)
    return results(inside, part, stream.center), list(range(begin, end)), part.size > 0


def _clamped(edge: tuple[int, int], bucket: Bucket) -> tuple[int, int]:
    first, after = bucket.first, bucket.first + bucket.n
    return min(max(edge[0], first), after), min(max(edge[1], first), after)


def check_ordinals(seed: int, goal: int) -> int:
    """Check random windows of ordinals over ordered and unordered buckets; the number that cut a bucket."""
    rng, cut = random.Random(seed), 0
    while cut < goal:
        stream = make(rng, rng.randrange(1, 30), back=rng.choice([0.0, 0.3]))
        for _ in range(200):
            got, chosen, cuts = by_ordinal(stream, rng)
            cut += cuts
            assert holds(stream, chosen, got), (stream, chosen, got)
    return cut


@pytest.mark.slow
def test_many_cut_windows_hold_the_exact_result() -> None:
    """In order, out of order, cut by time and by ordinal, with few and with many buckets: never outside."""
    checked = in_processes(
        __name__,
        f"count_checked(1, {WINDOWS * 2 // 5})",
        f"count_checked(2, {WINDOWS // 5}, mean=3)",
        f"count_checked(3, {WINDOWS // 5}, back=0.2)",
        f"check_ordinals(4, {WINDOWS // 5})",
    )
    assert sum(checked) >= WINDOWS


#: Windows of other seeds.
AGAIN = number(8_000, 2_500)


@pytest.mark.parametrize("back", [0.0, 0.05, 0.4])
def test_cut_windows_hold_the_exact_result(back: float) -> None:
    """The same promise, in a second, with other seeds."""
    assert count_checked(11, AGAIN, back=back) >= AGAIN


def test_windows_cut_by_ordinal_hold_the_exact_result() -> None:
    """Edges known to lie in a range of ordinals, over ordered and unordered buckets."""
    assert check_ordinals(12, AGAIN) >= AGAIN


def folded(values: list[float], center: float = 0.0, times: list[int] | None = None, first: int = 0) -> Bucket:
    """One bucket of the values, a second apart."""
    at = times or [1_000_000 * i for i in range(len(values))]
    return reduce(
        merge, (Bucket.single(x, t, center, first + i) for i, (x, t) in enumerate(zip(values, at, strict=True)))
    )


def one(part: Part, center: float = 0.0, inside: Inside | None = None) -> dict[str, Interval]:
    """The intervals of a window with one part."""
    return results(inside or Inside(), part, center)


def test_a_suffix_of_known_count_has_a_certain_count() -> None:
    """Cut by count the count is exact, sums of one reading and of all but one are too, and lie with the rest."""
    values = [3.0, -1.0, 4.0, 1.0, -5.0]
    for count in range(6):
        got = one(suffix(folded(values), 0.0, count))
        assert got["count"][:4] == (count, count, count, True)
        assert got["sum"].exact == (count in (0, 1, 4, 5))
        if got["sum"].exact:
            assert got["sum"].high - got["sum"].low < 1e-12
    assert one(prefix(folded(values), 0.0, 4))["sum"].value == pytest.approx(7.0)


def test_a_bucket_of_two_cut_once_is_exact() -> None:
    """One of two readings is inside, and which one is known: every aggregate is exact."""
    bucket = folded([2.0, 7.0])
    for part, value in (
        (cut_by_time(bucket, 0.0, 1, None), 7.0),
        (cut_by_time(bucket, 0.0, None, 5), 2.0),
    ):
        got = one(part)
        assert all(interval.exact for interval in got.values())
        assert got["sum"].value == got["mean"].value == got["min"].low == got["max"].high == value


def test_an_extreme_inside_makes_the_extreme_exact_and_narrows_the_count() -> None:
    """The maximum's place in time says how many readings at least and at most lie behind the edge."""
    values = [1.0, 2.0, 9.0, 3.0, 0.0, 4.0]
    got = one(cut_by_time(folded(values), 0.0, 1_500_000, None))
    assert got["max"] == Interval(9.0, 9.0, 9.0, True, False)
    assert got["count"].low == 4
    got = one(cut_by_time(folded(values), 0.0, 2_500_000, None))
    assert (got["max"].low, got["max"].high, got["max"].exact) == (4.0, 9.0, False)
    assert (got["count"].low, got["count"].high) == (2, 3)


def test_an_unordered_bucket_is_cut_as_a_subset() -> None:
    """Out of order only the earliest, the latest and the extremes' own times are certain."""
    bucket = folded([1.0, -4.0, 2.0, 3.0], times=[10, 40, 20, 30])
    assert not bucket.flags & ORDERED
    got = one(cut_by_time(bucket, 0.0, 25, None))
    assert (got["count"].low, got["count"].high) == (2, 3)
    assert got["min"] == Interval(-4.0, -4.0, -4.0, True, False)
    assert got["sum"].low >= -4.0 - 4.0 - 1e-9
    assert cut_by_time(bucket, 0.0, 41, None) == NOTHING


def test_an_empty_window_is_told() -> None:
    """No reading: count and sum are 0, the rest has no value; perhaps no reading: maybe_empty."""
    got = one(NOTHING)
    assert (got["count"].value, got["sum"].value) == (0, 0.0)
    assert all(math.isnan(got[name].value) and got[name].maybe_empty for name in ("mean", "min", "max"))
    both = one(cut_by_time(folded([1.0, 2.0, 3.0]), 0.0, 1, 1_999_999))
    assert both["mean"].maybe_empty
    assert not both["min"].exact


def test_a_center_near_the_readings_narrows_the_sum() -> None:
    """Prefix sums of x − center wander less than those of x: the reason for the center."""
    rng = random.Random(5)
    values = [20.0 + rng.gauss(0, 1) for _ in range(50)]
    widths = []
    for center in (0.0, 20.0):
        mean = one(cut_by_time(folded(values, center), center, 20_500_000, None), center)["mean"]
        widths.append(mean.high - mean.low)
    assert widths[1] <= widths[0]
    assert widths[1] < max(values) - min(values)


def test_intervals_are_finite_and_no_wider_than_the_obvious() -> None:
    """Means lie within the values, counts within the buckets' n, sums within c·min … c·max, all of them finite."""
    rng, narrower, seen = random.Random(8), 0, 0
    for _ in range(number(60, 40)):
        stream = make(rng, 20, back=rng.choice([0.0, 0.2]))
        for begin, end in windows(stream):
            got, chosen, cuts = by_time(stream, begin, end)
            if not cuts or not chosen:
                continue
            assert all(math.isfinite(bound) for interval in got.values() for bound in interval[:3])
            low, high = min(b.low for b in stream.buckets), max(b.high for b in stream.buckets)
            slack = 1e-9 * max(abs(low), abs(high), abs(stream.center))
            assert low - slack <= got["mean"].low <= got["mean"].high <= high + slack
            assert low <= got["min"].low <= got["max"].high <= high
            seen, narrower = seen + 1, narrower + (got["mean"].high - got["mean"].low < 0.5 * (high - low))
    assert narrower > 0.3 * seen


def test_pooling_many_parts_is_pooling_in_any_order() -> None:
    """Pooling is commutative and NOTHING is neutral."""
    parts = [cut_by_time(folded([1.0, k, 3.0]), 0.0, 1, None) for k in (-2.0, 5.0, 0.5)]
    assert reduce(pool, parts) == reduce(pool, [NOTHING, *reversed(parts)])


def test_a_late_bucket_is_cut_like_any_other() -> None:
    """LATE says when a bucket came, not how its readings lie."""
    bucket = Bucket.single(1.0, 5, 0.0, 3, 0, ORDERED | LATE)
    assert cut_by_time(bucket, 0.0, 5, 6) == whole(bucket, 0.0)


def test_sums_too_large_for_a_float_are_bounded_by_infinity_not_by_nonsense() -> None:
    """The greatest values allowed keep sums finite, and a wider interval than the numbers is infinite, never NaN."""
    bucket = folded([2.0**960, -(2.0**960), 2.0**960], 2.0**960)
    got = one(cut_by_time(bucket, 2.0**960, 1, None), 2.0**960)
    assert all(not math.isnan(bound) for interval in got.values() for bound in interval[:3])
    assert got["sum"].low <= 0.0 <= got["sum"].high
