"""What a window must say of what buckets carry, from the definition: readings → fractions, nothing of the merge's code.

A column is wrong if the truth is outside its interval, if its value is, or if it says `exact` and is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, inf, isfinite, isqrt
from typing import Any

from carried_worlds import Reading

from sluicegate.monoids.results import BloomFilter, CountMin
from sluicegate_cloud.extras.asked import RANKS, Asked

Column = Mapping[str, Any]
Devices = Sequence[Sequence[Reading]]
#: What an `exact` value may be off by, of the greatest |x|: rounding, no more.
_ROUNDED = Fraction(1, 10**6)
_TINY = Fraction(1, 10**300)


def wrong(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    """What the columns of one aggregate say wrongly of a window with these readings of each device."""
    if any(inside):
        yield from (f"{asked.kind}: {text}" for text in _JUDGES[asked.kind](asked, told, inside))
    else:
        yield from (
            f"{name}: exact, and there may be no reading" for name in told if name.endswith("_exact") and told[name]
        )


def _all(inside: Devices) -> list[Reading]:
    return sorted(each for some in inside for each in some)


def _greatest(numbers: Sequence[float]) -> Fraction:
    return max(map(abs, map(Fraction, numbers)))


def _within(told: Column, name: str, truth: Fraction, near: Fraction | None = None) -> Iterator[str]:
    """`near`: how far an exact value may be off; None: its interval says that."""
    value, low, high, exact = (told[f"{name}{end}"] for end in ("", "_low", "_high", "_exact"))
    if low is None or high is None:
        if exact:
            yield f"exact without an interval, and it is {_shown(truth)}"
        return
    if low == inf or high == -inf or (low > -inf and low > truth) or (high < inf and high < truth):
        yield f"{_shown(truth)} outside [{low!r}, {high!r}]"
    if value is not None and not low <= value <= high:
        yield f"value {value!r} outside its own interval [{low!r}, {high!r}]"
    if exact and near is not None and not (value is not None and isfinite(value) and abs(value - truth) <= near):
        yield f"exact {value!r} is not {_shown(truth)}"


def _shown(truth: Fraction) -> str:
    try:
        return repr(float(truth))
    except OverflowError:
        return "beyond float64"


def _moments(us: Sequence[Fraction], vs: Sequence[Fraction]) -> tuple[Fraction, Fraction, Fraction]:
    """Σuu, Σvv and Σuv about the means."""
    n, u, v = len(us), sum(us, Fraction(0)), sum(vs, Fraction(0))
    uu, vv, uv = (sum((x * y for x, y in zip(*of, strict=True)), Fraction(0)) for of in ((us, us), (vs, vs), (us, vs)))
    return uu - u * u / n, vv - v * v / n, uv - u * v / n


def _line(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    every = _all(inside)
    times, values = [Fraction(each.time) for each in every], [Fraction(each.x) for each in every]
    tt, _, tx = _moments(times, values)
    if not tt:
        return
    near, per = _ROUNDED * _greatest([each.x for each in every]), asked.monoid.options[0]
    if asked.kind == "slope":
        truth = tx / tt * Fraction(per)
    else:
        at = (max if per == "last" else min)(times)
        truth = sum(values, Fraction(0)) / len(every) + tx / tt * (at - sum(times, Fraction(0)) / len(every))
    yield from _within(told, asked.kind, truth, max(near, _ROUNDED * abs(truth)))


def _pair(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    every = _all(inside)
    xx, yy, xy = _moments([Fraction(each.x) for each in every], [Fraction(each.y) for each in every])
    if asked.kind == "covariance":
        near = _ROUNDED * _greatest([each.x for each in every]) * _greatest([each.y for each in every])
        yield from _within(told, asked.kind, xy / len(every), near + _TINY)
    elif xx and yy:
        square = xy * xy / (xx * yy)
        root = Fraction(isqrt((square.numerator << 400) // square.denominator), 1 << 200)
        yield from _within(told, asked.kind, root if xy >= 0 else -root)


def _held(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    """Of a fleet: weighted by the time that each device tells of. Without any time nothing is said but between what."""
    steps = [(a, b.time - a.time) for some in inside for a, b in pairwise(sorted(some))]
    time = sum(lasts for _, lasts in steps)
    if time:
        truth = sum((Fraction(a.x) * lasts for a, lasts in steps), Fraction(0)) / time
        yield from _within(told, asked.kind, truth, _ROUNDED * _greatest([each.x for each in _all(inside)]))
    elif told["time_weighted_mean_exact"] and told["time_weighted_mean_low"] != told["time_weighted_mean_high"]:
        yield "exact of several values and no time"


def _ranks(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    """What is exact; the rest is promised at 99 %, which `outside_ranks` counts."""
    values = sorted(each.x for each in _all(inside))
    for name, rank in RANKS.items():
        truth = _of_rank(values, rank)
        if told[f"{name}_exact"] and told[name] != truth:
            yield f"{name}: exact {told[name]!r} is not {truth!r}"
        if told[name] is not None and not told[f"{name}_low"] <= told[name] <= told[f"{name}_high"]:
            yield f"{name}: value {told[name]!r} outside its own interval"


def outside_ranks(told: Column, inside: Devices) -> tuple[int, int]:
    """How many quantiles were told of, and how many lie outside."""
    values = sorted(each.x for each in _all(inside))
    some = [
        (name, _of_rank(values, rank)) for name, rank in RANKS.items() if values and told[f"{name}_low"] is not None
    ]
    return len(some), sum(not told[f"{name}_low"] <= truth <= told[f"{name}_high"] for name, truth in some)


def _of_rank(values: Sequence[float], rank: float) -> float:
    return values[max(0, ceil(Fraction(str(rank)) * len(values)) - 1)] if values else 0.0


def _distinct(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    yield from _within(told, asked.kind, Fraction(len({each.x for each in _all(inside)})), Fraction(0))


def _top(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    top = sorted((each.x for each in _all(inside)), reverse=True)[: asked.monoid.options[0]]
    low, high = told["top_k_low"], told["top_k_high"]
    places = [*zip(low, top, strict=False), *zip(top, high, strict=False)]
    if not len(low) <= len(top) <= len(high) or any(a > b for a, b in places):
        yield f"{top} outside {low} … {high}"
    if told["top_k_exact"] and told["top_k"] != top:
        yield f"exact {told['top_k']} is not {top}"


def _counts(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    values = [each.x for each in _all(inside)]
    width, depth = asked.monoid.options
    found = CountMin(width, depth, asked.extra.slots(told["count_min"]))
    if any(found.most(x) < values.count(x) for x in {*values}):
        yield "a value occurs more often than is said"
    most = len(values) + told["count_min_doubt"]
    if not len(values) <= found.n <= most or (told["count_min_exact"] and found.n != len(values)):
        yield f"{found.n} readings, it is {len(values)}, of {most} with those in doubt"


def _set(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    found = BloomFilter(told["bloom_filter"], asked.monoid.options[1])
    yield from (f"{each.x} is denied" for each in _all(inside) if not found.might_contain(each.x))


def _place(asked: Asked, told: Column, inside: Devices) -> Iterator[str]:
    """Of several devices, or incarnations, at one time: any of theirs."""
    every = _all(inside)
    if asked.kind in ("first", "last"):
        pick = min if asked.kind == "first" else max
        when = pick(each.time for each in every)
        lines = [[each for each in some if each.incarnation == at] for some in inside for at in range(3)]
        found = {pick(some).x for some in lines if some and pick(some).time == when}
    else:
        extreme = (min if asked.kind == "argmin" else max)(each.x for each in every)
        found = {float(min(each.time for each in every if each.x == extreme))}
    for truth in found:
        yield from _within(told, asked.kind, Fraction(truth))
    if told[f"{asked.kind}_exact"] and found != {told[asked.kind]}:
        yield f"exact {told[asked.kind]!r} is not {found}"


_JUDGES: dict[str, Callable[[Asked, Column, Devices], Iterator[str]]] = {
    **dict.fromkeys(("slope", "intercept"), _line), **dict.fromkeys(("covariance", "correlation"), _pair),
    **dict.fromkeys(("first", "last", "argmin", "argmax"), _place), "time_weighted_mean": _held, "quantiles": _ranks,
    "distinct_count": _distinct, "top_k": _top, "count_min": _counts, "bloom_filter": _set,
}  # fmt: skip
