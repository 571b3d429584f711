"""How much the long checks do: some cases in `make test`, all with SLUICEGATE_TESTS=whole (`make whole`).

SLUICEGATE_TESTS=combined leaves no combination out, and does as much in each as `make test` (`make checked`).
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

#: Whether every case runs.
WHOLE = os.environ.get("SLUICEGATE_TESTS") == "whole"
#: Whether every combination of a test's parameters runs.
COMBINED = WHOLE or os.environ.get("SLUICEGATE_TESTS") == "combined"
#: How many windows a check by brute force asks; SLUICEGATE_WINDOWS sets another number.
WINDOWS = int(os.environ.get("SLUICEGATE_WINDOWS", "1000000" if WHOLE else "5000"))

Case = TypeVar("Case")


def some(cases: Sequence[Case], each: int) -> Sequence[Case]:
    """Every `each`-th of the cases from the first on, and the last; all of them in a whole run."""
    return cases if WHOLE else [*cases[:-1:each], cases[-1]]


def number(whole: int, part: int) -> int:
    """How many readings, seeds or rounds: `part` of them in `make test`."""
    return whole if WHOLE else part


def spread(cases: Iterable[tuple[str, Mapping[str, Any]]], each: int = 12) -> set[str]:
    """Of one test's cases, by name and values: each value of each parameter, and every `each`-th combination besides.

    The same in every run. Of fewer than six, and of one parameter, all: those are cases, and no combinations.
    """
    cases, seen, chosen = list(cases), set[tuple[str, str]](), set[str]()
    for name, values in cases:
        new = {(parameter, repr(value)) for parameter, value in values.items()} - seen
        if new or len(values) < 2 or len(cases) < 6 or zlib.crc32(name.encode()) % each == 0:
            chosen.add(name)
            seen |= new
    return chosen


def chosen(trace: Sequence[str], each: int = 4) -> list[int]:
    """The steps at which to kill, from 1 on: all in a whole run, else of each kind the first, and every `each`-th."""
    seen: Counter[str] = Counter()
    steps = []
    for at, name in enumerate(trace, 1):
        if WHOLE or seen[name] % each == 0:
            steps.append(at)
        seen[name] += 1
    return steps
