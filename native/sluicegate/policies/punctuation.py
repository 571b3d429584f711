"""Punctuation: the stream itself says where a tumbling window ends. For `sg.WindowSpec`, not for `sg.Window`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Punctuation:
    """A tumbling window keeps what comes until a punctuation does. Source: SPL's windowing library, 3.3.4."""

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return "punctuation"


def punctuation() -> Punctuation:
    """Flush a tumbling window where the stream carries a punctuation: `WindowOperator.punctuate()`."""
    return Punctuation()
