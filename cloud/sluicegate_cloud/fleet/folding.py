"""Buckets inside one frame → one row of the frame; what crosses a frame's edge stays a row of its own.

Source: paper Hazelcast, "Break into Frames". Rows come sorted by the frame in which they begin, so a frame is a run of
them, and sums have the same bits in every run. Squares are folded around their group's mean: nothing cancels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sluicegate_cloud.grid import Columns, Floats, Ints

_SUMMED = ("n", "total", "gap", "doubt", "buckets", "span_us", "log_low", "log_high")
_LEAST = ("low", "sure_low", "t_first", "first")
_GREATEST = ("high", "sure_high", "t_last")
_SQUARES = ("m2_low", "m2_high")
_OCCURRENCES = (("low_n", "low"), ("high_n", "high"))
#: Of a folded row nothing else means anything.
FOLDED = (*_SUMMED, *_LEAST, *_GREATEST, *_SQUARES, *(name for name, _ in _OCCURRENCES))


def fold_frames(rows: Columns, by: Sequence[str] = ("first_frame",)) -> Columns:
    """`rows` of one frame each, sorted by `by`: those that agree in it become one, `total` relative to one center.

    Columns that FOLDED does not name are those of the first row of each.
    """
    if rows["n"].size == 0:
        return rows
    same = np.ones(rows["n"].size - 1, np.bool_)
    for name in by:
        same &= rows[name][1:] == rows[name][:-1]
    begin = np.concatenate(([0], np.flatnonzero(~same) + 1))
    if begin.size == rows["n"].size:
        return rows
    return {name: _folded(rows, name, begin) for name in rows}


def _folded(rows: Columns, name: str, begin: Ints) -> Ints | Floats:
    if name in _SUMMED:
        return np.asarray(np.add.reduceat(rows[name], begin))
    if name in _LEAST:
        return np.asarray(np.minimum.reduceat(rows[name], begin))
    if name in _GREATEST:
        return np.asarray(np.maximum.reduceat(rows[name], begin))
    if name in _SQUARES:
        return _squares(rows, name, begin)
    for often, extreme in _OCCURRENCES:
        if name == often:
            return _occurrences(rows, name, extreme, begin)
    return np.asarray(rows[name][begin])


def _squares(rows: Columns, name: str, begin: Ints) -> Floats:
    n, total = np.add.reduceat(rows["n"], begin), np.add.reduceat(rows["total"], begin)
    mean = np.repeat(total / np.maximum(n, 1), _lengths(rows, begin))
    apart = rows["total"] / rows["n"] - mean
    return np.asarray(np.add.reduceat(rows[name] + rows["n"] * apart * apart, begin))


def _occurrences(rows: Columns, name: str, extreme: str, begin: Ints) -> Ints:
    """How often the group's extreme occurs; −1 where one of its buckets does not say."""
    pick = np.minimum if extreme == "low" else np.maximum
    reached = np.repeat(pick.reduceat(rows[extreme], begin), _lengths(rows, begin)) == rows[extreme]
    told = np.add.reduceat(np.where(reached, rows[name], 0), begin)
    silent = np.logical_or.reduceat(reached & (rows[name] < 0), begin)
    return np.asarray(np.where(silent, -1, told))


def _lengths(rows: Columns, begin: Ints) -> Ints:
    return np.diff(np.append(begin, rows["n"].size))
