"""Lays the aggregates of a window out as one partial: a run of 8-byte slots and the components that combine them.

An exact window keeps only what its aggregates and its policy read. A window of buckets keeps, besides, what a bucket
does not know (prefix extremes; extremes with their first and last time and ordinal), so that a cut bucket still gives
a certain interval.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from typing import Any

from sluicegate.errors import ConfigurationError
from sluicegate.monoids.kll import MOST_BUCKETED_K, MOST_LEVELS, most_values
from sluicegate.monoids.monoid import COLUMNLESS, COMPOSITE, KINDS, OBJECTS, OWN, PAIRED, TOLD, Monoid

MAX_DIMENSIONS = 64
MAX_AGGREGATES = 256
MAX_WIDTH = 16_384
Wanted = tuple["Op", int, tuple[Any, ...]]


class Op(IntEnum):
    """What a component of a partial keeps. The order of the numbers is part of the compiled program's contract."""

    SUM = 0
    MIN = 1
    MAX = 2
    ARGMIN = 3  # value, least time it occurs at
    ARGMAX = 4
    FIRST = 5
    LAST = 6
    PREFIX = 7  # sum of x − center, least and greatest sum of a proper, non-empty prefix
    LOW = 8  # the minimum, its first and last time, its first and last ordinal
    HIGH = 9
    ORDERED = 10  # 1 while times never go back inside; reads the header's times, so it comes before them
    COUNT = 11
    T_FIRST = 12  # the least time
    T_LAST = 13  # the greatest time
    O_FIRST = 14  # the ordinal of the first reading
    SAMPLE = 15  # size, mean and squared deviations of results that rode in with the readings (sum-like histogram)
    MOMENTS = 16  # count (as a float), mean of x − center, sum of squared deviations from it
    LOG_SUM = 17  # sum of log x
    LOG_PREFIX = 18  # PREFIX of log x, around the center's logarithm
    LOW_COUNT = 19  # the minimum and how often it occurs
    HIGH_COUNT = 20
    LOW_ENDS = 21  # the minimum, the least value before its first and after its last occurrence (+inf: none there)
    HIGH_ENDS = 22  # the maximum alike (−inf: none there)
    RATE = 23  # the first value and its time, the last value and its time; from here on: the options' own ("wide") ones
    RUN = 24  # longest increasing run, see sluicegate.reference.wide
    BINS = 25  # below, a count a bin, from the last edge on; options: the edges
    BLOOM = 26  # bits; options: bits, hashes
    TOP = 27  # how many, then value and time each; options: k
    DISTINCT = 28  # number of coupons (−1: registers), then coupons or registers; options: lg k
    TOTAL = 29  # a sum as the rounded sum and what rounding lost
    COMPILED = 30  # the user's; options: name, width, four addresses, the dimensions' indices
    SPAN = 31  # the least and the greatest time
    OBJECT = 32  # a Python object; in the readable engines only
    AREA = 33  # Σ value × µs until the next, what its rounding lost, first and last time, last value, steps back
    LINE = 34  # of values over time, see sluicegate.monoids.comoments
    PAIR = 35  # of two dimensions, alike; options: the index of the second one
    KLL = 36  # readings, levels, least, greatest, a size a level, values; options: k
    COUNTS = 37  # a count-min sketch, row by row; options: width, depth


FORMATS = {
    Op.SUM: "d", Op.MIN: "d", Op.MAX: "d", Op.ARGMIN: "dq", Op.ARGMAX: "dq", Op.FIRST: "d", Op.LAST: "d",
    Op.PREFIX: "ddd", Op.LOW: "dqqqq", Op.HIGH: "dqqqq",
    Op.ORDERED: "q", Op.COUNT: "q", Op.T_FIRST: "q", Op.T_LAST: "q", Op.O_FIRST: "q", Op.SAMPLE: "ddd",
    Op.MOMENTS: "ddd", Op.LOG_SUM: "d", Op.LOG_PREFIX: "ddd", Op.LOW_COUNT: "dq", Op.HIGH_COUNT: "dq",
    Op.LOW_ENDS: "ddd", Op.HIGH_ENDS: "ddd", Op.RATE: "dqdq", Op.RUN: "qddqqqqqqqq",
    Op.TOTAL: "dd", Op.SPAN: "qq", Op.OBJECT: "q", Op.AREA: "ddqqdq",
    Op.LINE: "dqqdddddd", Op.PAIR: "dddddddd",
}  # fmt: skip
WIDE = Op.RATE
HEADER = (Op.COUNT, Op.T_FIRST, Op.T_LAST, Op.O_FIRST, Op.ORDERED)  # slots 0 … 4 of a partial that has a header
COUNT, T_FIRST, T_LAST, O_FIRST, ORDERED = range(5)
EXACT_OPS: dict[str, tuple[Op, ...]] = {
    "sum": (Op.SUM,), "mean": (Op.SUM,), "min": (Op.MIN,), "max": (Op.MAX,), "argmin": (Op.ARGMIN,),
    "argmax": (Op.ARGMAX,), "first": (Op.FIRST,), "last": (Op.LAST,), "variance": (Op.MOMENTS,), "std": (Op.MOMENTS,),
    "geometric_mean": (Op.LOG_SUM,), "range": (Op.MIN, Op.MAX), "min_count": (Op.LOW_COUNT,),
    "max_count": (Op.HIGH_COUNT,), "rate": (Op.RATE,), "frequency": (Op.SPAN,), "longest_run": (Op.RUN,),
    "histogram": (Op.BINS,), "bloom_filter": (Op.BLOOM,), "top_k": (Op.TOP,), "distinct_count": (Op.DISTINCT,),
    "compiled": (Op.COMPILED,), "count_min": (Op.COUNTS,), "time_weighted_mean": (Op.AREA,),
    "slope": (Op.LINE,), "intercept": (Op.LINE,), "covariance": (Op.PAIR,), "correlation": (Op.PAIR,),
    **dict.fromkeys(OBJECTS, (Op.OBJECT,)),
}  # fmt: skip
INVERTIBLE = frozenset((Op.SUM, Op.COUNT, Op.LAST, Op.T_LAST, Op.MOMENTS, Op.LOG_SUM, Op.BINS, Op.TOTAL, Op.COUNTS))
"""What can be deducted again when the oldest readings leave (T_LAST while times go forward), besides the users' own."""
CERTAIN = (Op.LOW, Op.HIGH, Op.FIRST, Op.LAST)  # what the certain intervals read of a cut bucket
BUCKET_OPS: dict[str, tuple[Op, ...]] = {
    **dict.fromkeys(("sum", "mean"), (Op.PREFIX, *CERTAIN)),
    **dict.fromkeys(("argmin", "argmax", "first"), CERTAIN),
    "last": (Op.LAST,),
    "min": (*CERTAIN, Op.LOW_ENDS),
    "max": (*CERTAIN, Op.HIGH_ENDS),
    "range": (*CERTAIN, Op.LOW_ENDS, Op.HIGH_ENDS),
    "min_count": (*CERTAIN, Op.LOW_ENDS, Op.LOW_COUNT),
    "max_count": (*CERTAIN, Op.HIGH_ENDS, Op.HIGH_COUNT),
    **dict.fromkeys(("variance", "std"), (Op.PREFIX, *CERTAIN, Op.MOMENTS)),
    "geometric_mean": (Op.LOG_PREFIX, *CERTAIN),
    "histogram": (Op.BINS,),
    "time_weighted_mean": (Op.AREA, *CERTAIN),
    **dict.fromkeys(("slope", "intercept"), (Op.LINE, *CERTAIN)),
    **dict.fromkeys(PAIRED, (Op.PAIR, *CERTAIN)),
    "bloom_filter": (Op.BLOOM, *CERTAIN),
    "top_k": (Op.TOP, *CERTAIN),
    "distinct_count": (Op.DISTINCT, *CERTAIN),
    "quantiles": (Op.KLL, *CERTAIN),
    "count_min": (Op.COUNTS, *CERTAIN),
}
WITH_OPTIONS = (Op.BINS, Op.BLOOM, Op.TOP, Op.DISTINCT, Op.KLL, Op.COUNTS)  # whose options are their aggregate's
NO_BUCKETS = {
    "rate": "the first reading of a bucket that the edge cuts has left, and a bucket does not know the others' times",
    "frequency": "a bucket does not know the times of its readings",
    "longest_run": "a run may begin anywhere inside a bucket that the edge cuts",
    **dict.fromkeys(("compiled", "custom"), "nothing is known of a part of a bucket in the user's own operation"),
    "collect": "it keeps the single readings",
}  # fmt: skip
"""Why a window of buckets refuses an aggregate: no certain interval follows where the edge cuts a bucket."""


@dataclass(frozen=True, slots=True)
class Component:
    """One element of the product monoid: what it keeps, of which dimension (0 for the header), from which slot on."""

    op: Op
    dimension: int
    slot: int
    options: tuple[Any, ...] = ()

    @property
    def format(self) -> str:
        """Its slots, one character each: d for a float, q for an integer."""
        return format_of(self.op, self.options)


@dataclass(frozen=True, slots=True)
class Layout:
    """The partial of one window: `width` slots of 8 bytes, `components` in the order in which they are combined."""

    names: tuple[str, ...]
    monoids: tuple[Monoid, ...]
    dimensions: tuple[str | None, ...]
    bucketed: bool  # leaves are buckets of many readings, with the header and the bounds' components
    header: bool
    components: tuple[Component, ...]
    width: int
    format: struct.Struct  # native byte order; stored bytes are swapped where the machine is big-endian
    slots: dict[Wanted, int] = field(compare=False, repr=False)
    objects: bool = field(init=False, compare=False, repr=False)  # of Python: only the readable engines keep them
    compiled: dict[bool, Any] = field(default_factory=dict, init=False, compare=False, repr=False)  # partials/filling

    def slot(self, op: Op, dimension: int = 0, options: tuple[Any, ...] = ()) -> int:
        """The first slot of a component, −1 where the partial lacks it."""
        return self.slots.get((op, dimension, options), -1)

    def exact_slots(self, monoid: Monoid) -> tuple[int, ...]:
        """Where a window of single readings keeps an aggregate's components; none for a count."""
        return tuple(self.slots[wanted] for wanted in _exact(monoid, self.dimensions))

    def composites(self) -> list[tuple[int, Monoid, slice]]:
        """The aggregates whose result is made from their component's slots: place, aggregate, slots."""
        found = []
        for place, monoid in enumerate(self.monoids):
            if monoid.kind in COMPOSITE:
                at, options = self.exact_slots(monoid)[0], _exact(monoid, self.dimensions)[0]
                found.append((place, monoid, slice(at, at + len(format_of(options[0], options[2])))))
        return found

    def told(self) -> list[tuple[int, Monoid]]:
        """The aggregates of a window of buckets that `bounds.told` answers: place, aggregate."""
        return [(place, monoid) for place, monoid in enumerate(self.monoids) if self.bucketed and monoid.kind in TOLD]

    def own_slots(self, monoid: Monoid) -> slice:
        """Where a window of buckets keeps what only this aggregate reads."""
        read = [self.dimensions.index(dimension) for dimension in monoid.reads]
        op = BUCKET_OPS[monoid.kind][0]
        options = _options(op, monoid, read)
        at = self.slots[op, read[0], options]
        return slice(at, at + len(format_of(op, options)))

    def code(self, slot: int) -> str:
        """What a slot holds: d for a float, q for an integer."""
        found = next(c for c in self.components if c.slot <= slot < c.slot + len(c.format))
        return found.format[slot - found.slot]

    def numbers(self, columns: Sequence[Any]) -> dict[str, Any]:
        """The columns of results by name, without those of results that are no numbers."""
        named = zip(self.names, self.monoids, columns, strict=True)
        return {name: column for name, monoid, column in named if monoid.kind not in COLUMNLESS}

    def __post_init__(self) -> None:
        object.__setattr__(self, "objects", any(component.op == Op.OBJECT for component in self.components))

    def unpack(self, packed: Any) -> Sequence[Any]:
        """The slots of a partial as a core gives it: bytes, or, where it holds objects, the slots themselves."""
        return packed if self.objects else self.format.unpack(packed)

    def extreme_slot(self, sign: int) -> int:
        """Where a partial keeps the greatest (sign 1) or least value (−1) of its only dimension; −1: it does not."""
        ops = (Op.HIGH, Op.MAX) if sign > 0 else (Op.LOW, Op.MIN)
        return max(self.slot(op) for op in ops)

    def dimension_of(self, monoid: Monoid) -> int:
        """The index of the (first) dimension an aggregate reads (0 for a count, which reads none)."""
        return self.dimensions.index(monoid.reads[0]) if monoid.reads else 0

    @property
    def untimed(self) -> Layout:
        """The same less the times a time policy reads, for a window that keeps them beside its engine."""
        kept = tuple(replace(c, slot=c.slot - 1) for c in self.components if c.op != Op.T_LAST)
        kept = kept or (Component(Op.COUNT, 0, 0),)
        slots = {(component.op, component.dimension, component.options): component.slot for component in kept}
        return replace(self, components=kept, width=max(self.width - 1, 1), slots=slots)

    @property
    def centered(self) -> bool:
        """Whether sums are of x − center: in buckets, and for moments, which so keep the digits of far values."""
        return self.bucketed or any(component.op == Op.MOMENTS for component in self.components)

    @property
    def positive(self) -> tuple[int, ...]:
        """The dimensions whose values must be greater than 0: a geometric mean reads them."""
        found = {self.dimension_of(monoid) for monoid in self.monoids if monoid.kind == "geometric_mean"}
        return tuple(sorted(found))

    @property
    def since(self) -> list[str]:
        """What of it Sluicegate 0.1 did not keep, for the fingerprint of stored windows."""
        return [component.op.name for component in self.components if component.op >= Op.MOMENTS]


def lay_out(
    aggregates: Mapping[str, Monoid] | Monoid,
    *,
    header: bool,
    times: bool,
    bucketed: bool,
    samples: int = 0,
    read: Sequence[tuple[Op, str | None]] = (),
) -> Layout:
    """Lay out a partial for these aggregates.

    `header`: keep count, times, first ordinal and order (a callable policy reads them); `times`: keep the greatest
    time (a time policy does); `bucketed`: leaves are buckets; `read`: what the policy reads besides, of which
    dimension. Windows of one kind share their layout. Raises ConfigurationError for an unknown aggregate or mixed
    dimensions.
    """
    named = _named(aggregates)
    _check(named)
    if bucketed:
        _check_buckets(named)
    asked = tuple(named.items()), header, times, bucketed, samples, tuple(read)
    if any(monoid.kind in OWN for monoid in named.values()):
        return _laid_out(*asked)
    return _shared(tuple(monoid.identity for monoid in named.values()), *asked)


@lru_cache(maxsize=64)
def _shared(identities: tuple[str, ...], *asked: Any) -> Layout:
    """`identities` tells apart options that are equal and not the same, as 1 and 1.0."""
    return _laid_out(*asked)


def _laid_out(
    pairs: tuple[tuple[str, Monoid], ...],
    header: bool,
    times: bool,
    bucketed: bool,
    samples: int,
    read: tuple[tuple[Op, str | None], ...],
) -> Layout:
    named = dict(pairs)
    dimensions = _dimensions(named, [dimension for _, dimension in read])
    wanted = _wanted(named, dimensions, bucketed)
    wanted += [(op, dimensions.index(dimension), ()) for op, dimension in read]
    wanted += [(Op.SAMPLE, control, ()) for control in range(samples)]
    head = HEADER if header or bucketed else (Op.T_LAST,) if times else ()
    components, width = _place(head, wanted)
    by_slot = sorted(components, key=lambda component: component.slot)
    return Layout(
        tuple(named), tuple(named.values()), dimensions, bucketed, header or bucketed, components, width,
        struct.Struct("=" + "".join(component.format for component in by_slot)),
        {(component.op, component.dimension, component.options): component.slot for component in components},
    )  # fmt: skip


def invertible(component: Component) -> bool:
    """Whether the oldest readings' part of a component can be deducted again."""
    if component.op == Op.COMPILED:
        return bool(component.options[5] != 0)
    if component.op == Op.OBJECT:
        return bool(component.options[0] == "custom" and component.options[2].deducts)
    return component.op in INVERTIBLE


def format_of(op: Op, options: tuple[Any, ...]) -> str:
    """The slots of a component, one character each."""
    match op, options:
        case Op.BINS, edges:
            return "q" * (len(edges) + 1)
        case Op.BLOOM, (int(bits), _):
            return "q" * (bits // 64)
        case Op.TOP, (int(k),):
            return "q" + "dq" * k
        case Op.DISTINCT, (int(lg_k),):
            return "q" * (1 + (1 << lg_k >> 3))
        case Op.KLL, (int(k),):
            return "qqdd" + "q" * MOST_LEVELS + "d" * most_values(k, MOST_LEVELS)
        case Op.COUNTS, (int(width), int(depth)):
            return "q" * (width * depth)
        case Op.COMPILED, (_, int(width), *_):
            return "q" * width
    return FORMATS[op]


def _named(aggregates: Mapping[str, Monoid] | Monoid) -> dict[str, Monoid]:
    if isinstance(aggregates, Monoid):
        return {aggregates.kind: aggregates}
    if not isinstance(aggregates, Mapping) or not all(isinstance(name, str) for name in aggregates):
        raise ConfigurationError(
            f"aggregates: {aggregates!r}, expected one, such as sg.mean(), or names with one each, such as "
            "{'mean': sg.mean()}"
        )
    return dict(aggregates)


def _check(named: Mapping[str, Monoid]) -> None:
    if not 1 <= len(named) <= MAX_AGGREGATES:
        raise ConfigurationError(f"aggregates: {len(named)} given, expected 1 to {MAX_AGGREGATES}")
    for name, monoid in named.items():
        if not isinstance(monoid, Monoid) or monoid.kind not in KINDS:
            raise ConfigurationError(
                f"aggregates[{name!r}]: {monoid!r} is not an aggregate; use sg.mean(), sg.max(), …"
            )
        several = isinstance(monoid.dimension, tuple) and monoid.kind not in (*OWN, *PAIRED)
        if several or not all(isinstance(each, str | None) for each in monoid.reads):
            raise ConfigurationError(
                f"aggregates[{name!r}]: dimension {monoid.dimension!r}, expected its name, or None for a stream of "
                "single values"
            )
        if type(monoid.ddof) is not int or monoid.ddof not in (0, 1):
            raise ConfigurationError(
                f"aggregates[{name!r}]: ddof {monoid.ddof!r}, expected 0 (the population's) or 1 (the sample's)"
            )


def _check_buckets(named: Mapping[str, Monoid]) -> None:
    for name, monoid in named.items():
        reason = NO_BUCKETS.get(monoid.kind)
        if monoid.kind in ("sum", "mean") and monoid.options:
            reason = "buckets sum differences from a center, with what rounding loses in the interval"
        if monoid.kind == "quantiles" and monoid.options[0] > MOST_BUCKETED_K:
            raise ConfigurationError(
                f"aggregates[{name!r}]: k {monoid.options[0]}; over buckets at most {MOST_BUCKETED_K}"
            )
        if reason:
            raise ConfigurationError(
                f"aggregates[{name!r}]: {monoid.kind} over buckets has no certain interval: {reason}; "
                "run this window without histograms"
            )


def _dimensions(named: Mapping[str, Monoid], of_policy: Sequence[str | None]) -> tuple[str | None, ...]:
    of_aggregates = [dimension for monoid in named.values() for dimension in monoid.reads]
    read = list(dict.fromkeys([*of_aggregates, *of_policy]))
    if None in read and len(read) > 1:
        named_ones = [dimension for dimension in read if dimension is not None]
        raise ConfigurationError(
            f"aggregates: some, or the policy, read {named_ones} and some no dimension; name a dimension in each"
        )
    if len(read) > MAX_DIMENSIONS:
        raise ConfigurationError(f"aggregates: {len(read)} dimensions, expected at most {MAX_DIMENSIONS}")
    return tuple(read) or (None,)


def _wanted(named: Mapping[str, Monoid], dimensions: tuple[str | None, ...], bucketed: bool) -> list[Wanted]:
    wanted: dict[Wanted, None] = {}
    for monoid in named.values():
        if bucketed and monoid.kind != "count":
            wanted |= dict.fromkeys(_bucketed(monoid, dimensions))
        elif not bucketed:
            wanted |= dict.fromkeys(_exact(monoid, dimensions))
    return list(wanted)


def _bucketed(monoid: Monoid, dimensions: tuple[str | None, ...]) -> list[Wanted]:
    """What a window of buckets keeps for an aggregate: its own component, and of each dimension what a cut asks for.

    The order is that of BUCKET_OPS: stored windows lie so.
    """
    read = [dimensions.index(dimension) for dimension in monoid.reads]
    ops = BUCKET_OPS[monoid.kind]
    return [(op, at, _options(op, monoid, read)) for at in read for op in ops if op in CERTAIN or at == read[0]]


def _options(op: Op, monoid: Monoid, read: Sequence[int]) -> tuple[Any, ...]:
    """What a component is told: its aggregate's options, or the second dimension that it reads."""
    if op == Op.PAIR:
        return (read[1],)
    return monoid.options if op in WITH_OPTIONS else ()


def _exact(monoid: Monoid, dimensions: tuple[str | None, ...]) -> tuple[Wanted, ...]:
    """What a window of single readings keeps for an aggregate."""
    read = tuple(dimensions.index(dimension) for dimension in monoid.reads)
    first, ops = read[0] if read else 0, EXACT_OPS.get(monoid.kind, ())
    if monoid.kind in ("sum", "mean") and monoid.options:
        ops = (Op.TOTAL,)
    if ops == (Op.OBJECT,):
        return ((Op.OBJECT, first, (monoid.kind, *monoid.options, read)),)
    if ops == (Op.COMPILED,):
        return ((Op.COMPILED, first, (*monoid.options[:6], read)),)
    return tuple((op, first, _options(op, monoid, read)) for op in ops)


def _place(head: tuple[Op, ...], wanted: list[Wanted]) -> tuple[tuple[Component, ...], int]:
    """Give slots to the header, then the rest; evaluate the rest first, then ORDERED, then the header it reads."""
    placed, slot = [], 0
    every: dict[Wanted, None] = dict.fromkeys([(op, 0, ()) for op in head] + wanted)
    for op, dimension, options in every:
        placed.append(Component(op, dimension, slot, options))
        slot += len(placed[-1].format)
    if slot == 0:  # a count over a count window reads nothing: one slot keeps the engines free of an empty partial
        placed, slot = [Component(Op.COUNT, 0, 0)], 1
    if slot > MAX_WIDTH:
        raise ConfigurationError(f"aggregates: a partial of {8 * slot} bytes, expected at most {8 * MAX_WIDTH}")
    return tuple(sorted(placed, key=lambda c: (c.op >= Op.ORDERED, c.op if c.op >= Op.ORDERED else c.slot))), slot
