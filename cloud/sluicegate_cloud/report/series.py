"""The windows of each stream and device thinned to a bounded number of points, so that no band is lost.

A point stands for one window or several neighbours: the least `low`, the greatest `high`, the least and greatest value,
the worst completeness and the coarsest resolution among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from sluicegate_cloud.names import AGGREGATES, ALL, SILENT

#: Points and series that a page holds at most: about 4 MB of numbers in all.
MAX_POINTS, MAX_SERIES, BUDGET = 400, 240, 24_000
LEAST_POINTS = 60
#: Numbers of a series that are held of which quantiles are taken: of more about every so manieth.
HELD = 8_192
Numbers = NDArray[np.float64]
#: A stream, and whose: None, all devices'.
Key = tuple[str, str | None]


def all_series(windows: ds.Dataset | pa.Table, wanted: pc.Expression | None = None) -> tuple[list[dict[str, Any]], int]:
    """Series for the page, the fleet's first, then devices by name; and how many there are in all.

    `wanted`: of which rows. They are read twice, a batch at a time: where points begin, and what they are.
    """
    given = ds.dataset(windows) if isinstance(windows, pa.Table) else windows
    starts: dict[Key, Sample] = {}
    for key, rows in _by_series(given, ["stream", "device", "window_start"], wanted):
        starts.setdefault(key, Sample()).take(_numbers(rows["window_start"]))
    shown = sorted(starts, key=lambda key: (key[1] is not None, key[1] or "", key[0]))[:MAX_SERIES]
    names = answered(given.schema)
    budget = BUDGET * len(AGGREGATES) // max(len(names), len(AGGREGATES))
    points = max(LEAST_POINTS, min(MAX_POINTS, budget // max(len(shown), 1)))
    series = {key: Series(starts[key], points, names) for key in shown}
    told = [SILENT] if SILENT in given.schema.names else []
    needed = ["stream", "device", "window_start", "window_end", "windows", "count_high", "completeness"]
    needed += [*told, "resolution_us", *(f"{name}{end}" for name in names for end in ("", "_low", "_high", "_exact"))]
    for key, rows in _by_series(given, [*dict.fromkeys(needed)], wanted):
        if key in series:
            series[key].take(rows)
    return [{"stream": stream, "device": device} | series[stream, device].told() for stream, device in shown], len(
        starts
    )


def _by_series(
    windows: ds.Dataset, columns: list[str], wanted: pc.Expression | None
) -> Iterator[tuple[Key, pa.RecordBatch]]:
    """The rows of one series after the other, as they come."""
    for batch in windows.to_batches(columns=columns, filter=wanted):
        if not batch.num_rows:
            continue
        streams, devices = (batch[name].dictionary_encode() for name in ("stream", "device"))
        others = len(devices.dictionary)
        code = streams.indices.to_numpy() * (others + 1) + devices.indices.fill_null(others).to_numpy()
        for one in np.unique(code).tolist():
            mine = code == one
            device = None if one % (others + 1) == others else devices.dictionary[one % (others + 1)].as_py()
            rows = batch if mine.all() else batch.filter(pa.array(mine))
            yield (streams.dictionary[one // (others + 1)].as_py(), device), rows


def answered(schema: pa.Schema) -> list[str]:
    """The aggregates that windows of this schema have."""
    return [name for name in ALL if f"{name}_exact" in schema.names]


class Sample:
    """Numbers that come some at a time: all of them, or about every so manieth, some HELD at most."""

    def __init__(self) -> None:
        self.seen, self._step, self._held = 0, 1, np.zeros(0)

    def take(self, values: Numbers) -> None:
        """The next."""
        self._held = np.concatenate((self._held, values[-self.seen % self._step :: self._step]))
        self.seen += values.size
        while self._held.size > HELD:
            self._held, self._step = self._held[::2], 2 * self._step

    def ascending(self) -> Numbers:
        """Those that are held."""
        return np.sort(self._held)


class Series:
    """One stream of one device, or of all: its points, and what a table says of it."""

    def __init__(self, starts: Sample, points: int, names: Sequence[str]) -> None:
        """`starts`: of its windows, where at most so many `points` begin; `names` of the aggregates."""
        self._names, self._is_thinned = names, starts.seen > points
        held = starts.ascending()
        self._begins = np.unique(held[_bins(held.size, points)])
        self._begins[0] = -np.inf
        self._points: dict[str, Numbers] = {}
        self._windows, self._exact, self._silent = 0, dict.fromkeys(names, 0), 0
        self._half = {name: Sample() for name in names}
        self._means = {"completeness": (0.0, 0), "resolution_us": (0.0, 0)}

    def take(self, rows: pa.RecordBatch) -> None:
        """Rows of it, in any order."""
        at = np.searchsorted(self._begins, _numbers(rows["window_start"]), side="right") - 1
        self._fold("t", at, rows["window_start"], np.fmin)
        self._fold("end", at, rows["window_end"], np.fmax)
        for name in self._names:
            for of, end, worst in (("from", "", np.fmin), ("to", "", np.fmax), ("low", "_low", np.fmin),
                                   ("high", "_high", np.fmax)):  # fmt: skip
                self._fold(f"{name}:{of}", at, rows[f"{name}{end}"], worst)
        self._fold("completeness", at, rows["completeness"], np.fmin)
        self._fold("resolution", at, rows["resolution_us"], np.fmax)
        self._tell(rows)

    def _fold(self, name: str, at: NDArray[np.int64], column: Any, worst: np.ufunc) -> None:
        points = self._points.setdefault(name, np.full(self._begins.size, np.nan))
        worst.at(points, at, _numbers(column))

    def _tell(self, rows: pa.RecordBatch) -> None:
        held = _numbers(rows["count_high"]) > 0
        windows = np.where(held, _numbers(rows["windows"]), 0)
        self._windows += int(windows.sum())
        if SILENT in rows.schema.names:
            self._silent = max(self._silent, pc.max(rows[SILENT]).as_py() or 0)
        for name in self._names:
            exact = np.asarray(rows[f"{name}_exact"].fill_null(False).to_numpy(zero_copy_only=False), bool)
            self._exact[name] += int(windows[exact].sum())
            half = (_numbers(rows[f"{name}_high"]) - _numbers(rows[f"{name}_low"])) / 2
            self._half[name].take(half[held & ~exact & ~np.isnan(half)])
        for name, some in (("completeness", np.ones_like(held)), ("resolution_us", held)):
            values = _numbers(rows[name])
            values = values[some & ~np.isnan(values)]
            self._means[name] = self._means[name][0] + float(values.sum()), self._means[name][1] + values.size

    def told(self) -> dict[str, Any]:
        """As lists of numbers, times in ms; `facts`: windows with readings; the share of them that is exact and half a
        band, the median of those that are not, by aggregate; how many devices are silent in the last one.
        """
        some = np.isfinite(self._points["t"])
        lists = {name: [*_plain(of[some] * _SCALES.get(name, 1.0))] for name, of in self._points.items()}
        out: dict[str, Any] = {name: lists[name] for name in ("t", "end")}
        for name in self._names:
            out[name] = {of: lists[f"{name}:{of}"] for of in ("from", "to", "low", "high")}
        out |= {name: lists[name] for name in ("completeness", "resolution")}
        means = {name: total / count if count else None for name, (total, count) in self._means.items()}
        exact = {name: rounded(count / self._windows if self._windows else None) for name, count in self._exact.items()}
        half = {name: of.ascending() for name, of in self._half.items()}
        facts = {
            "windows": self._windows,
            "silent": self._silent,
            "exact": exact,
            "completeness": rounded(means["completeness"]),
        }
        facts |= {"half_width": {name: rounded(float(np.median(of))) if of.size else None for name, of in half.items()}}
        facts |= {"resolution": None if means["resolution_us"] is None else rounded(means["resolution_us"] * 1e-6)}
        return out | {"facts": facts, "thinned": self._is_thinned}


_SCALES = {"t": 1e-3, "end": 1e-3, "resolution": 1e-6}


def _bins(rows: int, points: int) -> NDArray[np.int64]:
    """The first row of each point."""
    return np.unique(np.linspace(0, rows, min(rows, points), endpoint=False).astype(np.int64))


def _numbers(column: pa.Array) -> Numbers:
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


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
