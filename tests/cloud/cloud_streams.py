"""Random streams, their buckets by a plain fold over the readings, and windows recomputed from the raw readings."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from sluicegate.format.bucket import UNKNOWN

Reading = tuple[int, float]
Row = dict[str, Any]


def fold(readings: Sequence[Reading], center: float, first: int, gap: int = 0, flags: int | None = None) -> Row:
    """The bucket of the contract over `readings` (time µs, value), field by field, straight from their definitions."""
    times = [t for t, _ in readings]
    values = [x for _, x in readings]
    sums, total = [], 0.0
    for value in values:
        total += value - center
        sums.append(total)
    row: Row = {"first": first, "n": len(readings), "t_first": min(times), "t_last": max(times), "total": total}
    row["pre_low"] = min(sums[:-1], default=math.inf)
    row["pre_high"] = max(sums[:-1], default=-math.inf)
    for name, extreme in (("low", min(values)), ("high", max(values))):
        at = [i for i, x in enumerate(values) if x == extreme]
        row[name] = extreme
        row[f"{name}_t_first"], row[f"{name}_t_last"] = min(times[i] for i in at), max(times[i] for i in at)
        row[f"{name}_o_first"], row[f"{name}_o_last"] = first + at[0], first + at[-1]
    ordered = int(times == sorted(times))
    row |= {"x_first": values[0], "x_last": values[-1], "gap": gap, "flags": ordered if flags is None else flags}
    row["doubt"] = 0
    return row | _beside(values) | _logarithms(values, center)


def _beside(values: list[float]) -> Row:
    """Squares, and how often the extremes occur and what stands before and after them."""
    mean = math.fsum(values) / len(values)
    row: Row = {"m2": math.fsum((x - mean) ** 2 for x in values)}
    for name, pick, none in (("low", min, math.inf), ("high", max, -math.inf)):
        at = [i for i, x in enumerate(values) if x == pick(values)]
        row |= {f"{name}_n": len(at), f"{name}_pre": pick(values[: at[0]], default=none)}
        row[f"{name}_suf"] = pick(values[at[-1] + 1 :], default=none)
    return row


def _logarithms(values: list[float], center: float) -> Row:
    if min(values) <= 0:
        return dict.fromkeys(("log_total", "log_pre_low", "log_pre_high"), math.nan)
    sums = list(accumulate(math.log(x) - (math.log(center) if center > 0 else 0.0) for x in values))
    ends = {"log_pre_low": min(sums[:-1], default=math.inf), "log_pre_high": max(sums[:-1], default=-math.inf)}
    return {"log_total": sums[-1], **ends}


def older(row: Row) -> Row:
    """The bucket as a document of format 1 tells it."""
    return row | UNKNOWN


@dataclass
class Stream:
    """A stream's readings in order of arrival, cut into buckets; `incarnations` are (center, buckets)."""

    device: str
    name: str
    readings: list[Reading] = field(default_factory=list)
    incarnations: list[tuple[str, float, list[Row]]] = field(default_factory=list)

    def rows(self) -> list[Row]:
        """The bucket rows as `read_buckets` gives them."""
        head = {"device": self.device, "stream": self.name, "key": None}
        return [
            {**head, "incarnation": number, "center": center, "chunk": "", **row}
            for number, center, rows in self.incarnations
            for row in rows
        ]


def random_stream(seed: int, device: str = "d", name: str = "s", incarnations: int = 2, readings: int = 300) -> Stream:
    """Repeated times, values of both signs, gaps of time, late readings, buckets of 1 … 60 readings."""
    rng = random.Random(seed)
    out = Stream(device, name)
    now = rng.randrange(0, 5_000)
    for number in range(incarnations):
        level, spread = rng.choice([(0, 1), (20, 5), (-1000, 1), (1e6, 0.5)])
        arrived, now = _arrivals(rng, now, rng.randrange(1, readings), level, spread)
        out.readings += arrived
        center = arrived[0][1]
        out.incarnations.append((f"{number:016x}", center, _buckets(rng, arrived, center)))
    return out


def _arrivals(rng: random.Random, now: int, count: int, level: float, spread: float) -> tuple[list[Reading], int]:
    step, walk = rng.choice([3, 20, 90]), 0.0
    arrived: list[Reading] = []
    digits = rng.choice([0, 2, 12])
    for _ in range(count):
        if rng.random() < 0.02:
            now += rng.randrange(0, 3_000)
        now += rng.randrange(0, step)
        walk = 0.9 * walk + rng.gauss(0, spread)
        late = rng.random() < 0.03
        arrived.append((max(now - rng.randrange(0, 400), 0) if late else now, round(level + walk, digits)))
    return arrived, now


def _buckets(rng: random.Random, arrived: list[Reading], center: float) -> list[Row]:
    """Cut at random, and where time goes back unless this stream merges such buckets too (out of order for good)."""
    merges, size = rng.random() < 0.4, rng.choice([2, 8, 60])
    rows, at = [], 0
    while at < len(arrived):
        end = min(at + rng.randrange(1, size + 1), len(arrived))
        if not merges:
            back = (i for i in range(at + 1, end) if arrived[i][0] < arrived[i - 1][0])
            end = next(back, end)
        rows.append(fold(arrived[at:end], center, at, gap=rng.choice([0, 0, 0, 2])))
        at = end
    return rows


def frame_rows(buckets: Sequence[Row], slide: int, origin: int = 0) -> dict[str, np.ndarray]:
    """A plain twin of `merge_frames`: columns of frames and crossing buckets."""
    kept: dict[tuple[Any, ...], Row] = {}
    for bucket in buckets:
        first, last = ((bucket[name] - origin) // slide for name in ("t_first", "t_last"))
        whole = bucket["n"] > 0 and first == last
        key = (bucket["incarnation"], first, last, bucket["doubt"] > 0, None if whole else len(kept))
        row = {
            **bucket,
            "first_frame": first,
            "last_frame": last,
            "buckets": int(bucket["n"] > 0),
            "span_us": bucket["t_last"] - bucket["t_first"],
            **_known_to_lie(bucket),
            **sure(bucket),
        }
        kept[key] = _merged(kept[key], row) if key in kept else row
    names = [name for name in next(iter(kept.values())) if name not in ("device", "stream", "key", "chunk")]
    return {name: np.array([row[name] for row in kept.values()]) for name in names}


def sure(row: Row) -> Row:
    """The extremes that are there whichever `doubt` readings of the bucket are left out."""
    out: Row = {}
    for name, other, pick, none in (("low", "high", min, math.inf), ("high", "low", max, -math.inf)):
        doubt, often = row["doubt"], row.get(f"{name}_n", 0)
        beside = [row.get(f"{name}_{side}", math.nan) for side in ("pre", "suf")]
        if doubt == 0 or often > doubt:
            out[f"sure_{name}"] = row.get(name, 0.0)
        elif doubt == 1 and often == 1 and row["n"] > 1 and not any(map(math.isnan, beside)):
            out[f"sure_{name}"] = pick(beside)
        else:
            out[f"sure_{name}"] = row[other] if row["n"] > doubt else none
    return out


def _known_to_lie(row: Row) -> Row:
    """Squares and sums of logarithms, or between what they lie where the bucket does not tell."""
    n, low, high, center = row["n"], row.get("low", 0.0), row.get("high", 0.0), row["center"]
    if not n:
        return {"m2_low": 0.0, "m2_high": 0.0, "log_low": 0.0, "log_high": 0.0}
    apart, m2, logs = row["total"] / n, row["m2"], row["log_total"]
    rounded = 2 * (n + 8) * sys.float_info.epsilon * (abs(center) + max(abs(low), abs(high)))
    if math.isnan(m2):
        above, below = high - center - apart + rounded, apart - (low - center) + rounded
        squares = {"m2_low": (high - low) * (high - low) / 2, "m2_high": n * max(above, 0.0) * max(below, 0.0)}
    else:
        squares = {"m2_low": m2, "m2_high": m2}
    total = logs + n * (math.log(center) if center > 0 else 0.0)
    if math.isnan(logs) and low > 0:
        return squares | {
            "log_low": n * math.log(low),
            "log_high": n * math.log(max(min(high, center + apart + rounded), low)),
        }
    return squares | {"log_low": total, "log_high": total}


def _merged(one: Row, two: Row) -> Row:
    out = dict(one)
    apart = two["total"] / two["n"] - one["total"] / one["n"] if one["n"] and two["n"] else 0.0
    for name in ("m2_low", "m2_high"):
        out[name] = one[name] + two[name] + apart * apart * (one["n"] * two["n"] / max(one["n"] + two["n"], 1))
    for name in ("log_low", "log_high"):
        out[name] = one[name] + two[name]
    for name, sign in (("low", 1), ("high", -1)):
        tied = [row[f"{name}_n"] for row in (one, two) if sign * row[name] == min(sign * one[name], sign * two[name])]
        out[f"{name}_n"] = -1 if min(tied) < 0 else sum(tied)
    for name, pick in (("sure_low", min), ("sure_high", max)):
        out[name] = pick(one[name], two[name])
    for name in ("n", "total", "gap", "buckets", "span_us", "doubt"):
        out[name] = one[name] + two[name]
    for name in ("low", "t_first", "first"):
        out[name] = min(one[name], two[name])
    for name in ("high", "t_last"):
        out[name] = max(one[name], two[name])
    return out


@dataclass(frozen=True)
class Truth:
    """A window recomputed from the readings it holds."""

    count: int
    sum: float
    mean: float
    min: float
    max: float
    variance: float = math.nan
    std: float = math.nan
    range: float = math.nan
    geometric_mean: float = math.nan
    min_count: float = math.nan
    max_count: float = math.nan


class Readings:
    """Raw readings sorted by time: the independent answer to any window."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        ordered = sorted(readings, key=lambda reading: reading[0])
        self.times = np.array([t for t, _ in ordered], dtype=np.int64)
        self.values = [x for _, x in ordered]

    def window(self, start: int, end: int) -> Truth:
        low, high = np.searchsorted(self.times, [start, end])
        inside = self.values[low:high]
        if not inside:
            return Truth(0, 0.0, math.nan, math.nan, math.nan)
        total = math.fsum(inside)
        return Truth(len(inside), total, total / len(inside), min(inside), max(inside), *_more(inside, total))


def _more(inside: list[float], total: float) -> tuple[float, ...]:
    mean = total / len(inside)
    variance = math.fsum((x - mean) ** 2 for x in inside) / len(inside)
    positive = min(inside) > 0
    logs = math.exp(math.fsum(map(math.log, inside)) / len(inside)) if positive else math.nan
    spread = max(inside) - min(inside)
    return variance, math.sqrt(variance), spread, logs, inside.count(min(inside)), inside.count(max(inside))


MORE = ("variance", "std", "range", "geometric_mean", "min_count", "max_count")


def violations(answer: dict[str, Any], truth: Truth) -> list[str]:
    """Aggregates whose interval does not hold the truth, or that claim to be exact and are not."""
    bad = []
    for name in ("count", "sum", "mean", "min", "max", *(name for name in MORE if name in answer)):
        true = getattr(truth, name)
        if name == "geometric_mean" and math.isnan(answer[f"{name}_low"]):
            continue
        low, high, value = answer[f"{name}_low"], answer[f"{name}_high"], answer[name]
        if math.isnan(true):
            continue
        if not low <= true <= high:
            bad.append(f"{name}: {true!r} outside [{low!r}, {high!r}]")
        if not math.isnan(value) and not low <= value <= high:
            bad.append(f"{name}: value {value!r} outside its own interval")
        if answer[f"{name}_exact"] and name in ("count", "min", "max", "min_count", "max_count") and value != true:
            bad.append(f"{name}: exact {value!r} is not {true!r}")
    return bad
