"""The readable twin of sluicegate.partials.program: lift and combine partials, slot by slot, with the same bits.

A partial here is a list of `layout.width` Python numbers. `combine(a, b)` is associative up to rounding (counts,
times and extremes to the bit) and takes a's readings to precede b's. There is no neutral element: absence is the
engines' matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log

from sluicegate.monoids.layout import ORDERED, T_FIRST, T_LAST, WIDE, Component, Layout, Op
from sluicegate.partials.logarithms import log_of
from sluicegate.reference import wide
from sluicegate.reference.histograms.statistics import Moments, merge

Slot = float | int
Partial = list[Slot]


def lift(layout: Layout, values: Sequence[float], time: int, ordinal: int, centers: Sequence[float]) -> Partial:
    """One reading as a partial."""
    out: Partial = [0] * layout.width
    for component in layout.components:
        if component.op == Op.OBJECT:
            continue  # the core's matter: sluicegate.reference.object_core
        if component.op >= WIDE:
            out[_range(component)] = wide.lift(component, values, time, ordinal)
            continue
        slot, x = component.slot, 0.0 if component.op == Op.SAMPLE else values[component.dimension]
        match component.op:
            case Op.SUM | Op.MIN | Op.MAX | Op.FIRST | Op.LAST:
                out[slot] = x
            case Op.ARGMIN | Op.ARGMAX:
                out[slot : slot + 2] = x, time
            case Op.PREFIX:
                out[slot : slot + 3] = x - centers[component.dimension], inf, -inf
            case Op.LOW | Op.HIGH:
                out[slot : slot + 5] = x, time, time, ordinal, ordinal
            case Op.SAMPLE:
                out[slot : slot + 3] = 0.0, 0.0, 0.0
            case Op.MOMENTS:
                out[slot : slot + 3] = 1.0, x - centers[component.dimension], 0.0
            case Op.LOG_SUM:
                out[slot] = log(x)
            case Op.LOG_PREFIX:
                out[slot : slot + 3] = log(x) - log_of(centers[component.dimension]), inf, -inf
            case Op.LOW_COUNT | Op.HIGH_COUNT:
                out[slot : slot + 2] = x, 1
            case Op.LOW_ENDS:
                out[slot : slot + 3] = x, inf, inf
            case Op.HIGH_ENDS:
                out[slot : slot + 3] = x, -inf, -inf
            case Op.ORDERED | Op.COUNT:
                out[slot] = 1
            case Op.T_FIRST | Op.T_LAST:
                out[slot] = time
            case Op.O_FIRST:
                out[slot] = ordinal
    return out


def combiner(layout: Layout) -> Callable[[Partial, Partial], Partial]:
    """The monoid's operation on partials of this layout."""

    def combine(a: Partial, b: Partial) -> Partial:
        out: Partial = [0] * layout.width
        for component in layout.components:
            if component.op < WIDE:
                _COMBINE[component.op](component.slot, out, a, b)
                continue
            if component.op == Op.OBJECT:
                continue
            where = _range(component)
            out[where] = wide.combine(component, a[where], b[where])
        return out

    return combine


def _range(component: Component) -> slice:
    return slice(component.slot, component.slot + len(component.format))


def _sum(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s] = a[s] + b[s]


def _min(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s] = b[s] if b[s] < a[s] else a[s]


def _max(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s] = b[s] if b[s] > a[s] else a[s]


def _first(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s] = a[s]


def _last(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s] = b[s]


def _arg(s: int, out: Partial, a: Partial, b: Partial, b_wins: bool) -> None:
    taken = b if b_wins else a
    out[s : s + 2] = a[s], min(a[s + 1], b[s + 1])
    if a[s] != b[s]:
        out[s : s + 2] = taken[s], taken[s + 1]


def _argmin(s: int, out: Partial, a: Partial, b: Partial) -> None:
    _arg(s, out, a, b, b[s] < a[s])


def _argmax(s: int, out: Partial, a: Partial, b: Partial) -> None:
    _arg(s, out, a, b, b[s] > a[s])


def _prefix(s: int, out: Partial, a: Partial, b: Partial) -> None:
    """P∓ of b is ±∞ for a single reading, so that prefix of the whole enters only where b has a proper one."""
    total = a[s]
    out[s] = total + b[s]
    out[s + 1] = min(a[s + 1], total, total + b[s + 1])
    out[s + 2] = max(a[s + 2], total, total + b[s + 2])


def _extreme(s: int, out: Partial, a: Partial, b: Partial, b_wins: bool) -> None:
    if a[s] == b[s]:
        out[s : s + 5] = a[s], min(a[s + 1], b[s + 1]), max(a[s + 2], b[s + 2]), a[s + 3], b[s + 4]
    else:
        out[s : s + 5] = (b if b_wins else a)[s : s + 5]


def _low(s: int, out: Partial, a: Partial, b: Partial) -> None:
    _extreme(s, out, a, b, b[s] < a[s])


def _high(s: int, out: Partial, a: Partial, b: Partial) -> None:
    _extreme(s, out, a, b, b[s] > a[s])


def _ordered(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s] = int(a[ORDERED] == 1 and b[ORDERED] == 1 and b[T_FIRST] >= a[T_LAST])


def _sample(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s : s + 3] = merge(Moments(*a[s : s + 3]), Moments(*b[s : s + 3]))


def _count(s: int, out: Partial, a: Partial, b: Partial, b_wins: bool) -> None:
    taken = b if b_wins else a
    out[s : s + 2] = (a[s], a[s + 1] + b[s + 1]) if a[s] == b[s] else taken[s : s + 2]


def _low_count(s: int, out: Partial, a: Partial, b: Partial) -> None:
    _count(s, out, a, b, b[s] < a[s])


def _high_count(s: int, out: Partial, a: Partial, b: Partial) -> None:
    _count(s, out, a, b, b[s] > a[s])


def _low_ends(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s : s + 3] = min(a[s], b[s]), a[s + 1], b[s + 2]
    if a[s] < b[s]:
        out[s + 2] = min(a[s + 2], b[s])
    elif a[s] > b[s]:
        out[s + 1] = min(a[s], b[s + 1])


def _high_ends(s: int, out: Partial, a: Partial, b: Partial) -> None:
    """What precedes the first and follows the last occurrence of the greater maximum."""
    out[s : s + 3] = max(a[s], b[s]), a[s + 1], b[s + 2]
    if a[s] > b[s]:
        out[s + 2] = max(a[s + 2], b[s])
    elif a[s] < b[s]:
        out[s + 1] = max(a[s], b[s + 1])


_COMBINE: dict[Op, Callable[[int, Partial, Partial, Partial], None]] = {
    Op.SUM: _sum, Op.MIN: _min, Op.MAX: _max, Op.ARGMIN: _argmin, Op.ARGMAX: _argmax, Op.FIRST: _first, Op.LAST: _last,
    Op.PREFIX: _prefix, Op.LOW: _low, Op.HIGH: _high, Op.ORDERED: _ordered, Op.COUNT: _sum,
    Op.T_FIRST: _min, Op.T_LAST: _max,
    Op.O_FIRST: _first, Op.SAMPLE: _sample, Op.MOMENTS: _sample, Op.LOG_SUM: _sum, Op.LOG_PREFIX: _prefix,
    Op.LOW_COUNT: _low_count, Op.HIGH_COUNT: _high_count, Op.LOW_ENDS: _low_ends, Op.HIGH_ENDS: _high_ends,
}  # fmt: skip


def deductor(layout: Layout) -> Callable[[Partial, Partial], Partial]:
    """The inverse: what combine(oldest, rest) = total gives for rest; what `layout.invertible` says.

    A greatest time stays as it is, which is right while times go forward.
    """

    def deduct(total: Partial, oldest: Partial) -> Partial:
        out = list(total)
        for component in layout.components:
            if component.op == Op.OBJECT:
                continue
            if component.op >= WIDE:
                where = _range(component)
                out[where] = wide.deduct(component, total[where], oldest[where])
            elif component.op in _DEDUCT:
                _DEDUCT[component.op](component.slot, out, total, oldest)
        return out

    return deduct


def _less(s: int, out: Partial, total: Partial, oldest: Partial) -> None:
    out[s] = total[s] - oldest[s]


def _less_moments(s: int, out: Partial, total: Partial, oldest: Partial) -> None:
    """Chan's formula, backwards; what has overflowed stays so."""
    (n, mean, m2), (m, x, q) = total[s : s + 3], oldest[s : s + 3]
    if n - m <= 0.0:
        out[s : s + 3] = 0.0, 0.0, 0.0
        return
    delta = x - mean
    before = mean - delta * (m / (n - m))
    left = inf if m2 == inf else m2 - q - delta * (x - before) * m
    out[s : s + 3] = n - m, before, left if left > 0.0 else 0.0


_DEDUCT: dict[Op, Callable[[int, Partial, Partial, Partial], None]] = {
    Op.SUM: _less, Op.LOG_SUM: _less, Op.COUNT: _less, Op.MOMENTS: _less_moments
}  # fmt: skip
