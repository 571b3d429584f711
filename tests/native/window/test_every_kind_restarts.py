"""Every aggregate that there is, restarted at random points, answers to the bit as one that was never restarted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import sluicegate as sg
from sluicegate.monoids import KINDS
from sluicegate.monoids.layout import NO_BUCKETS
from sluicegate.monoids.monoid import OBJECTS, PAIRED

MADE: dict[str, Callable[[], sg.Monoid]] = {
    "histogram": lambda: sg.histogram((-4.0, 0.0, 6.0)), "bloom_filter": lambda: sg.bloom_filter(128, 3),
    "top_k": lambda: sg.top_k(3), "distinct_count": lambda: sg.distinct_count(lg_k=8),
    "count_min": lambda: sg.count_min(16, 2), "quantiles": lambda: sg.quantiles(k=16),
    "covariance": lambda: sg.covariance("a", "b"), "correlation": lambda: sg.correlation("a", "b"),
}  # fmt: skip
"""Those whose constructor has to be told something; a new kind is made by its name."""
BUCKETS = {
    "levels": [sg.Constrained(4)], "pairs": [sg.Constrained(4, merge="pairs")],
    "sums": [sg.SumLike(0.2), sg.Constrained(8)],
}  # fmt: skip
UNSTORED = ("compiled", "custom", *OBJECTS)  # the user's own, and Python objects: no snapshot without buckets


def windows(kind: str, kept: str, by_time: bool) -> Callable[[bytes | None], sg.Window]:
    """A window that is made, or restored from a snapshot."""
    made = MADE[kind]() if kind in MADE else getattr(sg, kind)()
    given: dict[str, Any] = {"policy": sg.policies.time(40, hop=3) if by_time else sg.policies.count(25)}
    given |= {"histograms": BUCKETS[kept]} if kept in BUCKETS else {"engine": kept}
    return lambda saved: sg.Window(made, **given) if saved is None else sg.Window.restore(saved, made, **given)


@pytest.mark.parametrize("by_time", [True, False])
@pytest.mark.parametrize(
    ("kind", "kept"),
    [(kind, kept) for kind in KINDS if kind not in UNSTORED for kept in ("amta", "recalc", "log_mta")]
    + [(kind, kept) for kind in KINDS if kind not in NO_BUCKETS for kept in BUCKETS],
)
def test_to_the_bit(kind: str, kept: str, by_time: bool) -> None:
    """Late readings (where their windows keep buckets), silence, equal times, values of both signs and equal ones."""
    make, rng, time = windows(kind, kept, by_time), random.Random(kind + kept), 0
    whole, again, late = make(None), make(None), by_time and kept in BUCKETS
    for step in range(60):
        time += rng.choice((0, 1, 1, 2, 30)) if rng.random() < 0.3 else 1
        x = rng.choice((0.1, 0.3, 1e9, 7.0)) * (1 if kind == "geometric_mean" else rng.choice((1, -1)))
        for window in (whole, again):
            at = time - (5 if late and not step % 7 else 0)
            window.insert({"a": x, "b": x * step} if kind in PAIRED else x, at)
            if by_time and not step % 11:
                window.advance(time + 9)
        if rng.random() < 0.2:
            again = make(again.snapshot())
        if not step % 5:
            assert repr(again.query(bounds=True)) == repr(whole.query(bounds=True))
            assert repr(again.query()) == repr(whole.query())
    assert again.snapshot() == whole.snapshot()
    assert (again.late, again.accepted) == (whole.late, whole.accepted)
