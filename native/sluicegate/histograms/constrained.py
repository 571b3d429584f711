"""A constrained footprint: never more than a given number of buckets, whatever the window holds (A2MTA, II-D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sluicegate.errors import ConfigurationError

LEAST = 4
MOST = 2**31
MERGES = ("levels", "pairs")


@dataclass(frozen=True, slots=True)
class Constrained:
    """At most `limit` buckets (4 ≤ limit ≤ 2^31).

    `merge="levels"`, as in the paper: before a reading would open bucket limit + 1, the lowest level of the tree is
    evicted: neighbouring buckets become one, twice as large. From then on a bucket takes up to ⌈count / (limit − 2)⌉
    readings, so that levels need not be evicted again while the window holds its size. The paper divides by the limit
    itself and so forgets the open and the cut bucket.

    `merge="pairs"`: one neighbouring pair is merged, the one that adds least to the bound, and new buckets close at a
    quarter of that size, so that there is a choice. A bucket weighs its readings times the width that it may add to a
    cut window's interval: of a sum P⁺ − P⁻, at most (n − 1)(M − m); of an extreme what stands after it, less the last
    value; of a variance (n − 1)(M − m)²; of what counts n − 1 (`sluicegate.histograms.widths`). A pair adds the weight
    of both as one bucket, less their own: by so much the interval grows on average over where the edge may be. Where
    several widths are weighed, as of a range, an extreme's is only what is beyond all that follows the bucket. Of
    equals it is the pair of fewest readings, then the oldest. Several aggregates' widths are added, each as a share of
    what the whole window as one bucket might add. Its tree is `sluicegate.engines.tree.pairs`: O(log limit) combines
    for a bucket that is opened, merged or evicted.

    Raises ConfigurationError.
    """

    limit: int
    merge: Literal["levels", "pairs"] = "levels"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the limit leaves room for an open, a cut and two whole buckets."""
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or not LEAST <= self.limit <= MOST:
            raise ConfigurationError(
                f"Constrained({self.limit!r}): expected a whole number of buckets from {LEAST} to 2^31 "
                "(one is open, one is cut by the window's edge, two hold the rest)"
            )
        if self.merge not in MERGES:
            raise ConfigurationError(
                f"Constrained(merge={self.merge!r}): expected 'levels' (whole levels, as in the paper) or 'pairs' (the "
                "neighbouring pair that adds least to the bound)"
            )

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"constrained:{self.limit}" + ("" if self.merge == "levels" else f":{self.merge}")
