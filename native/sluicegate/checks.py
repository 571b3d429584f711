"""Checks of settings; each message names call, setting and value, what was expected and what to do."""

from __future__ import annotations

from math import inf
from typing import TypeGuard

from sluicegate.errors import ConfigurationError
from sluicegate.spans import micros

MAX_COUNT = 2**53
MAX_SPAN = 2**62
MOST_CONFIDENT = 1.0 - 1e-9


def is_whole(x: object, least: int, most: int) -> TypeGuard[int]:
    """Whether it is a whole number in that range; True and False are none."""
    return isinstance(x, int) and not isinstance(x, bool) and least <= x <= most


def is_number(x: object, least: float = -inf) -> TypeGuard[float]:
    """Whether it is a finite number, `least` or more."""
    return isinstance(x, int | float) and not isinstance(x, bool) and -inf < x < inf and x >= least


def check_whole(call: str, value: object, least: int, most: int, setting: str = "") -> None:
    """Raise ConfigurationError unless the value is a whole number from `least` to `most`."""
    if not is_whole(value, least, most):
        raise ConfigurationError(f"{_where(call, value, setting)} expected a whole number from {least} to {most}")


def check_count(call: str, count: object, setting: str = "") -> None:
    """A number of readings. Raises ConfigurationError unless 1 ≤ count ≤ 2^53."""
    if not is_whole(count, 1, MAX_COUNT):
        raise ConfigurationError(f"{_where(call, count, setting)} expected a whole number of readings from 1 to 2^53")


def check_number(call: str, x: object, setting: str = "", *, least: float | None = None) -> None:
    """A finite number, `least` or more. Raises ConfigurationError."""
    if not is_number(x, -inf if least is None else least):
        expected = "a finite number" if least is None else f"a finite number, {least:g} or more"
        raise ConfigurationError(f"{_where(call, x, setting)} expected {expected}")


def check_span(call: str, span: object, setting: str = "", like: str = "1h") -> int:
    """A length of time in µs, up to 2^62, of an int or a text such as "24h". Raises ConfigurationError."""
    length = micros(span)
    if not is_whole(length, 1, MAX_SPAN):
        expected = f"a positive length: µs as an int, or a text like {like!r}"
        raise ConfigurationError(f"{_where(call, span, setting)} expected {expected}")
    return length


def check_dimension(call: str, dimension: object) -> None:
    """A dimension's name, or None for a stream of single values. Raises ConfigurationError."""
    if dimension is not None and not isinstance(dimension, str):
        raise ConfigurationError(
            f"{call}: dimension {dimension!r}, expected its name, or None for a stream of single values"
        )


def check_confidence(call: str, confidence: object) -> None:
    """Raise ConfigurationError unless 0 < confidence ≤ 1 − 10⁻⁹; NaN is refused too."""
    if not is_number(confidence) or not 0.0 < confidence <= MOST_CONFIDENT:
        where = _where(call, confidence, "confidence")
        raise ConfigurationError(f"{where} expected a probability between 0 and 1, such as 0.95")


def _where(call: str, value: object, setting: str) -> str:
    return f"{call}({setting}={value!r}):" if setting else f"{call}: {value!r},"
