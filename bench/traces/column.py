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

    Raises ValueError where there is no such column, no number in it, or no CSV file.
    """
    try:
        found = np.fromiter(_numbers(path, column), dtype=np.float64)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: {error}; expected a CSV file in UTF-8 with a line of names first") from error
    if not found.size:
        which = f"column {column!r}" if column else "the last column"
        raise ValueError(f"{path}: {which} holds no number; name one by --column, {_names(path)}")

    def values(begin: int, end: int) -> NDArray[np.float64]:
        return np.asarray(found[np.arange(begin, end) % found.size])

    return values


def _names(path: Path) -> str:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return f"there are {', '.join(next(csv.reader(file), []))}"


def _numbers(path: Path, column: str | None) -> Iterator[float]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        head = next(rows, [])
        if column is not None and column not in head:
            raise ValueError(f"{path}: no column {column!r}; {_names(path)}")
        at = head.index(column) if column is not None else len(head) - 1
        for row in rows:
            try:
                value = float(row[at])
            except (ValueError, IndexError):
                continue
            if isfinite(value):
                yield value
