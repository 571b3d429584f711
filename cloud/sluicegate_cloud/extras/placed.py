"""Answers first, last, argmin and argmax of windows from the buckets that may hold them, by (time, ordinal).

Each bucket offers a candidate: between which keys the one it has inside lies, and between what its answer. The least
key wins: of the first reading its time, of the last one −time, of the minimum its value, of the maximum −value. What
cannot have the least key any more is dropped, so the interval spans all that may be the answer. No Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, isnan
from typing import Any, NamedTuple

#: The aggregates that the records of buckets answer so.
PLACED = ("first", "last", "argmin", "argmax")
#: The fields of a bucket that they need, with their SQL types.
FIELDS = {
    "x_first": "double", "x_last": "double", "low_t_first": "bigint", "low_t_last": "bigint", "high_t_first": "bigint",
    "high_t_last": "bigint", "low_pre": "double", "low_suf": "double", "high_pre": "double", "high_suf": "double",
}  # fmt: skip
Number = float | int
#: Whose ordinals a bucket has: incarnation and key. Those of two lines say nothing of which reading came first.
Line = tuple[str, str | None] | None


class Candidate(NamedTuple):
    """Its key is between `key_low` and `key_high` (∞: it may have none inside), its answer between `low` and `high`.

    `order`: of equal keys of one device and `line` the least wins; None: nothing says which.
    """

    key_low: Number
    key_high: Number
    low: Number
    high: Number
    likely: Number
    order: int | None = None
    line: Line = None


class Record(NamedTuple):
    """One bucket: its times and values, of which `n` − `doubt` count, and its fields."""

    t_first: int
    t_last: int
    first: int
    n: int
    doubt: int
    low: float
    high: float
    ordered: bool
    fields: Mapping[str, Any]
    line: Line = None


class Window(NamedTuple):
    """[start, end), and whether at least one of a bucket's readings is certainly in it."""

    start: int
    end: int
    sure: bool


def candidates(of: Record, window: Window) -> tuple[Candidate, ...]:
    """What a bucket that touches the window offers, in the order of PLACED."""
    return _first(of, window), _last(of, window), *(_extreme(of, name, window) for name in ("low", "high"))


def _first(of: Record, window: Window) -> Candidate:
    if of.t_first >= window.start and not of.doubt:
        return _known(of, of.t_first, of.fields["x_first"], of.first)
    latest = min(of.t_last, window.end - 1) if window.sure else inf
    return Candidate(max(of.t_first, window.start), latest, of.low, of.high, _between(of, window.start))


def _last(of: Record, window: Window) -> Candidate:
    if of.t_last < window.end and not of.doubt:
        return _known(of, -of.t_last, of.fields["x_last"], -of.first)
    earliest = -max(of.t_first, window.start) if window.sure else inf
    return Candidate(-min(of.t_last, window.end - 1), earliest, of.low, of.high, _between(of, window.end))


def _known(of: Record, key: int, value: float, order: int) -> Candidate:
    """A first or last reading: its key is known, its value only where the bucket's readings are in order."""
    if of.ordered:
        return Candidate(key, key, value, value, value, order, of.line)
    return Candidate(key, key, of.low, of.high, value)


def _between(of: Record, time: int) -> float:
    """On the line from the first to the last value."""
    share = min(1.0, max(0.0, (time - of.t_first) / max(1, of.t_last - of.t_first)))
    value: float = of.fields["x_first"] + (of.fields["x_last"] - of.fields["x_first"]) * share
    return min(max(value, of.low), of.high)


def _extreme(of: Record, name: str, window: Window) -> Candidate:
    sign, value, other = (1, of.low, of.high) if name == "low" else (-1, of.high, of.low)
    begin, last = max(of.t_first, window.start), min(of.t_last, window.end - 1)
    since, until = of.fields[f"{name}_t_first"], of.fields[f"{name}_t_last"]
    near = min(max(since, begin), last)
    if of.doubt:
        return Candidate(sign * value, sign * other if window.sure else inf, begin, last, near)
    if window.start <= since < window.end:
        return Candidate(sign * value, sign * value, since, since, since)
    if window.start <= until < window.end:  # an earlier one may be inside too
        return Candidate(sign * value, sign * value, begin, until, until)
    reached = inf
    if window.sure:
        beside = of.fields["x_last" if of.t_last < window.end else "x_first"] if of.ordered else other
        reached = sign * beside
    return Candidate(sign * _beyond(of, name, value, window), reached, begin, last, near)


def _beyond(of: Record, name: str, extreme: float, window: Window) -> float:
    """The extreme of what is inside, at most: the next one on that side where all of its places are outside."""
    if not of.ordered:
        return extreme
    found = extreme
    if of.fields[f"{name}_t_last"] < window.start:
        found = of.fields[f"{name}_suf"]
    elif of.fields[f"{name}_t_first"] >= window.end:
        found = of.fields[f"{name}_pre"]
    return extreme if isnan(found) or not isfinite(found) else float(found)


def settled(some: Iterable[Candidate], kind: str, *, one_device: bool) -> tuple[Candidate, ...]:
    """Those that may still be it; of several with the same certain key one is left."""
    every = tuple(some)
    most = min((each.key_high for each in every), default=inf)
    kept = [each for each in every if each.key_low <= most]
    same = [each for each in kept if each.key_low == each.key_high]
    if len(same) < 2:
        return tuple(kept)
    return *(each for each in kept if each.key_low < each.key_high), _tied(same, kind, one_device)


def _tied(same: Sequence[Candidate], kind: str, one_device: bool) -> Candidate:
    """All have the same key, for certain: the earliest place of an extreme, the least ordinal of a time."""
    low, high = min(each.low for each in same), max(each.high for each in same)
    if kind.startswith("arg"):
        high = min(each.high for each in same)
        return same[0]._replace(low=low, high=high, likely=min(min(each.likely for each in same), high))
    orders = [each.order for each in same if each.order is not None]
    if one_device and len(orders) == len(same) and len({each.line for each in same}) == 1:
        return same[orders.index(min(orders))]
    return same[0]._replace(low=low, high=high, order=None)


class Told(NamedTuple):
    """The answer, between what it lies, and whether nothing is uncertain."""

    value: Number
    low: Number
    high: Number
    exact: bool


def answer(some: Sequence[Candidate], kind: str) -> Told | None:
    """Of the candidates of `settled`; None where there is none."""
    if not some:
        return None
    low, high = min(each.low for each in some), max(each.high for each in some)
    least, most = min(each.key_low for each in some), min(each.key_high for each in some)
    if kind.startswith("arg") and least == most:  # whoever else reaches it, the earliest place is no later than this
        high = min(each.high for each in some if each.key_high == most)
    best = min(some, key=lambda each: (each.key_high, each.key_low))
    return Told(min(max(best.likely, low), high), low, high, low == high and isfinite(most))
