"""Constructors of the built-in aggregates and of the user's own, one module per family."""

from __future__ import annotations

from sluicegate.monoids.compiled import compiled
from sluicegate.monoids.fixed import (
    bloom_filter,
    distinct_count,
    frequency,
    histogram,
    longest_run,
    rate,
    time_weighted_mean,
    top_k,
)
from sluicegate.monoids.monoid import KINDS, OBJECTS, PLAIN_KINDS, ROUNDED, Monoid
from sluicegate.monoids.objects import collect, custom, quantiles
from sluicegate.monoids.simple import (
    argmax,
    argmin,
    count,
    first,
    geometric_mean,
    last,
    max,
    max_count,
    mean,
    min,
    min_count,
    range,
    std,
    sum,
    variance,
)

__all__ = [
    "KINDS",
    "OBJECTS",
    "PLAIN_KINDS",
    "ROUNDED",
    "Monoid",
    "argmax",
    "argmin",
    "bloom_filter",
    "collect",
    "compiled",
    "count",
    "custom",
    "distinct_count",
    "first",
    "frequency",
    "geometric_mean",
    "histogram",
    "last",
    "longest_run",
    "max",
    "max_count",
    "mean",
    "min",
    "min_count",
    "quantiles",
    "range",
    "rate",
    "std",
    "sum",
    "time_weighted_mean",
    "top_k",
    "variance",
]
