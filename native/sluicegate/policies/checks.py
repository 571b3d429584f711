"""Checks of a policy's settings; each message names policy, setting and value, what was expected and what to do."""

from __future__ import annotations

from math import isfinite

from sluicegate.errors import ConfigurationError

MAX_COUNT = 2**53


def check_count(place: str, count: object) -> None:
    """A number of readings. Raises ConfigurationError unless 1 ≤ count ≤ 2^53."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_COUNT:
        raise ConfigurationError(f"{_where(place, count)} expected a whole number of readings from 1 to 2^53")


def check_number(place: str, x: object, *, least: float | None = None) -> None:
    """A finite number, `least` or more. Raises ConfigurationError."""
    number = isinstance(x, int | float) and not isinstance(x, bool) and isfinite(x)
    if not number or (least is not None and x < least):  # type: ignore[operator]
        expected = "a finite number" if least is None else f"a finite number, {least:g} or more"
        raise ConfigurationError(f"{_where(place, x)} expected {expected}")


def _where(place: str, value: object) -> str:
    """`place`: the policy, or policy.setting."""
    policy, _, setting = place.partition(".")
    return f"policies.{policy}({setting}={value!r}):" if setting else f"policies.{policy}: {value!r},"


def check_dimension(place: str, dimension: object) -> None:
    """A dimension's name, or None for a stream of single values. Raises ConfigurationError."""
    if dimension is not None and not isinstance(dimension, str):
        raise ConfigurationError(
            f"policies.{place}: dimension {dimension!r}, expected its name, or None for a stream of single values"
        )
