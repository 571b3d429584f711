"""What a bucket may carry beside its record, each by a name: how it is folded, merged and checked.

An extra is a component of a partial (`sluicegate.monoids.layout`) as slots of 8 bytes, little-endian, without the zeros
at their end. Its name says all that is needed to read it: "line", "area", "quantiles(64)", "count_min(256,4)". A name
that is not known is nothing wrong: a newer Sluicegate wrote it, and its bytes are passed over. All but "pair" and
"late" follow from single readings; these say what their second values were, and which of them came late.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from itertools import accumulate, pairwise
from math import inf
from typing import Any

from sluicegate.constants import LARGEST, MOST_NAME
from sluicegate.errors import ConfigurationError
from sluicegate.format import pairs
from sluicegate.format.late import LATE_MOST, LATE_NAME, CameLate, pack_columns, unpack_columns
from sluicegate.format.packing import pack_ints
from sluicegate.format.unpacking import PackingError, Reader, unpack_ints
from sluicegate.monoids import Monoid, bloom_filter, count_min, distinct_count, hll, quantiles, top_k
from sluicegate.monoids.kll import MOST_BUCKETED_K, MOST_LEVELS, most_values
from sluicegate.monoids.layout import Component, Op
from sluicegate.partials.parts import SlotFold

_NAME = re.compile(r"([a-z_]+)(?:\((\d{1,9}(?:,\d{1,9})*)\))?")
_SIZED: dict[str, tuple[Op, Callable[..., Monoid]]] = {
    "quantiles": (Op.KLL, lambda k: quantiles(k=k)),
    "distinct_count": (Op.DISTINCT, lambda lg_k: distinct_count(lg_k=lg_k)),
    "top_k": (Op.TOP, top_k),
    "count_min": (Op.COUNTS, count_min),
    "bloom_filter": (Op.BLOOM, bloom_filter),
}
_PLAIN = {"line": Op.LINE, "area": Op.AREA}
_READ_FROM = {
    "slope": "line", "intercept": "line", "time_weighted_mean": "area", "covariance": pairs.PAIR,
    "correlation": pairs.PAIR,
}  # fmt: skip


Parts = list[bytes | None]
Placed = Sequence[tuple[int, int, int]]  # of each bucket stored whole: its readings, first and last time


class ExtraError(ValueError):
    """The bytes are not what their name says, or not of their bucket."""


class Extra:
    """One kind of extra: `fold` readings, `combine` neighbours, `slots` to read, `check` what somebody else wrote.

    `of_readings`: whether it follows from single readings, so that a bucket that has them needs none.
    """

    of_readings = True

    def __init__(self, name: str, component: Component) -> None:
        self.name, self.op, self.options = name, component.op, component.options
        self._part = SlotFold(component)
        self._format = struct.Struct("<" + component.format)
        self.width = self._part.width

    @property
    def most(self) -> int:
        """Bytes of one, at most."""
        return 8 * self.width

    def fold(self, values: array[float], times: array[int]) -> bytes:
        """Of the readings of a bucket, in order, at least one; times in µs."""
        return self._part.fold(values, times)

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Of two neighbouring buckets, a's readings first; the same bytes on every machine."""
        return self._part.combine(a, b)

    def all_of(self, parts: Sequence[bytes]) -> bytes:
        """Of several neighbours, at least one, from the first on."""
        return reduce(self.combine, parts)

    def slots(self, packed: bytes) -> tuple[Any, ...]:
        """Its slots as numbers. Raises ExtraError for bytes that it has no room for."""
        if len(packed) % 8 or len(packed) > self.most:
            raise ExtraError(f"{self.name}: {len(packed)} bytes, expected a multiple of 8 up to {self.most}")
        return self._format.unpack(packed.ljust(self.most, b"\0"))

    def check(self, packed: bytes, n: int, t_first: int, t_last: int) -> None:
        """Raises ExtraError where it cannot be of a bucket of n readings from `t_first` to `t_last`."""
        if not _CHECKS[self.op](self, self.slots(packed), n, t_first, t_last):
            raise ExtraError(f"{self.name}: it contradicts itself or its bucket of {n} readings")

    def columns(self, parts: Parts, placed: Placed) -> bytes:
        """Of several buckets what a document has of it: how many slots each has, and the slots in planes of a byte."""
        joined = b"".join(part for part in parts if part is not None)
        planes = b"".join(joined[i::8] for i in range(8))
        return pack_ints([0 if part is None else 1 + len(part) // 8 for part in parts]) + planes

    def of_columns(self, reader: Reader, placed: Placed) -> Parts:
        """What `columns` made. Raises PackingError."""
        lengths = unpack_ints(reader, len(placed))
        if min(lengths) < 0 or max(lengths) > self.width + 1:
            raise PackingError(f"{self.name}: of another length than its name says")
        slots = sum(each - 1 for each in lengths if each)
        planes = reader.take(8 * slots)
        joined = bytearray(8 * slots)
        for i in range(8):
            joined[i::8] = planes[i * slots : (i + 1) * slots]
        ends = [*accumulate(8 * max(0, each - 1) for each in lengths)]
        return [
            bytes(joined[end - 8 * (each - 1) : end]) if each else None for each, end in zip(lengths, ends, strict=True)
        ]


class PairExtra(Extra):
    """The moments of two values; `pairs.Moments` folds them, from readings of two."""

    name, op, options, width, of_readings = pairs.PAIR, Op.PAIR, (), 10, False

    def __init__(self) -> None:
        self._format = struct.Struct("<10d")

    def fold(self, values: array[float], times: array[int]) -> bytes:
        """Raises ExtraError: readings of one value do not say it."""
        raise ExtraError("pair: readings of one value do not say what their second ones were")

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Of two neighbouring buckets, a's readings first; the same bytes on every machine."""
        return pairs.combine(a, b)


class LateExtra(Extra):
    """Which readings of a merged bucket came late (`CameLate`): who merges buckets says it."""

    name, op, options, width, of_readings = LATE_NAME, Op.OBJECT, (), 2 + 3 * LATE_MOST, False

    def __init__(self) -> None:
        """It has no component."""

    def fold(self, values: array[float], times: array[int]) -> bytes:
        """Raises ExtraError: single readings do not say it."""
        raise ExtraError("late: readings do not say which of them came late")

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Of two neighbouring buckets, a's readings first."""
        return CameLate.unpack(a).then(CameLate.unpack(b)).pack()

    def check(self, packed: bytes, n: int, t_first: int, t_last: int) -> None:
        """Raises ExtraError where it contradicts itself."""
        try:
            CameLate.unpack(packed)
        except ValueError as error:
            raise ExtraError(f"{error}") from error

    def columns(self, parts: Parts, placed: Placed) -> bytes:
        """Times as what they are apart: as slots they took a quarter of a document."""
        return pack_columns(parts, placed)

    def of_columns(self, reader: Reader, placed: Placed) -> Parts:
        """What `columns` made. Raises PackingError."""
        return unpack_columns(reader, placed)


@lru_cache(maxsize=256)
def extra(name: str) -> Extra | None:
    """The extra of this name; None for one that this Sluicegate does not know."""
    if name == LATE_NAME:
        return LateExtra()
    found = _NAME.fullmatch(name) if len(name) <= MOST_NAME else None
    if found is None:
        return None
    kind, options = found[1], tuple(int(each) for each in found[2].split(",")) if found[2] else ()
    if name == pairs.PAIR:
        return PairExtra()
    if kind in _PLAIN and not options:
        return Extra(name, Component(_PLAIN[kind], 0, 0))
    if kind not in _SIZED or not options:
        return None
    op, make = _SIZED[kind]
    try:
        monoid = make(*options)
    except (ConfigurationError, TypeError):
        return None
    if name != name_for(monoid):
        return None
    return Extra(name, Component(op, 0, 0, monoid.options))


def name_for(monoid: Monoid) -> str | None:
    """The name of the extra that an aggregate is answered from; None where a bucket's record is enough or none is."""
    if monoid.kind == "quantiles" and monoid.options[0] > MOST_BUCKETED_K:
        return None
    if monoid.kind in _SIZED:
        return f"{monoid.kind}({','.join(map(str, monoid.options))})"
    return _READ_FROM.get(monoid.kind)


# what somebody else's bytes must be


def _is_line(extra: Extra, slots: Sequence[Any], n: int, t_first: int, t_last: int) -> bool:
    placed = slots[0] == n and slots[1] == t_first and slots[2] == t_last
    return bool(placed and all(x == x for x in slots) and min(slots[6], slots[7]) >= 0.0)


def _is_pair(extra: Extra, slots: Sequence[Any], n: int, t_first: int, t_last: int) -> bool:
    low, high, xx, yy = slots[pairs.LEAST], slots[pairs.GREATEST], *slots[7:9]
    inside = slots[0] == n and low <= slots[2] <= high and all(abs(x) <= LARGEST for x in slots[1:5])
    known = slots[9] == slots[9] or max(xx, yy) == inf
    return bool(inside and known and all(x == x for x in slots[:9]) and min(xx, yy) >= 0.0)


def _is_area(extra: Extra, slots: Sequence[Any], n: int, t_first: int, t_last: int) -> bool:
    _, _, first, last, _, back = slots
    inside = t_first <= first <= t_last and t_first <= last <= t_last and 0 <= back < n
    return inside and all(x == x for x in slots) and (back > 0 or (first, last) == (t_first, t_last))


def _is_quantiles(extra: Extra, slots: Sequence[Any], n: int, t_first: int, t_last: int) -> bool:
    count, levels, low, high = slots[:4]
    if count != n or not 1 <= levels <= MOST_LEVELS or not low <= high:
        return False
    sizes = slots[4 : 4 + MOST_LEVELS]
    kept = sum(sizes)
    if min(sizes) < 0 or any(sizes[levels:]) or kept > most_values(extra.options[0], levels):
        return False
    values, at = slots[4 + MOST_LEVELS : 4 + MOST_LEVELS + kept], 0
    for size in sizes[:levels]:
        level = values[at : at + size]
        if any(not low <= x <= high for x in level) or any(a > b for a, b in pairwise(level)):
            return False
        at += size
    return bool(sum(size << height for height, size in enumerate(sizes)) == n)


def _is_distinct(extra: Extra, slots: Sequence[Any], n: int, t_first: int, t_last: int) -> bool:
    area = struct.pack(f"<{len(slots) - 1}q", *slots[1:])
    lg_k, count = extra.options[0], slots[0]
    if count == hll.REGISTERS:
        registers = area[: 1 << lg_k]
        return max(registers) <= 63 and 0 < len(registers) - registers.count(0) <= n
    if not 1 <= count <= min(n, hll.most_coupons(lg_k)):
        return False
    coupons = struct.unpack_from(f"<{count}I", area)
    return all(a < b for a, b in pairwise(coupons)) and not any(area[4 * count :])


def _is_top(extra: Extra, slots: Sequence[Any], n: int, t_first: int, t_last: int) -> bool:
    count, values, times = slots[0], slots[1::2], slots[2::2]
    if count != min(extra.options[0], n):
        return False
    return all(a >= b for a, b in pairwise(values[:count])) and all(t_first <= t <= t_last for t in times[:count])


def _is_counts(extra: Extra, slots: Sequence[Any], n: int, t_first: int, t_last: int) -> bool:
    width, _ = extra.options
    return min(slots) >= 0 and all(sum(slots[at : at + width]) == n for at in range(0, len(slots), width))


def _is_bloom(extra: Extra, slots: Sequence[Any], n: int, t_first: int, t_last: int) -> bool:
    bits = sum((x & 2**64 - 1).bit_count() for x in slots)
    return bool(0 < bits <= n * extra.options[1])


_CHECKS: dict[Op, Callable[[Extra, Sequence[Any], int, int, int], bool]] = {
    Op.LINE: _is_line, Op.AREA: _is_area, Op.KLL: _is_quantiles, Op.DISTINCT: _is_distinct, Op.TOP: _is_top,
    Op.COUNTS: _is_counts, Op.BLOOM: _is_bloom, Op.PAIR: _is_pair,
}  # fmt: skip
