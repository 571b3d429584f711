"""What an exact window answers: one aggregate's result from its slots of the total."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

from sluicegate.monoids import Monoid, comoments
from sluicegate.monoids.layout import Layout
from sluicegate.monoids.results import empty, lowered
from sluicegate.reference import wide
from sluicegate.reference.program import Moments, Partial, Slot

Value = Any


def exact_results(layout: Layout, total: Partial | None, leaves: int) -> list[Value]:
    """One answer per aggregate of a window whose leaves are single readings."""
    answers = [_exact(layout, monoid, total, leaves) for monoid in layout.monoids]
    for place, monoid, where in layout.composites() if total is not None else ():
        answers[place] = lowered(monoid, total[where]) if total is not None else None
    return answers


def _exact(layout: Layout, monoid: Monoid, total: Partial | None, leaves: int) -> Value:
    kind = monoid.kind
    if kind == "count":
        return leaves
    if total is None:
        return empty(monoid)
    slots = layout.exact_slots(monoid)
    value = total[slots[0]]
    if kind in ("variance", "std"):
        return spread(monoid, Moments(*total[slots[0] : slots[0] + 3]))
    if kind in ("mean", "geometric_mean"):
        return value / leaves if kind == "mean" else exp(value / leaves)
    if kind == "range":
        return total[slots[1]] - value
    if kind == "rate":
        return _per(monoid, total[slots[0] + 2] - value, total[slots[0] + 3] - total[slots[0] + 1])
    if kind == "time_weighted_mean":
        return _over_time(*total[slots[0] : slots[0] + 6])
    if kind in ("slope", "intercept", "covariance", "correlation"):
        return comoments.lowered(monoid, total[slots[0] : slots[0] + 9])
    if kind == "frequency":
        return _per(monoid, float(leaves - 1), total[slots[0] + 1] - value)
    if kind == "compiled":
        component = next(each for each in layout.components if each.slot == slots[0])
        result = wide.own_lower(component.options, total[slots[0] : slots[0] + len(component.format)])
        return None if result != result else result
    return total[slots[0] + (kind.startswith("arg") or kind in ("min_count", "max_count"))]


def _over_time(area: Slot, lost: Slot, first: Slot, last: Slot, value: Slot, steps_back: Slot) -> float | None:
    if steps_back:
        return None
    return value if last == first else (area + lost) / float(last - first)


def _per(monoid: Monoid, change: float, elapsed: Slot) -> float | None:
    return change / float(elapsed) * float(monoid.options[0]) if elapsed > 0 else None


def spread(monoid: Monoid, moments: Moments) -> float | None:
    """Variance or standard deviation; None where there are too few readings."""
    if moments.n <= monoid.ddof:
        return None
    variance = moments.m2 / (moments.n - monoid.ddof)
    return sqrt(variance) if monoid.kind == "std" else variance
