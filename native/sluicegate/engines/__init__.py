"""Engines: the algorithms that keep a window, by name; compiled, or the readable twins where SLUICEGATE_PURE=1."""

from __future__ import annotations

from sluicegate.reference.core import LARGEST, LATEST, Core, Saved, first_late, first_refused

ENGINES = ("recalc", "amta")
"""`recalc`: the oracle, recalculates every answer; `amta`: Amortized Monoid Tree Aggregator, O(1) amortised."""

__all__ = ["ENGINES", "LARGEST", "LATEST", "Core", "Saved", "first_late", "first_refused"]
