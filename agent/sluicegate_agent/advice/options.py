"""The options of `sluicegate plan --advise`, checked: what to aggregate, how exact, over which window."""

from __future__ import annotations

from typing import Any

import sluicegate as sg
from sluicegate.spans import micros
from sluicegate_agent.advice.readings import Readings
from sluicegate_agent.advice.trials import AGGREGATES, FEWEST
from sluicegate_agent.errors import InputRefused

DAY = 86_400_000_000
LARGEST = 5_000_000  # readings: 80 MB of them, and the exact window's answers


def checked_aggregates(given: tuple[str, ...]) -> tuple[str, ...]:
    """A mean and a maximum where none is named. Raises InputRefused for one that is not tried."""
    if unknown := [name for name in given if name not in AGGREGATES]:
        raise InputRefused(f"--aggregate {unknown[0]}: expected one of {', '.join(AGGREGATES)}")
    return tuple(dict.fromkeys(given)) or ("mean", "max")


def checked_error(text: str) -> float:
    """A share of the result such as "1%" or 0.01. Raises InputRefused."""
    try:
        share = float(text.rstrip("% ")) / (100.0 if text.rstrip().endswith("%") else 1.0)
    except ValueError:
        share = 0.0
    if not 1e-9 <= share <= 0.2:
        raise InputRefused(f'--error {text}: expected a share of the result up to 20 %, such as "1%" or 0.01')
    return share


def checked_most(most: int) -> int:
    """Raises InputRefused for what would not fit into memory, or is too few."""
    if not FEWEST <= most <= LARGEST:
        raise InputRefused(f"--most {most}: expected {FEWEST} to {LARGEST:,} readings")
    return most


def checked_only(text: str | None) -> tuple[str, str] | None:
    """A column and what it holds. Raises InputRefused for what has no "="."""
    if text is None:
        return None
    column, equals, value = text.partition("=")
    if not column or not equals:
        raise InputRefused(f"--only {text}: expected a column and what it holds, such as device=7")
    return column, value


def policy_of(window: str | None, readings: Readings) -> tuple[Any, str]:
    """The window and what it is called; by default a day where the file has three, else a fifth of the readings.

    Raises InputRefused for what is no window, or more than the file holds.
    """
    count = len(readings.values)
    if count < FEWEST:
        raise InputRefused(f"{count} readings: expected {FEWEST} or more, so that there is something to try")
    span = 0 if readings.times is None else max(readings.times) - min(readings.times)
    if window is None:
        window = "24h" if span >= 3 * DAY else str(max(count // 5, 2))
    if window.isdecimal():
        return _by_count(int(window), count)
    length = micros(window)
    if length is None or length < 1:
        raise InputRefused(f'--window {window}: expected a length such as "24h", or a number of readings')
    if readings.times is None:
        raise InputRefused(f"--window {window}: the file has no times; name their column with --time, or give a number")
    if length >= span:
        raise InputRefused(f"--window {window}: the readings span no more; expected a window that moves over them")
    return sg.policies.time(length), f"the newest {window}"


def _by_count(size: int, count: int) -> tuple[Any, str]:
    if not 2 <= size < count:
        raise InputRefused(f"--window {size}: expected 2 to {count - 1}, fewer than the readings there are")
    return sg.policies.count(size), f"the newest {size:,} readings"
