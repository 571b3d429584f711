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


def run_of(
    items: list[Any],
    sequence: str,
    first: int,
    epoch: str | None,
    named: str | int | None,
    time: str,
    scale: int,
    earliest: int,
    latest: int,
    largest: float,
    keys: tuple[str, ...],
) -> tuple[array[int], list[array[float]]]:
    """Times and one column of values a key of the items up to the first that is none of a run.

    Of a run is an object of finite numbers whose number under `sequence` is `first`, then one more each, whose time
    lies in `earliest` … `latest`, whose values are at most `largest` in magnitude, and which has `named` under `epoch`
    where that is a key.
    """
    times, found = array("q"), [array("d") for _ in keys]
    for number, item in enumerate(items, first):
        each = columns([item], time, scale, earliest, latest, keys)
        if each is None or not _is(item.get(sequence), number) or each[3] > largest:
            break
        if epoch is not None and not _is(item.get(epoch), named):
            break
        times += each[0]
        for column, value in zip(found, each[1], strict=True):
            column += value
    return times, found


def _is(found: Any, asked: Any) -> bool:
    return type(found) is type(asked) and found == asked


def _number(raw: Any) -> Any:
    if type(raw) not in (int, float) or not isfinite(raw):
        raise TypeError("not a number")
    return raw
