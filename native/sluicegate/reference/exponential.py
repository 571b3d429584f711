"""e to the power x within one unit in the last place: the readable twin of partials/exponential.h, to the bit.

x = k·ln 2 + r with a whole k and |r| ≤ ln 2 / 2, so that eˣ = 2ᵏ·eʳ. The part of ln 2 that k is multiplied by first has
so few digits that nothing rounds. eʳ = 1 + r + r²·(polynomial of degree 9 through the Chebyshev nodes, off by 2⁻⁵⁸ at
most), summed in pairs (Estrin). Nothing branches and nothing is looked up: the compiled form takes several at once.
"""

from __future__ import annotations

from math import inf, isnan, ldexp

_PER_LN_2 = float.fromhex("0x1.71547652b82fep+0")
_UPPER_LN_2, _LOWER_LN_2 = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
_WHOLE = 1.5 * 2.0**52  # added and taken off again, it leaves the nearest whole number
_LEAST, _MOST = -746.0, 710.0  # beyond them eˣ is 0 or infinite
_PAIRS = tuple(
    (float.fromhex(a), float.fromhex(b))
    for a, b in (
        ("0x1.0000000000001p-1", "0x1.5555555555556p-3"),
        ("0x1.5555555553d68p-5", "0x1.11111111109b5p-7"),
        ("0x1.6c16c17889f3cp-10", "0x1.a01a01a7c2f2cp-13"),
        ("0x1.a019b914881bap-16", "0x1.71de0db2eb873p-19"),
        ("0x1.28917c9f3a495p-22", "0x1.af389eea54156p-26"),
    )
)


def exponential(x: float) -> float:
    """eˣ; infinite where it is beyond float64, 0 where it is below, NaN of NaN."""
    if isnan(x):
        return x
    x = min(max(x, _LEAST), _MOST)
    k = (x * _PER_LN_2 + _WHOLE) - _WHOLE
    upper, lower = x - k * _UPPER_LN_2, k * _LOWER_LN_2
    r = upper - lower
    lost = (upper - r) - lower
    r2 = r * r
    r4 = r2 * r2
    first, second, third, fourth, fifth = (a + b * r for a, b in _PAIRS)
    rest = (first + second * r2) + r4 * ((third + fourth * r2) + r4 * fifth)
    try:
        return ldexp(1.0 + (r + (r2 * rest + lost)), int(k))
    except OverflowError:
        return inf
