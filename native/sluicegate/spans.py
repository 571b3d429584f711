"""Lengths of time as people write them: µs as an int, or a text such as "24h"."""

from __future__ import annotations

import re

UNITS = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "min": 60_000_000,
    "h": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000,
}  # fmt: skip


def micros(length: object) -> int | None:
    """The µs of an int, or of a text such as "24h", "1.5h", "15min", "90s", "500ms", "10us"; None for anything else.

    A text of less than a µs, which is not 0 either, is none of them.
    """
    if not isinstance(length, str):
        return length if isinstance(length, int) and not isinstance(length, bool) else None
    match = re.fullmatch(r"\s*(\d{1,19})(\.\d{1,9})?\s*([a-z]+)\s*", length)
    if match is None or match[3] not in UNITS:
        return None
    found = int(match[1]) * UNITS[match[3]] + round(float(match[2] or 0) * UNITS[match[3]])
    return None if found == 0 and float(match[2] or 0) else found


def written(length: int) -> str:
    """A length as people write it: the largest unit that divides it, as in "90s"; weeks are written in days."""
    fitting = [unit for unit, size in UNITS.items() if unit not in ("m", "w") and length and length % size == 0]
    unit = fitting[-1] if fitting else "us"
    return f"{length // UNITS[unit]}{unit}"
