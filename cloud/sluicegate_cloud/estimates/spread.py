"""Variance and standard deviation of windows: the population's, with certain intervals, per device and for all.

Source: error-algebra, "Variance", and the same idea as the mean's: what is unknown is kept relative to an estimate.
With r near the mean and V near the variance, N · variance = N·V + Σ ((x − r)² − V) − N·(mean − r)². The sum is known of
the buckets inside; of c readings of a cut bucket with Σ (x − r) = s, values in [m, M] and squares T in all, for any t

    Σ (x − r)² ≤ (m + M − 2r)·s − c·(m − r)(M − r)        as (x − m)(M − x) ≥ 0
    Σ (x − r)² ≥ 2t·s − c·t²                              as (x − r − t)² ≥ 0

and the same of the n − c readings outside, whose squares are T less those inside. All four are linear in c and s, so
they are greatest and least at a corner of what `bounds.Cut` allows, and so is half of each of two.

Where little is inside, the whole window's values say more: for c readings of mean ν in the cut buckets, C of mean μ
inside, N · variance = M₂ + q + (C·c/N)(ν − μ)², 0 ≤ q ≤ c·(M − ν)(ν − m). Least over c: concave in 1/N for the least
|ν − μ| that any c allows, so at an end of c's range. Greatest: SEGMENTS ranges of N, each bounded by its worse ends.
Both hold; the narrower counts.
"""

from __future__ import annotations

import numpy as np

from sluicegate.fleet import spreads
from sluicegate_cloud import compiled
from sluicegate_cloud.bounds import Cut, Ends, Line
from sluicegate_cloud.doubt import Removed
from sluicegate_cloud.estimates.means import least_mean
from sluicegate_cloud.fleet.groups import Groups
from sluicegate_cloud.fleet.part import Part
from sluicegate_cloud.grid import Columns, Floats, Ints
from sluicegate_cloud.inside import Inside
from sluicegate_cloud.sliding import add_at, greatest_at

SEGMENTS = 12
_EPSILON = float(np.finfo(np.float64).eps)
_STEPS = 8
#: Below this, squares of float64 are rounded to less and less.
LEAST_SQUARE = 1e-290
_UNDER = 1e-320
_DENORMAL = 5e-324
#: `squares_*`: Σ (x − ref)² of the readings inside; `off_*`: Σ ((x − ref)² − near) of the cut buckets' readings inside,
#: `near` an estimate of the variance; `part_estimate`: Σ (x − ref)² of them; `reach`: the greatest |x − ref|.
SUMS = ("squares_low", "squares_high", "off_low", "off_high", "part_estimate")
LEAST: tuple[str, ...] = ()
GREATEST = ("reach", "near")


def inside(part: Part, out: Columns) -> None:
    """Fill in what the buckets inside add; `out` has `n`, `ref` and `total` of them already."""
    ref, owners = out["ref"], part.block.owners
    out["squares_low"], out["squares_high"] = around(part.certain, ref, out["n"], out["total"])
    ends = (of[part.owner] for of in (owners.center_low, owners.center_high))
    reach = np.maximum(*(np.abs(end - ref) for end in ends))
    for name in ("min_possible", "max_possible"):
        reach = np.maximum(reach, np.where(np.isfinite(out[name]), np.abs(out[name] - ref), 0.0))
    out["reach"] = reach
    out["near"] = _estimate(part, out)


def around(held: Inside, ref: Floats, n: Ints | Floats, total: Floats) -> tuple[Floats, Floats]:
    """Least and greatest Σ (x − ref)² of each window's rows: `n` readings with Σ (x − ref) = `total`."""
    mean = np.divide(total, n, out=np.zeros_like(ref), where=n > 0)
    low = held.squares() + n * mean * mean
    return low, low + held.fold(held.rows["m2_high"] - held.rows["m2_low"], np.add, 0.0)


def _estimate(part: Part, out: Columns) -> Floats:
    """The interpolated variance; any number is certain, one near it is sharp."""
    count, squares = out["n"].astype(np.float64), out["squares_low"].copy()
    if part.doubtful is not None:
        more, ref = part.doubtful.count(), out["ref"]
        total = part.doubtful.total() + more * (part.base - ref)
        count, squares = count + more, squares + around(part.doubtful, ref, more, total)[0]
    for at, cut in part.cuts():
        add_at(count, at, cut.count)
        add_at(squares, at, _likely(cut, out["ref"][at]))
    return np.divide(squares, count, out=np.zeros_like(squares), where=count > 0)


def _likely(part: Cut, ref: Floats) -> Floats:
    """The share of a bucket's Σ (x − ref)² that is inside, by count."""
    rows, n = part.rows, part.rows["n"].astype(np.float64)
    off = rows["total"] / n + rows["center"] - ref
    return np.asarray(part.count * ((rows["m2_low"] + rows["m2_high"]) / (2 * n) + off * off))


def doubtful(held: Inside, base: Floats, out: Columns, removed: Removed) -> None:
    """Add what buckets in doubt may: all their readings, or all but `removed.most` of any value they have."""
    ref, near, n = out["ref"], out["near"], removed.n
    low, high = around(held, ref, n, removed.total)
    out["off_low"] += low - n * near - removed.most * np.maximum(removed.far**2 - near, 0.0)
    out["off_high"] += high - n * near + removed.most * near
    out["part_estimate"] += (low + high) / 2


def add(windows: Part, out: Columns, at: Ints, part: Cut) -> None:
    """Add what cut buckets may."""
    rows, ref = part.rows, out["ref"][at]
    offs = part.squares_off(out["ref"], out["near"], at) or _offs(part, ref, out["near"][at])
    for name, values in zip(("off_low", "off_high"), offs, strict=True):
        add_at(out[name], at, np.where(part.count_high > 0, values, 0.0))
    add_at(out["part_estimate"], at, _likely(part, ref))
    ends = [np.abs(rows[name] - ref) for name in ("low", "high", "center")]
    greatest_at(out["reach"], at, np.max(ends, axis=0))


def _offs(part: Cut, ref: Floats, near: Floats) -> tuple[Floats, Floats]:
    """Least and greatest Σ ((x − ref)² − near) of the readings inside."""
    rows, n = part.rows, part.rows["n"].astype(np.float64)
    total = rows["total"] + rows["n"] * (rows["center"] - ref)
    inside, outside = part.known_ends(ref)
    mean = total / n
    all_low, all_high = (rows[name] + mean * total - outside.squares for name in ("m2_low", "m2_high"))
    rest = Ends(n - outside.count, total - outside.total, all_low)
    low, high = rows["low"] - ref, rows["high"] - ref
    slope, product = low + high, low * high
    zero = np.zeros_like(ref)

    def line(weight: Floats, each: Floats, known: Ends) -> Line:
        """Σ (weight · (x − ref) + each − near) inside, with the squares of the `known` ones in place of theirs."""
        return weight, each - near, known.squares - weight * known.total - each * known.count

    tangents = [(2 * t, -t * t) for t in (zero, mean / 2, mean)]
    lows = _with_between(line(slope, -product, rest), [line(*tangent, inside) for tangent in tangents])
    rest = Ends(rest.count, rest.total, all_high)
    highs = _with_between(line(slope, -product, inside), [line(*tangent, rest) for tangent in tangents])
    low = part.least_of(ref, lows).max(axis=0)
    return low, -part.least_of(ref, [(-weight, -each, -whole) for weight, each, whole in highs]).max(axis=0)


def _with_between(chord: Line, tangents: list[Line]) -> list[Line]:
    """All, and halfway to each tangent: nowhere above the greater, or below the lesser, of the chord and it."""
    halves = [tuple((a + b) / 2 for a, b in zip(chord, tangent, strict=True)) for tangent in tangents]
    return [chord, *tangents, *((half[0], half[1], half[2]) for half in halves)]


def moved(parts: Columns, groups: Groups, apart: Floats) -> Columns:
    """The components around a mean that is `apart` less than `ref`, and around the variance of all of a group."""
    n, count = parts["n"], parts["n"] + parts["part_count"]
    squares = (parts["squares_low"] + parts["squares_high"]) / 2 + parts["part_estimate"]
    counted = groups.sum(count)
    near = np.divide(
        groups.sum(squares + count * apart * apart), counted, out=np.zeros_like(counted), where=counted != 0
    )
    near = groups.to_rows(near)
    inside_shift = 2 * apart * parts["total"] + n * apart * apart
    sums = [2 * apart * parts[name] for name in ("part_low", "part_high")]
    counts = [parts[name] * (apart * apart + parts["near"] - near) for name in ("count_low", "count_high")]
    likely = parts["raw_part"] - parts["part_count"] * parts["ref"]
    return {
        "squares_low": parts["squares_low"] + inside_shift,
        "squares_high": parts["squares_high"] + inside_shift,
        "off_low": parts["off_low"] + np.fmin(*sums) + np.fmin(*counts),
        "off_high": parts["off_high"] + np.fmax(*sums) + np.fmax(*counts),
        "part_estimate": parts["part_estimate"] + 2 * apart * likely + parts["part_count"] * apart * apart,
        "reach": parts["reach"] + np.abs(apart),
        "near": near,
    }


def variance(parts: Columns) -> tuple[Floats, Floats, Floats, Floats]:
    """(value, low, high, slack) of every window's variance; NaN where there can be no reading."""
    n = parts["n"].astype(np.float64)
    mean = np.divide(parts["total"], n, out=np.zeros_like(n), where=n > 0)
    least, greatest = (np.maximum(parts[f"squares_{end}"] - n * mean * mean, 0.0) for end in ("low", "high"))
    count = n + parts["part_count"]
    guess = (parts["squares_low"] + parts["squares_high"]) / 2 + parts["part_estimate"]
    value = np.divide(guess, count, out=np.full_like(n, np.nan), where=count > 0)
    readings = n + parts["part_n"] + _STEPS
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = np.where(np.isfinite(parts["near"]), np.abs(parts["near"]), 0.0)
        slack = 8 * readings * (_EPSILON * (parts["reach"] ** 2 + near) + _UNDER)
        low, high = _relative(parts, n, readings * slack)
        low = np.fmax(_low(parts, n, mean, least), low)
        high = np.fmin(_high(parts, n, mean, greatest), high)
    value, low = np.where(np.isfinite(value), value, np.nan), np.where(np.isfinite(low), low, 0.0)
    return value, low, np.where(np.isnan(high), np.inf, high), slack


def half_range(parts: Columns) -> Floats:
    """Half of the greatest possible range (rounded up), which no standard deviation passes; ∞ where none is known."""
    with np.errstate(invalid="ignore"):
        half = (parts["max_possible"] / 2 - parts["min_possible"] / 2) * (1 + 4 * _EPSILON) + _DENORMAL
    return np.where(np.isfinite(half) & (half >= 0), half, np.inf)


def _relative(parts: Columns, n: Floats, slack: Floats) -> tuple[Floats, Floats]:
    """The interval around `near`; `slack` is what rounding may have done to the sums of squares.

    The cut buckets were rounded at their whole size, the window may hold one reading of them: both ends are divided by
    how many it holds after they are widened.
    """
    near, ref = parts["near"], parts["ref"]
    c0 = np.maximum(parts["count_low"], (n == 0) & (parts["count_high"] > 0))
    fewest, most = n + c0, n + parts["count_high"]
    low, high = (parts[f"squares_{end}"] - n * near + parts[f"off_{end}"] for end in ("low", "high"))
    low, high = low - slack, high + slack
    ends = _mean_less_ref(parts, ref)
    low = near + np.where(low < 0, low / fewest, low / most) - np.maximum(ends[0] ** 2, ends[1] ** 2)
    return low, near + np.where(high > 0, high / fewest, high / most)


def _mean_less_ref(parts: Columns, ref: Floats) -> tuple[Floats, Floats]:
    low = least_mean(parts, parts["total"], parts["part_low"], parts["part_min"] - ref)
    return low, -least_mean(parts, -parts["total"], -parts["part_high"], ref - parts["part_max"])


def _box(parts: Columns) -> tuple[Floats, Floats]:
    """The least and greatest value, less ref, of what the cut buckets may add; 0 where they add nothing."""
    ends = (parts[f"part_{name}"] - parts["ref"] for name in ("min", "max"))
    least, greatest = (np.where(np.isfinite(end), end, 0.0) for end in ends)
    return least, greatest


def _means(parts: Columns, c0: Floats, c1: Floats) -> tuple[Floats, Floats]:
    """Between which means the part's lies for any count of c0 … c1, at least 1."""
    least, greatest = _box(parts)
    c0, c1 = np.maximum(c0, 1.0), np.maximum(c1, 1.0)
    low = np.maximum(least, np.minimum(parts["part_low"] / c0, parts["part_low"] / c1))
    high = np.minimum(greatest, np.maximum(parts["part_high"] / c0, parts["part_high"] / c1))
    return np.minimum(low, high), np.maximum(low, high)


def _low(parts: Columns, n: Floats, mean: Floats, squares: Floats) -> Floats:
    c0, c1 = parts["count_low"].astype(np.float64), parts["count_high"].astype(np.float64)
    low, high = _means(parts, c0, c1)
    apart = mean - np.clip(mean, low, high)
    ends = [(squares + n * c / (n + c) * apart * apart) / (n + c) for c in (c0, c1)]
    return np.asarray(np.where(n > 0, np.fmin(*ends), np.where(c1 > 0, 0.0, np.nan)))


def _high(parts: Columns, n: Floats, mean: Floats, squares: Floats) -> Floats:
    if compiled.COMPILED:
        out = np.empty(n.size)
        least, greatest = _box(parts)
        counts, ends = (parts["count_low"], parts["count_high"]), (parts["part_low"], parts["part_high"])
        spreads.greatest(parts["n"], mean, squares, least, greatest, *ends, *counts, SEGMENTS, out)
        return out
    c1 = parts["count_high"].astype(np.float64)
    c0 = np.maximum(parts["count_low"], (n == 0) & (c1 > 0)).astype(np.float64)
    ratio = ((n + c1) / (n + c0)) ** (1 / SEGMENTS)
    best, begin = np.full_like(n, -np.inf), n + c0
    for i in range(SEGMENTS):
        end = n + c1 if i == SEGMENTS - 1 else np.minimum(begin * ratio, n + c1)
        bound = _segment(parts, n, mean, squares, begin, np.maximum(end, begin))
        best, begin = np.fmax(best, bound), end
    return np.asarray(np.where(n + c1 > 0, np.where(best == -np.inf, np.inf, best), np.nan))  # −∞: beyond float64


def _segment(parts: Columns, n: Floats, mean: Floats, squares: Floats, begin: Floats, end: Floats) -> Floats:
    """No variance of begin … end readings is greater."""
    least, greatest = _box(parts)
    share = (end - n) / end
    pull = n / begin * share
    low, high = _means(parts, begin - n, end - n)
    turn = (share * (least + greatest) / 2 - pull * mean) / (share - pull)
    inner = np.clip(np.where(np.isfinite(turn), turn, low), low, high)
    spread = [share * (greatest - v) * (v - least) + pull * (v - mean) ** 2 for v in (low, high, inner)]
    return np.asarray(squares / begin + np.max(spread, axis=0))
