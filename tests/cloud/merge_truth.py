"""What every window must say, from the definition: readings → windows in exact integers, nothing of the merge's code.

A finite float64 is an integer times a power of two, so sums, squares and products of readings are exact integers here,
and an interval is compared with them without rounding. A row is wrong if the truth of a window for which it stands is
outside its interval, if it says `exact` and is not, or if it says nothing where something is to be said.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from arrived_truth import Arrived

Reading = tuple[int, float]
Row = Mapping[str, Any]

#: Equal to the bit where they say that they are exact.
DISCRETE = ("count", "min", "max", "range", "min_count", "max_count")
#: What an `exact` value may be off by, of the greatest |x| of all (of its square for a variance): rounding, no more.
_ROUNDED = 1e-9
_OF_A_ROOT = 1e-5
#: What of a logarithm's sum float64 may get wrong, a reading: closer calls are made in integers.
_LOG = 1e-12


class Truth:
    """The readings of one stream, or of one stream of all devices; any window of them.

    `centers`: those of its documents, from which sums are taken: the first reading of an incarnation may be lost.
    """

    def __init__(self, readings: Iterable[Reading], centers: Iterable[float] = ()) -> None:
        ordered = sorted(readings)
        self.times = [time for time, _ in ordered]
        self.values = [value for _, value in ordered]
        parts = [value.as_integer_ratio() for value in self.values]
        self.unit = max((below for _, below in parts), default=1)  # a power of two: the sum's denominator
        whole = [above * (self.unit // below) for above, below in parts]
        self.sums = [0, *accumulate(whole)]
        self.squares = [0, *accumulate(x * x for x in whole)]
        self.positive = all(value > 0 for value in self.values)
        self.logs = [math.log(value) for value in self.values] if self.positive else []
        self.greatest = max(map(abs, [*self.values, *centers]), default=0.0)

    def occupied(self, slide: int, width: int, origin: int) -> set[int]:
        """The starts of all windows that hold a reading."""
        frames = {(time - origin) // slide for time in self.times}
        return {origin + at * slide for frame in frames for at in range(frame - width + 1, frame + 1)}

    def wrong(self, row: Row, start: int, end: int) -> Iterator[str]:
        """What `row` says wrongly of the window [start, end)."""
        low, high = bisect_left(self.times, start), bisect_left(self.times, end)
        n, held = high - low, self.values[low:high]
        yield from _outside("count", row, n, 0)
        if _known(row["sum"]):
            total = Fraction(self.sums[high] - self.sums[low], self.unit)
            yield from _outside("sum", row, total, _ROUNDED * self.greatest * max(n, 1))
        else:
            yield "sum: null"
        if n == 0:
            names = (name for name in row if name.endswith("_exact") and name not in ("count_exact", "sum_exact"))
            yield from (f"{name}, but the window may hold a reading" for name in names if row[name] and _may_hold(row))
            return
        yield from _outside("mean", row, total / n, _ROUNDED * self.greatest)
        least, greatest = min(held), max(held)
        yield from _outside("min", row, least, 0)
        yield from _outside("max", row, greatest, 0)
        if "variance" in row:
            yield from self._spread(row, low, high)
            yield from _outside("range", row, Fraction(greatest) - Fraction(least), None)
            yield from _outside("min_count", row, held.count(least), 0)
            yield from _outside("max_count", row, held.count(greatest), 0)
        if "geometric_mean" in row and min(held) > 0:
            yield from self._geometric(row, low, high)

    def _spread(self, row: Row, low: int, high: int) -> Iterator[str]:
        n, total = high - low, self.sums[high] - self.sums[low]
        variance = Fraction(n * (self.squares[high] - self.squares[low]) - total * total, (n * self.unit) ** 2)
        yield from _outside("variance", row, variance, _ROUNDED * self.greatest * self.greatest + 1e-290)
        if not (_known(row["std_low"]) and _known(row["std_high"])):
            yield "std: null"
        elif row["std_low"] > 0 and Fraction(row["std_low"]) ** 2 > variance:
            yield f"std: low {row['std_low']!r} is above the root of {float(variance)!r}"
        elif row["std_high"] < math.inf and (row["std_high"] < 0 or Fraction(row["std_high"]) ** 2 < variance):
            yield f"std: high {row['std_high']!r} is below the root of {_shown(variance)}"
        elif row["std_exact"] and not abs(row["std"] - _root(variance)) <= _OF_A_ROOT * self.greatest:
            yield f"std: exact {row['std']!r} is not {_root(variance)!r}"

    def _geometric(self, row: Row, low: int, high: int) -> Iterator[str]:
        ends = row["geometric_mean_low"], row["geometric_mean_high"]
        if not all(map(_known, ends)):
            if self.positive:
                yield "geometric_mean: null, and all readings are positive"
            return
        for end, sign in zip(ends, (1, -1), strict=True):
            if sign * self._compared(end, low, high) > 0:
                yield f"geometric_mean: outside at {end!r}"
        value, held = row["geometric_mean"], range(low, high)
        if row["geometric_mean_exact"]:
            mean = math.fsum(math.log(self.values[i]) for i in held) / len(held)
            if not _known(value) or abs(math.log(value) - mean) > 1e-6:
                yield f"geometric_mean: exact {value!r} is not {math.exp(mean)!r}"

    def _compared(self, end: float, low: int, high: int) -> int:
        """The sign of `end` − the geometric mean."""
        n = high - low
        if end <= 0 or end == math.inf:
            return -1 if end <= 0 else 1
        apart = n * math.log(end) - math.fsum(math.log(self.values[i]) for i in range(low, high))
        if abs(apart) > n * _LOG:
            return 1 if apart > 0 else -1
        product, power = 1, 0
        for value in self.values[low:high]:
            fraction, exponent = math.frexp(value)
            product, power = product * int(math.ldexp(fraction, 53)), power + exponent
        fraction, exponent = math.frexp(end)
        mine, power = int(math.ldexp(fraction, 53)) ** n, n * exponent - power
        mine, product = (mine << power, product) if power > 0 else (mine, product << -power)
        return (mine > product) - (mine < product)


def _known(value: Any) -> bool:
    return value is not None and not math.isnan(value)


def _may_hold(row: Row) -> bool:
    return bool(row["count_high"] > 0)


def _shown(value: Fraction | float) -> str:
    try:
        return repr(float(value))
    except OverflowError:
        return "beyond float64"


def _root(value: Fraction) -> float:
    """Of any magnitude."""
    shift = (value.denominator.bit_length() - value.numerator.bit_length()) // 2
    return math.ldexp(math.sqrt(value * Fraction(4) ** shift), -shift)


def _outside(name: str, row: Row, truth: Fraction | float, near: float | None) -> Iterator[str]:
    """`near`: how far an `exact` value may be off; None: the truth's own rounding."""
    low, high, value = row[f"{name}_low"], row[f"{name}_high"], row[name]
    if not (_known(low) and _known(high)):
        yield f"{name}: null, it is {_shown(truth)}"
        return
    if not low <= truth <= high:
        yield f"{name}: {_shown(truth)} outside [{low!r}, {high!r}]"
    if _known(value) and not low <= value <= high:
        yield f"{name}: value {value!r} outside its own interval"
    if row[f"{name}_exact"]:
        right = _known(value) and (value == float(truth) if near is None else abs(Fraction(value) - truth) <= near)
        if not right:
            yield f"{name}: exact {value!r} is not {_shown(truth)}"


def judged(
    rows: Sequence[Row], truth: Truth, slide: int, width: int, origin: int, arrived: Arrived | None = None
) -> tuple[int, int, list[str]]:
    """(windows checked, those missing, what is wrong) of one stream's rows; a span's row is held to its windows."""
    due, wrong, checked, end = truth.occupied(slide, width, origin), [], 0, None
    pending = sorted(due)
    for row in sorted(rows, key=lambda row: row["window_start"]):
        start, windows = row["window_start"], row.get("windows", 1)
        last = start + (windows - 1) * slide
        if (start - origin) % slide or row["window_end"] != last + width * slide or (end is not None and start <= end):
            wrong.append(f"window {start} … {row['window_end']}: off the grid, of another length, or twice")
        end = last
        if arrived:
            wrong += [f"window {start} of {windows}: {text}" for text in arrived.wrong(row, width * slide)]
        inner = pending[bisect_left(pending, start) : bisect_left(pending, last + 1)]
        for at in dict.fromkeys((start, start + windows // 3 * slide, last, *inner)):
            wrong += [f"window {at} of {windows}: {text}" for text in truth.wrong(row, at, at + width * slide)]
            due.discard(at)
            checked += 1
    return checked, len(due), wrong
