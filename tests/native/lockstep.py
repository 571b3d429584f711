"""Drives a window and a plain list through the same steps and compares them after each.

`combinations()` is engine × aggregate × policy, from sg.ENGINES and KINDS, so that what is added there is driven too; a
kind without a formula here fails by name. Whole and half numbers make sums exact.
"""

from __future__ import annotations

import math
import random
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import aggregate_oracles
from compiled_code import Keep, order, order_of
from engine_windows import LITE
from plain_windows import (
    ANSWERS,
    Column,
    Lately,
    Plain,
    Reading,
    answer,
    from_longest_run,
    from_maximum,
    near,
    newest,
    summing_to,
)

import sluicegate as sg
from sluicegate import errors, policies
from sluicegate.monoids import KINDS

FAR = 10**6


class Words:
    """A user's own aggregate in Python: not commutative."""

    neutral = ""

    def lift(self, value: float, time: int) -> str:
        """A value and its time."""
        return f"{value!r}@{time} "

    def combine(self, a: str, b: str) -> str:
        """Side by side."""
        return a + b

    def lower(self, partial: str) -> list[str]:
        """As a list."""
        return partial.split()


GIVEN: dict[str, Callable[[], sg.Monoid]] = {
    "histogram": lambda: aggregate_oracles.FIXED["histogram"],
    "bloom_filter": lambda: aggregate_oracles.FIXED["bloom_filter"],
    "top_k": lambda: aggregate_oracles.FIXED["top_k"],
    "distinct_count": lambda: aggregate_oracles.FIXED["distinct_count"],
    "frequency": lambda: aggregate_oracles.FIXED["frequency"],
    "count_min": lambda: sg.count_min(16, 2),
    "covariance": lambda: sg.covariance("x", "x"),
    "correlation": lambda: sg.correlation("x", "x"),
    "compiled": order,
    "custom": lambda: sg.custom(Words()),
    "collect": lambda: sg.collect(7),
}
"""Aggregates that need to be told more than their name."""


def aggregate(kind: str) -> sg.Monoid:
    """One of each kind."""
    made = GIVEN[kind]() if kind in GIVEN else getattr(sg, kind)()
    assert isinstance(made, sg.Monoid)
    return made


def sets_of_aggregates() -> dict[str, dict[str, sg.Monoid]]:
    """Each kind alone, where its operation is a kernel's, and together, where a partial has many components."""
    alone = {kind: {kind: aggregate(kind)} for kind in KINDS}
    some = {kind: aggregate(kind) for kind in ("order", "sum", "max", "first", "count") if kind in KINDS}
    plain = {kind: aggregate(kind) for kind in ANSWERS if kind != "geometric_mean"}
    return {**alone, "some": {**some, "compiled": order(deducts=False)}, "many": {**plain, "compiled": order()}}


class Case(NamedTuple):
    """A policy and how the plain list evicts under it, both made anew for each run."""

    policy: Callable[[], Any]
    leaving: Callable[[], Callable[[list[Reading]], int]]


class Hops:
    """Only whole hops leave: the newest limit … limit + hop − 1 stay."""

    def __init__(self, limit: int, hop: int) -> None:
        self.limit, self.hop, self.taken = limit, hop, 0

    def __call__(self, kept: list[Reading]) -> int:
        """How many of the oldest leave."""
        self.taken += 1
        first = self.taken - len(kept)
        return max(0, self.taken // self.hop * self.hop - self.limit - first)


def wide(total: Any, old: Any) -> bool:
    """More than nine readings would be left."""
    return bool(total.count - old.count >= 9)


def odd(total: Any, old: Any) -> bool:
    """Not monotone: while the count of the whole window is above five and not a multiple of four."""
    return bool(total.count > 5 and total.count % 4)


def _odd(kept: list[Reading]) -> int:
    return next((gone for gone in range(len(kept)) if len(kept) - gone <= 5 or (len(kept) - gone) % 4 == 0), len(kept))


CASES: dict[str, Case] = {
    "count 1": Case(lambda: policies.count(1), lambda: newest(1)),
    "count 2": Case(lambda: policies.count(2), lambda: newest(2)),
    "count 13": Case(lambda: policies.count(13), lambda: newest(13)),
    "count 32": Case(lambda: policies.count(32), lambda: newest(32)),
    "count hopping": Case(lambda: policies.count(9, hop=4), lambda: Hops(9, 4)),
    "time": Case(lambda: policies.time(40), lambda: Lately(40)),
    "short time": Case(lambda: policies.time(1), lambda: Lately(1)),
    "delta": Case(lambda: policies.delta(None, 6.5), lambda: near(None, 6.5)),
    "total": Case(lambda: policies.total(None, 25), lambda: summing_to(None, 25)),
    "newer than the maximum": Case(lambda: policies.newer_than_maximum(limit=20), lambda: from_maximum(None, 20)),
    "newer than the run": Case(lambda: policies.newer_than_longest_run(limit=20), lambda: from_longest_run(None, 20)),
    "callable": Case(lambda: policies.custom(wide, monotone=True, remaining=True), lambda: newest(9)),
    "callable one by one": Case(lambda: odd, lambda: _odd),
    "compiled": Case(lambda: Keep(11).policy(monotone=True), lambda: newest(11)),
    "compiled one by one": Case(lambda: Keep(6).policy(monotone=False), lambda: newest(6)),
}


class Combination(NamedTuple):
    """What is driven together."""

    engine: str
    aggregates: str
    policy: str

    @property
    def number(self) -> int:
        """The same in every process; decides who is sampled, and seeds the stream."""
        return zlib.crc32("/".join(self).encode())


def combinations(engine: str, share: int = 1) -> Iterator[Combination]:
    """Engine × aggregates × policy; one in `share` of them, always the same ones."""
    every = (Combination(engine, *pair) for pair in product(sets_of_aggregates(), CASES))
    return (each for each in every if each.number % share == 0)


def stream(rng: random.Random, positive: bool, ordered: bool = False) -> Iterator[tuple[float, int]]:
    """Readings whose values come again and whose times repeat, jump and, but for `ordered`, now and then go back."""
    time, x = rng.randrange(-50, 50), 0.0
    while True:
        time += rng.choice([0, 1, 1, 2, 3, 5, 30, 0 if ordered else -7]) if rng.random() < 0.5 else 1
        x = rng.choice([x, x + 0.5, x + 1, x - 3, float(rng.randrange(-9, 10)), -0.0])
        yield (abs(x) + 0.5 if positive else x), time


def build(combination: Combination) -> sg.Window | None:
    """The window, None where the engine refuses the aggregates or the policy."""
    try:
        return sg.Window(
            sets_of_aggregates()[combination.aggregates], policy=CASES[combination.policy].policy(),
            engine=combination.engine,
        )  # fmt: skip
    except errors.ConfigurationError:
        return None


def drive(combination: Combination, steps: int = 14) -> bool:
    """Insert, slide, insert many, query, store and take up again, in a seeded order; whether the engine takes it."""
    window = build(combination)
    if window is None:
        return False
    rng = random.Random(combination.number)
    plain = Plain(CASES[combination.policy].leaving())
    readings = stream(rng, positive=combination.aggregates == "geometric_mean", ordered=combination.engine in LITE)
    for _ in range(steps):
        window = step(rng, combination, window, plain, readings)
        compare(combination, window.query(), plain.column(None))
        assert len(window) == len(plain.kept), combination
        window.verify()
    return True


def step(
    rng: random.Random, combination: Combination, window: sg.Window, plain: Plain, readings: Iterator[tuple[float, int]]
) -> sg.Window:
    """One step of a run."""
    what = rng.choice(["insert", "slide", "batch", "batch", "quiet", "store"])
    if what == "store":
        return stored(combination, window)
    batch = [
        next(readings) for _ in range(1 if what in ("insert", "slide") else rng.choice([1, 2, 3, 7, 8, 9, 16, 33]))
    ]
    if what in ("insert", "slide"):
        result = getattr(window, what)(*batch[0])
        plain.insert({None: batch[0][0]}, batch[0][1])
        if what == "slide":
            compare(combination, as_named(window, result), plain.column(None))
        return window
    values, times = array("d", [x for x, _ in batch]), array("q", [t for _, t in batch])
    columns = window.insert_many(values, times, results=what == "batch") or {}
    for i, (x, time) in enumerate(batch):
        plain.insert({None: x}, time)
        compare(combination, {name: column[i] for name, column in columns.items()}, plain.column(None), number=True)
    return window


def as_named(window: sg.Window, result: Any) -> dict[str, Any]:
    """What `slide` returns, by name also where there is only one aggregate."""
    names = list(window.query())
    return {names[0]: result} if len(names) == 1 else result


def stored(combination: Combination, window: sg.Window) -> sg.Window:
    """The window taken up again from its snapshot, where it gives one."""
    try:
        data = window.snapshot()
    except errors.ConfigurationError:
        return window
    taken = sg.Window.restore(
        data, sets_of_aggregates()[combination.aggregates], policy=CASES[combination.policy].policy(),
        engine=combination.engine,
    )  # fmt: skip
    taken.verify()
    assert taken.snapshot() == data, combination
    return taken


def compare(combination: Combination, results: Mapping[str, Any], column: Column, number: bool = False) -> None:
    """Each answer as the plain list has it; `number`: as a batch's columns have it."""
    for name, found in results.items():
        right = agrees(name, found, column, number)
        assert right, f"{combination} {name}: {found!r:.500} of {len(column)} readings, the newest {column[-40:]}"


def agrees(kind: str, found: Any, column: Column, number: bool = False) -> bool:
    """Whether an answer is right."""
    if number and not column and kind not in ("count", "sum"):
        return math.isnan(found) or found == 0
    if kind == "compiled":
        return bool(found == order_of(column))
    if kind == "custom":
        return number or bool(found == [f"{x!r}@{time}" for x, time in column])
    if kind == "collect":
        return bool(found == [x for x, _ in column][-7:])
    if kind == "quantiles":
        return not 0 < len(column) <= 200 or bool(
            found.quantile(0.5) == sorted(x for x, _ in column)[(len(column) + 1) // 2 - 1]
        )
    if kind in ("bloom_filter", "distinct_count", "count_min"):
        return _sketch(kind, found, column, number)
    if kind in ("variance", "std", "geometric_mean"):
        return _near(found, answer(kind, column))
    if kind in aggregate_oracles.TOGETHER:
        expected = aggregate_oracles.TOGETHER[kind](column)
        return _near(None if number and math.isnan(found) else found, expected, 1e6 if kind == "slope" else 1.0)
    expected = answer(kind, column) if kind in ANSWERS else aggregate_oracles.expected(column)[kind]
    if number and kind == "longest_run":
        return bool(found == expected.length)
    return bool(found == expected) or (number and expected is None and math.isnan(found))


def _median(column: Column) -> float:
    """The least value that half of them do not exceed."""
    return sorted(x for x, _ in column)[(len(column) + 1) // 2 - 1]


def _sketch(kind: str, found: Any, column: Column, number: bool) -> bool:
    if kind == "bloom_filter":
        return all(found.might_contain(x) for x, _ in column)
    if kind == "count_min":
        often = Counter(x for x, _ in column)
        return found.n == len(column) and all(found.most(x) >= often[x] for x in often)
    distinct = len({x for x, _ in column})
    return distinct > 24 or bool((found if number else found.estimate) == distinct)


def _near(found: float | None, expected: float | None, scale: float = 1.0) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-6 * scale)
