"""The hop histogram: where many readings leave at once, those that will leave together share a bucket."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.checks import MAX_COUNT, check_confidence, check_whole, is_number
from sluicegate.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Hop:
    """Readings between two predicted evictions share a bucket; those at a predicted boundary stay single.

    `confidence`: that a boundary lies among the singles. `hint`: the expected size of an eviction in readings, or
    (size, standard deviation), used until three evictions were seen; without it another histogram decides till then, or
    every reading is single. Raises ConfigurationError.

    Fact card: A2MTA, II-C. Law: none, any aggregate. O(1) a reading, O(256) an eviction, no allocation. Boundary k
    after the last known one b lies within b + k·x̄ ± t·s·√(k + k²/n): k sizes have still to happen when its readings
    arrive. The sample: the last evictions that fit the window, at least 30 and at most 256. Where the policy does not
    tell how many readings of the oldest bucket should have left, the possible size farther from the mean enters the
    sample, until the next certain boundary tells what left in all: then that, spread evenly over as many evictions.
    """

    confidence: float = 0.9999
    hint: int | tuple[int, float] | None = None

    def __post_init__(self) -> None:
        """Check both settings."""
        check_confidence("Hop", self.confidence)
        if isinstance(self.hint, tuple):
            if len(self.hint) != 2 or not is_number(self.hint[1], 0.0):
                raise ConfigurationError(
                    f"Hop(hint={self.hint!r}): expected (size, standard deviation), the latter 0 or more"
                )
            check_whole("Hop", self.hint[0], 1, MAX_COUNT, "hint")
        elif self.hint is not None:
            check_whole("Hop", self.hint, 1, MAX_COUNT, "hint")

    @property
    def expected(self) -> tuple[float, float]:
        """The hint as (size, standard deviation); size 0 where there is none."""
        if isinstance(self.hint, tuple):
            return float(self.hint[0]), float(self.hint[1])
        return float(self.hint or 0), 0.0

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"hop:{self.confidence!r}:{self.hint!r}"
