"""Arithmetic of intervals: between which numbers a sum, product or quotient of two uncertain ones certainly lies.

Every end is moved outward by one float, so that rounding is inside. What is beyond float64 is infinite.
"""

from __future__ import annotations

from math import inf, isnan, nextafter, sqrt
from typing import NamedTuple


class Span(NamedTuple):
    """low ≤ x ≤ high."""

    low: float
    high: float

    def __add__(self, other: object) -> Span:
        """Of the sum."""
        assert isinstance(other, Span)  # noqa: S101  a tuple's own + is not meant
        return outward(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Span) -> Span:
        """Of the difference."""
        return outward(self.low - other.high, self.high - other.low)

    def __mul__(self, other: object) -> Span:
        """Of the product."""
        assert isinstance(other, Span)  # noqa: S101  a tuple's own * is not meant
        ends = [_times(x, y) for x in self for y in other]
        return outward(min(ends), max(ends))

    def __truediv__(self, other: Span) -> Span:
        """Of the quotient; of a divisor that may be 0 nothing is known."""
        if other.low <= 0.0:
            return EVERYTHING
        ends = [x / y if y < inf else 0.0 for x in self for y in other]
        return outward(min(ends), max(ends))

    def within(self, other: Span) -> Span:
        """What both allow; `other` where they do not meet but for rounding."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Span(low, high) if low <= high else other

    def joined(self, other: Span) -> Span:
        """What either allows."""
        return Span(min(self.low, other.low), max(self.high, other.high))

    def square(self) -> Span:
        """Of the square."""
        least = 0.0 if self.low <= 0.0 <= self.high else min(abs(self.low), abs(self.high))
        most = max(abs(self.low), abs(self.high))
        found = outward(least * least, most * most)
        return Span(max(0.0, found.low), found.high)

    def root(self) -> Span:
        """Of the square root of what is not negative."""
        found = outward(sqrt(max(0.0, self.low)), sqrt(self.high))
        return Span(max(0.0, found.low), found.high)

    @property
    def known(self) -> bool:
        """Whether it says anything."""
        return self.low > -inf or self.high < inf


EVERYTHING = Span(-inf, inf)


def around(x: float, margin: float) -> Span:
    """x ± margin."""
    return outward(x - margin, x + margin)


def point(x: float) -> Span:
    """A number that is known."""
    return Span(x, x)


def outward(low: float, high: float) -> Span:
    """One float farther apart; no number at all where rounding went beyond float64."""
    return Span(-inf if isnan(low) else nextafter(low, -inf), inf if isnan(high) else nextafter(high, inf))


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0.0 or y == 0.0 else x * y
