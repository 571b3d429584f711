"""Trigger policies: when a sliding window is processed. Source: SPL's windowing library, 3.3.1 to 3.3.3.

A window by event time takes the first and the last of them too: they say when it gives early results.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from sluicegate.errors import ConfigurationError
from sluicegate.policies import MAX_COUNT, MAX_SPAN
from sluicegate.spans import micros


@dataclass(frozen=True, slots=True)
class CountTrigger:
    """After every `count` readings of a partition (3.3.1)."""

    count: int


@dataclass(frozen=True, slots=True)
class DeltaTrigger:
    """Before a reading whose `attribute` is more than `width` past that of the last one that triggered (3.3.2).

    The first reading of a partition triggers nothing: what comes after it is measured by it. `attribute` None is the
    reading itself.
    """

    attribute: str | None
    width: float


@dataclass(frozen=True, slots=True)
class TimeTrigger:
    """Every `period` µs, whether anything arrives or not (3.3.3)."""

    period: int


Trigger = CountTrigger | DeltaTrigger | TimeTrigger


def count(n: int) -> CountTrigger:
    """After every n readings. Raises ConfigurationError unless 1 ≤ n ≤ 2^53."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MAX_COUNT:
        raise ConfigurationError(f"triggers.count: {n!r}, expected a whole number of readings from 1 to 2^53")
    return CountTrigger(n)


def delta(attribute: str | None, width: float) -> DeltaTrigger:
    """Each time the attribute has grown by more than `width`. Raises ConfigurationError for what is no width."""
    if attribute is not None and not isinstance(attribute, str):
        raise ConfigurationError(f"triggers.delta: attribute {attribute!r}, expected its name, or None for the reading")
    number = isinstance(width, int | float) and not isinstance(width, bool) and isfinite(width)
    if not number or width < 0:
        raise ConfigurationError(f"triggers.delta(width={width!r}): expected a finite number, 0 or more")
    return DeltaTrigger(attribute, width)


def time(period: int | str) -> TimeTrigger:
    """Every period: µs as an int, or a text such as "1m". Raises ConfigurationError for what is no positive length."""
    length = micros(period) if isinstance(period, str) else period
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= MAX_SPAN:
        raise ConfigurationError(f"triggers.time: {period!r}, expected a positive length: µs as an int, or like '1m'")
    return TimeTrigger(length)
