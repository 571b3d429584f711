"""The sum-like histogram: buckets grow while the error they can bring into a result stays within a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sluicegate.checks import check_confidence, check_whole, is_number
from sluicegate.errors import ConfigurationError
from sluicegate.records import Bounded

MOST_REFRESH = 2**31


@dataclass(frozen=True, slots=True)
class SumLike:
    """A reading joins the newest bucket while a cut of that bucket costs no controlled result more than its limit.

    `error`: relative, of the result; `atol`: absolute, in the result's units, added to it. At least one is positive.
    `of`: names of the window's aggregates to control, or "count" for the number of readings alone, whatever the
    aggregates are; by default every aggregate. A mean controls its sum and the count; aggregates that are no sum are
    controlled by the count. `confidence`: of the prediction interval of results. `refresh`: readings after which the
    limits are taken anew, at most (less in small windows). `withhold`: a sum, mean or count that is not certainly
    within the limit is not given out (None, in a column NaN): every value that is keeps the limit. Raises
    ConfigurationError for limits that are not positive or finite, a confidence outside 0 … 1, a refresh below 1.

    Fact card: A2MTA, II-A. Law: the controlled aggregates are sums. O(1) a reading and control, no allocation. Error of
    a bucket: the greatest |sum| of a proper prefix or suffix, and of any run between two of its readings; a bucket is
    never cut at a cost above the limit that held when it closed. Limit: error · min(|lo|, |hi|) of the interval x̄ ±
    t·s·√(1 + 1/n), 0 where that contains 0, plus atol. The sample of results rides in the buckets, so it leaves with
    them; until the first eviction and 30 results from then on: error · |current result|. A constant sample's interval
    is the constant. A result that shrinks, towards 0 above all, may leave buckets that were closed under a greater
    limit: `keeps` tells which answers are certainly within it, `withhold` gives out no others. A limit by `atol` alone
    is kept by every value.
    """

    error: float | None = None
    atol: float = 0.0
    of: str | Sequence[str] | None = None
    confidence: float = 0.95
    refresh: int = 1024
    withhold: bool = False

    def __post_init__(self) -> None:
        """Check each limit by itself; which aggregates there are is checked by the window."""
        if self.error is not None and not (is_number(self.error) and self.error > 0.0):
            raise ConfigurationError(
                f"SumLike(error={self.error!r}): expected a number above 0, such as 0.01 for 1 %, or None"
            )
        if not is_number(self.atol, 0.0):
            raise ConfigurationError(
                f"SumLike(atol={self.atol!r}): expected a finite number, 0 or more, in the result's units"
            )
        if self.error is None and self.atol == 0.0:
            raise ConfigurationError("SumLike(): expected a relative limit `error` or an absolute limit `atol` above 0")
        check_confidence("SumLike", self.confidence)
        if not isinstance(self.withhold, bool):
            raise ConfigurationError(f"SumLike(withhold={self.withhold!r}): expected True or False")
        check_whole("SumLike", self.refresh, 1, MOST_REFRESH, "refresh")
        if self.of is not None and not isinstance(self.of, str):
            object.__setattr__(self, "of", tuple(self.of))

    def keeps(self, answer: Bounded) -> bool:
        """Whether an answer of `query(bounds=True)` surely keeps the limit: |value − exact| ≤ error · |exact| + atol.

        It does unless the result has shrunk since its oldest bucket was closed, under the limit of then: a mean that
        nears 0. What the bucket folded is gone, so no value could be known to keep the new limit; one may all the same.
        An empty window's None keeps any.
        """
        if answer.value is None:
            return True
        share = self.error or 0.0
        reached = [answer.low, answer.high] + ([0.0] if answer.low < 0.0 < answer.high else [])
        return all(abs(answer.value - exact) <= share * abs(exact) + self.atol for exact in reached)

    def controlled(self, kinds: Sequence[tuple[str, str, int]]) -> list[int]:
        """Which of the aggregates (name, kind, dimension) the limit is one of: sums, means and counts under control."""
        names = None if self.of in (None, "count") else {self.of} if isinstance(self.of, str) else set(self.of or ())
        like = ("count",) if self.of == "count" else ("count", "sum", "mean")
        return [i for i, (name, kind, _) in enumerate(kinds) if kind in like and (names is None or name in names)]

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        of = self.of if self.of is None or isinstance(self.of, str) else ",".join(self.of)
        return f"sum-like:{self.error!r}:{self.atol!r}:{of}:{self.confidence!r}:{self.refresh}"


class Control(NamedTuple):
    """One sum under control.

    `dimension`: whose values it adds, −1: the count. `mean`: −1, or the index of the control that holds the sum of the
    mean this control serves; `atol` is then in units of the mean.
    """

    dimension: int
    error: float
    atol: float
    mean: int


def controls(histogram: SumLike, kinds: Sequence[tuple[str, str, int]]) -> list[Control]:
    """The sums to control for aggregates (name, kind, dimension's index), each once.

    Raises ConfigurationError for a name that no aggregate has.
    """
    error, atol = histogram.error or 0.0, float(histogram.atol)
    found: list[Control] = []
    sums: dict[int, int] = {}  # of means, by dimension
    for kind, dimension in _named(histogram, kinds):
        if kind == "mean" and dimension not in sums:
            place = sums[dimension] = len(found)
            found += [Control(dimension, error, atol, place), Control(-1, error, atol, place)]
        elif kind != "mean":
            found.append(Control(dimension if kind == "sum" else -1, error, atol, -1))
    return [control for i, control in enumerate(found) if control.mean >= 0 or control not in found[:i]]


def _named(histogram: SumLike, kinds: Sequence[tuple[str, str, int]]) -> list[tuple[str, int]]:
    if histogram.of == "count":
        return [("count", 0)]
    if histogram.of is None:
        return [(kind, dimension) for _, kind, dimension in kinds]
    names = (histogram.of,) if isinstance(histogram.of, str) else histogram.of
    known = {name: (kind, dimension) for name, kind, dimension in kinds}
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise ConfigurationError(
            f"SumLike(of={histogram.of!r}): expected names of the aggregates, {list(known)}, or 'count'"
        )
    return [known[name] for name in names]
