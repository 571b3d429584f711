"""Trigger policies: when a sliding window is processed. Source: SPL's windowing library, 3.3.1 to 3.3.3.

A window by event time takes the first and the last of them too: they say when it gives early results.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.checks import check_count, check_number, check_span
from sluicegate.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class CountTrigger:
    """After every `count` readings of a partition (3.3.1). Raises ConfigurationError unless 1 ≤ count ≤ 2^53."""

    count: int

    def __post_init__(self) -> None:
        """Check the number of readings."""
        check_count("triggers.count", self.count)


@dataclass(frozen=True, slots=True)
class DeltaTrigger:
    """Before a reading whose `attribute` is more than `width` past that of the last one that triggered (3.3.2).

    The first reading of a partition triggers nothing: what comes after it is measured by it. `attribute` None is the
    reading itself. Raises ConfigurationError for what is no name or no width.
    """

    attribute: str | None
    width: float

    def __post_init__(self) -> None:
        """Check both settings."""
        if self.attribute is not None and not isinstance(self.attribute, str):
            raise ConfigurationError(
                f"triggers.delta: attribute {self.attribute!r}, expected its name, or None for the reading"
            )
        check_number("triggers.delta", self.width, "width", least=0.0)


@dataclass(frozen=True, slots=True)
class TimeTrigger:
    """Every `period` µs, whether anything arrives or not (3.3.3)."""

    period: int


Trigger = CountTrigger | DeltaTrigger | TimeTrigger
count, delta = CountTrigger, DeltaTrigger


def time(period: int | str) -> TimeTrigger:
    """Every period: µs as an int, or a text such as "1m". Raises ConfigurationError for what is no positive length."""
    return TimeTrigger(check_span("triggers.time", period, like="1m"))
