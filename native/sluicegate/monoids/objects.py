"""Aggregates whose partials are Python objects: collected values, a quantile sketch, and the user's own.

Their windows run on the readable engines, in Python and under the GIL (`sluicegate.reference.object_core`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sluicegate.checks import check_whole
from sluicegate.errors import ConfigurationError
from sluicegate.monoids.compiled import as_dimension
from sluicegate.monoids.kll import LEAST_K, MOST_K, Kll
from sluicegate.monoids.monoid import Monoid

MOST_COLLECTED = 65_536


class Own(Protocol):
    """What an aggregate over objects consists of; `combine` is associative, a's readings precede b's."""

    def lift(self, value: Any, time: int) -> Any:
        """One reading as a partial."""

    def combine(self, a: Any, b: Any) -> Any:
        """Two neighbouring partials as one, neither of them changed."""

    def lower(self, partial: Any) -> Any:
        """The result."""


@dataclass(frozen=True, slots=True)
class Collect:
    """The newest `limit` values, in order of arrival."""

    limit: int

    def lift(self, value: float, time: int) -> tuple[float, ...]:
        """The value alone."""
        return (value,)

    def combine(self, a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, ...]:
        """The newest of both."""
        return b if len(b) == self.limit else (a + b)[-self.limit :]

    def lower(self, partial: tuple[float, ...]) -> list[float]:
        """As a list."""
        return list(partial)

    @property
    def neutral(self) -> tuple[float, ...]:
        """No values."""
        return ()


class Given:
    """The user's object; two are equal where they are the same object."""

    __slots__ = ("own",)

    def __init__(self, own: Own) -> None:
        """Take what has lift, combine and lower."""
        self.own = own

    @property
    def deducts(self) -> bool:
        """Whether it says how the oldest part of a total is taken out again."""
        return getattr(self.own, "deduct", None) is not None

    def __eq__(self, other: object) -> bool:
        """Whether it wraps the same object."""
        return isinstance(other, Given) and other.own is self.own

    def __hash__(self) -> int:
        """By identity, since the object need not be hashable."""
        return id(self.own)


def collect(limit: int, dimension: str | None = None) -> Monoid:
    """The newest `limit` values (1 to 65,536) in order of arrival, as a list; an empty window: [].

    Each combination copies up to `limit` references; the window's leaves hold every value anyway (`buckets()`).
    """
    check_whole("collect", limit, 1, MOST_COLLECTED, "limit")
    return Monoid("collect", dimension, options=(limit,))


def quantiles(dimension: str | None = None, *, k: int = 200) -> Monoid:
    """Quantiles and ranks with a stated error, as a `Quantiles` (KLL sketch: Karnin, Lang & Liberty 2016).

    `k` 8 to 4,096: at 200 a rank is right within 1.33 % of the readings at 99 % confidence; below k readings every
    answer is exact. About 3·k values a partial; of fixed width over buckets, where k is at most 256.
    `Quantiles.sketch` is read by Spark's kll_sketch_*_double functions and by Apache DataSketches. An empty window:
    no readings. Raises ConfigurationError.
    """
    check_whole("quantiles", k, LEAST_K, MOST_K, "k")
    return Monoid("quantiles", dimension, options=(k,))


def custom(own: Any, dimension: str | Sequence[str] | None = None, *, name: str = "") -> Monoid:
    """The user's own aggregate: an object with `lift(value, time)`, `combine(a, b)` and `lower(partial)`.

    `value`: a float, or a tuple of floats where several dimensions are named. `combine` must be associative and change
    neither argument; a's readings precede b's. `deduct(total, oldest)`, optional, undoes it for engines that need
    that; `neutral`, optional: the partial of no readings, whose `lower` an empty window answers (else None).

    What it raises reaches the caller as AggregateError. From `lift`: the reading is refused, nothing has changed. From
    `combine` or `deduct`: the reading is in and what had to leave has left; a result that needs the combination raises,
    and is tried anew from the single readings each time it is asked for, so that it is right as soon as the object
    works again or the readings have left. From `lower`: nothing has changed. Raises ConfigurationError.
    """
    for what in ("lift", "combine", "lower"):
        if not callable(getattr(own, what, None)):
            raise ConfigurationError(f"custom: {own!r} has no method {what}; expected lift, combine and lower")
    if getattr(own, "deduct", None) is not None and not callable(own.deduct):
        raise ConfigurationError(f"custom: deduct of {own!r} is {own.deduct!r}, expected a method or none")
    return Monoid("custom", as_dimension(dimension), options=(name or type(own).__qualname__, Given(own)))


def own_of(monoid: Monoid) -> Own:
    """What an aggregate over objects lifts, combines and lowers with."""
    if monoid.kind == "collect":
        return Collect(monoid.options[0])
    return Kll(monoid.options[0]) if monoid.kind == "quantiles" else monoid.options[1].own
