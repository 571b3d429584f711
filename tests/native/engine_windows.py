"""What the tests of all engines share: windows of one engine beside the oracle's, and intervals as a strict monoid."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Any

import sluicegate as sg
from sluicegate.catalogue import FACTS
from sluicegate.reference.program import Partial

OTHERS = tuple(name for name in sg.ENGINES if name != "recalc")
WITH_BUCKETS = tuple(name for name in OTHERS if FACTS[name].buckets)
WITH_LEAVES = tuple(name for name in sg.ENGINES if FACTS[name].keeps_leaves)
LITE = tuple(name for name in sg.ENGINES if not FACTS[name].keeps_leaves)
ORDERED = {"sum": sg.sum(), "max": sg.max(), "first": sg.first(), "last": sg.last(), "argmin": sg.argmin()}
DEDUCTIBLE = {
    "sum": sg.sum(), "mean": sg.mean(), "last": sg.last(), "count": sg.count(), "std": sg.std(),
    "variance": sg.variance(),
}  # fmt: skip
ROUNDED = ("std", "variance", "mean", "geometric_mean")


def aggregates(engine: str) -> dict[str, Any]:
    """Aggregates that tell a wrong order from a right one, and that the engine can keep."""
    return DEDUCTIBLE if FACTS[engine].deducts else ORDERED


def windows(engine: str, policy: Any, **options: Any) -> tuple[sg.Window, sg.Window]:
    """The same window by the oracle and by an engine."""
    kept = aggregates(engine)
    oracle, other = (sg.Window(kept, policy=policy, engine=name, **options) for name in ("recalc", engine))
    return oracle, other


def whole_numbers(n: int, start: int = 0) -> array[float]:
    """Readings whose sums are exact."""
    return array("d", (float((i * 7919 + i // 13) % 101 - 50) for i in range(start, start + n)))


def clock(times: Iterable[int]) -> array[int]:
    """Times of a batch."""
    return array("q", times)


def agree(oracle: dict[str, Any], other: dict[str, Any]) -> None:
    """Equal to the bit, but for what is divided or rooted."""
    for name, value in oracle.items():
        assert other[name] == value or (name in ROUNDED and close(value, other[name])), name


def same_columns(oracle: dict[str, array[float]], other: dict[str, array[float]]) -> None:
    """The results of a batch: equal to the bit, but for what is divided or rooted."""
    for name, column in oracle.items():
        if other[name] != column:
            assert name in ROUNDED, name
            assert all(map(close, column, other[name])), name


def close(a: float | None, b: float | None) -> bool:
    """Within 1e-9, or both without a result."""
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))


class Counted:
    """Intervals [from, to) under concatenation, an operation that is neither commutative nor invertible; and its uses.

    Intervals that are no neighbours are refused, or, where not `strict`, become one that equals no other.
    """

    def __init__(self, strict: bool = True) -> None:
        self.calls, self.strict = 0, strict

    def __call__(self, a: Partial, b: Partial) -> Partial:
        """Two neighbouring intervals as one."""
        self.calls += 1
        if a[1] == b[0]:
            return [a[0], b[1]]
        assert not self.strict, f"{a} then {b}: no neighbours, or in the wrong order"
        return [-1.0, -1.0]
