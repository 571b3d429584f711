"""What is worked out of numbers that lie within spans lies within the span that is worked out, in exact arithmetic."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from fractions import Fraction
from math import inf, nextafter

import pytest

from sluicegate.bounds.spans import EVERYTHING, Span, around, outward, point


@pytest.mark.parametrize("of", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_an_operation_on_any_two_numbers_is_within(of: Callable[..., object]) -> None:
    """At the ends too, where rounding would take it out; quotients by what is above 0."""
    rng = random.Random(7)
    for _ in range(500):
        a, b = (sorted(rng.uniform(-9, 9) * 10.0 ** rng.randint(-3, 3) for _ in range(2)) for _ in range(2))
        if of is operator.truediv:
            b = [abs(x) + 1e-3 for x in b]
        one, other = Span(*a), Span(*sorted(b))
        found = of(one, other)
        assert isinstance(found, Span)
        for x in one:
            for y in other:
                assert Fraction(found.low) <= of(Fraction(x), Fraction(y)) <= Fraction(found.high)


def test_squares_and_roots_are_within() -> None:
    """Of spans over 0 and beside it."""
    rng = random.Random(8)
    for _ in range(500):
        one = Span(*sorted(rng.uniform(-3, 9) for _ in range(2)))
        square, root = one.square(), one.square().root()
        for x in (*one, *([0.0] if one.low <= 0.0 <= one.high else [])):
            assert Fraction(square.low) <= Fraction(x) ** 2 <= Fraction(square.high)
            assert Fraction(root.low) ** 2 <= Fraction(x) ** 2 <= Fraction(root.high) ** 2
        assert square.low >= 0.0
        assert root.low >= 0.0


def test_what_is_beyond_all_numbers_says_nothing() -> None:
    """Infinities that cancel, and a divisor that may be 0."""
    assert outward(inf - inf, inf - inf) == EVERYTHING
    assert point(1.0) / Span(0.0, 1.0) == EVERYTHING
    assert around(1.0, 0.0) == (nextafter(1.0, -inf), nextafter(1.0, inf))
