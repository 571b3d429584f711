"""By definition: what packing or reading a column counts and rounds; `sluicegate.format._packing` has the same bits."""

from __future__ import annotations

import math
import struct
from array import array
from itertools import accumulate
from operator import sub

DIGITS = 15  # decimal places tried
EXACT = 2**53  # integers a float64 holds exactly
_FLOAT32 = struct.Struct("<f")


def extent(numbers: array[int]) -> tuple[int, int, int]:
    """Least, greatest and sum."""
    return min(numbers), max(numbers), sum(numbers)


def begins(first: int, lengths: array[int]) -> array[int]:
    """Where runs begin that follow each other."""
    return array("q", [*accumulate(lengths, initial=first)])[:-1]


def residue(column: array[int], mode: int) -> tuple[int, int, int, bytes] | None:
    """Base, scale and width of a column less `mode` times its neighbours, and its planes."""
    rest = list(column)
    for _ in range(mode):
        rest = list(map(sub, rest[1:], rest))
        if not all(map(fits, rest)):
            return None
    base = min(rest)
    scale = math.gcd(*[x - base for x in rest]) or 1
    steps = [(x - base) // scale for x in rest]
    width = (max(steps).bit_length() + 7) // 8
    pad = centering(steps, width) if width > 1 else 0
    if pad and scale < 2**62 and fits(pad * scale) and fits(base - pad * scale):
        base, steps = base - pad * scale, [step + pad for step in steps]
    raw = array("Q", steps).tobytes()
    return base, scale, width, b"".join(raw[i::8] for i in range(width))


def fits(x: int) -> bool:
    """Whether it is an int64."""
    return -(2**63) <= x < 2**63


def centering(steps: list[int], width: int) -> int:
    """What to add so that the middle number has 0x80 in every plane but the highest, which then hardly changes."""
    middle, below = sorted(steps)[len(steps) // 2], 256 ** (width - 1)
    pad = (0x8080808080808080 - middle) % below
    return pad if max(steps) + pad < 256**width else 0


def digits(values: array[float]) -> int:
    """The decimal places that bring back every bit; −1 where none do."""
    most = max(places(x) for x in values)
    power = 10.0**most
    if most > DIGITS or max(map(abs, values)) * power >= EXACT:
        return -1
    return most if all(round(x * power) / power == x for x in values) else -1


def places(x: float) -> int:
    """Decimal places of the shortest text that means x; more than DIGITS where it is written with an exponent."""
    text = repr(x)
    if "e" in text or "n" in text:
        return DIGITS + 1
    return 0 if text.endswith(".0") else len(text) - text.index(".") - 1


def scaled(values: array[float], digits: int) -> array[int]:
    """Each times a power of ten, as a whole number."""
    return array("q", [round(x * 10.0**digits) for x in values])


def singles(values: array[float], up: bool) -> array[float] | None:
    """Each outward; None where one does not fit."""
    rounded = array("f", [outward(x, up=up) for x in values])
    return rounded if all(map(math.isfinite, rounded)) else None


def outward(x: float, *, up: bool) -> float:
    """The nearest float32 not below (up) or not above x; ±inf where there is none."""
    try:
        near: float = _FLOAT32.unpack(_FLOAT32.pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
    if near == x or (near > x) == up:
        return near
    return _next_single(near, up=up)


def _next_single(x: float, *, up: bool) -> float:
    """The float32 beside x."""
    if x == 0.0:
        return math.copysign(2.0**-149, 1.0 if up else -1.0)
    bits = int.from_bytes(_FLOAT32.pack(x), "little")
    bits += 1 if (x > 0.0) == up else -1
    beside: float = _FLOAT32.unpack(bits.to_bytes(4, "little"))[0]
    return beside
