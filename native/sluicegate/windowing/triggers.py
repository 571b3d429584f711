"""Trigger policies: when a sliding window is processed. Source: SPL's windowing library, 3.3.1 to 3.3.3.

A window by event time takes the first and the last of them too: they say when it gives early results.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.checks import check_count, check_number, check_span
from sluicegate.errors import ConfigurationError


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
    check_count("triggers.count", n)
    return CountTrigger(n)


def delta(attribute: str | None, width: float) -> DeltaTrigger:
    """Each time the attribute has grown by more than `width`. Raises ConfigurationError for what is no width."""
    if attribute is not None and not isinstance(attribute, str):
        raise ConfigurationError(f"triggers.delta: attribute {attribute!r}, expected its name, or None for the reading")
    check_number("triggers.delta", width, "width", least=0.0)
    return DeltaTrigger(attribute, width)


def time(period: int | str) -> TimeTrigger:
    """Every period: µs as an int, or a text such as "1m". Raises ConfigurationError for what is no positive length."""
    return TimeTrigger(check_span("triggers.time", period, like="1m"))
