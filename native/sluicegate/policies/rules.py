"""Policies that read an attribute, a total, the maximum or the longest run; a window's core enforces them, compiled.

Each is a FIFO: the oldest reading leaves while the rule holds, and one that stays blocks those behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sluicegate.checks import check_count, check_dimension, check_number
from sluicegate.monoids.layout import Layout, Op
from sluicegate.policies.eviction import DELTA, LONGEST_RUN, MAXIMUM, TOTAL, EvictionRule

Read = tuple[Op, str | None]


class _OfOne:
    """A rule over what a partial keeps of one dimension; `kind` and `ops` are the core's."""

    __slots__ = ()
    dimension: str | None
    monotone: ClassVar[bool]
    hops: ClassVar[bool] = True
    kind: ClassVar[int]
    ops: ClassVar[tuple[Op, ...]]

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        raise NotImplementedError

    @property
    def _told(self) -> dict[str, Any]:
        """What else the core is told."""
        raise NotImplementedError

    @property
    def reads(self) -> Sequence[Read]:
        """What a partial must keep for it."""
        return [(op, self.dimension) for op in self.ops]

    def eviction(self, layout: Layout) -> EvictionRule:
        """The rule for partials of this layout."""
        d = layout.dimensions.index(self.dimension)
        slots = [layout.slot(op, d) for op in self.ops]
        return EvictionRule(self.kind, self.name, self.monotone, slots[0], slots[-1], d, **self._told)


@dataclass(frozen=True, slots=True)
class Delta(_OfOne):
    """Keep the readings whose attribute is within `width` (in its units) of the newest reading's.

    `dimension`: the attribute; it may be one that no aggregate reads, and None is the value itself. Where it does not
    grow, the oldest leaves while it is farther away on either side: after a counter's reset what came before leaves at
    once, and an oldest reading that is near keeps those behind it, as in any FIFO. `growing`: it never falls; a reading
    whose attribute does is refused (InputError); then the rule depends only on what remains, and histograms may be
    used. Monotone. Raises ConfigurationError for a negative or infinite width. Source: Gedik 2014, 3.3.2, who asks for
    a non-decreasing attribute.
    """

    dimension: str | None
    width: float
    _: KW_ONLY
    growing: bool = False
    monotone: ClassVar[bool] = True
    kind: ClassVar[int] = DELTA
    ops: ClassVar[tuple[Op, ...]] = (Op.MIN, Op.MAX)

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
    def _told(self) -> dict[str, Any]:
        return {"limit": float(self.width), "growing": self.growing}


@dataclass(frozen=True, slots=True)
class Total(_OfOne):
    """Evict the oldest while the sum of `dimension` (None: of the values) exceeds `limit` ("the sum stays ≤ 10").

    The sum is the one that `query` gives, rounded as the engine rounds it. While no value in the window is negative the
    rule is monotone and many readings leave in O(log n); otherwise a longer window may have the smaller sum, and the
    oldest are asked one by one: the first sum that is not above the limit stays. A single reading above the limit
    leaves too, and the window is empty. Histograms are refused. Raises ConfigurationError for a limit that is not
    finite. Source: paper AMTA, 3.2 (its running example).
    """

    dimension: str | None
    limit: float
    monotone: ClassVar[bool] = False  # of any stream; the core sees when it is
    remaining: ClassVar[bool] = True
    exact_only: ClassVar[str] = "its edge follows the sum inside a bucket, which a bucket does not know"
    kind: ClassVar[int] = TOTAL
    ops: ClassVar[tuple[Op, ...]] = (Op.SUM, Op.MIN)

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a limit that is not finite."""
        check_dimension("policies.total", self.dimension)
        check_number("policies.total", self.limit, "limit")

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"total:{self.dimension}:{float(self.limit)!r}"

    @property
    def _told(self) -> dict[str, Any]:
        return {"limit": float(self.limit)}


@dataclass(frozen=True, slots=True)
class _NewerThan(_OfOne):
    """Evict what precedes a place in the window, and, with `limit`, all but the newest so many readings."""

    dimension: str | None = None
    _: KW_ONLY
    limit: int | None = None
    monotone: ClassVar[bool] = True
    exact_only: ClassVar[str]
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
    def _told(self) -> dict[str, Any]:
        return {"most": self.limit or 0}


class NewerThanMaximum(_NewerThan):
    """Evict what precedes the maximum: the window begins at the first occurrence of its greatest value.

    `limit`: and keep at most so many readings; what is evicted can never become the maximum of the newest `limit`
    readings, so max, argmax and max_count answer as theirs. Monotone; without a limit it depends only on what remains.
    Histograms are refused. Raises ConfigurationError for a limit below 1. Source: paper AMTA, 5.6 (Experiment 3).
    """

    __slots__ = ()
    exact_only: ClassVar[str] = (
        "the limit may cut a bucket before or after its maximum; use count(n, up_to='max') or time(span, up_to='max')"
    )
    kind, ops, label = MAXIMUM, (Op.MAX,), "newer-than-maximum"


class NewerThanLongestRun(_NewerThan):
    """Evict what precedes the longest strictly increasing run: the window begins where the first such run does.

    `limit`: and keep at most so many readings; what is evicted can never be part of a longer run of the newest `limit`
    readings, so `longest_run` answers as theirs. Monotone; without a limit it depends only on what remains. Histograms
    are refused. Raises ConfigurationError for a limit below 1. Source: paper AMTA, 5.6 (Experiment 3, "LIS").
    """

    __slots__ = ()
    exact_only: ClassVar[str] = "a run may begin anywhere inside a bucket"
    kind, ops, label = LONGEST_RUN, (Op.RUN,), "newer-than-longest-run"


delta, total = Delta, Total
newer_than_maximum, newer_than_longest_run = NewerThanMaximum, NewerThanLongestRun
