"""Which of the pass's inner loops are compiled: those of `sluicegate.fleet`, or NumPy where SLUICEGATE_PURE=1.

The NumPy twin of each says why it is right (`bounds`, `sliding`, `estimates`); both pass the same tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sluicegate.fleet import cuts, folds, means, sums
from sluicegate_cloud.bounds import Cut, cut
from sluicegate_cloud.grid import Columns, Floats, Ints

#: Whether the compiled loops are used.
COMPILED = os.environ.get("SLUICEGATE_PURE") != "1"


class Gathered(Mapping[str, Any]):
    """Columns by row, each taken when it is first asked for."""

    def __init__(self, columns: Columns, row: Ints) -> None:
        self._columns, self._row, self._taken = columns, row, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._taken:
            self._taken[name] = self._columns[name][self._row]
        return self._taken[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


@dataclass(frozen=True)
class Compiled(Cut):
    """Cut buckets as `bounds.cut` has them, with what the compiled loops need of them."""

    records: Ints
    row: Ints
    length: int
    lines: Floats

    def sums_and_raw(self, around: Floats, at: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Least and greatest Σ (x − around[at]) and Σ x of the readings inside."""
        out = tuple(np.empty(at.size) for _ in range(4))
        sums.sums(self.lines, self.count_low, self.count_high, at, np.ascontiguousarray(around), *out)
        return out[0], out[1], out[2], out[3]

    def squares_off(self, around: Floats, near: Floats, at: Ints) -> tuple[Floats, Floats] | None:
        """Least and greatest Σ ((x − around[at])² − near[at]) of the readings inside."""
        low, high = np.empty(at.size), np.empty(at.size)
        ends = self.count_low, self.count_high, at, np.ascontiguousarray(around), np.ascontiguousarray(near)
        sums.offs(self.records, self.row, self.start, self.length, self.lines, *ends, low, high)
        return low, high


def records_of(rows: Columns) -> Ints:
    """Buckets as records, a row each; what they do not say of their squares is 0."""
    out = np.zeros((rows["n"].size, len(cuts.FIELDS)), np.int64)
    for i, name in enumerate(cuts.FIELDS):
        if name in rows:
            column = rows[name]
            out[:, i] = column.view(np.int64) if column.dtype == np.float64 else column
    return out


def cut_pairs(rows: Columns, records: Ints | None, row: Ints, start: Ints, length: int) -> Cut:
    """Bounds for the buckets rows[row] cut by the windows of `length` µs that begin at `start`."""
    if records is None:
        return cut({name: column[row] for name, column in rows.items()}, start, start + length)
    low, high = np.empty(row.size, np.int64), np.empty(row.size, np.int64)
    told, lines = np.empty((len(cuts.TOLD), row.size)), np.empty((row.size, cuts.LINES))
    cuts.cut(records, row, start, length, low, high, told, lines)
    known: dict[str, Any] = dict(zip(cuts.TOLD, told, strict=True))
    known |= {"records": records, "row": row, "length": length, "lines": lines}
    return Compiled(Gathered(rows, row), start, start + length, low, high, **known)


_HOW: dict[Any, int] = {np.add: folds.ADD, np.minimum: folds.LEAST, np.maximum: folds.GREATEST}


def fold(first: Ints, last: Ints, values: Any, windows: Ints, width: int, operation: np.ufunc, neutral: float) -> Any:
    """`Slide.fold` of rows that do not bridge, by addition, least or greatest of int64 or float64."""
    out, values = np.empty(windows.size, values.dtype), np.ascontiguousarray(values)
    room = np.empty((2, _positions(windows, width)), values.dtype)
    folds.numbers(first, last, values, windows, width, values.dtype.type(neutral), _HOW[operation], room, out)
    return out


def least_mean(parts: Columns, total: Floats, part: Floats, least: Floats) -> Floats:
    """`estimates.means.least_mean`."""
    out = np.empty(total.size)
    counts = parts["n"], parts["count_low"], parts["count_high"]
    means.least(*counts, _plain(total), _plain(part), _plain(least), out)
    return out


def fold_squares(
    first: Ints, last: Ints, moments: tuple[Floats, Floats, Floats], windows: Ints, width: int
) -> tuple[Floats, Floats, Floats]:
    """`Slide.fold_squares` of rows that do not bridge."""
    return _fold_rows(folds.squares, first, last, moments, windows, width)


def fold_occurrences(
    first: Ints, last: Ints, told: tuple[Floats, Floats, Floats], windows: Ints, width: int
) -> tuple[Floats, Floats, Floats]:
    """`Slide.fold_occurrences` of rows that do not bridge."""
    return _fold_rows(folds.occurrences, first, last, told, windows, width)


def _fold_rows(
    fold: Any, first: Ints, last: Ints, columns: tuple[Floats, Floats, Floats], windows: Ints, width: int
) -> tuple[Floats, Floats, Floats]:
    rows, out = np.stack(columns, axis=1).astype(np.float64, copy=False), np.empty((windows.size, 3))
    fold(first, last, rows, windows, width, np.empty((2, _positions(windows, width), 3)), out)
    one, other, third = np.ascontiguousarray(out.T)
    return one, other, third


def _plain(column: Floats) -> Floats:
    return np.ascontiguousarray(column, np.float64)


def _positions(windows: Ints, width: int) -> int:
    return int(-(-(int(windows[-1]) + 1 + width) // width) * width)
