"""Lays the aggregates of a window out as one partial: a run of 8-byte slots and the components that combine them.

An exact window keeps only what its aggregates and its policy read. A window of buckets keeps, besides, what a bucket
does not know (prefix extremes; extremes with their first and last time and ordinal), so that a cut bucket still gives
a certain interval.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from sluicegate.errors import ConfigurationError
from sluicegate.monoids import KINDS, Monoid

MAX_DIMENSIONS = 64
MAX_AGGREGATES = 256


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


FORMATS = {
    Op.SUM: "d", Op.MIN: "d", Op.MAX: "d", Op.ARGMIN: "dq", Op.ARGMAX: "dq", Op.FIRST: "d", Op.LAST: "d",
    Op.PREFIX: "ddd", Op.LOW: "dqqqq", Op.HIGH: "dqqqq",
    Op.ORDERED: "q", Op.COUNT: "q", Op.T_FIRST: "q", Op.T_LAST: "q", Op.O_FIRST: "q", Op.SAMPLE: "ddd",
    Op.MOMENTS: "ddd", Op.LOG_SUM: "d", Op.LOG_PREFIX: "ddd", Op.LOW_COUNT: "dq", Op.HIGH_COUNT: "dq",
    Op.LOW_ENDS: "ddd", Op.HIGH_ENDS: "ddd",
}  # fmt: skip
HEADER = (Op.COUNT, Op.T_FIRST, Op.T_LAST, Op.O_FIRST, Op.ORDERED)  # slots 0 … 4 of a partial that has a header
COUNT, T_FIRST, T_LAST, O_FIRST, ORDERED = range(5)
EXACT_OPS: dict[str, tuple[Op, ...]] = {
    "sum": (Op.SUM,), "mean": (Op.SUM,), "min": (Op.MIN,), "max": (Op.MAX,), "argmin": (Op.ARGMIN,),
    "argmax": (Op.ARGMAX,), "first": (Op.FIRST,), "last": (Op.LAST,), "variance": (Op.MOMENTS,), "std": (Op.MOMENTS,),
    "geometric_mean": (Op.LOG_SUM,), "range": (Op.MIN, Op.MAX), "min_count": (Op.LOW_COUNT,),
    "max_count": (Op.HIGH_COUNT,),
}  # fmt: skip
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
}


@dataclass(frozen=True, slots=True)
class Component:
    """One element of the product monoid: what it keeps, of which dimension (0 for the header), from which slot on."""

    op: Op
    dimension: int
    slot: int


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
    slots: dict[tuple[Op, int], int] = field(compare=False, repr=False)

    def slot(self, op: Op, dimension: int = 0) -> int:
        """The first slot of a component, −1 where the partial lacks it."""
        return self.slots.get((op, dimension), -1)

    def extreme_slot(self, sign: int) -> int:
        """Where a partial keeps the greatest (sign 1) or least value (−1) of its only dimension; −1: it does not."""
        ops = (Op.HIGH, Op.MAX) if sign > 0 else (Op.LOW, Op.MIN)
        return max(self.slot(op) for op in ops)

    def dimension_of(self, monoid: Monoid) -> int:
        """The index of the dimension an aggregate reads (0 for a count, which reads none)."""
        return self.dimensions.index(monoid.dimension) if monoid.kind != "count" else 0

    @property
    def untimed(self) -> Layout:
        """The same less the times a time policy reads, for a window that keeps them beside its engine."""
        kept = tuple(replace(c, slot=c.slot - 1) for c in self.components if c.op != Op.T_LAST)
        kept = kept or (Component(Op.COUNT, 0, 0),)
        slots = {(component.op, component.dimension): component.slot for component in kept}
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
    aggregates: Mapping[str, Monoid] | Monoid, *, header: bool, times: bool, bucketed: bool, samples: int = 0
) -> Layout:
    """Lay out a partial for these aggregates.

    `header`: keep count, times, first ordinal and order (a callable policy reads them); `times`: keep the greatest
    time (a time policy does); `bucketed`: leaves are buckets. Raises ConfigurationError for an unknown aggregate or
    mixed dimensions.
    """
    named = {aggregates.kind: aggregates} if isinstance(aggregates, Monoid) else dict(aggregates)
    _check(named)
    dimensions = _dimensions(named)
    wanted = _wanted(named, dimensions, bucketed) + [(Op.SAMPLE, control) for control in range(samples)]
    head = HEADER if header or bucketed else (Op.T_LAST,) if times else ()
    components, width = _place(head, wanted)
    by_slot = sorted(components, key=lambda component: component.slot)
    return Layout(
        tuple(named), tuple(named.values()), dimensions, bucketed, header or bucketed, components, width,
        struct.Struct("=" + "".join(FORMATS[component.op] for component in by_slot)),
        {(component.op, component.dimension): component.slot for component in components},
    )  # fmt: skip


def _check(named: Mapping[str, Monoid]) -> None:
    if not 1 <= len(named) <= MAX_AGGREGATES:
        raise ConfigurationError(f"aggregates: {len(named)} given, expected 1 to {MAX_AGGREGATES}")
    for name, monoid in named.items():
        if not isinstance(monoid, Monoid) or monoid.kind not in KINDS:
            raise ConfigurationError(
                f"aggregates[{name!r}]: {monoid!r} is not an aggregate; use sg.mean(), sg.max(), …"
            )
        if type(monoid.ddof) is not int or monoid.ddof not in (0, 1):
            raise ConfigurationError(
                f"aggregates[{name!r}]: ddof {monoid.ddof!r}, expected 0 (the population's) or 1 (the sample's)"
            )


def _dimensions(named: Mapping[str, Monoid]) -> tuple[str | None, ...]:
    read = list(dict.fromkeys(monoid.dimension for monoid in named.values() if monoid.kind != "count"))
    if None in read and len(read) > 1:
        named_ones = [dimension for dimension in read if dimension is not None]
        raise ConfigurationError(f"aggregates: some read {named_ones} and some no dimension; name a dimension in each")
    if len(read) > MAX_DIMENSIONS:
        raise ConfigurationError(f"aggregates: {len(read)} dimensions, expected at most {MAX_DIMENSIONS}")
    return tuple(read) or (None,)


def _wanted(named: Mapping[str, Monoid], dimensions: tuple[str | None, ...], bucketed: bool) -> list[tuple[Op, int]]:
    wanted: dict[tuple[Op, int], None] = {}
    for monoid in named.values():
        if monoid.kind == "count":
            continue
        for op in BUCKET_OPS[monoid.kind] if bucketed else EXACT_OPS[monoid.kind]:
            wanted[op, dimensions.index(monoid.dimension)] = None
    return list(wanted)


def _place(head: tuple[Op, ...], wanted: list[tuple[Op, int]]) -> tuple[tuple[Component, ...], int]:
    """Give slots to the header, then the rest; evaluate the rest first, then ORDERED, then the header it reads."""
    placed, slot = [], 0
    for op, dimension in [(op, 0) for op in head] + wanted:
        placed.append(Component(op, dimension, slot))
        slot += len(FORMATS[op])
    if slot == 0:  # a count over a count window reads nothing: one slot keeps the engines free of an empty partial
        placed, slot = [Component(Op.COUNT, 0, 0)], 1
    return tuple(sorted(placed, key=lambda c: (c.op >= Op.ORDERED, c.op if c.op >= Op.ORDERED else c.slot))), slot
