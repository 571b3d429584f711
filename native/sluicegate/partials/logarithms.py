"""Where a partial's logarithms are taken around."""

from __future__ import annotations

from math import log


def log_of(center: float) -> float:
    """Where logarithms are taken around: 0 for a center that has none."""
    return log(center) if center > 0.0 else 0.0
