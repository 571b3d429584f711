"""Holds what the agents and the cloud say against the truth: custody of every reading, and every window's interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum, isnan, log
from pathlib import Path
from typing import Any

from sluicegate.format.chunk import Chunk, decode
from sluicegate_demo.places import files
from sluicegate_demo.truth import AGGREGATES, Sliding, Streams, Truth

SHOWN = 10
ROUNDING = 1e-11  # relative; n·ε of a bucket of ten thousand readings
_EPSILON = 2.0**-52


@dataclass
class Tally:
    """What the comparison found. A window counts once, however many aggregates it answers."""

    checked: int = 0
    outside: int = 0
    exact: int = 0
    missing: int = 0
    max_relative_error: float = 0.0
    problems: list[str] = field(default_factory=list)

    def note(self, problem: str) -> None:
        """Keep the first few problems, in words."""
        if len(self.problems) < SHOWN:
            self.problems.append(problem)

    def window(
        self, name: str, truth: Truth, answers: Mapping[str, Answer], reach: float, *, positive: bool = True
    ) -> None:
        """Count one window: outside when any aggregate's interval misses the truth, or "exact" is not.

        `reach` is the greatest magnitude of a reading in the stream: what an error is measured by. Where not all of its
        readings are `positive`, a window may have no answer for the geometric mean.
        """
        answers = {of: answer for of, answer in answers.items() if answer.owed(of, truth, positive=positive)}
        faults = [fault for aggregate, answer in answers.items() if (fault := answer.fault(aggregate, truth, reach))]
        self.checked += 1
        self.outside += bool(faults)
        self.exact += all(answer.exact for answer in answers.values())
        for aggregate, answer in answers.items():
            self.max_relative_error = max(self.max_relative_error, answer.relative_error(aggregate, truth, reach))
        for fault in faults:
            self.note(f"{name}: {fault}")

    def add(self, other: Tally) -> None:
        """Take another tally in."""
        self.checked += other.checked
        self.outside += other.outside
        self.exact += other.exact
        self.missing += other.missing
        self.max_relative_error = max(self.max_relative_error, other.max_relative_error)
        self.problems = (self.problems + other.problems)[:SHOWN]


@dataclass(frozen=True)
class Answer:
    """A window's answer to one aggregate: value and interval, None where there is no reading.

    The value alone is None where none is expected, but there may be one.
    """

    value: float | None
    low: float | None
    high: float | None
    exact: bool

    def owed(self, aggregate: str, truth: Truth, *, positive: bool) -> bool:
        """Whether there is something to compare: without a reading no aggregate has to be told but count and sum.

        Nor has a geometric mean that does not exist, or that may not exist, for all that the buckets say.
        """
        if truth.count == 0:
            return aggregate in ("count", "sum")
        return aggregate != "geometric_mean" or positive or self.value is not None

    def fault(self, aggregate: str, truth: Truth, reach: float) -> str:
        """What is wrong with this answer; empty when nothing is."""
        true = getattr(truth, aggregate)
        if self.low is None or self.high is None or (self.value is None and self.exact):
            return f"{aggregate} has no answer, the truth is {true}"
        if isnan(true):
            return f"{aggregate} is said to be {self.value}, there is none" if self.value is not None else ""
        slack = _rounding(aggregate, truth)
        if not self.low - slack <= true <= self.high + slack:
            return f"{aggregate} is {true}, outside [{self.low}, {self.high}]"
        if self.exact and self.value is not None and not _same(aggregate, self.value, true, truth.count, reach):
            return f"{aggregate} is called exact and says {self.value}, the truth is {true}"
        return ""

    def relative_error(self, aggregate: str, truth: Truth, reach: float) -> float:
        """|value − truth| over the greater of |truth| and what readings of magnitude `reach` would give.

        Not over |truth| alone: a mean, a sum of rain, may be near 0. How often an extreme occurs: over all readings.
        """
        true: float = getattr(truth, aggregate)
        if self.value is None or truth.count == 0:
            return 0.0
        sizes = {"count": 1.0, "sum": reach * truth.count, "variance": reach * reach}
        sizes |= dict.fromkeys(("min_count", "max_count"), float(truth.count))
        size = max(abs(true), sizes.get(aggregate, reach))
        return abs(self.value - true) / size if size else abs(self.value - true)


def _rounding(aggregate: str, truth: Truth) -> float:
    """The truth's own rounding: what is divided, squared or a logarithm is rounded more than once; nothing else is."""
    if truth.count == 0 or aggregate not in ("mean", "variance", "std", "geometric_mean"):
        return 0.0
    off = _EPSILON * abs(truth.mean)  # of the mean; the variance around it is greater by the square of that
    if aggregate == "geometric_mean":
        return 4 * _EPSILON * truth.geometric_mean * (1 + max(abs(log(truth.min)), abs(log(truth.max))))
    return {"mean": off, "variance": 8 * _EPSILON * truth.variance + off * off}.get(
        aggregate, 8 * _EPSILON * truth.std + off
    )


def _same(aggregate: str, value: float, true: float, count: int, reach: float) -> bool:
    """Whether an exact answer is the truth: counts and extremes to the bit, the others but for rounding.

    A sum was rounded at the size of the stream's largest readings, and as often as the cut buckets have readings: both
    may be far above what is in a window of one reading, or of zeros. So was a variance, at the size of their squares,
    and a standard deviation is its root.
    """
    if aggregate == "std":
        value, true, aggregate = value * value, true * true, "variance"
    sizes = {"sum": count * reach, "mean": reach, "variance": reach * reach, "geometric_mean": reach}
    return abs(value - true) <= sizes.get(aggregate, 0.0) * ROUNDING


# custody: every reading in exactly one bucket


@dataclass
class Custody:
    """Whether the synced chunks hold every published reading once; `wrong` counts buckets that misreport theirs."""

    published: int = 0
    merged: int = 0
    lost: int = 0
    double_counted: int = 0
    wrong: int = 0
    chunks: int = 0
    buckets: int = 0
    synced_bytes: int = 0
    problems: list[str] = field(default_factory=list)


def custody(target: Path | Iterable[tuple[str, bytes]], streams: Streams) -> Custody:
    """Hold each bucket of the documents in `target`, a folder or names and bytes, to the rows it claims to fold."""
    found = Custody(published=streams.readings)
    held: dict[tuple[str, str], list[tuple[str, int, int]]] = {key: [] for key in streams.published}
    for name, data in files(target) if isinstance(target, Path) else target:
        found.synced_bytes += len(data)
        if not name.endswith(".json"):
            found.problems.append(f"{name}: is no chunk")
            continue
        chunk = decode(data)
        found.chunks += 1
        found.buckets += len(chunk.buckets)
        _take(found, chunk, streams, held)
    for key, spans in held.items():
        _cover(found, key, spans, len(streams.published[key][0]))
    return found


def _take(found: Custody, chunk: Chunk, streams: Streams, held: dict[Any, list[tuple[str, int, int]]]) -> None:
    key = chunk.device, chunk.stream
    if key not in held:
        found.problems.append(f"{key}: nobody published this stream")
        found.wrong += len(chunk.buckets)
        return
    for bucket in chunk.buckets:
        found.merged += bucket.n
        held[key].append((chunk.incarnation, bucket.first, bucket.n))
        fault = _misreported(bucket, *streams.arrived(key, bucket.first, bucket.first + bucket.n), chunk.center)
        if fault:
            found.wrong += 1
            found.problems.append(f"{key} bucket at {bucket.first}, {bucket.n} readings: {fault}")


def _misreported(bucket: Any, times: list[int], values: list[float], center: float) -> str:
    """Which field of a bucket is not what its readings say; empty when all are."""
    if len(times) != bucket.n or not times:
        return f"claims {bucket.n} readings where {len(times)} were published"
    told = (bucket.t_first, bucket.t_last, bucket.low, bucket.high, bucket.x_first, bucket.x_last)
    true = (min(times), max(times), min(values), max(values), values[0], values[-1])
    if told != true:
        return f"says {told}, the readings say {true}"
    total = fsum(value - center for value in values)
    allowed = 4 * bucket.n * _EPSILON * fsum(abs(value) + abs(center) for value in values)
    return "" if abs(bucket.total - total) <= allowed else f"total {bucket.total}, the readings say {total}"


def _cover(found: Custody, key: tuple[str, str], spans: list[tuple[str, int, int]], published: int) -> None:
    """Lost: ordinals in no bucket. Counted twice: ordinals in more than one, in any incarnation, or never published."""
    times_held = bytearray(published)
    for _, first, n in spans:
        for ordinal in range(first, first + n):
            if ordinal >= published or times_held[ordinal]:
                found.double_counted += 1
            else:
                times_held[ordinal] = 1
    lost = times_held.count(0)
    found.lost += lost
    if lost:
        found.problems.append(f"{key}: {lost} of {published} readings are in no chunk, first {times_held.index(0)}")


# the agents' own windows, and the cloud's


def agents(results: Iterable[Mapping[str, Any]], streams: Streams, windows: Mapping[str, int]) -> Tally:
    """Check what the agents answered on the spot: `windows` maps a window's name to its length in µs of event time.

    A maximum that evicts up to the current one is held to the whole window too: what left early was below it.
    """
    tally = Tally()
    found: dict[tuple[tuple[str, str], str], Sliding] = {}
    for result in sorted(results, key=lambda result: int(result["ordinal"])):
        stream, name, ordinal = (result["device"], result["stream"]), result["window"], result["ordinal"]
        if ordinal >= len(streams.published[stream][0]):
            tally.outside += 1
            tally.note(f"{stream} {name}: ordinal {ordinal} was never published")
            continue
        if (stream, name) not in found:
            found[stream, name] = Sliding(*streams.published[stream], windows[name])
        newest, values = found[stream, name].after(ordinal, result["time_us"])
        if result["time_us"] < newest:
            tally.note(f"{stream} {name}: as of {result['time_us']}, the newest reading is from {newest}")
            tally.outside += 1
        answer = Answer(result["value"], result["low"], result["high"], result["exact"])
        tally.window(
            f"{stream} {name} at {ordinal}", Truth.of(values), {result["aggregate"]: answer}, streams.reach(stream)
        )
    return tally


def cloud(rows: Iterable[Mapping[str, Any]], streams: Streams, length: int, slide: int) -> Tally:
    """Check every cloud window, and that each window that holds a reading is there exactly once."""
    tally, expected = Tally(), streams.occupied(length, slide)
    for row in rows:
        key = row["device"], row["stream"]
        answers = {aggregate: _answer(row, aggregate) for aggregate in AGGREGATES}
        for start in _starts(row, expected[key], length, slide):
            truth = streams.between(key, start, start + length)
            name = f"{key[0] or 'fleet'} {key[1]} from {start}"
            if (
                (row["window_end"] - start - length) % slide
                or start % slide
                or (truth.count and start not in expected[key])
            ):
                tally.outside += 1
                tally.note(f"{name} to {row['window_end']}: twice, or no windows of {length} sliding by {slide} us")
            expected[key].discard(start)
            tally.window(name, truth, answers, streams.reach(key), positive=streams.positive(key))
    for key, starts in expected.items():
        tally.missing += len(starts)
        if starts:
            name = f"{key[0] or 'fleet'} {key[1]}"
            tally.note(f"{name}: {len(starts)} windows with readings are missing, first {min(starts)}")
    return tally


def _starts(row: Mapping[str, Any], expected: set[int], length: int, slide: int) -> list[int]:
    """The windows that a row is held to: its only one, or of a span its first and those that hold a reading."""
    start, last = row["window_start"], row["window_end"] - length
    return [start, *sorted(at for at in expected if start < at <= last)] if last - start > slide else [start]


def _answer(row: Mapping[str, Any], aggregate: str) -> Answer:
    value, low, high = (_number(row[name]) for name in (aggregate, f"{aggregate}_low", f"{aggregate}_high"))
    return Answer(value, low, high, bool(row[f"{aggregate}_exact"]))


def _number(value: Any) -> float | None:
    return None if value is None or isnan(value) else value
