"""Reads a [[window]] table as the library does, and says which kinds of windows the agent cannot run, and why.

A sliding window by count or time is the agent's own (`policy`), whichever way it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sluicegate.errors import ConfigurationError
from sluicegate.policies import Count, Delta, Punctuation, Time
from sluicegate.windowing.spec import WindowSpec
from sluicegate.windowing.triggers import CountTrigger
from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.model import WindowConfig

_PLACE = re.compile(r"window\[(\d+)\]\.policy\b")


def as_policies(raw: dict[str, Any]) -> dict[str, Any]:
    """The same configuration with sliding windows by count or time under `policy`."""
    tables = raw.get("window")
    if not isinstance(tables, list):
        return raw
    return raw | {"window": [_as_policy(table) if _is_sliding(table) else table for table in tables]}


def _is_sliding(table: Any) -> bool:
    if not isinstance(table, dict) or table.get("kind") != "sliding" or "policy" in table:
        return False
    return isinstance(table.get("evict"), dict) and bool(table["evict"].keys() & {"count", "time"})


def _as_policy(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in ("kind", "evict")} | {"policy": table["evict"]}


def unsaid(raw: dict[str, Any]) -> Iterator[Problem]:
    """Windows of which nothing says what they are."""
    tables = raw.get("window")
    for i, table in enumerate(tables if isinstance(tables, list) else (), 1):
        if isinstance(table, dict) and not table.keys() & {"policy", "kind"}:
            example = 'policy = { time = "24h" } or { count = 100 }, or `kind` and `evict`'
            yield Problem(f"window[{i}].policy", None, f"is required: what the window holds, such as {example}")


def as_written(problem: Problem, raw: dict[str, Any]) -> Problem:
    """The finding at the key that stands in the file."""
    found = _PLACE.match(problem.key)
    if found is None or not _is_sliding(raw["window"][int(found[1]) - 1]):
        return problem
    return replace(problem, key=problem.key.replace(".policy", ".evict", 1))


def spec_problems(window: WindowConfig, at: str) -> Iterator[Problem]:
    """Why it is no window, or not one that the agent runs."""
    try:
        spec = window.spec
    except ConfigurationError as error:
        place, _, reason = str(error).partition(": ")
        yield Problem(f"{at}.{place.removeprefix('window.')}", None, reason)
        return
    for place, reason in unsupported(spec):
        yield Problem(f"{at}.{place}", None, f"{reason}; the agent does not run it")
    yield from _kept_in_slices(window, spec, at) if window.sliced else ()


def unsupported(spec: WindowSpec) -> Iterator[tuple[str, str]]:
    """The place, and the reason, of what makes a window one that the agent does not run."""
    evict = spec.evict
    if spec.key is not None:
        yield "key", "each stream has windows of its own: streams are the agent's keys"
    if isinstance(evict, Punctuation):
        yield "evict", "no message carries a punctuation: take a count or a time"
    if isinstance(evict, Delta):
        yield (
            "evict",
            "a stream's reading is one number, and how far it is from others is not kept: take count or time",
        )
    if spec.kind == "tumbling" and isinstance(evict, Time) and not spec.by_event_time:
        yield "evict", 'it goes by arrival, which a restart does not know again: write lateness = "0s" for event time'
    if spec.kind == "sliding" and not spec.asked and isinstance(evict, Time):
        yield "trigger", "it goes by arrival, which a restart does not know again: by event time take kind = 'hopping'"
    elif spec.kind == "sliding" and not spec.asked and not isinstance(spec.trigger, CountTrigger):
        yield "trigger", "only a number of readings triggers it; results.every says how often it is asked without one"


def _kept_in_slices(window: WindowConfig, spec: WindowSpec, at: str) -> Iterator[Problem]:
    """Of a window whose end comes: what its records cannot answer, how many they are, what does not go with them."""
    from sluicegate.windowing.slices import MOST_SLICES, slices_at_most
    from sluicegate.windowing.whole import AGGREGATES

    for name in window.aggregates:
        if name not in AGGREGATES:
            remedy = f"a window that ends is answered from one record a hop, which carries {', '.join(AGGREGATES)}"
            yield Problem(f"{at}.aggregate", name, remedy)
    for key in ("sum_like", "max_like", "hop", "shares"):
        if getattr(window, key) is not None:
            remedy = "is of windows that readings leave one by one; this one keeps one record a hop: leave it out"
            yield Problem(f"{at}.{key}", None, remedy)
    if isinstance(spec.evict, Count) or slices_at_most(spec) > MOST_SLICES:
        remedy = f"{slices_at_most(spec):,} hops until a window is final, expected at most {MOST_SLICES:,}"
        yield Problem(f"{at}.evict", None, f"{remedy}: take a longer hop, or less lateness")
