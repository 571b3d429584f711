"""Computes the least mean that a window's components allow: of its values, their logarithms, or their squares."""

from __future__ import annotations

import numpy as np

from sluicegate_cloud import compiled
from sluicegate_cloud.grid import Columns, Floats


def least_mean(parts: Columns, total: Floats, part: Floats, least: Floats) -> Floats:
    """Least over c of (total + max(part, c·least)) / (n + c), c from 1 when n is 0; the greatest is − this of − all."""
    if compiled.COMPILED:
        return compiled.least_mean(parts, total, part, least)
    n, c1 = parts["n"].astype(np.float64), parts["count_high"].astype(np.float64)
    c0 = np.maximum(parts["count_low"], (parts["n"] == 0) & (c1 > 0)).astype(np.float64)
    least = np.where(np.isfinite(least), least, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = part / least
        meet = np.where(np.isfinite(meet), meet, c0)
        candidates = [c0, c1, np.clip(np.floor(meet), c0, c1), np.clip(np.ceil(meet), c0, c1)]
        means = [(total + np.maximum(part, c * least)) / (n + c) for c in candidates]
    best = means[0]
    for mean in means[1:]:
        best = np.fmin(best, mean)
    return np.asarray(best)
