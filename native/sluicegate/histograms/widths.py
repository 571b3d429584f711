"""What a bucket may add to a cut window's interval: how the neighbouring pair that adds least to the bound is told."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from sluicegate.monoids.layout import Layout, Op


class Width(IntEnum):
    """How one aggregate's width follows from a bucket of n readings, least value m, greatest M, last value x."""

    COUNT = 0  # n − 1: it is not known how many of its readings are inside
    SUM = 1  # P⁺ − P⁻ of x − center, at most (n − 1)(M − m); of logarithms without the latter
    HIGH = 2  # the greatest value after the last maximum (M where that is not kept), less x, which is surely inside;
    # with other widths: less the greatest of all that follows the bucket in the window, where that is more
    LOW = 3  # alike
    RANGE = 4  # M − m
    SQUARES = 5  # (n − 1)(M − m)²


class Term(NamedTuple):
    """A width, the slots of a partial it is read from (−1: it is not), and whether the window's edge is a time."""

    width: Width
    prefix: int = -1
    low: int = -1
    high: int = -1
    last: int = -1
    ends: int = -1
    timed: bool = False


def terms(layout: Layout, timed: bool) -> list[Term]:
    """The widths of a window's aggregates, each once.

    `timed`: how many readings of a cut bucket are inside is not known.
    """
    found: dict[Term, None] = {}
    for monoid in layout.monoids:
        for kind in _WIDTHS.get(monoid.kind, (Width.COUNT,)):
            if kind == Width.COUNT and not timed and monoid.kind in ("count", "sum"):
                continue
            found[_term(kind, layout, layout.dimension_of(monoid), monoid.kind, timed)] = None
    return list(found)


_WIDTHS: dict[str, tuple[Width, ...]] = {
    "count": (Width.COUNT,), "sum": (Width.SUM, Width.COUNT), "mean": (Width.SUM,), "geometric_mean": (Width.SUM,),
    "min": (Width.LOW,), "argmin": (Width.LOW,), "max": (Width.HIGH,), "argmax": (Width.HIGH,),
    "range": (Width.LOW, Width.HIGH), "variance": (Width.SQUARES,), "std": (Width.SQUARES,), "first": (Width.RANGE,),
    "last": (), "min_count": (Width.COUNT, Width.LOW), "max_count": (Width.COUNT, Width.HIGH),
}  # fmt: skip


def _term(kind: Width, layout: Layout, dimension: int, aggregate: str, timed: bool) -> Term:
    if kind == Width.COUNT:
        return Term(kind, timed=timed)
    if aggregate == "geometric_mean":
        return Term(kind, layout.slot(Op.LOG_PREFIX, dimension), timed=timed)
    low, high = layout.slot(Op.LOW, dimension), layout.slot(Op.HIGH, dimension)
    if kind == Width.SUM:
        return Term(kind, layout.slot(Op.PREFIX, dimension), low, high, timed=timed)
    if kind in (Width.HIGH, Width.LOW):
        ends = layout.slot(Op.HIGH_ENDS if kind == Width.HIGH else Op.LOW_ENDS, dimension)
        return Term(kind, -1, low, high, layout.slot(Op.LAST, dimension), ends, timed)
    return Term(kind, -1, low, high, timed=timed)
