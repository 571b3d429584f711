"""How much the long checks do: some cases in `make test`, all with SLUICEGATE_TESTS=whole (`make whole`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

#: Whether every case runs.
WHOLE = os.environ.get("SLUICEGATE_TESTS") == "whole"
#: How many windows a check by brute force asks; SLUICEGATE_WINDOWS sets another number.
WINDOWS = int(os.environ.get("SLUICEGATE_WINDOWS", "1000000" if WHOLE else "100000"))

Case = TypeVar("Case")


def some(cases: Sequence[Case], each: int) -> Sequence[Case]:
    """Every `each`-th of the cases from the first on, and the last; all of them in a whole run."""
    return cases if WHOLE else [*cases[:-1:each], cases[-1]]


def number(whole: int, part: int) -> int:
    """How many readings, seeds or rounds: `part` of them in `make test`."""
    return whole if WHOLE else part
