"""The experiment: one pass over a trace, all windows of a scenario side by side, exact answers made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

from bench.a2mta import exact, hops, paper
from bench.a2mta.check import Followed
from bench.a2mta.paper import Setting
from bench.traces import blocks, trace

import sluicegate as sg

Row = dict[str, Any]


class Method(NamedTuple):
    """A row of a table: how the window is bucketed, and what the paper has for it."""

    table: str  # "I", "II", or "AMTA" for the exact window
    label: str
    histograms: list[Any]
    paper: float | None
    limit: float | None = None


class Scenario(NamedTuple):
    """What is aggregated, what leaves, the methods, what is exact, and after how many readings the window is warm."""

    name: str
    aggregate: Any
    policy: Callable[[], Any]
    methods: list[Method]
    exact: Any
    warm: int


def sum_like(setting: Setting) -> Scenario:
    """A mean of the newest month; the sum and the count under control."""
    methods = _plain(setting)
    for error, percent in paper.SUM_LIKE.items():
        label = f"error {100 * error:g} %"
        methods.append(Method("I", label, [sg.SumLike(error=error)], setting.footprint(percent), error))
    methods += _constrained(setting, 0)
    policy = sg.policies.count(setting.window)
    answers = exact.Means(exact.newest(setting.window))
    return Scenario("sum-like", {"mean": sg.mean()}, lambda: policy, methods, answers, 2 * setting.window)


def max_like(setting: Setting) -> Scenario:
    """A maximum that evicts up to the current one; a block is as large a part of the window as the paper's."""
    methods = [*_plain(setting), Method("I", "block automatic", [sg.MaxLike()], None)]
    for block, percent in paper.MAX_LIKE.items():
        if block // setting.scale >= 2:
            label = f"block {block // setting.scale:,}"
            methods.append(Method("I", label, [sg.MaxLike(block=block // setting.scale)], percent))
    methods += _constrained(setting, 1)
    policy = sg.policies.count(setting.window, up_to="max")
    answers = exact.Maxima(setting.window)
    return Scenario("max-like", {"max": sg.max()}, lambda: policy, methods, answers, 2 * setting.window)


def hopping(setting: Setting) -> Scenario:
    """A mean of a window that hops by a random third."""
    first = hops.starts(setting)
    methods = [*_plain(setting), Method("I", "hop", [sg.Hop()], setting.footprint(paper.HOPPING))]
    methods += _constrained(setting, 2)
    at = hops.begins(setting, first)
    answers = exact.Means(exact.hopping(at, first))
    return Scenario("hopping", {"mean": sg.mean()}, lambda: hops.policy(setting, first), methods, answers, int(at[4]))


def _plain(setting: Setting) -> list[Method]:
    """Without histograms; and where asked for, with a bucket for each reading: the same partials, none joined."""
    exact_window = Method("AMTA", "exact", [], 100.0)
    each = Method("AMTA", "a bucket a reading", [sg.Constrained(2 * setting.window)], 100.0)
    return [exact_window, each] if setting.same_partial else [exact_window]


def _constrained(setting: Setting, column: int) -> Iterator[Method]:
    for buckets, percents in paper.CONSTRAINED.items():
        if buckets < setting.window:
            percent = setting.footprint(percents[column])
            yield Method("II", f"{buckets:,} buckets", [sg.Constrained(buckets)], percent)


SCENARIOS: dict[str, Callable[[Setting], Scenario]] = {"sum-like": sum_like, "max-like": max_like, "hopping": hopping}


def follow(name: str, setting: Setting, source: str, seed: int, column: str | None) -> list[Row]:
    """All methods of a scenario over the trace, in one pass."""
    scenario = SCENARIOS[name](setting)
    result = next(iter(scenario.aggregate))
    made = [
        Followed(
            sg.Window(scenario.aggregate, policy=scenario.policy(), histograms=method.histograms),
            result, method.limit, setting.asked,
            certain=bool(method.histograms),  # an exact window's would take a walk over its leaves
        )
        for method in scenario.methods
    ]  # fmt: skip
    before = [0] * len(made)
    seen = warm = 0
    for values in blocks(trace(source, seed, column), setting.readings, setting.block):
        answers = scenario.exact.after(values)
        for each in made:
            each.take(values, answers)
        seen += len(values)
        if seen <= scenario.warm:
            warm, before = seen, [each.window.footprint.created for each in made]
    return [_row(name, *each, warm, seen) for each in zip(scenario.methods, made, before, strict=True)]


def _row(scenario: str, method: Method, followed: Followed, before: int, warm: int, seen: int) -> Row:
    created = followed.window.footprint.created
    after = 100.0 * (created - before) / (seen - warm)
    return {
        "scenario": scenario, "table": method.table, "label": method.label, "limit": method.limit,
        "paper": method.paper, "footprint": after, "whole run": 100.0 * created / seen,
        "ratio": after / method.paper if method.paper else None, **followed.row(),
    }  # fmt: skip


def run(
    setting: Setting, source: str, seed: int, column: str | None, scenarios: list[str], workers: int = 2
) -> list[Row]:
    """Every scenario, two at a time; each has a process of its own."""
    if workers < 2 or len(scenarios) < 2:
        return [row for name in scenarios for row in follow(name, setting, source, seed, column)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        parts = [pool.submit(follow, name, setting, source, seed, column) for name in scenarios]
        return [row for part in parts for row in part.result()]
