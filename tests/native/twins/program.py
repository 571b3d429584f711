"""The twin of what sluicegate.partials.program does for buckets: exact components are `reference.program`'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log

from sluicegate.monoids.layout import Layout, Op
from sluicegate.reference import program
from sluicegate.reference.program import Operation, Partial, lift_into, merge_slots


def log_of(center: float) -> float:
    """Where logarithms are taken around: 0 for a center that has none."""
    return log(center) if center > 0.0 else 0.0


def lift(layout: Layout, values: Sequence[float], time: int, ordinal: int, centers: Sequence[float]) -> Partial:
    """One reading as a partial."""
    exact = [component for component in layout.components if component.op not in OF_BUCKETS]
    out = lift_into([0] * layout.width, exact, values, time, ordinal, centers)
    for component in layout.components:
        slot = component.slot
        match component.op:
            case Op.PREFIX:
                out[slot : slot + 3] = values[component.dimension] - centers[component.dimension], inf, -inf
            case Op.LOW | Op.HIGH:
                out[slot : slot + 5] = values[component.dimension], time, time, ordinal, ordinal
            case Op.SAMPLE:
                out[slot : slot + 3] = 0.0, 0.0, 0.0
            case Op.LOG_PREFIX:
                x = log(values[component.dimension]) - log_of(centers[component.dimension])
                out[slot : slot + 3] = x, inf, -inf
            case Op.LOW_ENDS:
                out[slot : slot + 3] = values[component.dimension], inf, inf
            case Op.HIGH_ENDS:
                out[slot : slot + 3] = values[component.dimension], -inf, -inf
    return out


def combiner(layout: Layout) -> Callable[[Partial, Partial], Partial]:
    """The monoid's operation on partials of this layout."""
    return program.combiner(layout, {**program.COMBINE, **OF_BUCKETS})


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


OF_BUCKETS: dict[Op, Operation] = {
    Op.PREFIX: _prefix, Op.LOG_PREFIX: _prefix, Op.LOW: _low, Op.HIGH: _high, Op.SAMPLE: merge_slots,
    Op.LOW_ENDS: _low_ends, Op.HIGH_ENDS: _high_ends,
}  # fmt: skip
