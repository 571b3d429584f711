"""The max-like histogram: only readings that may become the window's extreme open a bucket; the others join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sluicegate.checks import MAX_COUNT, check_confidence, check_whole
from sluicegate.errors import ConfigurationError
from sluicegate.monoids.layout import Layout, Op

LEAST_BLOCK = 2
LEAST_STAGING, MOST_STAGING = 2, 2**20
STAGING = 8192  # of a staircase: grown as it is needed; the paper's buffer before the data store is 512
RANGES = ("recommended", "paper")
CONFIDENCE = 0.95
EXTREMES = {"max": 1, "argmax": 1, "max_count": 1, "min": -1, "argmin": -1, "min_count": -1}  # +1: of x, −1: of −x
BOTH = ("range",)


@dataclass(frozen=True, slots=True)
class MaxLike:
    """For a maximum or minimum: a reading opens a bucket only where it may become the window's extreme.

    Nothing given: a *staircase*. It keeps the readings that no later one hides, and the extreme is exact, always.
    `block`, `confidence`, `candidates`, `staging=0` or `staircase=False` ask for *block maxima* instead, the paper's
    way: past blocks say what may become the extreme. When the stream falls below them for longer than its window, the
    value may be off by all of the fall; its interval holds all the same.

    `block`: readings a block, 2 or more; None: a thirtieth of the longest window so far, at least 64. `confidence`: of
    the candidates' range. `candidates`: "recommended", all from the lower quantile upwards, or "paper", the paper's
    ranges. `staging`: the newest buckets (2 to 2^20) that stay in a local tail; a reading is decided when it leaves the
    tail, and joins what has hidden it by then. 0: none; a staircase has up to 8,192 where nothing is said, and takes
    memory as it grows. With `Constrained(n, merge="pairs")` at most n buckets stand before the tail. Raises
    ConfigurationError.

    Fact card: A2MTA, II-B; Hosking, Wallis & Wood 1985. Law: a selection that is the greatest (least) value. Blocks:
    O(1) a reading, a refit of about a microsecond when a block ends, no allocation; the last 30 block maxima are fitted
    from 5 on, before that every reading is a candidate. A tail: O(1) amortised, O(log n) expected for a bucket that is
    stored, 2 (n + staging) partials.
    """

    block: int | None = None
    confidence: float = CONFIDENCE
    candidates: str = RANGES[0]
    staging: int | None = None
    staircase: bool | None = None  # None: where no estimate is asked for; True or False once it is made

    def __post_init__(self) -> None:
        """Check each setting by itself; which aggregates there are is checked by the window."""
        if self.staircase is None:
            estimate = (self.block, self.confidence, self.candidates) != (None, CONFIDENCE, RANGES[0])
            object.__setattr__(self, "staircase", not estimate and self.staging != 0)
        if self.block is not None:
            check_whole("MaxLike", self.block, LEAST_BLOCK, MAX_COUNT, "block")
        check_confidence("MaxLike", self.confidence)
        if self.candidates not in RANGES:
            raise ConfigurationError(f"MaxLike(candidates={self.candidates!r}): expected one of {', '.join(RANGES)}")
        if self.staging:
            check_whole("MaxLike", self.staging, LEAST_STAGING, MOST_STAGING, "staging")
        if not isinstance(self.staircase, bool) or (self.staircase and self.staging == 0):
            raise ConfigurationError(
                f"MaxLike(staircase={self.staircase!r}, staging={self.staging!r}): expected True or False, and a tail "
                f"of {LEAST_STAGING} or more, since a reading is decided when it leaves the tail"
            )
        if self.staircase and self.block is not None:
            raise ConfigurationError(
                f"MaxLike(block={self.block}, staircase=True): a staircase takes no estimate from block maxima; leave "
                "one of them out"
            )

    @property
    def tail(self) -> int:
        """The most buckets of the staging tail, 0: there is none."""
        return self.staging if self.staging is not None else STAGING if self.staircase else 0

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        if self.staircase:
            return f"staircase:{self.tail}"
        name = f"max-like:{self.block}:{self.confidence!r}:{self.candidates}"
        return f"{name}:{self.tail}" if self.tail else name


class WatchedExtreme(NamedTuple):
    """One extreme to keep exact: of sign · value; `strict`: an equal value opens a bucket too: its own time counts."""

    dimension: int
    sign: int
    strict: bool


class Guard(NamedTuple):
    """One extreme as a staging tail watches it: where a partial keeps it, and the rest as in `WatchedExtreme`."""

    slot: int
    dimension: int
    sign: int
    strict: bool


def guards(kept: Sequence[WatchedExtreme], layout: Layout) -> list[Guard]:
    """Where a bucket's partial keeps each of the extremes."""
    slots = {1: (Op.HIGH, Op.MAX), -1: (Op.LOW, Op.MIN)}
    return [Guard(max(layout.slot(op, each.dimension) for op in slots[each.sign]), *each) for each in kept]


def extremes(kinds: Sequence[tuple[str, str, int]]) -> list[WatchedExtreme]:
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
    return [WatchedExtreme(*key, strict=value) for key, value in strict.items()]
