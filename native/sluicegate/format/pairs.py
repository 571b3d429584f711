"""Readings of two values: numbers that know their second one, folded to the moments of both that a bucket carries.

The extra "pair" has ten slots: readings, first x, first y, least and greatest y, then the means less the first values,
Σ of squared deviations of each and Σ of their products (`sluicegate.monoids.comoments`). x is the reading's value,
whose extremes the bucket's record has; y is the second one. Readings are folded one after the other, so that the same
readings give the same bytes, however they are handed over. Standard library only.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from math import nan
from typing import Any, SupportsIndex

from sluicegate.monoids.comoments import combine_pair, lift_pair

PAIR = "pair"
_SLOTS = struct.Struct("<10d")
#: A pair's slots as the library's windows have them: readings, x, y, means, Σxx, Σyy, Σxy.
MOMENTS = (0, 1, 2, 5, 6, 7, 8, 9)
LEAST, GREATEST = 3, 4


class Pair(float):
    """A value, and beside it the second one of the same reading."""

    __slots__ = ("second",)
    second: float

    def __new__(cls, value: float, second: float) -> Pair:
        """Two finite numbers."""
        made = super().__new__(cls, value)
        made.second = second
        return made


class PairColumn(array):  # type: ignore[type-arg]  # an array is no generic class where it is a base
    """A column of values (float64) with a column of as many second ones beside it."""

    seconds: array[float]

    def __new__(cls, values: Iterable[float] = (), seconds: Iterable[float] = ()) -> PairColumn:
        """As many of both."""
        made: PairColumn = super().__new__(cls, "d", values)  # type: ignore[assignment]
        made.seconds = array("d", seconds)
        return made

    def append(self, value: Pair) -> None:
        """One more reading."""
        super().append(value)
        self.seconds.append(value.second)

    def __iadd__(self, other: PairColumn) -> PairColumn:  # type: ignore[override,misc]  # single values have none
        self.seconds += other.seconds
        super().__iadd__(other)
        return self

    def __getitem__(self, at: SupportsIndex | slice) -> Any:
        """A slice has the second values too; a single one is a Pair."""
        found = super().__getitem__(at)
        return PairColumn(found, self.seconds[at]) if isinstance(at, slice) else Pair(float(found), self.seconds[at])

    def __iter__(self) -> Iterator[Pair]:
        return map(Pair, super().__iter__(), self.seconds)

    def rows(self) -> Any:
        """All of them as float64 (n, 2), for a window of two dimensions."""
        flat = array("d", bytes(16 * len(self)))
        flat[::2], flat[1::2] = array("d", memoryview(self)), self.seconds
        return memoryview(flat).cast("B").cast("d", (len(self), 2)) if self else memoryview(flat)


class Moments:
    """The moments of the readings that were added, in their order."""

    def __init__(self, packed: bytes | None = None) -> None:
        """Continue what `pack` said, or begin. Raises ValueError for bytes that are none."""
        self._slots = None if packed is None else unpack(packed)

    @property
    def n(self) -> int:
        """How many readings it knows."""
        return 0 if self._slots is None else int(self._slots[0])

    def add(self, values: PairColumn, begin: int, end: int) -> None:
        """Readings `begin` … `end` of a column."""
        for place in range(begin, end):
            one = _lifted(array.__getitem__(values, place), values.seconds[place])
            self._slots = one if self._slots is None else _joined(self._slots, one)

    def pack(self) -> bytes:
        """As a bucket carries it; there is at least one reading."""
        return _packed(self._slots or [])


def combine(a: bytes, b: bytes) -> bytes:
    """Two neighbours as one; a's readings precede b's. Raises ValueError for bytes that are none."""
    return _packed(_joined(unpack(a), unpack(b)))


def unpack(packed: bytes) -> list[float]:
    """The ten slots. Raises ValueError for bytes that have no such."""
    if len(packed) % 8 or len(packed) > _SLOTS.size:
        raise ValueError(f"{len(packed)} bytes are no moments of two values")
    return [*_SLOTS.unpack(packed.ljust(_SLOTS.size, b"\0"))]


def _packed(slots: list[float]) -> bytes:
    packed = _SLOTS.pack(*slots).rstrip(b"\0")
    return packed.ljust(-(-len(packed) // 8) * 8, b"\0")


def _lifted(x: float, y: float) -> list[float]:
    n, first, second, *rest = lift_pair(x, y)
    return [n, first, second, y, y, *rest]


def _joined(a: list[float], b: list[float]) -> list[float]:
    n, x, y, *rest, xy = combine_pair([a[i] for i in MOMENTS], [b[i] for i in MOMENTS])
    xy = xy if xy == xy else nan  # beyond float64: the same bits on every machine
    return [n, x, y, min(a[LEAST], b[LEAST]), max(a[GREATEST], b[GREATEST]), *rest, xy]
