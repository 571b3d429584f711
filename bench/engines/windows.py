"""Windows as the benchmarks need them: full, of every engine that takes the question, fed in compiled code."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from bench.engines.compiled import probe
from bench.engines.timing import POOL, pool, timed

import sluicegate as sg
from sluicegate.errors import ConfigurationError

PIECE = 1 << 18  # readings that fill a window at once
STEP = 1_000  # µs between readings that come unevenly
FAR = 1 << 40  # µs: longer than all readings of a bulk window take
Arrivals = Callable[["array[int]", int], None]  # writes the times of a batch, whose first reading has this number


class Operator(NamedTuple):
    """An aggregate of ours under its name in the DABA paper."""

    paper: str
    name: str
    options: Mapping[str, Any] = MappingProxyType({})

    def aggregate(self) -> Any:
        """None where this build does not have it."""
        try:
            return getattr(sg, self.name)(**self.options)
        except AttributeError:
            return None


OPERATORS = (
    Operator("Sum", "sum"), Operator("Max", "max"), Operator("ArgMax", "argmax"), Operator("MinCount", "min_count"),
    Operator("ArithMean", "mean"), Operator("StdDev", "std"), Operator("GeoMean", "geometric_mean"),
    Operator("Bloom", "bloom_filter", {"bits": 1 << 14, "hashes": 4}),
)  # fmt: skip
BY_NAME = {operator.name: operator for operator in OPERATORS}


def filled(engine: str, window: int, **options: Any) -> tuple[sg.Window, float]:
    """A window with a reading a microsecond, none of which leaves before FAR; and the CPU nanoseconds that took."""
    full, spent = sg.Window(sg.sum(), policy=sg.policies.time(FAR), engine=engine, **options), 0.0
    for start in range(0, window, PIECE):
        many = min(PIECE, window - start)
        values, times = pool()[:many], array("q", range(start, start + many))
        spent += timed(lambda values=values, times=times: full.insert_many(values, times, results=False))  # type: ignore[misc]
    return full, spent


class Full:
    """A window that holds `size` readings and goes on: each further reading evicts one.

    By time, a reading comes each microsecond; or, `STEP` of them apart on average, as `arrive` writes the times of a
    batch from its first reading's number on. Raises ConfigurationError where the engine does not take the question.
    """

    def __init__(
        self,
        engine: str,
        aggregates: Any,
        size: int,
        *,
        by_time: bool = False,
        arrive: Arrivals | None = None,
        **options: Any,
    ) -> None:
        self.by_time, self.at, self.times, self.arrive = by_time, 0, array("q"), arrive
        policy = sg.policies.time(size if arrive is None else size * STEP) if by_time else sg.policies.count(size)
        self.window = sg.Window(aggregates, policy=policy, engine=engine, **options)
        self.dimensions = len(self.window.dimensions)
        for start in range(0, size, PIECE):
            values, times = self.readings(min(PIECE, size - start))
            self.window.insert_many(self.shaped(values), times, results=False)

    def readings(self, count: int) -> tuple[array[float], array[int] | None]:
        """The next readings, and their times where the policy asks for them."""
        need, values = count * self.dimensions, pool()
        flat = values[:need] if need <= POOL else (values * (need // POOL + 1))[:need]
        return flat, self.next_times(count)

    def next_times(self, count: int) -> array[int] | None:
        """One for each reading where the policy asks for them: where the last ones stood if those were as many."""
        start, self.at = self.at, self.at + count
        if not self.by_time:
            return None
        if len(self.times) != count:
            self.times = array("q", bytes(8 * count))
        if self.arrive is None:
            probe().count_up(self.times, start)
        else:
            self.arrive(self.times, start)
        return self.times

    def batch(self, count: int) -> float:
        """Feed them at once with a result after each; CPU nanoseconds in all."""
        shaped, times = self.batch_of(count)
        return timed(lambda: self.window.insert_many(shaped, times))

    def batch_by_the_clock(self, count: int) -> float:
        """As `batch`, in nanoseconds of the clock: what a background thread does at the same time counts too."""
        values, times = self.readings(count)
        start = time.perf_counter_ns()
        self.window.insert_many(self.shaped(values), times)
        return time.perf_counter_ns() - start

    def batch_of(self, count: int) -> tuple[Any, array[int] | None]:
        """The next readings without a copy: made and freed each time, it would cost page faults in what is timed."""
        if self.dimensions > 1 or count > POOL:
            values, times = self.readings(count)
            return self.shaped(values), times
        return memoryview(pool())[:count], self.next_times(count)

    def shaped(self, values: array[float]) -> Any:
        """As `insert_many` takes them: a row a reading where there are more dimensions than one."""
        if self.dimensions == 1:
            return values
        return memoryview(values).cast("B").cast("d", (len(values) // self.dimensions, self.dimensions))

    def one_by_one(self, count: int) -> float:
        """Feed them one after the other from compiled code, each with its result."""
        if not probe().compiled(self.window):
            return self.call(count)
        taken: float = probe().one_by_one(self.window._core, *self.readings(count))
        return taken

    def by_engine_alone(self, count: int) -> float:
        """Feed the engine of a window by count, lifted before; of such a window nothing else is to be asked."""
        taken: float = probe().by_engine_alone(self.window._core, self.readings(count)[0])
        return taken

    def call(self, count: int) -> float:
        """Feed them by Python calls that give the result: `slide`, into a window by count."""
        values, _ = self.readings(count)
        slide, rows = self.window.slide, _rows(values, self.dimensions)

        def loop() -> None:
            for row in rows:
                slide(row)

        return timed(loop)

    def two_calls(self, count: int) -> float:
        """The same by `insert` and then `query`."""
        values, _ = self.readings(count)
        window, rows = self.window, _rows(values, self.dimensions)

        def loop() -> None:
            for row in rows:
                window.insert(row)
                window.query()

        return timed(loop)

    def ticks(self, count: int) -> array[int]:
        """What each of so many readings took, in ticks of the probe's clock."""
        taken = array("Q", bytes(8 * count))
        probe().each(self.window._core, *self.readings(count), taken)
        return taken


def _rows(values: array[float], dimensions: int) -> list[Any]:
    if dimensions == 1:
        return values.tolist()
    return [values[i : i + dimensions] for i in range(0, len(values), dimensions)]


def full_windows(
    engines: Iterable[str], aggregate: Any, size: int, refused: dict[str, str], **options: Any
) -> Iterator[tuple[str, Full]]:
    """A full window of each engine that takes the aggregate; why the others do not goes into `refused`."""
    for engine in engines:
        try:
            yield engine, Full(engine, aggregate, size, **options)
        except ConfigurationError as error:
            refused[engine] = str(error)
