"""What `aggregate` names in a [[window]] table: "mean", or with its options "rate(1h)", "histogram(0, 10, 20)"."""

from __future__ import annotations

import re
from collections.abc import Callable

import sluicegate as sg
from sluicegate.errors import ConfigurationError
from sluicegate.monoids import PLAIN_KINDS
from sluicegate.monoids.monoid import PAIRED

_FORM = re.compile(r"(\w+)\s*(?:\((.*)\))?", re.DOTALL)
MOST_TEXT = 4096
"""Characters of one aggregate with its options."""

SKETCHED = ("distinct_count", "top_k", "quantiles")
"""Kinds that keep a sketch a bucket."""

CARRIED = ("count_min", "bloom_filter")
"""Kinds whose answer is something to put questions to, which no message carries: the cloud alone answers them."""

VALUE, SECOND = "value", "second"
"""The dimensions of a window of readings of two values."""

BUCKETED = (*PLAIN_KINDS, "histogram", "time_weighted_mean", "slope", "intercept", *PAIRED, *SKETCHED)
"""Kinds that buckets carry; the others need single readings: a count window with `buckets = 0`."""

_TIMED = {"rate": sg.rate, "frequency": sg.frequency, "slope": sg.slope}
_SIZED: dict[str, Callable[[int], sg.Monoid]] = {
    "top_k": sg.top_k,
    "distinct_count": lambda lg_k: sg.distinct_count(lg_k=lg_k),
    "quantiles": lambda k: sg.quantiles(k=k),
}
_PAIRS: dict[str, Callable[[int, int], sg.Monoid]] = {"count_min": sg.count_min, "bloom_filter": sg.bloom_filter}
_DEFAULTS = {"distinct_count": "10", "quantiles": "64", "count_min": "256, 4", "bloom_filter": "1024, 4"}
_NOT_HERE = {
    "collect": "its partials are Python objects, which the agent's store does not keep",
    "custom": "the agent runs no code of yours; use sluicegate.Window in your own program",
    "compiled": "the agent runs no code of yours; use sluicegate.Window in your own program",
}
FORMS = (
    *PLAIN_KINDS, "histogram(0, 10, 20)", "rate(1s)", "frequency(1s)", "longest_run", "distinct_count(10)", "top_k(5)",
    "time_weighted_mean", "slope(1h)", "intercept(last)", "quantiles(64)", "count_min(256, 4)",
    "bloom_filter(1024, 4)", *PAIRED,
)  # fmt: skip
"""How each may be written; the options are examples."""


def kind_of(text: str) -> str:
    """The aggregate's name, without its options."""
    found = _FORM.fullmatch(text.strip())
    return found[1] if found else text


def build_aggregate(text: str) -> sg.Monoid:
    """The aggregate that this asks for. Raises ConfigurationError that says what was expected."""
    found = _FORM.fullmatch(text.strip()) if len(text) <= MOST_TEXT else None
    if found is None:
        raise ConfigurationError(f"expected one or several of {', '.join(FORMS)}")
    kind, options = found[1], [] if found[2] is None else [each.strip() for each in found[2].split(",")]
    if kind in _NOT_HERE:
        raise ConfigurationError(_NOT_HERE[kind])
    if kind in _TIMED:
        return _TIMED[kind](per=_single(kind, options, 'a length of time, such as "1h"') or "1s")
    if kind in _SIZED:
        return _SIZED[kind](*_sizes(kind, options, 1))
    if kind in _PAIRS:
        return _PAIRS[kind](*_sizes(kind, options, 2))
    if kind == "intercept":
        return sg.intercept(at=_single(kind, options, '"first" or "last"') or "first")
    if kind == "histogram":
        return sg.histogram([_edge(each) for each in options])
    if kind not in (*PLAIN_KINDS, *PAIRED, "longest_run", "time_weighted_mean"):
        raise ConfigurationError(f"expected one or several of {', '.join(FORMS)}")
    if options:
        raise ConfigurationError(f"{kind} takes no options: write it without parentheses")
    if kind in PAIRED:
        return sg.covariance(VALUE, SECOND) if kind == "covariance" else sg.correlation(VALUE, SECOND)
    made: sg.Monoid = getattr(sg, kind)()
    return made


def _single(kind: str, options: list[str], expected: str) -> str:
    if len(options) > 1:
        raise ConfigurationError(f"{kind}: {len(options)} options, expected {expected}")
    return options[0] if options else ""


def _sizes(kind: str, options: list[str], expected: int) -> list[int]:
    given = options or [each for each in _DEFAULTS.get(kind, "").split(", ") if each]
    if len(given) != expected or not all(each.isdecimal() and len(each) <= 9 for each in given):
        numbers = "a whole number" if expected == 1 else f"{expected} whole numbers"
        example = f"{kind}({_DEFAULTS.get(kind, '10')})"
        raise ConfigurationError(f"{kind}({', '.join(given)}): expected {numbers} in parentheses, such as {example}")
    return [int(each) for each in given]


def _edge(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(f"histogram: the edge {text!r} is no number; such as histogram(0, 10, 20)") from None
