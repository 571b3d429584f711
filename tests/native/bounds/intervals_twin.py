"""By definition: certain intervals of a window of buckets, by `error_algebra`.

The compiled ones have the same bits.
"""

from __future__ import annotations

from math import inf, log
from typing import Any

import error_algebra as bounds
import extremes_twin as bounds_extremes
import variance_twin as bounds_variance
from cut_buckets import run
from twins.program import log_of

from sluicegate.bounds import told
from sluicegate.bounds.intervals import clamped, exponential
from sluicegate.bounds.view import Slots, View
from sluicegate.format.bucket import ORDERED as ORDERED_FLAG
from sluicegate.format.bucket import Bucket
from sluicegate.monoids import ROUNDED, Monoid
from sluicegate.monoids.layout import COUNT, O_FIRST, ORDERED, T_FIRST, T_LAST, Layout, Op
from sluicegate.monoids.monoid import TOLD
from sluicegate.records import Bounded

Known = dict[int, tuple[bounds.Inside, bounds.Part]]  # by dimension


def by_definition(core: Any, view: Any) -> list[Bounded]:
    """Of a window of buckets, as the readable core sees it."""
    inside = None if view.rest is None else tuple(view.rest)
    pieces = core._layout, tuple(view.total), inside, tuple(view.leaf), view.where, view.cutoff
    return bounded(View(*pieces, tuple(core.centers or ()), view.late), core._estimates(view))


def bounded(window: View, values: list[Any]) -> list[Bounded]:
    """Each aggregate's certain interval, its value clamped into it."""
    known: Known = {}
    return [_bounded(window, i, value, known) for i, value in enumerate(values)]


def _bounded(window: View, i: int, value: Any, known: Known) -> Bounded:
    monoid = window.layout.monoids[i]
    if monoid.kind in TOLD:
        return told.bounded(window, monoid)
    if monoid.kind == "last" or (window.whole and monoid.kind not in ROUNDED):
        return Bounded(value, value, value, True)
    dimension = window.layout.dimension_of(monoid)
    if monoid.kind == "count":
        inside = 0 if window.rest is None else window.rest[COUNT]
        low, high = inside + window.cut.least, inside + window.cut.most
    elif monoid.kind == "first":
        low, high = _first(window, dimension)
        if window.late:  # the first may be one of those that came late
            own = [window.total[window.layout.slot(op, dimension)] for op in (Op.LOW, Op.HIGH)]
            low, high = min(low, own[0]), max(high, own[1])
    elif monoid.kind.startswith("arg"):
        low, high = _time_of_extreme(window, dimension, 1 if monoid.kind == "argmax" else -1)
    elif monoid.kind.endswith("_count"):
        low, high = _occurrences(window, dimension, 1 if monoid.kind == "max_count" else -1)
    elif monoid.kind == "geometric_mean":
        return _geometric_mean(window, dimension, value)
    else:
        if dimension not in known:
            known[dimension] = _inside(window, dimension), _cut_part(window, dimension)
        return _of_interval(_certain(window, monoid, dimension, *known[dimension]), value)
    return clamped(value, low, high, low == high)


def _certain(window: View, monoid: Monoid, dimension: int, inside: bounds.Inside, part: bounds.Part) -> bounds.Interval:
    if monoid.kind in ("variance", "std"):
        return _spread(window, monoid, dimension, part)
    low, high = (_narrowed(window, dimension, part, sign) for sign in (-1, 1))
    if monoid.kind == "range":
        least, greatest = bounds.min_interval(inside, low), bounds.max_interval(inside, high)
        return bounds_extremes.range_interval(least, greatest)
    part = {"min": low, "max": high}.get(monoid.kind, part)
    return _interval(monoid.kind, inside, part, window.centers[dimension])


def _narrowed(window: View, dimension: int, part: bounds.Part, sign: int) -> bounds.Part:
    """The part without an extreme that is certainly outside."""
    peak = None if window.whole else _peak(window, dimension, sign)
    if peak is None:
        return part
    most = bounds_extremes.extreme_of_run(peak, *_edges(window))
    return part._replace(high=min(part.high, most)) if sign == 1 else part._replace(low=max(part.low, most))


def _edges(window: View) -> tuple[bounds.Range, bounds.Range]:
    """Between which ordinals the cut bucket's part begins and ends."""
    end = window.oldest[O_FIRST] + window.oldest[COUNT]
    return (end - window.cut.most, end - window.cut.least), (end, end)


def _peak(window: View, dimension: int, sign: int) -> bounds_extremes.Peak | None:
    """The cut bucket's extreme, where it keeps what surrounds it."""
    ops = (Op.HIGH, Op.HIGH_ENDS, Op.HIGH_COUNT) if sign == 1 else (Op.LOW, Op.LOW_ENDS, Op.LOW_COUNT)
    own, ends, counted = (window.layout.slot(op, dimension) for op in ops)
    if ends < 0:
        return None
    value, _, _, o_first, o_last = window.oldest[own : own + 5]
    times = window.oldest[counted + 1] if counted >= 0 else 0
    last = window.oldest[window.layout.slot(Op.LAST, dimension)]
    before, after = window.oldest[ends + 1 : ends + 3]
    return bounds_extremes.Peak(value, o_first, o_last, times, before, after, last)


def _occurrences(window: View, dimension: int, sign: int) -> tuple[int, int]:
    """How often the extreme occurs."""
    peak, (start, end) = _peak(window, dimension, sign), _edges(window)
    assert peak is not None
    at = window.layout.slot(Op.HIGH_COUNT if sign == 1 else Op.LOW_COUNT, dimension)
    inside = None if window.rest is None else bounds_extremes.Known(*window.rest[at : at + 2])
    return bounds_extremes.occurrences(inside, peak, start, end[0], sign)


def _spread(window: View, monoid: Monoid, dimension: int, part: bounds.Part) -> bounds.Interval:
    """Variance or standard deviation."""
    inside = _moments(window.layout, window.total if window.whole else window.rest, dimension)
    bucket = None if window.whole else _moments(window.layout, window.oldest, dimension)
    center = window.centers[dimension]
    interval = bounds_variance.variance_interval(inside, part, center, bucket, monoid.ddof)
    return bounds_variance.std_interval(interval) if monoid.kind == "std" else interval


def _moments(layout: Layout, slots: Slots | None, dimension: int) -> bounds_variance.Deviations:
    if slots is None:
        return bounds_variance.Deviations()
    at, low, high = (layout.slot(op, dimension) for op in (Op.MOMENTS, Op.LOW, Op.HIGH))
    return bounds_variance.Deviations(slots[at], slots[at + 1], slots[at + 2], slots[low], slots[high])


def _geometric_mean(window: View, dimension: int, value: Any) -> Bounded:
    """The mean of the logarithms, and back."""
    layout, center = window.layout, log_of(window.centers[dimension])
    slots, at = window.total if window.whole else window.rest, layout.slot(Op.LOG_PREFIX, dimension)
    inside = bounds.Inside()
    if slots is not None:
        low, high = (log(slots[layout.slot(op, dimension)]) for op in (Op.LOW, Op.HIGH))
        inside = bounds.Inside(slots[COUNT], slots[at], low, high)
    part = bounds.NOTHING
    if not window.whole:
        part = run(_bucket(layout, window.oldest, dimension, True), center, *_edges(window))
    return _of_interval(exponential(bounds.mean_interval(inside, part, center)), value)


def _cut_part(window: View, dimension: int) -> bounds.Part:
    """What the cut bucket may add, of one dimension."""
    if window.whole:
        return bounds.NOTHING
    bucket = _bucket(window.layout, window.oldest, dimension)
    return run(bucket, window.centers[dimension], *_edges(window))


def _interval(kind: str, inside: bounds.Inside, part: bounds.Part, center: float) -> bounds.Interval:
    if kind == "sum":
        return bounds.sum_interval(inside, part, center)
    if kind == "mean":
        return bounds.mean_interval(inside, part, center)
    return bounds.min_interval(inside, part) if kind == "min" else bounds.max_interval(inside, part)


def _of_interval(interval: bounds.Interval, value: Any) -> Bounded:
    return clamped(value, interval.low, interval.high, interval.exact)


def _inside(window: View, dimension: int) -> bounds.Inside:
    """The buckets that lie wholly inside, of one dimension."""
    slots = window.total if window.whole else window.rest
    if slots is None:
        return bounds.Inside()
    at = window.layout.slot(Op.PREFIX, dimension)
    low, high = (slots[window.layout.slot(op, dimension)] for op in (Op.LOW, Op.HIGH))
    return bounds.Inside(slots[COUNT], slots[at] if at >= 0 else 0.0, low, high)


def _bucket(layout: Layout, leaf: Slots, dimension: int, logarithms: bool = False) -> Bucket:
    """One dimension of a leaf, or of its values' logarithms, as the record that the error algebra reads."""
    sums = Op.LOG_PREFIX if logarithms else Op.PREFIX
    at, low, high = (layout.slot(op, dimension) for op in (sums, Op.LOW, Op.HIGH))
    total = leaf[at : at + 3] if at >= 0 else (0.0, -inf, inf)
    ends = [leaf[layout.slot(op, dimension)] for op in (Op.FIRST, Op.LAST)]
    least, greatest = list(leaf[low : low + 5]), list(leaf[high : high + 5])
    if logarithms:
        ends, least[0], greatest[0] = [log(x) for x in ends], log(least[0]), log(greatest[0])
    flags = ORDERED_FLAG if leaf[ORDERED] else 0
    header = leaf[O_FIRST], leaf[COUNT], leaf[T_FIRST], leaf[T_LAST]
    return Bucket(*[*header, *total, *least, *greatest, *ends, 0, flags])


def _first(window: View, dimension: int) -> tuple[float, float]:
    """The oldest reading of the cut bucket that is inside: the last where it is the only one, else any."""
    if window.cut.most == 1:
        last: float = window.oldest[window.layout.slot(Op.LAST, dimension)]
        return last, last
    low, high = (window.oldest[window.layout.slot(op, dimension)] for op in (Op.LOW, Op.HIGH))
    return low, high


def _time_of_extreme(window: View, dimension: int, sign: int) -> tuple[int, int]:
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
