"""The windows of each stream and device thinned to a bounded number of points, so that no band is lost.

A point stands for one window or several neighbours: the least `low`, the greatest `high`, the least and greatest value,
the worst completeness and the coarsest resolution among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sluicegate_cloud.names import AGGREGATES, ALL
from sluicegate_cloud.shares import exact_share

#: Points and series that a page holds at most: about 4 MB of numbers in all.
MAX_POINTS, MAX_SERIES, BUDGET = 400, 240, 24_000
LEAST_POINTS = 60
Numbers = NDArray[np.float64]


def all_series(windows: pa.Table) -> tuple[list[dict[str, Any]], int]:
    """Series for the page, the fleet's first, then devices by name; and how many there are in all."""
    keys = windows.group_by(["stream", "device"]).aggregate([]).to_pylist()
    keys.sort(key=lambda key: (key["device"] is not None, key["device"] or "", key["stream"]))
    shown = keys[:MAX_SERIES]
    budget = BUDGET * len(AGGREGATES) // max(len(answered(windows.schema)), len(AGGREGATES))
    points = max(LEAST_POINTS, min(MAX_POINTS, budget // max(len(shown), 1)))
    ordered = windows.sort_by("window_start")
    return [one_series(_rows_of(ordered, key), key, points) for key in shown], len(keys)


def answered(schema: pa.Schema) -> list[str]:
    """The aggregates that windows of this schema have."""
    return [name for name in ALL if f"{name}_exact" in schema.names]


def one_series(rows: pa.Table, key: dict[str, Any], points: int) -> dict[str, Any]:
    """One stream of one device (null: of the fleet) as lists of numbers, at most `points` long; times in ms."""
    bins = _bins(rows.num_rows, points)
    series: dict[str, Any] = {"stream": key["stream"], "device": key["device"]}
    series["t"] = _thin(rows, "window_start", bins, np.fmin, 1e-3)
    series["end"] = _thin(rows, "window_end", bins, np.fmax, 1e-3)
    for name in answered(rows.schema):
        series[name] = {
            "from": _thin(rows, name, bins, np.fmin),
            "to": _thin(rows, name, bins, np.fmax),
            "low": _thin(rows, f"{name}_low", bins, np.fmin),
            "high": _thin(rows, f"{name}_high", bins, np.fmax),
        }
    series["completeness"] = _thin(rows, "completeness", bins, np.fmin)
    series["resolution"] = _thin(rows, "resolution_us", bins, np.fmax, 1e-6)
    return series | {"facts": facts(rows), "thinned": rows.num_rows > points}


def facts(rows: pa.Table) -> dict[str, Any]:
    """What the table says of a series: windows with readings; by aggregate the exact share and half a band."""
    held = rows.filter(pc.greater(rows["count_high"], 0))
    shares = {name: exact_share(held, name) for name in answered(rows.schema)}
    return {
        "windows": pc.sum(held["windows"]).as_py() or 0,
        "exact": {name: rounded(share) for name, share in shares.items()},
        "half_width": {name: _half_width(held, name) for name in answered(rows.schema)},
        "completeness": _mean(rows["completeness"]),
        "resolution": _scaled(_mean(held["resolution_us"]), 1e-6),
    }


def _half_width(held: pa.Table, name: str) -> float | None:
    """Half the width of a band, the median of the windows that are not exact; None where all are."""
    uncertain = held.filter(pc.invert(held[f"{name}_exact"]))
    half = pc.divide(pc.cast(pc.subtract(uncertain[f"{name}_high"], uncertain[f"{name}_low"]), pa.float64()), 2.0)
    return rounded(pc.quantile(half, 0.5)[0].as_py()) if pc.count(half).as_py() else None


def _rows_of(windows: pa.Table, key: dict[str, Any]) -> pa.Table:
    device = pc.is_null(windows["device"]) if key["device"] is None else pc.equal(windows["device"], key["device"])
    return windows.filter(pc.and_kleene(pc.equal(windows["stream"], key["stream"]), device))


def _bins(rows: int, points: int) -> NDArray[np.int64]:
    """The first row of each point."""
    return np.unique(np.linspace(0, rows, min(rows, points), endpoint=False).astype(np.int64))


def _thin(
    rows: pa.Table, name: str, bins: NDArray[np.int64], worst: np.ufunc, scale: float = 1.0
) -> list[float | None]:
    values = rows[name].cast(pa.float64()).to_numpy()
    return list(_plain(worst.reduceat(values, bins) * scale))


def _plain(values: Numbers) -> Iterator[float | None]:
    """JSON has no NaN; and whole numbers are shorter without a point."""
    for value in values.tolist():
        yield rounded(value)


def rounded(value: float | None) -> float | None:
    """Nine digits: finer than a screen, short enough for a page; a time in ms needs all of its thirteen."""
    if value is None or not np.isfinite(value):
        return None
    near = float(f"{value:.9g}") if abs(value) < 1e9 else round(value)
    return int(near) if near == int(near) else near


def _mean(values: Any) -> float | None:
    mean: float | None = pc.mean(values).as_py()
    return rounded(mean)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else rounded(value * scale)
