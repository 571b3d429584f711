"""`sluicegate plan --advise`: which histogram and parameters fit a user's own readings, measured by trying them.

Every candidate takes the same readings beside the exact window. What it opened, held and answered is compared; of
those whose values were all within the limit the one of least memory is advised. Nothing is guessed, and what was seen
on these readings only is told apart from what a method promises.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sluicegate as sg
from sluicegate_agent.advice.readings import ONLY, Readings
from sluicegate_agent.config.units import write_duration

SUMS = ("mean", "sum", "std", "variance")
EXTREMES = ("max", "min")
AGGREGATES = (*SUMS, *EXTREMES)
PIECE = 512  # readings taken at once; each window is asked for its interval after that
SMALL = 1e-3  # a result nearer to 0 than this share of the greatest is held to that share
PAIRS = 'merge = "pairs"'
EVERY = 2**31  # buckets: a limit that no window here comes to
FITS = "In the agent it is exact while its steps fit into `staging` and `buckets`; its interval tells when they do not."
FEWEST = 8  # readings in a window: with fewer there is nothing to save


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate on the user's readings; shares are of the exact result."""

    method: str
    agent: str  # the same in the agent's configuration: a whole [[window]]
    promised: bool  # the limit is kept by the method itself, not only on these readings
    opened: float  # buckets a reading
    held: int  # buckets, the most at once
    bytes: int  # of partials, the most at once
    greatest: float
    mean: float
    exact: float  # share of answers
    width: float  # of the certain interval, mean
    outside: int  # intervals that did not hold the exact result: must be 0
    ns: float  # CPU a reading with its answer
    proviso: str = ""  # of the promise, in the agent

    def keeps(self, limit: float) -> bool:
        """Whether every value was within the limit."""
        return self.greatest <= limit and not self.outside


@dataclass(frozen=True, slots=True)
class Advice:
    """All trials of an aggregate, and the one that is advised."""

    aggregate: str
    window: str
    limit: float
    readings: int
    exact_bytes: int  # of a window without buckets, which answers alone: nothing of it can be synced or merged
    trials: list[Trial]

    @property
    def advised(self) -> Trial:
        """The least memory of those whose values were all within the limit; of equals the fewest buckets opened.

        There always is one: a bucket for every reading is among the trials.
        """
        kept = [trial for trial in self.trials if trial.keeps(self.limit)]
        return min(kept, key=lambda trial: (trial.bytes, trial.opened))

    @property
    def fewest(self) -> Trial | None:
        """What writes and sends least within the limit, if that is less than half of what is advised; else None."""
        kept = [trial for trial in self.trials if trial.keeps(self.limit)]
        best = min(kept, key=lambda trial: (trial.opened, trial.bytes))
        return best if best.opened < self.advised.opened / 2 else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = {"aggregate": self.aggregate, "window": self.window, "limit": self.limit, "readings": self.readings}
        told["exact_bytes"] = self.exact_bytes
        return (
            told
            | {"trials": [asdict(trial) for trial in self.trials], "advised": self.advised.method}
            | {"fewest": self.fewest.method if self.fewest else None}
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to keep the window."""

    method: str
    histograms: tuple[Any, ...]
    keys: tuple[str, ...] = ()  # of the agent's [[window]], besides the number of buckets
    buckets: int | None = None  # of a constrained footprint; None: as many as the readings need
    promised: bool = False
    every: bool = False  # a bucket for each reading: a window by count needs no bound
    proviso: str = ""  # of the promise, in the agent, whose buckets have a bound

    def as_toml(self, aggregate: str, policy: Any, held: int) -> str:
        """The same window for the agent, whose memory has a bound: twice the buckets that these readings needed."""
        time = isinstance(policy, sg.policies.Time)
        over = write_duration(policy.span) if time else str(policy.limit)
        most = self.buckets or max(16, 1 << (2 * held - 1).bit_length())
        lines = (
            "[[window]]", f'name = "{aggregate}_{over}"', f'aggregate = "{aggregate}"',
            f'policy = {{ time = "{over}" }}' if time else f"policy = {{ count = {over} }}",
            f"buckets = {most if time or not self.every else 0}", *self.keys,
        )  # fmt: skip
        return "\n".join(lines)


def candidates(aggregate: str, limit: float) -> list[Candidate]:
    """What is tried: every reading first, then by error or by extremes, then by a number of buckets."""
    found = [Candidate("every reading", (sg.Constrained(EVERY),), promised=True, every=True)]
    found += _sums(limit) if aggregate in SUMS else _extremes()
    for buckets in (16, 64, 256):
        for merge in ("levels", "pairs"):
            keys = (PAIRS,) if merge == "pairs" else ()
            histograms = (sg.Constrained(buckets, merge=merge),)
            found.append(Candidate(f"Constrained({buckets}, merge={merge!r})", histograms, keys, buckets))
    return found


def _sums(limit: float) -> list[Candidate]:
    return [
        Candidate(
            f"SumLike(error={error:.3g})", (sg.SumLike(error=error),),
            (f'sum_like = {{ error = "{100 * error:.3g}%" }}',), promised=error <= limit,
        )
        for error in (limit / 10, limit, 4 * limit)
    ]  # fmt: skip


def _extremes() -> list[Candidate]:
    by_blocks = sg.MaxLike(staircase=False)
    found = [Candidate("MaxLike(staircase=False)", (by_blocks,), ("max_like = {}",))]
    for tail in (64, 512):
        late = sg.MaxLike(staircase=True, staging=tail)
        called = f"MaxLike(staircase=True, staging={tail})"
        found.append(Candidate(called, (late,), _staircase(tail), promised=True, proviso=FITS))
    for size in (16, 64):
        budget = (sg.MaxLike(staircase=True, staging=size), sg.Constrained(size, merge="pairs"))
        called = f"MaxLike(staircase=True, staging={size}) + Constrained({size}, merge='pairs')"
        found.append(Candidate(called, budget, _staircase(size), size))
    return found


def _staircase(tail: int) -> tuple[str, ...]:
    return PAIRS, f"max_like = {{ staircase = true, staging = {tail} }}"


def advise(readings: Readings, aggregate: str, policy: Any, window: str, limit: float) -> Advice:
    """Try all candidates on the readings. Raises sluicegate's ConfigurationError for a policy that cannot be."""
    exact, used = _exact(readings, aggregate, policy)
    tried = [_try(candidate, readings, aggregate, policy, exact) for candidate in candidates(aggregate, limit)]
    return Advice(aggregate, window, limit, len(readings.values), used, tried)


def _exact(readings: Readings, aggregate: str, policy: Any) -> tuple[array[float], int]:
    """The exact results, and the most bytes that the window without buckets held."""
    window = sg.Window({aggregate: getattr(sg, aggregate)()}, policy=policy)
    results, used = array("d"), 0
    for values, times in _pieces(readings):
        results += window.insert_many(values, times)[aggregate]
        used = max(used, window.footprint.bytes)
    return results, used


def _pieces(readings: Readings) -> Iterator[tuple[array[float], array[int] | None]]:
    for at in range(0, len(readings.values), PIECE):
        times = None if readings.times is None else readings.times[at : at + PIECE]
        yield readings.values[at : at + PIECE], times


def _try(candidate: Candidate, readings: Readings, aggregate: str, policy: Any, exact: array[float]) -> Trial:
    window = sg.Window({aggregate: getattr(sg, aggregate)()}, policy=policy, histograms=candidate.histograms)
    tally, spent, held, used = _Tally(exact), 0, 0, 0
    for at, (values, times) in zip(range(0, len(exact), PIECE), _pieces(readings), strict=True):
        start = time.thread_time_ns()
        results = window.insert_many(values, times)[aggregate]
        spent += time.thread_time_ns() - start
        tally.take(results, at)
        footprint = window.footprint
        held, used = max(held, footprint.held), max(used, footprint.bytes)
        tally.ask(window.query(bounds=True)[aggregate], at + len(values) - 1)
    created = window.footprint.created / len(exact)
    ns = spent / len(exact)
    agent = candidate.as_toml(aggregate, policy, held)
    said = tally.said()
    return Trial(candidate.method, agent, candidate.promised, created, held, used, *said, ns, candidate.proviso)


class _Tally:
    """How far the answers are off."""

    def __init__(self, exact: array[float]) -> None:
        self._exact = exact
        self._floor = SMALL * max((abs(x) for x in exact if x == x), default=0.0)
        self._greatest = self._total = self._width = 0.0
        self._same = self._compared = self._asked = self._outside = 0

    def _share(self, off: float, of: float) -> float:
        size = max(abs(of), self._floor)
        return 0.0 if off <= 1e-12 * size else off / size

    def take(self, results: Sequence[float], at: int) -> None:
        for found, exact in zip(results, self._exact[at : at + len(results)], strict=True):
            if exact != exact:  # an empty window
                continue
            off = self._share(abs(found - exact), exact)
            self._compared += 1
            self._same += off == 0.0
            self._total += off
            self._greatest = max(self._greatest, off)

    def ask(self, answer: Any, at: int) -> None:
        exact = self._exact[at]
        if answer.low is None or exact != exact:
            return
        slack = 1e-12 * max(abs(exact), self._floor)  # the exact window's own rounding
        self._asked += 1
        self._outside += not answer.low - slack <= exact <= answer.high + slack
        self._width += self._share(answer.high - answer.low, exact)

    def said(self) -> tuple[float, float, float, float, int]:
        """Greatest, mean, share of exact ones, mean width of intervals, how many did not hold the exact result."""
        compared = max(self._compared, 1)
        width = self._width / max(self._asked, 1)
        return self._greatest, self._total / compared, self._same / compared, width, self._outside


# for people


def show(advice: Sequence[Advice], readings: Readings) -> str:
    """A table an aggregate, and below it what to take."""
    return "\n\n".join([_of_file(readings), *(_table(each) for each in advice)])


def _of_file(readings: Readings) -> str:
    count = f"{len(readings.values):,} readings of {readings.column!r}"
    clock = f", times from {readings.clock!r}" if readings.clock else f", without times{readings.unread}"
    rest = f"; {readings.passed_over:,} rows without a number passed over" if readings.passed_over else ""
    more = "; the file has more: give --most to try them" if readings.cut_short else ""
    return count + clock + rest + more + _late(readings)


def _late(readings: Readings) -> str:
    """What a time that goes back means, where one does."""
    late, behind = readings.late()
    if not late:
        return ""
    told = (
        f"\n{late:,} of them come after a newer one, by up to {write_duration(behind)}: a window by time keeps such a"
    )
    told += " reading until the newer ones before it leave."
    mixed = f"\nIf the file holds several devices, try one of them: {ONLY}." if 2 * late > len(readings.values) else ""
    return told + mixed


def _table(advice: Advice) -> str:
    head = ("method", "opened", "held", "bytes", "greatest", "mean", "exact", "interval", "ns")
    rows = [head, *(_row(trial, advice) for trial in advice.trials)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = ["  ".join(cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in
                       enumerate(zip(row, widths, strict=True))) for row in rows]  # fmt: skip
    title = f"{advice.aggregate} of {advice.window}, values within {100 * advice.limit:.3g} %"
    return "\n".join([title, "-" * len(lines[0]), *lines, *_words(advice)])


def _row(trial: Trial, advice: Advice) -> tuple[str, ...]:
    mark = "> " if trial is advice.advised else "  " if trial.keeps(advice.limit) else "× "
    numbers = (100 * trial.greatest, 100 * trial.mean, 100 * trial.exact, 100 * trial.width)
    shares = (f"{number:.3g} %" for number in numbers)
    return (mark + trial.method, f"{100 * trial.opened:.3g} %", f"{trial.held:,}", f"{trial.bytes:,}", *shares,
            f"{trial.ns:.0f}")  # fmt: skip


def _words(advice: Advice) -> list[str]:
    best = advice.advised
    lines = [
        "opened: buckets a reading; held, bytes: the most at once; greatest, mean: error of the value; interval: mean",
        "width of the certain one; all as shares of the exact result. × : a value was beyond the limit.",
        f"Take {best.method}.",
    ]
    if not best.promised:
        lines.append("The limit was kept on these readings; the method promises its certain interval, not this limit.")
    if best.proviso:
        lines.append(best.proviso)
    if less := advice.fewest:
        lines.append(f"To write and send less: {less.method}, {100 * less.opened:.3g} % opened, {less.bytes:,} bytes.")
    exact = f"A window without buckets answers exactly from {advice.exact_bytes:,} bytes; nothing of it can be synced."
    return [*lines, exact, "For the agent's configuration:", best.agent]
