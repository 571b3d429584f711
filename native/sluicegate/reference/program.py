"""Lift and combine partials of exact windows, slot by slot, with the bits of sluicegate.partials.program.

A partial here is a list of `layout.width` Python numbers. `combine(a, b)` is associative up to rounding (counts,
times and extremes to the bit) and takes a's readings to precede b's. There is no neutral element: absence is the
engines' matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import log
from typing import NamedTuple

from sluicegate.monoids.layout import ORDERED, T_FIRST, T_LAST, WIDE, Component, Layout, Op
from sluicegate.reference import wide

Slot = float | int
Partial = list[Slot]
Operation = Callable[[int, Partial, Partial, Partial], None]


class Moments(NamedTuple):
    """Size, mean and sum of squared deviations of a sample; (0, 0, 0) is neutral."""

    n: float = 0.0
    mean: float = 0.0
    m2: float = 0.0


def merge(a: Moments, b: Moments) -> Moments:
    """The moments of both samples together (Chan, Golub & LeVeque); an empty side returns the other untouched."""
    if b.n == 0.0:
        return a
    if a.n == 0.0:
        return b
    n, delta = a.n + b.n, b.mean - a.mean
    share = b.n / n
    return Moments(n, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.n * share)


def lift(layout: Layout, values: Sequence[float], time: int, ordinal: int, centers: Sequence[float]) -> Partial:
    """One reading as a partial of an exact window."""
    return lift_into([0] * layout.width, layout.components, values, time, ordinal, centers)


def lift_into(
    out: Partial,
    components: Iterable[Component],
    values: Sequence[float],
    time: int,
    ordinal: int,
    centers: Sequence[float],
) -> Partial:
    """The same of some of its components."""
    for component in components:
        if component.op == Op.OBJECT:
            continue  # the core's matter: sluicegate.reference.object_core
        if component.op >= WIDE:
            out[range_of(component)] = wide.lift(component, values, time, ordinal)
            continue
        slot, x = component.slot, values[component.dimension]
        match component.op:
            case Op.SUM | Op.MIN | Op.MAX | Op.FIRST | Op.LAST:
                out[slot] = x
            case Op.ARGMIN | Op.ARGMAX:
                out[slot : slot + 2] = x, time
            case Op.MOMENTS:
                out[slot : slot + 3] = 1.0, x - centers[component.dimension], 0.0
            case Op.LOG_SUM:
                out[slot] = log(x)
            case Op.LOW_COUNT | Op.HIGH_COUNT:
                out[slot : slot + 2] = x, 1
            case Op.ORDERED | Op.COUNT:
                out[slot] = 1
            case Op.T_FIRST | Op.T_LAST:
                out[slot] = time
            case Op.O_FIRST:
                out[slot] = ordinal
    return out


def combiner(layout: Layout, operations: Mapping[Op, Operation] | None = None) -> Callable[[Partial, Partial], Partial]:
    """The monoid's operation on partials of this layout; `operations`: of its components, an exact window's if None."""
    combine_slots = COMBINE if operations is None else operations

    def combine(a: Partial, b: Partial) -> Partial:
        out: Partial = [0] * layout.width
        for component in layout.components:
            if component.op < WIDE:
                combine_slots[component.op](component.slot, out, a, b)
                continue
            if component.op == Op.OBJECT:
                continue
            where = range_of(component)
            out[where] = wide.combine(component, a[where], b[where])
        return out

    return combine


def range_of(component: Component) -> slice:
    """Its slots."""
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


def _arg(sign: int, s: int, out: Partial, a: Partial, b: Partial) -> None:
    taken = b if sign * b[s] > sign * a[s] else a
    out[s : s + 2] = taken[s], min(a[s + 1], b[s + 1]) if a[s] == b[s] else taken[s + 1]


def _ordered(s: int, out: Partial, a: Partial, b: Partial) -> None:
    out[s] = int(a[ORDERED] == 1 and b[ORDERED] == 1 and b[T_FIRST] >= a[T_LAST])


def merge_slots(s: int, out: Partial, a: Partial, b: Partial) -> None:
    """Moments in three slots."""
    out[s : s + 3] = merge(Moments(*a[s : s + 3]), Moments(*b[s : s + 3]))


def _count(sign: int, s: int, out: Partial, a: Partial, b: Partial) -> None:
    taken = b if sign * b[s] > sign * a[s] else a
    out[s : s + 2] = taken[s], a[s + 1] + b[s + 1] if a[s] == b[s] else taken[s + 1]


COMBINE: dict[Op, Operation] = {
    Op.SUM: _sum, Op.MIN: _min, Op.MAX: _max, Op.ARGMIN: partial(_arg, -1), Op.ARGMAX: partial(_arg, 1),
    Op.FIRST: _first, Op.LAST: _last, Op.ORDERED: _ordered, Op.COUNT: _sum, Op.T_FIRST: _min, Op.T_LAST: _max,
    Op.O_FIRST: _first, Op.MOMENTS: merge_slots, Op.LOG_SUM: _sum, Op.LOW_COUNT: partial(_count, -1),
    Op.HIGH_COUNT: partial(_count, 1),
}  # fmt: skip
