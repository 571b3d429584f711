"""From a [[window]] table to the arguments of `sg.Window`, and what of it cannot work, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import sluicegate as sg
from sluicegate.errors import ConfigurationError
from sluicegate.histograms.max_like import LEAST_STAGING, MOST_STAGING
from sluicegate.monoids.monoid import PAIRED
from sluicegate_agent.config.aggregates import BUCKETED, VALUE, build_aggregate, kind_of
from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.model import MaxLikeConfig, WindowConfig

#: Every window counts, asked for or not: an answer says of how many readings it is.
COUNT = "count"
SUMS = ("count", "sum", "mean", "variance", "std", "geometric_mean")
EXTREMES = ("max", "min", "argmax", "argmin", "range", "max_count", "min_count")


def build_arguments(config: WindowConfig) -> dict[str, Any]:
    """The arguments of `sg.Window` for a window of the configuration. Raises ConfigurationError.

    Thousands of streams share them: nothing in them changes.
    """
    if "arguments" not in config.__dict__:
        config.__dict__["arguments"] = _arguments(config)
    return dict(config.__dict__["arguments"])


def build_window(config: WindowConfig) -> sg.Window:
    """A window of the configuration, which is checked and laid out once for all streams. Raises ConfigurationError."""
    return configured_window(config).anew()


def configured_window(config: WindowConfig) -> sg.Window:
    """The one whose configuration those of all streams share; it takes nothing."""
    if "window" not in config.__dict__:
        config.__dict__["window"] = sg.Window(**build_arguments(config))
    found: sg.Window = config.__dict__["window"]
    return found


def _arguments(config: WindowConfig) -> dict[str, Any]:
    # What evicts up to an extreme can answer nothing else: what left may have counted.
    names = config.aggregates if config.policy.up_to else dict.fromkeys((*config.aggregates, COUNT))
    aggregates = {name: build_aggregate(name) for name in names}
    if any(each.kind in PAIRED for each in aggregates.values()):  # the others are of the first of two values
        aggregates = {name: replace(each, dimension=each.dimension or VALUE) for name, each in aggregates.items()}
    return {
        "aggregates": aggregates,
        "policy": build_policy(config),
        "histograms": list(_histograms(config)),
    }


def build_policy(config: WindowConfig) -> Any:
    """The eviction policy of a window of the configuration."""
    policy = config.policy
    if policy.time is None:
        return sg.policies.count(policy.count or 1, hop=policy.step, up_to=policy.up_to)
    return sg.policies.time(int(policy.time), hop=policy.step, up_to=policy.up_to)


def _histograms(config: WindowConfig) -> Iterator[Any]:
    sums, most, hop = config.sum_like, config.max_like, config.hop
    if sums is not None:
        yield sg.SumLike(
            sums.error or None, float(sums.floor), of=sums.of, confidence=sums.confidence, withhold=sums.withhold
        )
    if most is not None:
        block = None if most.block == "auto" else most.block
        yield sg.MaxLike(block, most.confidence, staging=most.tail or None, staircase=most.staircase)
    if hop is not None:
        hint = hop.hint if hop.hint is None or not hop.deviation else (hop.hint, float(hop.deviation))
        yield sg.Hop(hop.confidence, hint)
    if config.buckets:
        yield sg.Constrained(config.buckets, merge=config.merge)


def histogram_problems(window: WindowConfig, at: str) -> Iterator[Problem]:
    """What of the histograms cannot work for a window whose other keys are right."""
    found = [*_single_readings(window, at), *_sum_like(window, at), *_max_like(window, at)]
    found += [*_hop(window, at), *_up_to(window, at)]
    yield from found
    if not found:
        yield from _refused(window, at)


def _single_readings(window: WindowConfig, at: str) -> Iterator[Problem]:
    """What buckets do not carry needs a window of single readings, which only a count bounds."""
    asked = [name for name in window.aggregates if kind_of(name) not in BUCKETED]
    rules = [name for name in ("sum_like", "max_like", "hop") if getattr(window, name) is not None]
    if asked and (window.buckets or rules):
        remedy = (
            "buckets do not carry it, so it needs a window of single readings, whose number only a count bounds: "
            f"policy = {{ count = 1000 }} and buckets = 0{', without ' + ' and '.join(rules) if rules else ''}; "
            "ask the other aggregates in a window of their own"
        )
        yield Problem(f"{at}.aggregate", asked[0], remedy)
    sketches = [name for name in window.aggregates if kind_of(name) == "quantiles"]
    if sketches and not window.buckets and not rules:
        yield Problem(f"{at}.aggregate", sketches[0], "it keeps a sketch a bucket: expected buckets above 0")


def _sum_like(window: WindowConfig, at: str) -> Iterator[Problem]:
    sums = window.sum_like
    if sums is None:
        return
    if sums.error is None and sums.floor == 0:
        remedy = 'expected a limit above 0: error = "0.1%" of the result, floor = 0.05 in its units, or both'
        yield Problem(f"{at}.sum_like", None, remedy)
    if sums.error is not None and not sums.error > 0:
        remedy = 'expected more than nothing, such as "0.1%": without an error every reading is a bucket of its own'
        yield Problem(f"{at}.sum_like.error", float(sums.error), remedy)
    if not 0 <= sums.floor < float("inf"):
        yield Problem(f"{at}.sum_like.floor", sums.floor, "expected 0 or more, in the units of the result")
    yield from _confidence(f"{at}.sum_like", sums.confidence)
    named = (sums.of,) if isinstance(sums.of, str) else sums.of or ()
    if unknown := [name for name in named if name not in (*window.aggregates, COUNT)]:
        remedy = f'expected "count", or names of the aggregates: {", ".join(window.aggregates)}'
        yield Problem(f"{at}.sum_like.of", unknown[0], remedy)
    if not named and not any(name in SUMS for name in window.aggregates):
        remedy = (
            f'no sum among {_listed(window)}: use max_like for extremes, or of = "count" to limit the count\'s error'
        )
        yield Problem(f"{at}.sum_like", None, remedy)


def _max_like(window: WindowConfig, at: str) -> Iterator[Problem]:
    most = window.max_like
    if most is None:
        return
    if most.block != "auto" and not 2 <= most.block <= 2**53:
        remedy = 'expected 2 or more readings, such as a day\'s, or "auto": a thirtieth of the window'
        yield Problem(f"{at}.max_like.block", most.block, remedy)
    yield from _confidence(f"{at}.max_like", most.confidence)
    yield from _tail(window, most, at)
    if not any(name in EXTREMES for name in window.aggregates):
        remedy = f"no maximum or minimum among {_listed(window)}: use sum_like for sums and means"
        yield Problem(f"{at}.max_like", None, remedy)
    if window.sum_like is not None:
        remedy = "sum_like is given too, and each decides alone where a bucket ends: ask two windows"
        yield Problem(f"{at}.max_like", None, remedy)


def _tail(window: WindowConfig, most: MaxLikeConfig, at: str) -> Iterator[Problem]:
    """A staging tail: its size, and what it does not go with."""
    if most.staging and not LEAST_STAGING <= most.staging <= MOST_STAGING:
        remedy = f"expected {LEAST_STAGING} to {MOST_STAGING} buckets, such as 512, or 0 for none"
        yield Problem(f"{at}.max_like.staging", most.staging, remedy)
    if most.staircase and most.staging == 0:
        remedy = f"a staircase is decided as it leaves the tail: give {LEAST_STAGING} or more, or leave it out for 512"
        yield Problem(f"{at}.max_like.staging", 0, remedy)
    if most.staircase and most.block != "auto":
        remedy = "a staircase takes no estimate from block maxima: leave out one of block and staircase"
        yield Problem(f"{at}.max_like.block", most.block, remedy)
    if most.tail and window.buckets and window.merge != "pairs":
        remedy = 'what has left the staging tail is merged pair by pair: write merge = "pairs"'
        yield Problem(f"{at}.merge", window.merge, remedy)
    if most.tail and window.hop is not None:
        remedy = "a staging tail decides alone where a bucket ends: leave out `hop`, or staging and staircase"
        yield Problem(f"{at}.hop", None, remedy)


def _hop(window: WindowConfig, at: str) -> Iterator[Problem]:
    hop = window.hop
    if hop is None:
        return
    if window.policy.hop is None:
        example = 'hop = "1h"' if window.policy.time is not None else "hop = 10"
        remedy = f"the policy evicts reading by reading: give it {example}, or use sum_like or max_like"
        yield Problem(f"{at}.hop", None, remedy)
    yield from _confidence(f"{at}.hop", hop.confidence)
    if hop.hint is not None and not 1 <= hop.hint <= 2**53:
        yield Problem(f"{at}.hop.hint", hop.hint, "expected 1 or more: the readings that leave at once")
    if not 0 <= hop.deviation < float("inf"):
        yield Problem(f"{at}.hop.deviation", hop.deviation, "expected 0 or more readings")
    elif hop.deviation and hop.hint is None:
        yield Problem(f"{at}.hop.deviation", hop.deviation, "is how far from the hint: give `hint` too")


def _up_to(window: WindowConfig, at: str) -> Iterator[Problem]:
    extreme = window.policy.up_to
    if extreme is not None and window.aggregates != (extreme,):
        remedy = f'evicts what cannot be the {extreme} any more: aggregate = "{extreme}" alone, not {_listed(window)}'
        yield Problem(f"{at}.policy.up_to", extreme, remedy)


def _confidence(at: str, confidence: float) -> Iterator[Problem]:
    if not 0.0 < confidence <= 1.0 - 1e-9:
        yield Problem(f"{at}.confidence", confidence, "expected a probability between 0 and 1, such as 0.95")


def _refused(window: WindowConfig, at: str) -> Iterator[Problem]:
    """The window's own word, should it refuse what passed here."""
    try:
        sg.Window(**build_arguments(window))
    except ConfigurationError as error:
        yield Problem(at, window.name, str(error))


def _listed(window: WindowConfig) -> str:
    return ", ".join(window.aggregates)
