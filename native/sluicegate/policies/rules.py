"""Policies that read an attribute, a total, the maximum or the longest run; a window's core enforces them, compiled.

Each is a FIFO: the oldest reading leaves while the rule holds, and one that stays blocks those behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sluicegate.checks import check_count, check_dimension, check_number
from sluicegate.monoids.layout import Layout, Op
from sluicegate.policies.eviction import DELTA, LONGEST_RUN, MAXIMUM, TOTAL, EvictionRule

Read = tuple[Op, str | None]


@dataclass(frozen=True, slots=True)
class Delta:
    """Keep the readings whose attribute is within `width` of the newest reading's; the newest always stays.

    The oldest leaves while |newest − oldest| > width. Monotone. `growing`: the attribute never falls, and a reading
    that says otherwise is refused; then it depends only on what remains, and buckets have certain bounds.
    """

    dimension: str | None
    width: float
    growing: bool = False
    monotone: ClassVar[bool] = True
    hops: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a width that is negative or not finite."""
        check_dimension("policies.delta", self.dimension)
        check_number("policies.delta", self.width, "width", least=0.0)

    @property
    def remaining(self) -> bool:
        """Whether it depends only on what remains: an attribute that falls may not bring back what has left."""
        return self.growing

    @property
    def exact_only(self) -> str:
        """Why it takes no histograms, empty where it does."""
        reason = "where the attribute falls, more than the oldest bucket may be cut; declare it growing=True if it is"
        return "" if self.growing else reason

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"delta:{self.dimension}:{float(self.width)!r}" + (":growing" if self.growing else "")

    @property
    def reads(self) -> Sequence[Read]:
        """What a partial must keep for it."""
        return ((Op.MIN, self.dimension), (Op.MAX, self.dimension))

    def eviction(self, layout: Layout) -> EvictionRule:
        """The rule for partials of this layout."""
        d = layout.dimensions.index(self.dimension)
        slots = layout.slot(Op.MIN, d), layout.slot(Op.MAX, d)
        return EvictionRule(DELTA, self.name, True, *slots, d, float(self.width), growing=self.growing)


@dataclass(frozen=True, slots=True)
class Total:
    """Evict the oldest while the sum of the window exceeds `limit`: AMTA's running example.

    Monotone while no value in the window is negative, and then evicted in bulk; else one by one. A single reading above
    the limit leaves too, and the window is empty.
    """

    dimension: str | None
    limit: float
    monotone: ClassVar[bool] = False  # of any stream; the core sees when it is
    remaining: ClassVar[bool] = True
    hops: ClassVar[bool] = True
    exact_only: ClassVar[str] = "its edge follows the sum inside a bucket, which a bucket does not know"

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a limit that is not finite."""
        check_dimension("policies.total", self.dimension)
        check_number("policies.total", self.limit, "limit")

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"total:{self.dimension}:{float(self.limit)!r}"

    @property
    def reads(self) -> Sequence[Read]:
        """What a partial must keep for it."""
        return ((Op.SUM, self.dimension), (Op.MIN, self.dimension))

    def eviction(self, layout: Layout) -> EvictionRule:
        """The rule for partials of this layout."""
        d = layout.dimensions.index(self.dimension)
        slots = layout.slot(Op.SUM, d), layout.slot(Op.MIN, d)
        return EvictionRule(TOTAL, self.name, False, *slots, d, float(self.limit))


@dataclass(frozen=True, slots=True)
class _NewerThan:
    """Evict what precedes a place in the window, and, with `limit`, all but the newest so many readings."""

    dimension: str | None = None
    limit: int | None = None
    monotone: ClassVar[bool] = True
    hops: ClassVar[bool] = True
    exact_only: ClassVar[str]
    kind: ClassVar[int]
    op: ClassVar[Op]
    label: ClassVar[str]

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a limit below 1."""
        call = f"policies.{self.label.replace('-', '_')}"
        check_dimension(call, self.dimension)
        if self.limit is not None:
            check_count(call, self.limit, "limit")

    @property
    def remaining(self) -> bool:
        """Whether it depends only on what remains; a limit may evict the place."""
        return self.limit is None

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"{self.label}:{self.dimension}:{self.limit or 0}"

    @property
    def reads(self) -> Sequence[Read]:
        """What a partial must keep for it."""
        return ((self.op, self.dimension),)

    def eviction(self, layout: Layout) -> EvictionRule:
        """The rule for partials of this layout."""
        d = layout.dimensions.index(self.dimension)
        return EvictionRule(self.kind, self.name, True, layout.slot(self.op, d), 0, d, most=self.limit or 0)


class NewerThanMaximum(_NewerThan):
    """Evict what precedes the first occurrence of the window's maximum, and, with `limit`, all but the newest so many.

    Monotone. Without a limit it depends only on what remains.
    """

    __slots__ = ()
    exact_only: ClassVar[str] = (
        "the limit may cut a bucket before or after its maximum; use count(n, up_to='max') or time(span, up_to='max')"
    )
    kind, op, label = MAXIMUM, Op.MAX, "newer-than-maximum"


class NewerThanLongestRun(_NewerThan):
    """Evict what precedes the first of the longest strictly increasing runs; with `limit`, keep the newest so many.

    Monotone. Without a limit it depends only on what remains.
    """

    __slots__ = ()
    exact_only: ClassVar[str] = "a run may begin anywhere inside a bucket"
    kind, op, label = LONGEST_RUN, Op.RUN, "newer-than-longest-run"


def delta(dimension: str | None, width: float, *, growing: bool = False) -> Delta:
    """Keep the readings whose attribute is within `width` (in its units) of the newest reading's.

    `dimension`: the attribute; it may be one that no aggregate reads, and None is the value itself. Where it does not
    grow, the oldest leaves while it is farther away on either side: after a counter's reset what came before leaves at
    once, and an oldest reading that is near keeps those behind it, as in any FIFO. `growing`: it never falls; a reading
    whose attribute does is refused (InputError), and histograms may be used. Raises ConfigurationError for a negative
    or infinite width. Source: Gedik 2014, 3.3.2, who asks for a non-decreasing attribute.
    """
    return Delta(dimension, width, growing)


def total(dimension: str | None, limit: float) -> Total:
    """Evict the oldest while the sum of `dimension` (None: of the values) exceeds `limit` ("the sum stays ≤ 10").

    The sum is the one that `query` gives, rounded as the engine rounds it. While no value in the window is negative
    many readings leave in O(log n); otherwise a longer window may have the smaller sum, and the oldest are asked one by
    one: the first sum that is not above the limit stays. Histograms are refused. Raises ConfigurationError for a limit
    that is not finite. Source: paper AMTA, 3.2.
    """
    return Total(dimension, limit)


def newer_than_maximum(dimension: str | None = None, *, limit: int | None = None) -> NewerThanMaximum:
    """Evict what precedes the maximum: the window begins at the first occurrence of its greatest value.

    `limit`: and keep at most so many readings; what is evicted can never become the maximum of the newest `limit`
    readings, so max, argmax and max_count answer as theirs. Histograms are refused. Raises ConfigurationError for a
    limit below 1. Source: paper AMTA, 5.6 (Experiment 3).
    """
    return NewerThanMaximum(dimension, limit)


def newer_than_longest_run(dimension: str | None = None, *, limit: int | None = None) -> NewerThanLongestRun:
    """Evict what precedes the longest strictly increasing run: the window begins where the first such run does.

    `limit`: and keep at most so many readings; what is evicted can never be part of a longer run of the newest `limit`
    readings, so `longest_run` answers as theirs. Histograms are refused. Raises ConfigurationError for a limit below 1.
    Source: paper AMTA, 5.6 (Experiment 3, "LIS").
    """
    return NewerThanLongestRun(dimension, limit)
