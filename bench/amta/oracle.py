"""The exact answers by methods of their own: prefix sums in long double, van Herk's maxima, the list of all runs.

`after(values)`: the answers after the next readings; NaN where this method gives none (longest runs, but for the last).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from bench.a2mta.exact import Maxima
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Oracle(Protocol):
    """One aggregate's exact answers."""

    def after(self, values: Values) -> Values:
        """The answer after each of the next readings."""


class Sums:
    """Sums of the newest readings, in blocks of any size; memory: a prefix sum for each reading of the window."""

    def __init__(self, window: int) -> None:
        self.window, self.seen, self._kept = window, 0, 0
        self._sums = np.zeros(1, dtype=np.longdouble)  # the sum of what precedes reading _kept + i

    def after(self, values: Values) -> Values:
        """The sum after each of the next readings: of whole numbers the very sum."""
        return self.long_after(values)[0].astype(np.float64)

    def long_after(self, values: Values) -> tuple[NDArray[np.longdouble], NDArray[np.int64]]:
        """The sums, and how many readings are in them."""
        first, last = self.seen, self.seen + len(values)
        self._sums = np.concatenate([self._sums, self._sums[-1] + np.cumsum(values, dtype=np.longdouble)])
        ends = np.arange(first + 1, last + 1)
        begin = np.maximum(ends - self.window, 0)
        out = self._sums[ends - self._kept] - self._sums[begin - self._kept]
        self._sums, self._kept, self.seen = self._sums[begin[-1] - self._kept :].copy(), int(begin[-1]), last
        return out, ends - begin


class Means:
    """Means of the newest readings."""

    def __init__(self, window: int) -> None:
        self._sums = Sums(window)

    def after(self, values: Values) -> Values:
        """The mean after each of the next readings."""
        sums, counts = self._sums.long_after(values)
        return np.asarray((sums / counts).astype(np.float64))


class Geometric:
    """Geometric means: the exponential of the logarithms' mean."""

    def __init__(self, window: int) -> None:
        self._logarithms = Means(window)

    def after(self, values: Values) -> Values:
        """The geometric mean after each of the next readings."""
        return np.asarray(np.exp(self._logarithms.after(np.log(values))))


class Deviations:
    """Standard deviations (of the population) from the means of x − c and of its square; c from the first readings."""

    def __init__(self, window: int) -> None:
        self._means, self._squares = Means(window), Means(window)
        self._center: float | None = None

    def after(self, values: Values) -> Values:
        """The standard deviation after each of the next readings."""
        if self._center is None:
            self._center = float(np.rint(values.mean()))
        off = values - self._center
        mean = self._means.after(off)
        return np.asarray(np.sqrt(np.maximum(self._squares.after(off * off) - mean * mean, 0.0)))


class Runs:
    """The length of the longest strictly increasing run of the newest readings, after the last of each block."""

    def __init__(self, window: int) -> None:
        self.window, self.seen, self._last = window, 0, np.inf
        self._first = np.empty(0, dtype=np.int64)  # ordinal of each run's first reading; a run ends before the next

    def after(self, values: Values) -> Values:
        """NaN, but for the last."""
        rises = values > np.concatenate([[self._last], values[:-1]])
        self._first = np.concatenate([self._first, self.seen + np.flatnonzero(~rises)])
        self.seen, self._last = self.seen + len(values), float(values[-1])
        begin = max(self.seen - self.window, 0)
        ends = np.append(self._first[1:], self.seen)
        inside = ends > begin
        self._first, ends = self._first[inside], ends[inside]
        out = np.full(len(values), np.nan)
        out[-1] = np.max(ends - np.maximum(self._first, begin))
        return out


def oracle(aggregate: str, window: int) -> Oracle:
    """The exact answers of an aggregate of the newest `window` readings."""
    made = {
        "sum": Sums,
        "mean": Means,
        "geometric_mean": Geometric,
        "std": Deviations,
        "max": Maxima,
        "longest_run": Runs,
    }
    return made[aggregate](window)
