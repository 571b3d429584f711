"""A constrained footprint: never more than a given number of buckets, whatever the window holds (A2MTA, II-D)."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.errors import ConfigurationError

LEAST = 4
MOST = 2**31


@dataclass(frozen=True, slots=True)
class Constrained:
    """At most `limit` buckets (4 ≤ limit ≤ 2^31).

    Before a reading would open bucket limit + 1, the lowest level of the tree is evicted: neighbouring buckets become
    one. From then on a bucket takes up to ⌈count / (limit − 2)⌉ readings, so that levels need not be evicted again
    while the window holds its size. The paper divides by the limit itself and so forgets the open and the cut bucket.
    """

    limit: int

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the limit leaves room for an open, a cut and two whole buckets."""
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or not LEAST <= self.limit <= MOST:
            raise ConfigurationError(
                f"Constrained({self.limit!r}): expected a whole number of buckets from {LEAST} to 2^31 "
                "(one is open, one is cut by the window's edge, two hold the rest)"
            )

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"constrained:{self.limit}"
