"""The readable twin of sluicegate.partials.wide: aggregates of fixed width beyond a number or two, bit for bit."""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from sluicegate.monoids import comoments, hashing, hll, kll
from sluicegate.monoids.layout import Component, Op

Slots = list[Any]
COUNT, FIRST, LAST, PREFIX, SUFFIX, BEST, OFFSET, BEST_FIRST, BEST_LAST, PREFIX_LAST, SUFFIX_FIRST = range(11)


def lift(component: Component, values: Sequence[float], time: int, ordinal: int) -> Slots:
    """One reading as the component's slots."""
    x = values[component.dimension]
    slots: Slots = [0] * len(component.format)
    match component.op:
        case Op.RATE:
            return [x, time, x, time]
        case Op.RUN:
            return [1, x, x, 1, 1, 1, 0, time, time, time, time]
        case Op.TOTAL:
            return [x, 0.0]
        case Op.SPAN:
            return [time, time]
        case Op.AREA:
            return [0.0, 0.0, time, time, x, 0]
        case Op.LINE:
            return comoments.lift_line(x, time)
        case Op.PAIR:
            return comoments.lift_pair(x, values[component.options[0]])
        case Op.KLL:
            return kll.as_slots(kll.Kll(component.options[0]).lift(x, time), len(slots))
        case Op.COUNTS:
            for place in hashing.rows(x, *component.options):
                slots[place] = 1
        case Op.BINS:
            slots[bisect_right(component.options, x)] = 1
        case Op.BLOOM:
            bits = set(hashing.places(x, *component.options))
            return _slots(sum(1 << place for place in bits).to_bytes(8 * len(slots), "little"))
        case Op.TOP:
            return _tops([(x, time)], len(slots))
        case Op.DISTINCT:
            return _listed([hashing.coupon(x)], len(slots))
        case Op.COMPILED:
            return _own_lift(component.options, values, time, ordinal)
    return slots


def combine(component: Component, a: Slots, b: Slots) -> Slots:
    """The operation on two neighbouring readings' slots; a's precede b's."""
    match component.op:
        case Op.RATE:
            return a[:2] + b[2:]
        case Op.RUN:
            return _combine_run(a, b)
        case Op.TOTAL:
            return combine_total(a, b)
        case Op.SPAN:
            return [min(a[0], b[0]), max(a[1], b[1])]
        case Op.AREA:
            return _combine_area(a, b)
        case Op.LINE:
            return comoments.combine_line(a, b)
        case Op.PAIR:
            return comoments.combine_pair(a, b)
        case Op.KLL:
            k = component.options[0]
            return kll.as_slots(kll.Kll(k).combine(kll.of_slots(k, a), kll.of_slots(k, b)), len(a))
        case Op.BINS | Op.COUNTS:
            return [x + y for x, y in zip(a, b, strict=True)]
        case Op.BLOOM:
            return [x | y for x, y in zip(a, b, strict=True)]
        case Op.TOP:
            both = _pairs(a) + _pairs(b)
            return _tops(sorted(both, key=lambda pair: -pair[0])[: component.options[0]], len(a))
        case Op.DISTINCT:
            return _combine_distinct(component.options[0], a, b)
    return _own_combine(component.options, a, b)


def combine_total(a: Slots, b: Slots) -> Slots:
    """A sum and what its rounding lost, as Knuth's TwoSum tells it."""
    x, y = a[0], b[0]
    s = x + y
    v = s - x
    lost = ((x - (s - v)) + (y - v)) + (a[1] + b[1])
    total = s + lost
    return [total, lost - (total - s)]


def _combine_area(a: Slots, b: Slots) -> Slots:
    """a's last value holds until b's first reading; where that is earlier time went back."""
    held_for = b[2] - a[3]
    until = combine_total(a, [a[4] * float(held_for), 0.0])
    return [*combine_total(until, b), a[2], b[3], b[4], a[5] + b[5] + (held_for < 0)]


def _combine_run(a: Slots, b: Slots) -> Slots:
    """The longest of a's, the one across the border and b's; the earliest of equal ones."""
    n, out = a[COUNT], list(a)
    out[COUNT], out[LAST], out[SUFFIX], out[SUFFIX_FIRST] = n + b[COUNT], b[LAST], b[SUFFIX], b[SUFFIX_FIRST]
    if b[FIRST] > a[LAST]:
        if a[PREFIX] == n:
            out[PREFIX], out[PREFIX_LAST] = n + b[PREFIX], b[PREFIX_LAST]
        if b[SUFFIX] == b[COUNT]:
            out[SUFFIX], out[SUFFIX_FIRST] = a[SUFFIX] + b[COUNT], a[SUFFIX_FIRST]
        across = a[SUFFIX] + b[PREFIX]
        if across > a[BEST]:
            out[BEST : BEST_LAST + 1] = across, n - a[SUFFIX], a[SUFFIX_FIRST], b[PREFIX_LAST]
    if b[BEST] > out[BEST]:
        out[BEST : BEST_LAST + 1] = b[BEST], n + b[OFFSET], b[BEST_FIRST], b[BEST_LAST]
    return out


def _pairs(slots: Slots) -> list[tuple[float, int]]:
    return [(slots[1 + 2 * i], slots[2 + 2 * i]) for i in range(slots[0])]


def _tops(pairs: Sequence[tuple[float, int]], width: int) -> Slots:
    flat = [len(pairs), *(x for pair in pairs for x in pair)]
    return flat + [0.0, 0] * ((width - len(flat)) // 2)


def _combine_distinct(lg_k: int, a: Slots, b: Slots) -> Slots:
    if a[0] >= 0 and b[0] >= 0:
        both = sorted({*_coupons(a), *_coupons(b)})
        return _listed(both, len(a)) if len(both) <= hll.most_coupons(lg_k) else _registered(lg_k, both, len(a))
    left, right = (slots if slots[0] < 0 else _registered(lg_k, _coupons(slots), len(a)) for slots in (a, b))
    return [hll.REGISTERS, *_slots(bytes(map(max, _packed(left[1:]), _packed(right[1:]))))]


def _coupons(slots: Slots) -> list[int]:
    return list(struct.unpack_from(f"<{slots[0]}I", _packed(slots[1:])))


def _listed(coupons: Sequence[int], width: int) -> Slots:
    area = struct.pack(f"<{len(coupons)}I", *coupons)
    return [len(coupons), *_slots(area.ljust(8 * (width - 1), b"\0"))]


def _registered(lg_k: int, coupons: Sequence[int], width: int) -> Slots:
    area = bytearray(8 * (width - 1))
    for coupon in coupons:
        place = coupon & ((1 << lg_k) - 1)
        area[place] = max(area[place], coupon >> 26)
    return [hll.REGISTERS, *_slots(area)]


def _slots(area: bytes | bytearray) -> Slots:
    return list(struct.unpack(f"<{len(area) // 8}q", area))


def _packed(slots: Slots) -> bytes:
    return struct.pack(f"<{len(slots)}q", *slots)


# the user's compiled functions, called through ctypes


def _own_lift(options: tuple[Any, ...], values: Sequence[float], time: int, ordinal: int) -> Slots:
    _, width, address, _, _, _, dimensions = options
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    row = (ctypes.c_double * len(dimensions))(*(values[k] for k in dimensions))
    out = (ctypes.c_int64 * width)()
    kind(address)(ctypes.addressof(row), time, ordinal, ctypes.addressof(out))
    return list(out)


def _own_combine(options: tuple[Any, ...], a: Slots, b: Slots) -> Slots:
    out = (ctypes.c_int64 * options[1])()
    left, right = (ctypes.create_string_buffer(_native(x), 8 * len(x)) for x in (a, b))
    _operation(options[3])(*(ctypes.addressof(x) for x in (out, left, right)))
    return list(out)


def own_lower(options: tuple[Any, ...], slots: Slots) -> float:
    """The result of the user's compiled aggregate; NaN: none."""
    kept = ctypes.create_string_buffer(_native(slots), 8 * len(slots))
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)
    return float(kind(options[4])(ctypes.addressof(kept)))


@lru_cache(maxsize=64)
def _operation(address: int) -> Callable[[int, int, int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(address)


def _native(slots: Slots) -> bytes:
    return struct.pack(f"={len(slots)}q", *slots)
