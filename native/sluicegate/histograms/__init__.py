"""Histograms: rules that decide whether a reading opens a bucket or joins the newest one.

`SumLike` or `MaxLike` decides by error or by candidates, `Hop` by predicted evictions, `Constrained` by a number of
buckets; they compose as A2MTA says (section II): one of the first two, with `Hop`, with `Constrained`.
"""

from __future__ import annotations

from sluicegate.histograms.constrained import Constrained
from sluicegate.histograms.hop import Hop
from sluicegate.histograms.max_like import MaxLike
from sluicegate.histograms.sum_like import SumLike

__all__ = ["Constrained", "Hop", "MaxLike", "SumLike"]
