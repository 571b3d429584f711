"""Lengths of time, sizes and shares as people write them ("24h", "16MiB", "0.1%"), parsed once into numbers."""

from __future__ import annotations

import re
from math import inf
from typing import Any

from sluicegate.spans import UNITS

_SIZE = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_PERCENT = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*%\s*")
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_MOST = 2**62
#: Written in a length's place: after each reading.
EACH = "reading"


class Duration(int):
    """A length of time in whole microseconds; written as a number with one of us, ms, s, min (or m), h, d, w."""

    @classmethod
    def parse(cls, value: Any) -> Duration:
        """Read "24h" and the like, or the number 0; raises ValueError that says what is expected."""
        return cls(_parse(value, UNITS, 'a length of time such as "500ms", "10s", "24h" or "7d"'))

    @property
    def seconds(self) -> float:
        """The same length in seconds, for timers."""
        return self / 1_000_000


class Pace(Duration):
    """How often: at most once in a length of time, 0 at each commit; or "reading", after each of them."""

    @classmethod
    def parse(cls, value: Any) -> Pace:
        """Read "1s" and the like, 0, or "reading"; raises ValueError that says what is expected."""
        expected = 'a length of time such as "500ms" or "10s", or "reading"'
        return cls(-1) if value == EACH else cls(_parse(value, UNITS, expected))

    @property
    def is_each(self) -> bool:
        """Whether after each reading."""
        return self < 0

    @property
    def seconds(self) -> float:
        """The least time between two, in seconds."""
        return max(0, self) / 1_000_000

    def __str__(self) -> str:
        return EACH if self.is_each else super().__str__()


class Size(int):
    """A number of bytes; written as a whole number, or as one with one of B, KB, MB, GB, KiB, MiB, GiB."""

    @classmethod
    def parse(cls, value: Any) -> Size:
        """Read "16MiB" and the like, or a plain number of bytes; raises ValueError that says what is expected."""
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST:
            return cls(value)
        return cls(_parse(value, _SIZE, 'a size such as "64KiB" or "16MiB"'))


class Share(float):
    """A part of a whole; written as a number, 0.001, or as a percentage, "0.1%"."""

    @classmethod
    def parse(cls, value: Any) -> Share:
        """Read "0.1%" or 0.001; raises ValueError that says what is expected."""
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < inf:
            return cls(value)
        match = _PERCENT.fullmatch(value) if isinstance(value, str) and len(value) <= 32 else None
        if match is None:
            raise ValueError('expected a share such as "0.1%" or 0.001')
        return cls(float(match[1]) / 100)


def _parse(value: Any, units: dict[str, int], expected: str) -> int:
    if value == 0 and isinstance(value, int) and not isinstance(value, bool):
        return 0
    match = _WRITTEN.fullmatch(value) if isinstance(value, str) and len(value) <= 32 else None
    if match is None or (match[2] not in units and not (match[2] == "" and float(match[1]) == 0)):
        raise ValueError(f"expected {expected} (units: {', '.join(units)})")
    amount = float(match[1]) * units.get(match[2], 1)
    if amount >= _MOST:
        raise ValueError(f"expected {expected}; this one is too large")
    return round(amount)


def show_size(size: int) -> str:
    """A number of bytes for people: 16.0 MiB."""
    amount, units = float(size), iter(("B", "KiB", "MiB", "GiB"))
    unit = next(units)
    while abs(amount) >= 1024 and unit != "GiB":
        amount, unit = amount / 1024, next(units)
    return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"


def show_duration(microseconds: int) -> str:
    """A length of time for people: 90 s, 26.0 h, 3.5 d."""
    seconds = microseconds / 1_000_000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def write_duration(microseconds: int) -> str:
    """A length of time as a configuration takes it, to the microsecond: 24h, 90s, 7d."""
    exact = [(length, unit) for unit, length in UNITS.items() if microseconds % length == 0 and unit not in ("m", "w")]
    length, unit = max(each for each in exact if each[1] != "d" or microseconds > each[0])
    return f"{microseconds // length}{unit}"
