"""Sliding windows over sensor streams that say how exact they are: `import sluicegate as sg`.

Everything here is loaded when it is first used, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate import errors, policies, stores
    from sluicegate.core import ENGINES
    from sluicegate.errors import SluicegateError
    from sluicegate.format.bucket import Bucket, Builder, merge
    from sluicegate.histograms import Constrained, Hop, MaxLike, SumLike
    from sluicegate.keyed.windows import KeyedWindows
    from sluicegate.monoids.kll import Quantiles
    from sluicegate.monoids.results import Bins, BloomFilter, CountMin, DistinctCount, LongestRun, Top
    from sluicegate.records import Bounded
    from sluicegate.window.configure import Changes, Footprint, Window
    from sluicegate.window.shared import Windows
    from sluicegate.windowing import operators, triggers
    from sluicegate.windowing.events import WindowHandler, WindowSummarizer
    from sluicegate.windowing.operator import WindowOperator
    from sluicegate.windowing.partitions import PartitionEviction
    from sluicegate.windowing.spec import WindowSpec

    # isort: off
    from sluicegate.monoids import (
        Monoid, argmax, argmin, bloom_filter, collect, compiled, correlation, count, count_min, covariance, custom,
        distinct_count, first, frequency, geometric_mean, histogram, intercept, last, longest_run, max, max_count,
        mean, min, min_count, quantiles, range, rate, slope, std, sum, time_weighted_mean, top_k, variance,
    )  # fmt: skip
    # isort: on

_HOMES = {
    **dict.fromkeys((
        "argmax", "argmin", "bloom_filter", "collect", "compiled", "correlation", "count", "count_min", "covariance",
        "custom", "distinct_count", "first", "frequency", "geometric_mean", "histogram", "intercept", "last",
        "longest_run", "max", "max_count", "mean", "min", "min_count", "quantiles", "range", "rate", "slope", "std",
        "sum", "time_weighted_mean", "top_k", "variance", "Monoid",
    ), "monoids"),
    **dict.fromkeys(("Bins", "BloomFilter", "CountMin", "DistinctCount", "LongestRun", "Top"), "monoids.results"),
    **dict.fromkeys(("Changes", "Footprint", "Window"), "window.configure"),
    "Windows": "window.shared",
    "KeyedWindows": "keyed.windows",
    **dict.fromkeys(("WindowHandler", "WindowSummarizer"), "windowing.events"),
    "WindowOperator": "windowing.operator",
    "PartitionEviction": "windowing.partitions",
    "WindowSpec": "windowing.spec",
    **dict.fromkeys(("Bucket", "Builder", "merge"), "format.bucket"),
    "Quantiles": "monoids.kll",
    "Bounded": "records",
    **dict.fromkeys(("Constrained", "Hop", "MaxLike", "SumLike"), "histograms"),
    "ENGINES": "core",
    "SluicegateError": "errors",
}  # fmt: skip
_MODULES = {
    **{name: name for name in ("errors", "policies", "stores")},
    **{name: f"windowing.{name}" for name in ("operators", "triggers")},
}
__all__ = [
    "ENGINES", "Bins", "BloomFilter", "Bounded", "Bucket", "Builder", "Changes", "Constrained", "CountMin",
    "DistinctCount", "Footprint", "Hop", "KeyedWindows", "LongestRun", "MaxLike", "Monoid", "PartitionEviction",
    "Quantiles", "SluicegateError", "SumLike", "Top", "Window", "WindowHandler", "WindowOperator", "WindowSpec",
    "WindowSummarizer", "Windows", "argmax", "argmin", "bloom_filter", "collect", "compiled", "correlation", "count",
    "count_min", "covariance", "custom", "distinct_count", "errors", "first", "frequency", "geometric_mean",
    "histogram", "intercept", "last", "longest_run", "max", "max_count", "mean", "merge", "min", "min_count",
    "operators", "policies", "quantiles", "range", "rate", "slope", "std", "stores", "sum", "time_weighted_mean",
    "top_k", "triggers", "variance",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load what is asked for from the module it lives in."""
    if name in _MODULES:
        return import_module(f"sluicegate.{_MODULES[name]}")
    if name not in _HOMES:
        raise AttributeError(f"module 'sluicegate' has no attribute {name!r}")
    value = getattr(import_module(f"sluicegate.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    return sorted(__all__)
