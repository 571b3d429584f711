"""What the core and the window hand to one another: a saved window, a bounded answer, a cut."""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

from sluicegate.constants import BY_COUNT, BY_TIME, NEVER
from sluicegate.monoids.layout import Layout, Op


class Saved(NamedTuple):
    """All of a window but its closed leaves."""

    accepted: int  # readings so far, the next ordinal
    newest: int  # the greatest time seen
    edge: int  # the greatest ordinal known to be evicted, −1 at first
    created: int  # leaves so far
    head: int  # absolute indices at the current level
    tail: int
    mark: int  # leaves from here on have not been given out by `changes`
    level: int  # level evictions so far
    heads: tuple[int, ...]  # the head of each lower level when it was evicted, since the last multiple of KEPT_LEVELS
    centers: tuple[float, ...]
    left: bytes  # R0 and, less the newest leaf, R1; empty where absent
    right: bytes
    newest_leaf: bytes  # the open leaf of a window of buckets, else empty
    rules: bytes = b""  # what the histograms keep, empty where none does
    limit: int = 0  # of buckets now, 0: none
    held: int = NEVER  # the greatest time of what left as irrelevant
    late: bytes = b""  # how many came too late, and the buckets of late ones; empty where none came late


class Bounded(NamedTuple):
    """A result and between which values the exact one certainly lies; `exact`: nothing but rounding is uncertain."""

    value: Any
    low: Any
    high: Any
    exact: bool


class BoundedColumn(NamedTuple):
    """A result after each reading of a batch, and between which values the exact one certainly lies; NaN: no result."""

    value: array[float]
    low: array[float]
    high: array[float]


class Cut(NamedTuple):
    """How many of the oldest leaf's newest readings are inside: `least` to `most`, and `taken` by the estimate."""

    least: int
    most: int
    taken: int


def kept_slots(policy: int, layout: Layout, up_to: int) -> int:
    """How many of a leaf's first slots the eviction asks for: none by count, the time by time, else all."""
    if layout.header or up_to:
        return layout.width
    return {BY_COUNT: 0, BY_TIME: layout.slot(Op.T_LAST) + 1}.get(policy, layout.width)
