"""A constrained footprint: never more than a given number of buckets, whatever the window holds (A2MTA, II-D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sluicegate.checks import is_whole
from sluicegate.errors import ConfigurationError

LEAST = 4
MOST = 2**31
MERGES = ("levels", "pairs")


@dataclass(frozen=True, slots=True)
class Constrained:
    """At most `limit` buckets (4 ≤ limit ≤ 2^31), whatever the window holds.

    `merge="levels"`, as in the paper: where there would be one bucket too many, all neighbours are merged two by two,
    and from then on a bucket takes up to ⌈count / (limit − 2)⌉ readings. (The paper divides by the limit itself, and so
    forgets the open and the cut bucket.)

    `merge="pairs"`: the one neighbouring pair is merged that adds least to the interval; of equals that of fewest
    readings, then the oldest. New buckets close at a quarter of the size above, so that there is a choice. A bucket
    weighs its readings times the width that it may add to a cut window's interval; `sluicegate.histograms.widths` has
    that width for each aggregate. Takes O(log limit) combines for a bucket that is opened, merged or evicted.

    Raises ConfigurationError. Source: A2MTA, II-D; pairs are this project's own.
    """

    limit: int
    merge: Literal["levels", "pairs"] = "levels"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the limit leaves room for an open, a cut and two whole buckets."""
        if not is_whole(self.limit, LEAST, MOST):
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
