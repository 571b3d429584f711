"""Columns of numbers out of a list of parsed objects: the readable twin of `sluicegate.format.items`."""

from __future__ import annotations

from array import array
from math import isfinite
from typing import Any


def columns(
    items: list[Any], time: str | None, scale: int, earliest: int, latest: int, keys: tuple[str, ...]
) -> tuple[array[int], list[array[float]], int, float] | None:
    """Times and one column of values a key, then the latest time and the greatest magnitude; None for other items.

    Each item is an object that has a finite number under `time` (none is asked for: None, and no times) and under each
    key. Times are rounded to even after `scale`, and lie in `earliest` … `latest`.
    """
    try:
        at = [] if time is None else [round(_number(item[time]) * scale) for item in items]
        found = [array("d", [_number(item[key]) for item in items]) for key in keys]
    except (KeyError, TypeError, IndexError, OverflowError, ValueError):
        return None
    if not all(earliest <= each <= latest for each in at):
        return None
    largest = max((abs(value) for column in found for value in column), default=0.0)
    return array("q", at), found, max(at, default=earliest), largest


def run_length(items: list[Any], sequence: str, first: int, epoch: str | None, named: str | int | None) -> int:
    """How many items, from the first on, are objects whose number under `sequence` is `first`, then one more each.

    They have `named` under `epoch`, where that is a key.
    """
    for at, item in enumerate(items):
        if not isinstance(item, dict) or not _is(item.get(sequence), first + at):
            return at
        if epoch is not None and not _is(item.get(epoch), named):
            return at
    return len(items)


def _is(found: Any, asked: Any) -> bool:
    return type(found) is type(asked) and found == asked


def _number(raw: Any) -> Any:
    if type(raw) not in (int, float) or not isfinite(raw):
        raise TypeError("not a number")
    return raw
