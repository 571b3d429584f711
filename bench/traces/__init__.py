"""Seeded traces of the papers' length, in blocks: the same bits on every machine and for every block size.

A trace is `values(begin, end)`: its readings begin … end − 1 as float64, any part of it without what precedes. All of
it is whole numbers made by integer arithmetic from a counter and a seed, so no library's random numbers and no rounding
of a machine enter; every value is below 2^27, so sums of 62,208,000 of them are exact in float64.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from bench.traces.column import from_csv
from bench.traces.memory import memory
from bench.traces.plain import calm, near_zero
from bench.traces.steps import steps
from numpy.typing import NDArray

READINGS = 62_208_000  # two years of a reading a second, as the papers have them
BLOCK = 1 << 18
LOOKED_AT = 1 << 18  # readings of a trace that are looked at before it runs
Values = NDArray[np.float64]


#: values(begin, end): the readings begin … end − 1, from 0 on without end (a file's begin again).
Trace = Callable[[int, int], Values]
#: Each is made from a seed.
TRACES: dict[str, Callable[[int], Trace]] = {"memory": memory, "calm": calm, "near-zero": near_zero, "steps": steps}


def trace(name: str, seed: int = 7, column: str | None = None) -> Trace:
    """A trace of TRACES, or a CSV file's column (its last one where none is named). Raises ValueError."""
    if name in TRACES:
        return TRACES[name](seed)
    if not Path(name).is_file():
        raise ValueError(f"trace {name!r}: expected one of {', '.join(TRACES)}, or a CSV file")
    return from_csv(Path(name), column)


def check(parser: ArgumentParser, options: Namespace, positive: bool = False) -> None:
    """End with a word of what is wrong with `--trace` and `--column`, before anything runs."""
    try:
        values = trace(options.trace, options.seed, options.column)
    except (ValueError, OSError) as error:
        parser.error(f"--trace: {error}")
    if positive and (least := values(0, LOOKED_AT).min()) <= 0:
        parser.error(f"--trace {options.trace}: {least:g} is in it, and a geometric mean takes numbers above 0 only")


def blocks(values: Trace, readings: int, size: int = BLOCK) -> Iterator[Values]:
    """The first `readings` of a trace, `size` at a time."""
    for begin in range(0, readings, size):
        yield values(begin, min(begin + size, readings))
