"""Punctuation: the stream itself says where a tumbling window ends. For `sg.WindowSpec`, not for `sg.Window`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Flush a tumbling window where the stream carries a punctuation: `WindowOperator.punctuate()`.

    Source: SPL's windowing library, 3.3.4.
    """

    name: ClassVar[str] = "punctuation"


punctuation = Punctuation
