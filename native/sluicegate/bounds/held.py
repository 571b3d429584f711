"""The mean over time of a window of buckets: its estimate and certain interval.

The last value of the cut bucket holds until the first reading after it, which is known: E µs and K value·µs from there
to the window's end. Before it the part inside holds for d µs, from its first reading (unknown) to the bucket's last,
with values in [m, M]. The bucket's own integral A over D µs is known, so what the part adds, a, obeys

    a ≥ m·d    a ≥ A − M·(D − d)    a ≤ M·d    a ≤ A − m·(D − d)

and the mean (K + a) / (E + d) is extreme at the least or greatest d or where two of these lines cross. Readings that
came late have places among the others that no bucket knows: then the mean lies between the extremes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sluicegate.bounds.view import View
from sluicegate.monoids import Monoid
from sluicegate.monoids.layout import COUNT, O_FIRST, T_LAST, Op
from sluicegate.records import Bounded

_MARGIN = 2.0**-48  # of the greatest value: each product is rounded once, their sums nearly not at all
_LOST = 2e-323  # what a quotient loses below float64's normal numbers
Line = Callable[[float], float]


def estimate(window: View, monoid: Monoid) -> float | None:
    """The answer with the cut bucket's share taken by time, each part of it at the bucket's own mean."""
    area, lost, first, last, value, back = window.total[window.layout.own_slots(monoid)]
    low, high = window.extremes(window.total, window.layout.dimension_of(monoid))
    if back:
        return min(max((area + lost) / float(last - first), low), high) if window.late and last > first else None
    if window.whole:
        return float(value) if last == first else (area + lost) / float(last - first)
    after, until, leaf = _after(window, monoid)
    held_for = float(leaf[3] - leaf[2])
    taken = held_for * (window.cut.taken / window.oldest[COUNT])
    mean = (leaf[0] + leaf[1]) / held_for if held_for else leaf[4]
    return (after + mean * taken) / (until + taken) if until + taken else float(leaf[4])


def interval(window: View, monoid: Monoid, value: float | None) -> Bounded:
    """Between which values the mean over time lies."""
    slots = window.total[window.layout.own_slots(monoid)]
    low, high = window.extremes(window.total, window.layout.dimension_of(monoid))
    margin = max(abs(low), abs(high)) * _MARGIN + (0.0 if low == high else _LOST)
    if window.late:
        return _moved(value, low, high, low == high)
    if slots[5]:
        return Bounded(None, None, None, window.whole or slots[5] > window.oldest[window.layout.own_slots(monoid)][5])
    if window.whole:
        return Bounded(None, None, None, True) if value is None else _moved(value, value - margin, value + margin, True)
    low, high = _cut(window, monoid)
    return _moved(value, low - margin, high + margin, False)


def _moved(value: float | None, low: float, high: float, exact: bool) -> Bounded:
    return Bounded(low if value is None else min(max(value, low), high), low, high, exact)


def _after(window: View, monoid: Monoid) -> tuple[float, float, Sequence[Any]]:
    """Value·µs and µs from the cut bucket's last reading to the window's last, and the bucket's own slots."""
    own = window.layout.own_slots(monoid)
    leaf = window.oldest[own]
    if window.rest is None:
        return 0.0, 0.0, leaf
    rest = window.rest[own]
    until = float(rest[2] - leaf[3])
    return leaf[4] * until + (rest[0] + rest[1]), float(rest[3] - leaf[3]), leaf


def _cut(window: View, monoid: Monoid) -> tuple[float, float]:
    after, until, leaf = _after(window, monoid)
    low, high = window.extremes(window.oldest, window.layout.dimension_of(monoid))
    whole, area = float(leaf[3] - leaf[2]), leaf[0] + leaf[1]
    least, most = _held_for(window, monoid)
    if until + least == 0.0 and most == 0.0:
        return float(leaf[4]), float(leaf[4])
    floor: list[Line] = [lambda d: low * d, lambda d: area - high * (whole - d)]
    ceiling: list[Line] = [lambda d: high * d, lambda d: area - low * (whole - d)]
    places = {least, most}
    if high > low:
        places |= {min(max(d, least), most) for d in ((high * whole - area) / (high - low),
                                                      (area - low * whole) / (high - low))}  # fmt: skip
    lowest = [_mean(after + max(line(d) for line in floor), until + d, low) for d in places]
    highest = [_mean(after + min(line(d) for line in ceiling), until + d, high) for d in places]
    return min(lowest), max(highest)


def _mean(area: float, time: float, otherwise: float) -> float:
    return area / time if time else otherwise


def _held_for(window: View, monoid: Monoid) -> tuple[float, float]:
    """The least and the greatest time from the part's first reading to the bucket's last."""
    leaf, last = window.oldest, int(window.oldest[T_LAST])
    least, most = 0, last - window.begin
    end = leaf[O_FIRST] + leaf[COUNT]
    for op in (Op.LOW, Op.HIGH):
        at = window.layout.slot(op, window.layout.dimension_of(monoid))
        t_first, t_last, o_first, o_last = leaf[at + 1 : at + 5]
        if o_first >= end - window.cut.least:
            least = max(least, last - t_first)
        elif o_last >= end - window.cut.least:
            least = max(least, last - t_last)
    return float(least), float(max(least, most))
