"""The experiment: for each method a process and a pass over the trace, its answers held to the exact ones."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

from bench.a2mta import exact, hops, paper
from bench.a2mta.check import Followed, Timed
from bench.a2mta.paper import Setting
from bench.traces import blocks, trace

import sluicegate as sg

Row = dict[str, Any]
ALIKE = 24  # the AMTA that a window is timed beside is so many times smaller than the paper's: it would take a GB
NOTHING = 1e-15  # an error within which no reading joins another
DEEP = 8_192  # buckets of a tail that is deeper than the memory trace ever falls


class Method(NamedTuple):
    """A row of a table: how the window is bucketed, and what the paper has for it."""

    table: str  # "I", "II", "limits", or "AMTA" for the exact window
    label: str
    histograms: list[Any]
    paper: float | None = None
    limit: tuple[float, float] | None = None  # of an error: a share of the result, and an absolute one


class Scenario(NamedTuple):
    """What is aggregated, what leaves, the methods, what is exact, and after how many readings the window is warm."""

    name: str
    aggregate: Any
    policy: Callable[[Setting], Any]
    methods: list[Method]
    exact: Callable[[], Any]
    warm: int


def sum_like(setting: Setting) -> Scenario:
    """A mean of the newest month; the sum and the count under control."""
    methods = [AMTA]
    for error, percent in paper.SUM_LIKE.items():
        label = f"error {100 * error:g} %"
        methods.append(Method("I", label, [sg.SumLike(error=error)], setting.footprint(percent), (error, 0.0)))
    return _means("sum-like", setting, [*methods, *_constrained(setting, 0)])


def limits(setting: Setting) -> Scenario:
    """The same mean where a value is returned only if it is certainly within the limit; and absolute limits."""
    methods = []
    for error in (1e-3, 1e-2, 1e-1):
        histogram = sg.SumLike(error=error, withhold=True)
        methods.append(Method("limits", f"error {100 * error:g} %, certain", [histogram], limit=(error, 0.0)))
    for atol in (300.0, 3_000.0, 30_000.0):
        methods.append(Method("limits", f"absolute {atol:,.0f}", [sg.SumLike(atol=atol)], limit=(0.0, atol)))
    return _means("limits", setting, methods)


def _means(name: str, setting: Setting, methods: list[Method]) -> Scenario:
    def answers() -> exact.Means:
        return exact.Means(exact.newest(setting.window), setting.window, setting.block)

    return Scenario(name, {"mean": sg.mean()}, lambda of: sg.policies.count(of.window), methods, answers,
                    2 * setting.window)  # fmt: skip


def max_like(setting: Setting) -> Scenario:
    """A maximum that evicts up to the current one; a block is as large a part of the window as the paper's."""
    methods = [AMTA, Method("I", "block automatic", [sg.MaxLike(staircase=False)])]
    for block, percent in paper.MAX_LIKE.items():
        if block // setting.scale >= 2:
            label = f"block {block // setting.scale:,}"
            methods.append(Method("I", label, [sg.MaxLike(block=block // setting.scale)], percent))
            late = sg.MaxLike(block=block // setting.scale, staging=paper.BUFFER)
            methods.append(Method("I", f"{label}, tail {paper.BUFFER}", [late], percent))
    for tail in (paper.BUFFER, DEEP):
        methods.append(Method("I", f"staircase, tail {tail:,}", [sg.MaxLike(staircase=True, staging=tail)]))
    return Scenario(
        "max-like", {"max": sg.max()}, lambda of: sg.policies.count(of.window, up_to="max"),
        [*methods, *_constrained(setting, 1), *_budgets(setting)], lambda: exact.Maxima(setting.window),
        2 * setting.window,
    )  # fmt: skip


def _budgets(setting: Setting) -> Iterator[Method]:
    """A staircase within a number of buckets, those of its default tail besides, as the paper's buffer is."""
    late = sg.MaxLike(staircase=True)
    for buckets, percents in paper.CONSTRAINED.items():
        if buckets < setting.window:
            label = f"{buckets:,} buckets, staircase, tail {late.tail:,}"
            histograms = [late, sg.Constrained(buckets, merge="pairs")]
            yield Method("II", label, histograms, setting.footprint(percents[1]))


def hopping(setting: Setting) -> Scenario:
    """A mean of a window that hops by a random third."""
    first = hops.starts(setting)
    at = hops.begins(setting, first)

    def answers() -> exact.Means:
        return exact.Means(exact.hopping(at, first), setting.window, setting.block)

    methods = [AMTA, Method("I", "hop", [sg.Hop()], setting.footprint(paper.HOPPING)), *_constrained(setting, 2)]
    return Scenario("hopping", {"mean": sg.mean()}, lambda of: hops.policy(of, hops.starts(of)), methods, answers,
                    int(at[4]))  # fmt: skip


AMTA = Method("AMTA", "exact", [], 100.0)


def _constrained(setting: Setting, column: int) -> Iterator[Method]:
    for buckets, percents in paper.CONSTRAINED.items():
        if buckets < setting.window:
            percent = setting.footprint(percents[column])
            yield Method("II", f"{buckets:,} buckets", [sg.Constrained(buckets)], percent)


SCENARIOS: dict[str, Callable[[Setting], Scenario]] = {
    "sum-like": sum_like, "max-like": max_like, "hopping": hopping, "limits": limits,
}  # fmt: skip


def follow(name: str, setting: Setting, source: str, seed: int, column: str | None, number: int) -> Row:
    """One method of a scenario over the trace, in one pass."""
    began, scenario = time.process_time(), SCENARIOS[name](setting)
    method, answers = scenario.methods[number], scenario.exact()
    window = sg.Window(scenario.aggregate, policy=scenario.policy(setting), histograms=method.histograms)
    # an exact window's intervals would take a walk over its leaves
    followed = Followed(
        window, next(iter(scenario.aggregate)), method.limit, setting.asked, certain=bool(method.histograms)
    )
    plain, alike = Timed(_small(scenario, setting, [])), Timed(_small(scenario, setting, _alone(method, setting)))
    before = seen = warm = held = 0
    for values in blocks(trace(source, seed, column), setting.readings, setting.block):
        followed.take_block(values, answers.after(values), [plain, alike])
        seen += len(values)
        held = max(held, sum(each.window.footprint.bytes for each in (followed, plain, alike)))  # at one moment
        if seen <= scenario.warm:
            warm, before = seen, window.footprint.created
    spent = time.process_time() - began
    beside = {"AMTA": plain.ns(), "AMTA, the same partials": alike.ns()}
    memory = {"windows": held, "exact": answers.bytes}
    return _row(name, method, followed, before, warm, seen) | {
        "beside": beside, "memory": memory | {"peak": _peak()}, "seconds": spent,
    }  # fmt: skip


def _small(scenario: Scenario, setting: Setting, histograms: list[Any]) -> sg.Window:
    """An AMTA that a window is timed beside."""
    small = _of_beside(setting)
    return sg.Window(scenario.aggregate, policy=scenario.policy(small), histograms=histograms)


def _of_beside(setting: Setting) -> Setting:
    """Smaller windows over a stream that is no shorter: the rule of the hops knows as many as it may come to."""
    scale = max(setting.scale, ALIKE)
    return Setting(scale, -(-setting.windows * scale // setting.scale))


def _alone(method: Method, setting: Setting) -> list[Any]:
    """What gives AMTA the partials of the method's buckets, samples and all, one a reading: none ever joins."""
    if any(isinstance(each, sg.SumLike) for each in method.histograms):
        return [sg.SumLike(error=NOTHING)]  # more than one reading is more than this share of any count
    return [sg.Constrained(2 * _of_beside(setting).window)]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _row(scenario: str, method: Method, followed: Followed, before: int, warm: int, seen: int) -> Row:
    created = followed.window.footprint.created
    after = 100.0 * (created - before) / (seen - warm)
    return {
        "scenario": scenario, "table": method.table, "label": method.label, "limit": method.limit,
        "paper": method.paper, "footprint": after, "whole run": 100.0 * created / seen,
        "ratio": after / method.paper if method.paper else None, **followed.row(),
    }  # fmt: skip


def run(
    setting: Setting,
    source: str,
    seed: int,
    column: str | None,
    scenarios: list[str],
    workers: int = 2,
    methods: list[str] | None = None,
) -> list[Row]:
    """Every method of these scenarios, `workers` at a time, a process each; none: all in this one.

    `methods`: only those with these labels.
    """
    each = [(name, setting, source, seed, column, number)
            for name in scenarios for number, method in enumerate(SCENARIOS[name](setting).methods)
            if not methods or method.label in methods]  # fmt: skip
    if workers < 1:
        return [follow(*arguments) for arguments in each]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        return [_said(part.result()) for part in [pool.submit(follow, *arguments) for arguments in each]]


def _said(row: Row) -> Row:
    """The row, with a line for whoever waits."""
    print(f"{row['scenario']}: {row['label']}", file=sys.stderr, flush=True)
    return row
