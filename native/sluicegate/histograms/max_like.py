"""The max-like histogram: only readings that may become the window's extreme open a bucket; the others join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sluicegate.errors import ConfigurationError
from sluicegate.histograms.checks import check_confidence, check_whole

LEAST_BLOCK = 2
MOST_BLOCK = 2**53
RANGES = ("recommended", "paper")
EXTREMES = {"max": 1, "argmax": 1, "max_count": 1, "min": -1, "argmin": -1, "min_count": -1}  # +1: of x, −1: of −x
BOTH = ("range",)


@dataclass(frozen=True, slots=True)
class MaxLike:
    """A reading opens a bucket where block maxima say that it may become the window's maximum (or minimum).

    `block`: readings a block, 2 or more; None: a thirtieth of the longest window so far, at least 64. `confidence`: of
    the candidates' range. `candidates`: "recommended", all from the lower quantile upwards, or "paper", the paper's
    ranges. Raises ConfigurationError.

    Fact card: A2MTA, II-B; Hosking, Wallis & Wood 1985. Law: a selection that is the greatest (least) value. O(1) a
    reading and extreme, a refit of about a microsecond when a block ends, none between; no allocation. The last 30
    block maxima are fitted from 5 on; before, every reading is a candidate. A plateau's lower bound is its value. With
    the recommended range a candidate that is not below the open bucket's greatest value joins it all the same: what it
    hides can no longer become the maximum. No error limit: the aim is that results are exact, and the certain interval
    says where they are not.
    """

    block: int | None = None
    confidence: float = 0.95
    candidates: str = "recommended"

    def __post_init__(self) -> None:
        """Check each setting by itself; which aggregates there are is checked by the window."""
        if self.block is not None:
            check_whole("MaxLike", "block", self.block, LEAST_BLOCK, MOST_BLOCK)
        check_confidence("MaxLike", self.confidence)
        if self.candidates not in RANGES:
            raise ConfigurationError(f"MaxLike(candidates={self.candidates!r}): expected one of {', '.join(RANGES)}")

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"max-like:{self.block}:{self.confidence!r}:{self.candidates}"


class Extreme(NamedTuple):
    """One extreme to keep exact: of sign · value; `strict`: an equal value opens a bucket too: its own time counts."""

    dimension: int
    sign: int
    strict: bool


def extremes(kinds: Sequence[tuple[str, str, int]]) -> list[Extreme]:
    """The extremes among aggregates (name, kind, dimension's index), each once.

    Raises ConfigurationError where there is none.
    """
    strict: dict[tuple[int, int], bool] = {}
    for _, kind, dimension in kinds:
        signs = (1, -1) if kind in BOTH else (EXTREMES[kind],) if kind in EXTREMES else ()
        for sign in signs:
            strict[dimension, sign] = strict.get((dimension, sign), False) or kind not in ("max", "min", "range")
    if not strict:
        names = [kind for _, kind, _ in kinds]
        raise ConfigurationError(
            f"MaxLike(): no maximum or minimum among the aggregates {names}; use SumLike for sums and means"
        )
    return [Extreme(*key, strict=value) for key, value in strict.items()]
