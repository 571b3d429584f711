"""Whether so many readings were taken in so short a time at their pace, or a clock was set back among those lost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sluicegate_cloud.sameness import Buckets


class Pace(NamedTuple):
    """How many µs it mostly is from number to number, 0: that is not known; and by how much that varies."""

    mean: float
    varies: float

    @classmethod
    def of(cls, buckets: Buckets) -> Pace:
        """By what most of a document's buckets say."""
        lengths = np.append(buckets.t_last - buckets.t_first, np.diff(buckets.t_last))
        counts = np.append(buckets.n - 1, (buckets.n + np.maximum(buckets.whole("gap"), 0))[1:])
        says = (counts > 0) & (lengths > 0)
        counts, apart = counts[says], lengths[says] / counts[says]
        if not apart.size:
            return cls(0.0, 0.0)
        mean = float(np.quantile(apart, 0.5, method="lower"))
        varies = 1.5 * float(np.median(np.abs(apart - mean) * np.sqrt(counts)))
        return cls(mean, max(varies, mean / apart.size))  # few do not say how much it varies

    def lacks(self, steps: int, time: int) -> int:
        """How much longer than this time so many steps take. 0: they may just have been so fast, or some of them, of a
        stream that is not in each message, not its own.
        """
        usual = steps * self.mean
        least = min(usual - 4 * self.varies * steps**0.5, usual * 2 / 3)
        return int(usual) - max(0, time) if least > time else 0
