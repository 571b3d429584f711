"""Sliding windows over sensor streams that say how exact they are: `import sluicegate as sg`.

Everything here is loaded when it is first used, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate import errors as errors
    from sluicegate import policies as policies
    from sluicegate import stores as stores
    from sluicegate.core import ENGINES as ENGINES
    from sluicegate.errors import SluicegateError as SluicegateError
    from sluicegate.format.bucket import Bucket as Bucket
    from sluicegate.format.bucket import Builder as Builder
    from sluicegate.format.bucket import merge as merge
    from sluicegate.histograms import Constrained as Constrained
    from sluicegate.histograms import Hop as Hop
    from sluicegate.histograms import MaxLike as MaxLike
    from sluicegate.histograms import SumLike as SumLike
    from sluicegate.keyed.windows import KeyedWindows as KeyedWindows
    from sluicegate.monoids import Monoid as Monoid
    from sluicegate.monoids import argmax as argmax
    from sluicegate.monoids import argmin as argmin
    from sluicegate.monoids import bloom_filter as bloom_filter
    from sluicegate.monoids import collect as collect
    from sluicegate.monoids import compiled as compiled
    from sluicegate.monoids import correlation as correlation
    from sluicegate.monoids import count as count
    from sluicegate.monoids import count_min as count_min
    from sluicegate.monoids import covariance as covariance
    from sluicegate.monoids import custom as custom
    from sluicegate.monoids import distinct_count as distinct_count
    from sluicegate.monoids import first as first
    from sluicegate.monoids import frequency as frequency
    from sluicegate.monoids import geometric_mean as geometric_mean
    from sluicegate.monoids import histogram as histogram
    from sluicegate.monoids import intercept as intercept
    from sluicegate.monoids import last as last
    from sluicegate.monoids import longest_run as longest_run
    from sluicegate.monoids import max as max
    from sluicegate.monoids import max_count as max_count
    from sluicegate.monoids import mean as mean
    from sluicegate.monoids import min as min
    from sluicegate.monoids import min_count as min_count
    from sluicegate.monoids import quantiles as quantiles
    from sluicegate.monoids import range as range
    from sluicegate.monoids import rate as rate
    from sluicegate.monoids import slope as slope
    from sluicegate.monoids import std as std
    from sluicegate.monoids import sum as sum
    from sluicegate.monoids import time_weighted_mean as time_weighted_mean
    from sluicegate.monoids import top_k as top_k
    from sluicegate.monoids import variance as variance
    from sluicegate.monoids.kll import Quantiles as Quantiles
    from sluicegate.monoids.results import Bins as Bins
    from sluicegate.monoids.results import BloomFilter as BloomFilter
    from sluicegate.monoids.results import CountMin as CountMin
    from sluicegate.monoids.results import DistinctCount as DistinctCount
    from sluicegate.monoids.results import LongestRun as LongestRun
    from sluicegate.monoids.results import Top as Top
    from sluicegate.records import Bounded as Bounded
    from sluicegate.window.configure import Changes as Changes
    from sluicegate.window.configure import Footprint as Footprint
    from sluicegate.window.configure import Window as Window
    from sluicegate.window.shared import Windows as Windows
    from sluicegate.windowing import operators as operators
    from sluicegate.windowing import triggers as triggers
    from sluicegate.windowing.events import WindowHandler as WindowHandler
    from sluicegate.windowing.events import WindowSummarizer as WindowSummarizer
    from sluicegate.windowing.operator import WindowOperator as WindowOperator
    from sluicegate.windowing.partitions import PartitionEviction as PartitionEviction
    from sluicegate.windowing.spec import WindowSpec as WindowSpec

_HOMES = {
    **dict.fromkeys(
        (
            "argmax",
            "argmin",
            "bloom_filter",
            "collect",
            "compiled",
            "correlation",
            "count",
            "count_min",
            "covariance",
            "custom",
            "distinct_count",
            "first",
            "frequency",
            "geometric_mean",
            "histogram",
            "intercept",
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
            "slope",
            "std",
            "sum",
            "time_weighted_mean",
            "top_k",
            "variance",
            "Monoid",
        ),
        "monoids",
    ),
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
}
_MODULES = {
    **{name: name for name in ("errors", "policies", "stores")},
    **{name: f"windowing.{name}" for name in ("operators", "triggers")},
}
__all__ = [*_HOMES, *_MODULES]


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
