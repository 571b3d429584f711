"""The readable twin of the compiled estimate: what a window answers when its edge cuts the oldest bucket.

Where the edge lies (`cut`) and how much of the cut bucket is taken (`results`): interpolated by count where the
policy tells it, else by time, then moved to the nearest count and sum that the bucket allows, so that the answer lies
inside its certain interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, floor, inf, log
from typing import NamedTuple

from sluicegate.bounds import told
from sluicegate.bounds.view import View
from sluicegate.constants import BY_COUNT, CUSTOM
from sluicegate.monoids import Monoid
from sluicegate.monoids.layout import COUNT, O_FIRST, ORDERED, T_FIRST, T_LAST, Layout, Op
from sluicegate.monoids.monoid import TOLD
from sluicegate.monoids.results import empty
from sluicegate.records import Cut
from sluicegate.reference.program import Moments, Partial, merge
from sluicegate.reference.results import Value, spread
from twins.program import log_of

LITTLE = 0.0078125  # of a bucket's even share of the window's spread: not in doubt
SEEN = 3.0  # times what is in doubt: a slope is no deeper, else noise or the rest of the window hides most of it
LEAST_TAKEN, MOST_TAKEN = 0.125, 0.875  # of the way from what is certain to what is possible


class Edge(NamedTuple):
    """What tells where a window begins: policy, cutoff in time, and the greatest ordinal known to be evicted."""

    policy: int
    cutoff: int  # newest − span, for a time policy
    evicted: int


class Budget(NamedTuple):
    """The most buckets that a window may have (0: no limit), and its own extremes' distance and readings."""

    limit: int
    spread: float
    readings: int


class Places(NamedTuple):
    """Where a partial keeps an extreme, the opposite one, what follows the extreme (−1: nowhere), the last value."""

    own: int
    other: int
    after: int
    last: int


def cut(layout: Layout, leaf: Partial, edge: Edge) -> Cut:
    """Where the window's edge cuts its oldest leaf; (n, n, n) where it does not."""
    n, end = int(leaf[COUNT]), int(leaf[O_FIRST] + leaf[COUNT]) - 1
    most = min(n, end - edge.evicted)
    if edge.policy == BY_COUNT:
        return Cut(most, most, most)
    if edge.policy == CUSTOM:
        return Cut(1, most, most)
    if leaf[T_FIRST] > edge.cutoff:
        return Cut(most, most, most)
    least, most = _known(layout, leaf, edge.cutoff, end, most)
    share = float(leaf[T_LAST] - edge.cutoff) / float(leaf[T_LAST] - leaf[T_FIRST])
    return Cut(least, most, min(max(int(n * share + 0.5), least), most))


def _known(layout: Layout, leaf: Partial, cutoff: int, end: int, most: int) -> tuple[int, int]:
    """Narrow the count by the readings whose time and ordinal the bucket knows: its first, and its extremes."""
    least, ordered = 1, leaf[ORDERED] == 1
    if ordered:
        most = min(most, int(leaf[COUNT]) - 1)
    for component in layout.components:
        if component.op not in (Op.LOW, Op.HIGH):
            continue
        t_first, t_last, o_first, o_last = (int(slot) for slot in leaf[component.slot + 1 : component.slot + 5])
        if t_last > cutoff:
            least = max(least, end - (o_first if t_first > cutoff else o_last) + 1)
        if ordered and t_first <= cutoff:
            most = min(most, end - (o_last if t_last <= cutoff else o_first))
    return least, most


def results(
    layout: Layout,
    total: Partial | None,
    rest: Partial | None,
    leaf: Partial,
    where: Cut,
    centers: Sequence[float],
    limit: int,
    cutoff: int | None = None,
    late: bool = False,
) -> list[Value]:
    """One answer per aggregate of a window of buckets; `rest` is the window without its oldest leaf.

    `limit`: of the window's buckets, 0: there is none. Only where one decides what joins is an extreme in doubt given
    by how much: what a histogram by itself let join has hardly ever been the extreme, so the likelier end is right.
    """
    answers = []
    for monoid in layout.monoids:
        dimension = layout.dimension_of(monoid)
        if total is None:
            answers.append(empty(monoid))
        elif monoid.kind in TOLD:
            inside = None if rest is None else tuple(rest)
            seen = View(layout, tuple(total), inside, tuple(leaf), where, cutoff, tuple(centers), late)
            answers.append(told.answer(seen, monoid))
        elif where.taken == leaf[COUNT] == where.least:
            answers.append(_whole(layout, monoid, dimension, total, centers[dimension]))
        else:
            answers.append(_partly(layout, monoid, dimension, total, rest, leaf, where, centers[dimension], limit))
    return answers


_SLOTS = {
    "min": (Op.LOW, 0), "max": (Op.HIGH, 0), "argmin": (Op.LOW, 1), "argmax": (Op.HIGH, 1),
    "first": (Op.FIRST, 0), "last": (Op.LAST, 0), "min_count": (Op.LOW_COUNT, 1), "max_count": (Op.HIGH_COUNT, 1),
}  # fmt: skip


def _whole(layout: Layout, monoid: Monoid, dimension: int, total: Partial, center: float) -> Value:
    n, kind = total[COUNT], monoid.kind
    if kind == "count":
        return n
    if kind in ("sum", "mean"):
        s = total[layout.slot(Op.PREFIX, dimension)]
        return center * n + s if kind == "sum" else center + s / n
    if kind == "geometric_mean":
        return exp(log_of(center) + total[layout.slot(Op.LOG_PREFIX, dimension)] / n)
    if kind == "range":
        return total[layout.slot(Op.HIGH, dimension)] - total[layout.slot(Op.LOW, dimension)]
    if kind in ("variance", "std"):
        at = layout.slot(Op.MOMENTS, dimension)
        return spread(monoid, Moments(*total[at : at + 3]))
    op, offset = _SLOTS[kind]
    return total[layout.slot(op, dimension) + offset]


def _partly(
    layout: Layout,
    monoid: Monoid,
    dimension: int,
    total: Partial,
    rest: Partial | None,
    leaf: Partial,
    where: Cut,
    center: float,
    limit: int,
) -> Value:
    kind, inside = monoid.kind, 0 if rest is None else rest[COUNT]
    if kind == "count":
        return inside + where.taken
    if kind in ("sum", "mean"):
        at = layout.slot(Op.PREFIX, dimension)
        c, s = suffix_sum(layout, leaf, dimension, where, center)
        s = (0.0 if rest is None else rest[at]) + s
        return center * (inside + c) + s if kind == "sum" else center + s / (inside + c)
    if kind == "geometric_mean":
        at, center = layout.slot(Op.LOG_PREFIX, dimension), log_of(center)
        c, s = suffix_sum(layout, leaf, dimension, where, center, Op.LOG_PREFIX)
        return exp(center + ((0.0 if rest is None else rest[at]) + s) / (inside + c))
    if kind in ("variance", "std"):
        return spread(monoid, _moments(layout, dimension, rest, leaf, where, center))
    if kind == "last":
        return total[layout.slot(Op.LAST, dimension)]
    if kind == "first":
        return leaf[layout.slot(Op.LAST if where.taken == 1 else Op.FIRST, dimension)]
    between = total[layout.slot(Op.HIGH, dimension)] - total[layout.slot(Op.LOW, dimension)]
    budget = Budget(limit, between, int(total[COUNT]))
    return _of_extremes(layout, kind, dimension, rest, leaf, where, budget)


def _of_extremes(
    layout: Layout, kind: str, dimension: int, rest: Partial | None, leaf: Partial, where: Cut, budget: Budget
) -> Value:
    low, high, last = (layout.slot(op, dimension) for op in (Op.LOW, Op.HIGH, Op.LAST))
    if kind == "range":
        places = ((Places(high, low, _following(layout, dimension, 1), last), 1),
                  (Places(low, high, _following(layout, dimension, -1), last), -1))  # fmt: skip
        ends = (_extreme(leaf, kept, rest, where, sign, budget)[0] for kept, sign in places)
        greatest, least = (end for end in ends if end is not None)
        return greatest - least
    sign = 1 if kind in ("max", "argmax", "max_count") else -1
    own, other = (high, low) if sign == 1 else (low, high)
    if kind.endswith("_count"):
        counted = layout.slot(Op.HIGH_COUNT if sign == 1 else Op.LOW_COUNT, dimension)
        return _occurrences(leaf, own, counted, last, rest, where, sign)
    timed = kind.startswith("arg")
    after = -1 if timed else _following(layout, dimension, sign)
    return _extreme(leaf, Places(own, other, after, last), rest, where, sign, budget)[1 if timed else 0]


def _following(layout: Layout, dimension: int, sign: int) -> int:
    """Where a partial keeps the extreme of what follows the last place of its extreme; −1: it does not."""
    ends = layout.slot(Op.HIGH_ENDS if sign == 1 else Op.LOW_ENDS, dimension)
    return ends if ends < 0 else ends + 2


def _moments(layout: Layout, dimension: int, rest: Partial | None, leaf: Partial, where: Cut, center: float) -> Moments:
    """Of the rest and the suffix taken: its share of the leaf's squared deviations, no more than possible."""
    at, (c, s) = layout.slot(Op.MOMENTS, dimension), suffix_sum(layout, leaf, dimension, where, center)
    low, high = (leaf[layout.slot(op, dimension)] - center for op in (Op.LOW, Op.HIGH))
    m2 = leaf[at + 2] * c / leaf[COUNT]
    taken = Moments(float(c), s / c, max(0.0, min(m2, most_deviation(c, s / c, low, high))))
    return taken if rest is None else merge(Moments(*rest[at : at + 3]), taken)


def most_deviation(c: float, mean: float, low: float, high: float) -> float:
    """The greatest sum of squared deviations of c values in low … high of this mean: all but one at the ends."""
    if not high > low:
        return 0.0
    u = c * ((min(max(mean, low), high) - low) / (high - low))
    j = float(floor(u))
    f = u - j
    return (high - low) * (high - low) * (j + f * f - (j + f) * (j + f) / c)


def _occurrences(
    leaf: Partial, own: int, counted: int, last: int, rest: Partial | None, where: Cut, sign: int
) -> Value:
    """How often the extreme occurs: the share of the leaf's that is taken, at least one where it is known inside."""
    kept, n = leaf[O_FIRST] + leaf[COUNT] - where.least, int(leaf[COUNT])
    value, times = leaf[last], 1
    if leaf[own + 4] >= kept:
        value, times = leaf[own], int(leaf[counted + 1])
        if leaf[own + 3] < kept:
            times = max(1, (times * where.taken + (n >> 1)) // n)
    if rest is None or sign * value > sign * rest[own]:
        return times
    return rest[counted + 1] + (times if value == rest[own] else 0)


class Sums(NamedTuple):
    """What is known of the sum of x − center over the c newest readings of a cut bucket, as bounds for every c."""

    low: float  # the prefix sums' bounds
    high: float
    least: float  # the bucket's extremes, less the center
    most: float
    last: float  # the last reading, which is inside
    others: float  # the sum without the first reading, which is outside, of n − 1 readings
    n: int
    first_is_out: bool

    def lower(self, c: int) -> float:
        """The sum of c readings is at least this."""
        bound = max(self.low, self.last + (c - 1) * self.least)
        return max(bound, self.others - (self.n - 1 - c) * self.most) if self.first_is_out else bound

    def upper(self, c: int) -> float:
        """The sum of c readings is at most this."""
        bound = min(self.high, self.last + (c - 1) * self.most)
        return min(bound, self.others - (self.n - 1 - c) * self.least) if self.first_is_out else bound

    def gap(self, c: int) -> float:
        """Convex in c; no more than 0 where c readings are possible."""
        return self.lower(c) - self.upper(c)


def suffix_sum(
    layout: Layout, leaf: Partial, dimension: int, where: Cut, center: float, kept: Op = Op.PREFIX
) -> tuple[int, float]:
    """Count and sum of x − center taken from a cut leaf: interpolated, then moved to what the leaf allows.

    `kept` LOG_PREFIX: of logarithms.
    """
    at, n = layout.slot(kept, dimension), int(leaf[COUNT])
    total, low, high = leaf[at], leaf[at + 1], leaf[at + 2]
    known = [leaf[layout.slot(op, dimension)] for op in (Op.FIRST, Op.LAST, Op.LOW, Op.HIGH)]
    first, last, least, most = ((log(x) if kept == Op.LOG_PREFIX else x) - center for x in known)
    s0, s1 = total - high, total - low
    if where.most == n:
        s0, s1 = min(s0, total), max(s1, total)
    sums = Sums(s0, s1, least, most, last, total - first, n, where.most < n)
    c = where.taken if sums.gap(where.taken) <= 0 else _possible(sums, where)
    return c, min(max(total * c / n, sums.lower(c)), sums.upper(c))


def _possible(sums: Sums, where: Cut) -> int:
    """The count with the least gap: one that is possible, since the true one is."""
    low, high = where.least, where.most
    while low < high:
        middle = (low + high) >> 1
        if sums.gap(middle) <= sums.gap(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def _extreme(
    leaf: Partial, kept_at: Places, rest: Partial | None, where: Cut, sign: int, budget: Budget
) -> tuple[Value, Value]:
    """Value and time: the cut leaf's extreme where it certainly is inside, else the last reading, which surely is.

    Where its time is not asked for and what follows the extreme is known (`after` ≥ 0): as `_likely`, without a time.
    """
    end, own = leaf[O_FIRST] + leaf[COUNT], kept_at.own
    kept = end - where.least  # ordinals from here on are certainly inside
    if kept_at.after >= 0:
        return _likely(leaf, kept_at, rest, where, sign, budget), leaf[T_LAST]
    if leaf[own + 4] >= kept:
        value, time = leaf[own], leaf[own + 1 if leaf[own + 3] >= kept else own + 2]
    else:
        value, time = leaf[kept_at.last], leaf[T_LAST]
    if rest is None or sign * value > sign * rest[own]:
        return value, time
    return rest[own], min(time, rest[own + 1]) if value == rest[own] else rest[own + 1]


def of_a_wave(share: float) -> float:
    """How deep a wave as long as the window falls over a share of its readings, at most, as a part of its own depth."""
    x = min(share, 0.5)
    return 4.0 * x * (1.0 - x)


def _likely(leaf: Partial, kept_at: Places, rest: Partial | None, where: Cut, sign: int, budget: Budget) -> float:
    """What is greatest of the rest and what is left of the cut leaf: see `cut_extreme` in answers/results.pyx."""
    own, other, after, last = kept_at
    end, place = leaf[O_FIRST] + leaf[COUNT], leaf[own + 4]
    others = -sign * inf if rest is None else rest[own]
    low = _beyond(sign, leaf[own] if place >= end - where.least else leaf[last], others)
    high = _beyond(sign, leaf[own] if place >= end - where.most else leaf[after], others)
    behind = end - 1 - place
    if budget.limit and abs(high - low) > LITTLE * (budget.spread / budget.limit):
        depth, share = abs(high - leaf[other]), behind / budget.readings
        slope = depth <= budget.spread * of_a_wave(share) and (depth <= SEEN * abs(high - low) or share >= 0.5)
        way = min(max(where.taken / behind, LEAST_TAKEN), MOST_TAKEN) if slope else 0.5
        return low + way * (high - low)
    half = 2 * where.taken >= behind
    return _beyond(sign, leaf[own] if place >= end - where.taken else leaf[after] if half else leaf[last], others)


def _beyond(sign: int, x: float, y: float) -> float:
    return x if sign * x > sign * y else y
