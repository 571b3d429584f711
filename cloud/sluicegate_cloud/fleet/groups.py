"""Rows that become one row: sums, least and greatest of runs of equal rows, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate_cloud.grid import Floats, Ints

Array = NDArray[Any]


@dataclass(frozen=True)
class Groups:
    """Runs of `rows` rows, each beginning at one of `begin`."""

    begin: Ints
    rows: int

    @classmethod
    def of(cls, *keys: Array) -> Groups:
        """Runs of rows that agree in all of `keys`, which are sorted so that equal ones are together."""
        rows = keys[0].size
        if rows == 0:
            return cls(np.zeros(0, np.int64), 0)
        other = np.zeros(rows - 1, np.bool_)
        for key in keys:
            other |= key[1:] != key[:-1]
        return cls(np.concatenate(([0], np.flatnonzero(other) + 1)), rows)

    def sum(self, values: Array) -> Array:
        """Of each group."""
        return np.asarray(np.add.reduceat(values, self.begin))

    def least(self, values: Array) -> Array:
        """Of each group; of numbers beside NaN the least number."""
        return np.asarray(np.fmin.reduceat(values, self.begin))

    def greatest(self, values: Array) -> Array:
        """Of each group; of numbers beside NaN the greatest number."""
        return np.asarray(np.fmax.reduceat(values, self.begin))

    def to_rows(self, values: Array) -> Array:
        """A group's value for each of its rows."""
        return np.asarray(np.repeat(values, np.diff(np.append(self.begin, self.rows))))

    def mean(self, weights: Floats, values: Floats) -> Floats:
        """Weighted mean of each group, for each row; the greatest value where all weights are 0."""
        weight = self.sum(weights)
        summed = self.sum(np.where(weights == 0, 0.0, weights * values))
        mean = np.divide(summed, weight, out=self.greatest(values).astype(np.float64), where=weight != 0)
        return self.to_rows(mean)
