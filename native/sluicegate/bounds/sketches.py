"""What sketches say of a window of buckets: what is certain, what a stated error tells, and what the cut bucket hides.

What has left cannot be taken out of a bucket's sketch, so an answer is of all readings that may be inside, with how
many of them may have left beside it. Of a few things more is known: the greatest values carry their times, and so many
different values as the whole buckets hold are certainly there.
"""

from __future__ import annotations

from typing import Any

from sluicegate.bounds.view import View
from sluicegate.monoids import Monoid, kll
from sluicegate.monoids.layout import COUNT, T_LAST, Op
from sluicegate.monoids.results import DistinctCount, Top, as_tops, lowered
from sluicegate.records import Bounded


def estimate(window: View, monoid: Monoid) -> Any:
    """The answer over all that may be inside; of the greatest values those that certainly are."""
    own = window.layout.own_slots(monoid)
    match monoid.kind:
        case "top_k":
            return as_tops(window.total[own]) if window.whole else _certain_tops(window, monoid)
        case "distinct_count":
            return _distinct(window, monoid)
        case "quantiles":
            return kll.of_slots(monoid.options[0], window.total[own])._replace(doubt=_doubt(window))
        case "count_min":
            return lowered(monoid, window.total[own])._replace(doubt=_doubt(window))
    return lowered(monoid, window.total[own])


def interval(window: View, monoid: Monoid, value: Any) -> Bounded:
    """Low and high where something is certain: place by place for the greatest values, a number for distinct ones."""
    match monoid.kind:
        case "top_k":
            high = as_tops(window.total[window.layout.own_slots(monoid)])
            return Bounded(value, value, high, value == high and not window.late)
        case "distinct_count":
            return of_distinct(value, _least(window, monoid, value), _most(window))
        case "quantiles":
            return Bounded(value, None, None, False)
    return Bounded(value, value, value, True) if window.whole else Bounded(value, None, None, False)


def of_distinct(value: DistinctCount, least: int, most: int) -> Bounded:
    """The estimate, moved into what is certain."""
    moved = value._replace(estimate=min(max(value.estimate, float(least)), float(most)))
    return Bounded(moved, least, most, least == most)


def _doubt(window: View) -> int:
    """How many of the readings that the sketch has may have left."""
    return 0 if window.whole else int(window.oldest[COUNT] - window.cut.least)


def _most(window: View) -> int:
    """The window certainly holds no more readings."""
    if window.whole:
        return int(window.total[COUNT])
    return int((0 if window.rest is None else window.rest[COUNT]) + window.cut.most)


def _certain_tops(window: View, monoid: Monoid) -> list[Top]:
    """The greatest of what is known to be inside: each place is at most what the window has there."""
    own, dimension = window.layout.own_slots(monoid), window.layout.dimension_of(monoid)
    rest = [] if window.rest is None else as_tops(window.rest[own])
    leaf = as_tops(window.oldest[own])
    known = [top for top in leaf if window.cutoff is not None and top.time > window.cutoff]
    if not known:  # its last reading is inside
        known = [Top(window.oldest[window.layout.slot(Op.LAST, dimension)], int(window.oldest[T_LAST]))]
    return sorted([*known, *rest], key=lambda top: -top.value)[: monoid.options[0]]


def _distinct(window: View, monoid: Monoid) -> DistinctCount:
    """The estimate with the cut bucket's share of what it may add."""
    own = window.layout.own_slots(monoid)
    everything: DistinctCount = lowered(monoid, window.total[own])
    if window.whole:
        return everything
    inside = 0.0 if window.rest is None else lowered(monoid, window.rest[own]).estimate
    cut = max(0.0, everything.estimate - inside)
    share = window.cut.taken / window.oldest[COUNT]
    return everything._replace(estimate=everything.estimate - cut * (1.0 - share), cut=cut, least=_told(window, monoid))


def _told(window: View, monoid: Monoid) -> int:
    """So many different values are certainly inside: those of the whole buckets, and there is one reading at least."""
    if window.rest is None:
        return 1
    found: DistinctCount = lowered(monoid, window.rest[window.layout.own_slots(monoid)])
    return max(1, found.least)


def _least(window: View, monoid: Monoid, value: DistinctCount) -> int:
    return value.least if window.whole else _told(window, monoid)
