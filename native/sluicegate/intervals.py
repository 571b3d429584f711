"""Certain intervals of a window's results: hands what lies inside and the cut bucket to the error algebra of `bounds`.

The oldest leaf of a window of buckets is the only one the edge can cut, and what is left of it is a run of its newest
readings (error-algebra: a local window), also where its times go back: a window is a FIFO.
"""

from __future__ import annotations

from math import inf, nextafter
from typing import Any, NamedTuple

from sluicegate import bounds
from sluicegate.buckets import ORDERED as ORDERED_FLAG
from sluicegate.buckets import Bucket
from sluicegate.monoids.layout import COUNT, O_FIRST, ORDERED, T_FIRST, T_LAST, Layout, Op
from sluicegate.reference.estimate import Cut

Slots = tuple[Any, ...]
Known = dict[int, tuple[bounds.Inside, bounds.Part]]  # by dimension


class Bounded(NamedTuple):
    """A result and between which values the exact one certainly lies; `exact`: nothing but rounding is uncertain."""

    value: Any
    low: Any
    high: Any
    exact: bool


class Window(NamedTuple):
    """What the intervals of a window of buckets are taken from."""

    layout: Layout
    total: Slots
    rest: Slots | None
    oldest: Slots
    cut: Cut
    cutoff: int | None  # readings of this time or earlier have left, where the policy tells
    centers: tuple[float, ...]

    @property
    def whole(self) -> bool:
        """Whether the edge cuts no bucket."""
        return bool(self.cut.least == self.oldest[COUNT])


def bounded(window: Window, values: list[Any]) -> list[Bounded]:
    """Each aggregate's certain interval, its value clamped into it."""
    known: Known = {}
    return [_bounded(window, i, value, known) for i, value in enumerate(values)]


def _bounded(window: Window, i: int, value: Any, known: Known) -> Bounded:
    monoid = window.layout.monoids[i]
    if monoid.kind == "last" or (window.whole and monoid.kind not in ("sum", "mean")):
        return Bounded(value, value, value, True)
    dimension = window.layout.dimension_of(monoid)
    if monoid.kind == "count":
        inside = 0 if window.rest is None else window.rest[COUNT]
        low, high = inside + window.cut.least, inside + window.cut.most
    elif monoid.kind == "first":
        low, high = _first(window, dimension)
    elif monoid.kind.startswith("arg"):
        low, high = _time_of_extreme(window, dimension, 1 if monoid.kind == "argmax" else -1)
    else:
        if dimension not in known:
            known[dimension] = _inside(window, dimension), _cut_part(window, dimension)
        return _of_interval(_interval(monoid.kind, *known[dimension], window.centers[dimension]), value)
    return _clamped(value, low, high, low == high)


def _clamped(value: Any, low: Any, high: Any, exact: bool) -> Bounded:
    return Bounded(min(max(value, low), high), low, high, exact)


def _cut_part(window: Window, dimension: int) -> bounds.Part:
    """What the cut bucket may add, of one dimension."""
    if window.whole:
        return bounds.NOTHING
    bucket = _bucket(window.layout, window.oldest, dimension)
    end = bucket.first + bucket.n
    return bounds.run(bucket, window.centers[dimension], (end - window.cut.most, end - window.cut.least), (end, end))


def _interval(kind: str, inside: bounds.Inside, part: bounds.Part, center: float) -> bounds.Interval:
    if kind == "sum":
        return bounds.sum_interval(inside, part, center)
    if kind == "mean":
        return bounds.mean_interval(inside, part, center)
    return bounds.min_interval(inside, part) if kind == "min" else bounds.max_interval(inside, part)


def _of_interval(interval: bounds.Interval, value: float) -> Bounded:
    return _clamped(value, interval.low, interval.high, interval.exact)


def _inside(window: Window, dimension: int) -> bounds.Inside:
    """The buckets that lie wholly inside, of one dimension."""
    slots = window.total if window.whole else window.rest
    if slots is None:
        return bounds.Inside()
    at = window.layout.slot(Op.PREFIX, dimension)
    low, high = (slots[window.layout.slot(op, dimension)] for op in (Op.LOW, Op.HIGH))
    return bounds.Inside(slots[COUNT], slots[at] if at >= 0 else 0.0, low, high)


def _bucket(layout: Layout, leaf: Slots, dimension: int) -> Bucket:
    """One dimension of a leaf as the record that the error algebra reads."""
    at, low, high = (layout.slot(op, dimension) for op in (Op.PREFIX, Op.LOW, Op.HIGH))
    sums = leaf[at : at + 3] if at >= 0 else (0.0, -inf, inf)
    ends = [leaf[layout.slot(op, dimension)] for op in (Op.FIRST, Op.LAST)]
    flags = ORDERED_FLAG if leaf[ORDERED] else 0
    fields = [
        leaf[O_FIRST],
        leaf[COUNT],
        leaf[T_FIRST],
        leaf[T_LAST],
        *sums,
        *leaf[low : low + 5],
        *leaf[high : high + 5],
    ]
    return Bucket(*[*fields, *ends, 0, flags])


def _first(window: Window, dimension: int) -> tuple[float, float]:
    """The oldest reading of the cut bucket that is inside: the last where it is the only one, else any."""
    if window.cut.most == 1:
        last: float = window.oldest[window.layout.slot(Op.LAST, dimension)]
        return last, last
    low, high = (window.oldest[window.layout.slot(op, dimension)] for op in (Op.LOW, Op.HIGH))
    return low, high


def _time_of_extreme(window: Window, dimension: int, sign: int) -> tuple[int, int]:
    """The least time at which the extreme occurs, over the whole buckets and the cut one."""
    at = window.layout.slot(Op.HIGH if sign == 1 else Op.LOW, dimension)
    value, t_first, t_last, o_first, o_last = window.oldest[at : at + 5]
    sure, possible = (window.oldest[O_FIRST] + window.oldest[COUNT] - c for c in (window.cut.least, window.cut.most))
    rest = None if window.rest is None else window.rest[at : at + 2]
    if rest is not None and (sign * rest[0] > sign * value or (rest[0] == value and o_last < possible)):
        return rest[1], rest[1]
    begin = window.oldest[T_FIRST]
    if window.oldest[ORDERED] and window.cutoff is not None:
        begin = max(begin, window.cutoff + 1)
    low, high = (t_first if o_first >= sure else max(t_first, begin)), (t_first if o_first >= sure else t_last)
    if o_last < sure:
        low, high = begin, window.oldest[T_LAST]
        return (low, high) if rest is None else (min(low, rest[1]), max(high, rest[1]))
    return (min(low, rest[1]), min(high, rest[1])) if rest is not None and rest[0] == value else (low, high)


def exactly(layout: Layout, values: list[Any], leaves: list[Slots]) -> list[Bounded]:
    """The intervals of a window of single readings: the results, but for the rounding of sums."""
    return [_exactly(layout, i, value, leaves) for i, value in enumerate(values)]


def _exactly(layout: Layout, i: int, value: Any, leaves: list[Slots]) -> Bounded:
    monoid = layout.monoids[i]
    if monoid.kind not in ("sum", "mean"):
        return Bounded(value, value, value, True)
    slot = layout.slot(Op.SUM, layout.dimension_of(monoid))
    column = [leaf[slot] for leaf in leaves]
    n = len(column)
    total = value if monoid.kind == "sum" else value * n
    interval = _interval(monoid.kind, bounds.Inside(n, total, min(column), max(column)), bounds.NOTHING, 0.0)
    return _clamped(value, nextafter(interval.low, -inf), nextafter(interval.high, inf), True)
