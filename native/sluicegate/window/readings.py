"""Single readings as a caller gives them: a number, a mapping or a sequence, checked before it enters a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import index
from typing import Any

from sluicegate.core import LARGEST, LATEST
from sluicegate.errors import InputError

_TEXT = str | bytes | bytearray


class RowReader:
    """Turns readings of the given dimensions into rows of floats; (None,) is a stream of plain numbers."""

    __slots__ = ("_dimensions", "_positive", "_single")

    def __init__(self, dimensions: tuple[str | None, ...], positive: tuple[int, ...] = ()) -> None:
        """`dimensions`: the names, in the order in which a sequence gives their values.

        `positive`: the indices of those whose values must be greater than 0.
        """
        self._positive = positive
        self._dimensions = dimensions
        self._single = len(dimensions) == 1

    def row(self, value: Any) -> tuple[float, ...]:
        """One finite float per dimension. Raises InputError for what is missing, too much, not finite or no number."""
        if self._single and isinstance(value, int | float):
            return (self._finite(0, value),)
        given = self._given(value)
        if len(given) != len(self._dimensions):
            raise InputError(f"reading: {len(given)} values, expected {self._shape()}")
        return tuple(self._finite(i, x) for i, x in enumerate(given))

    def _given(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, Mapping):
            return self._by_name(value)
        if isinstance(value, Sequence) and not isinstance(value, _TEXT):
            return tuple(value)
        return (value,)

    def _by_name(self, value: Mapping[Any, Any]) -> tuple[Any, ...]:
        missing = [name for name in self._dimensions if name not in value]
        if missing:
            raise InputError(f"reading: {missing} missing among {list(value)}, expected {self._shape()}")
        return tuple(value[name] for name in self._dimensions)

    def _finite(self, i: int, x: Any) -> float:
        try:
            number = x if type(x) is float else float(_no_text(x))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"reading{self._which(i)}: {x!r} is no number; expected {self._shape()}") from None
        if not abs(number) <= LARGEST:
            raise InputError(f"reading{self._which(i)}: {number!r}; expected a finite value of magnitude up to 2^960")
        if i in self._positive and not number > 0.0:
            raise InputError(f"reading{self._which(i)}: {number!r}; a geometric mean takes values greater than 0 only")
        return number

    def _which(self, i: int) -> str:
        return "" if self._dimensions == (None,) else f"[{self._dimensions[i]!r}]"

    def _shape(self) -> str:
        return "one number" if self._dimensions == (None,) else f"one value each of {list(self._dimensions)}"


reader = lru_cache(maxsize=64)(RowReader)  # windows of the same dimensions share one


def _no_text(x: Any) -> Any:
    """Texts that float would read are not numbers here, as in a batch. Raises TypeError."""
    if isinstance(x, _TEXT):
        raise TypeError
    return x


def in_range(time: Any) -> int:
    """A time in µs: any integer but a bool, numpy's too, within ±2^61. Raises InputError for all else."""
    if type(time) is not int and not isinstance(time, bool) and hasattr(time, "__index__"):
        time = index(time)
    if type(time) is not int or not -LATEST <= time <= LATEST:
        raise InputError(f"time: {time!r}, expected microseconds as an int within ±2^61")
    return time
