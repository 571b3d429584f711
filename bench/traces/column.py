"""A column of any CSV file as a trace: its numbers in the file's order, again and again."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def from_csv(path: Path, column: str | None) -> Callable[[int, int], NDArray[np.float64]]:
    """The trace of the finite numbers of a column (without a name: the last); other cells are left out.

    Raises ValueError where there is no such column or no number in it.
    """
    found = np.fromiter(_numbers(path, column), dtype=np.float64)
    if not found.size:
        raise ValueError(f"{path}: column {column or 'last'} holds no number")

    def values(begin: int, end: int) -> NDArray[np.float64]:
        return np.asarray(found[np.arange(begin, end) % found.size])

    return values


def _numbers(path: Path, column: str | None) -> Iterator[float]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        head = next(rows, [])
        if column is not None and column not in head:
            raise ValueError(f"{path}: no column {column!r}; there are {', '.join(head)}")
        at = head.index(column) if column is not None else len(head) - 1
        for row in rows:
            try:
                value = float(row[at])
            except (ValueError, IndexError):
                continue
            if isfinite(value):
                yield value
