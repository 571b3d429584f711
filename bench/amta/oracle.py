"""The exact answers by methods of their own: prefix sums in long double, van Herk's maxima, the list of all runs.

`after(values)`: the answers after the next readings; NaN where this method gives none (longest runs, but for the last).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from bench.a2mta.exact import Maxima, Means, newest
from numpy.typing import NDArray

Values = NDArray[np.float64]
CENTER = 32 * (1 << 20)  # KB: about the middle of the trace, so that squares stay small


class Oracle(Protocol):
    """One aggregate's exact answers."""

    def after(self, values: Values) -> Values:
        """The answer after each of the next readings."""


class Sums(Means):
    """Sums of the newest readings."""

    def after(self, values: Values) -> Values:
        """The sum after each of the next readings."""
        first = self.seen
        counts = np.minimum(np.arange(first + 1, first + len(values) + 1), self.window)
        return np.asarray(np.rint(super().after(values) * counts))

    def __init__(self, window: int) -> None:
        self.window = window
        super().__init__(newest(window))


class Geometric:
    """Geometric means: the exponential of the logarithms' mean."""

    def __init__(self, window: int) -> None:
        self._logarithms = Means(newest(window))

    def after(self, values: Values) -> Values:
        """The geometric mean after each of the next readings."""
        return np.asarray(np.exp(self._logarithms.after(np.log(values))))


class Deviations:
    """Standard deviations (of the population) from the means of x − c and of its square."""

    def __init__(self, window: int) -> None:
        self._means, self._squares = Means(newest(window)), Means(newest(window))

    def after(self, values: Values) -> Values:
        """The standard deviation after each of the next readings."""
        off = values - CENTER
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
    if aggregate == "mean":
        return Means(newest(window))
    return {"sum": Sums, "geometric_mean": Geometric, "std": Deviations, "max": Maxima, "longest_run": Runs}[aggregate](
        window
    )
