"""What an operation costs at worst, counted in combines: the papers' bounds, on the twins and the compiled engines."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import pytest
from engine_windows import Counted
from twins.factory import make

import sluicegate as sg
from sluicegate.core import core as compiled

WORST = {  # combines of a query, an insertion, an eviction
    "soe": (0, 1, 0),
    "daba": (1, 3, 2),
    "daba_lite": (1, 3, 2),
}


def costs(name: str, seed: int, share: float, steps: int) -> dict[str, list[int]]:
    """Combines of each operation in a window that grows or slides; every answer is asked for."""
    combine, rng = Counted(), random.Random(seed)
    engine, found = make(name, combine), {"insert": [0], "evict": [0], "query": [0]}
    for _ in range(steps):
        operation = "evict" if engine.head < engine.tail and rng.random() > share else "insert"
        before = combine.calls
        if operation == "evict":
            engine.pop()
        else:
            engine.push([engine.tail, engine.tail + 1])
        between = combine.calls
        engine.total()
        found[operation].append(between - before)
        found["query"].append(combine.calls - between)
    return found


@pytest.mark.parametrize("name", ["daba", "daba_lite"])
def test_constant_in_the_worst_case(name: str) -> None:
    """No operation combines more often than its bound, however the window moves; and the bound is reached."""
    worst = [0, 0, 0]
    for seed, share in enumerate((0.4, 0.5, 0.52, 0.6, 0.75, 0.9)):
        found = costs(name, seed, share, 1500)
        worst = [max(w, *found[each]) for w, each in zip(worst, ("query", "insert", "evict"), strict=True)]
    assert tuple(worst) == WORST[name]


@pytest.mark.parametrize("name", ["daba", "daba_lite"])
def test_bounds_of_daba_by_its_theorem(name: str) -> None:
    """Theorem 4.3: at most 1 combine a query, 4 an insertion, 3 an eviction; on average 2.5 and 1.5."""
    query, insert, evict = WORST[name]
    assert query <= 1
    assert insert <= 4
    assert evict <= 3
    found = costs(name, 1, 0.5, 20_000)
    assert sum(found["insert"]) / len(found["insert"]) <= 2.6
    assert sum(found["evict"]) / len(found["evict"]) <= 1.6


@pytest.mark.parametrize("name", ["two_stacks", "two_stacks_lite", "amta"])
def test_constant_on_average(name: str) -> None:
    """All combines of a long run together are at most four an operation, a query included."""
    for share in (0.5, 0.6, 0.8):
        found = costs(name, 3, share, 4000)
        assert sum(map(sum, found.values())) <= 4 * 4000


def test_logarithmic() -> None:
    """Sliding over n leaves, no operation combines more often than twice the tree's height and a little."""
    for n in (16, 256, 1024):
        combine = Counted()
        engine = make("log_mta", combine)
        for i in range(3 * n):
            before = combine.calls
            engine.push([i, i + 1])
            if i >= n - 1:
                engine.pop()
                engine.total()
                assert combine.calls - before <= 4 * n.bit_length() + 2


class CountedInC:
    """Intervals of ordinals under concatenation as C functions of a user's own, which count their uses."""

    def __init__(self) -> None:
        integers = ctypes.POINTER(ctypes.c_int64)
        self.calls = self.wrong = 0
        self._kept = [
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, integers)(self._lift),
            ctypes.CFUNCTYPE(None, integers, integers, integers)(self._combine),
            ctypes.CFUNCTYPE(ctypes.c_double, integers)(lambda partial: float(partial[1] - partial[0])),
            ctypes.CFUNCTYPE(None, integers, integers, integers)(self._deduct),
        ]

    def _lift(self, values: Any, time: int, ordinal: int, out: Any) -> None:
        out[0], out[1] = ordinal, ordinal + 1

    def _combine(self, out: Any, a: Any, b: Any) -> None:
        self.calls += 1
        self.wrong += a[1] != b[0]
        out[0], out[1] = a[0], b[1]

    def _deduct(self, out: Any, total: Any, oldest: Any) -> None:
        out[0], out[1] = oldest[1], total[1]

    def monoid(self) -> sg.Monoid:
        """The aggregate: the length of the interval."""
        lift, combine, lower, deduct = (ctypes.cast(each, ctypes.c_void_p).value or 0 for each in self._kept)
        return sg.compiled("counted", lift=lift, combine=combine, lower=lower, deduct=deduct, width=2, owner=self._kept)


@pytest.mark.parametrize("name", WORST)
def test_compiled_constant_in_the_worst_case(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled engines keep the same bounds: counted in a user's own operation, whatever way the window moves."""
    monkeypatch.setattr("sluicegate.window.configure.Core", compiled.Core)
    counted, worst = CountedInC(), {"query": 0, "insert": 0, "evict": 0}
    window = sg.Window({"n": counted.monoid()}, policy=sg.policies.count(10**6), engine=name)
    for seed, share in enumerate((0.4, 0.5, 0.52, 0.6, 0.75, 0.9)):
        rng = random.Random(seed)
        for _ in range(600):
            operation = "evict" if len(window) and rng.random() > share else "insert"
            before = counted.calls
            if operation == "evict":
                window.evict()
            else:
                window.insert(1.0)
            between = counted.calls
            assert window.query()["n"] == (float(len(window)) or None)
            worst[operation] = max(worst[operation], between - before)
            worst["query"] = max(worst["query"], counted.calls - between)
        window.evict(len(window))
    assert counted.wrong == 0
    assert (worst["insert"], worst["evict"]) == WORST[name][1:]
    assert (
        worst["query"] <= 2 * WORST[name][0]
    )  # a window asks its engine for the total twice: of numbers, and of these
