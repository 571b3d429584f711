"""Histograms: rules that decide whether a reading opens a bucket or joins the newest one."""

from __future__ import annotations

from sluicegate.histograms.constrained import Constrained

__all__ = ["Constrained"]
