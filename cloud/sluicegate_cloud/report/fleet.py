"""What a page says of a whole fleet, read a batch at a time: memory grows with devices, never with their windows.

Each device's completeness over time, as its worst window in each of a few bins; how many devices are how complete in
each bin; the widest intervals; and which devices a page that cannot draw all of them should draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from sluicegate_cloud.report.series import MAX_SERIES, answered, rounded

#: Bins of time, devices that are drawn in them one by one, and widest intervals of each stream and aggregate.
BINS, ROWS, WIDEST = 48, 60, 5
#: The least completeness of each class, after "complete" and before "nothing heard".
CLASSES = (1.0, 0.99, 0.9, 0.0)
#: Streams whose widest intervals are named.
_STREAMS = 40


@dataclass(frozen=True)
class Range:
    """Bins of equal length from `first` on, in µs."""

    first: int
    step: int

    def of(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bin of each time."""
        return (times - self.first) // self.step


def summarised(windows: ds.Dataset, summary: dict[str, Any], named: Sequence[str] = ()) -> dict[str, Any]:
    """All that the page says of the fleet; `summary` as `cloud merge` wrote it, `named` devices that are to be drawn.

    `devices` and `series` are lists of columns, a device or a series at each place; a series' stream and device are
    numbers of `streams` and `devices`, −1 for all devices. `draw`: the devices of which the page draws the windows.
    """
    devices = sorted(summary["devices"], key=lambda one: str(one["device"]))
    found = _Found(len(devices), answered(windows.schema), _range(windows))
    found.read(windows, pa.array([one["device"] for one in devices], pa.string()))
    series = [(stream, int(at)) for stream in sorted(found.heard) for at in np.flatnonzero(found.heard[stream])]
    streams = sorted(found.heard)
    told = {
        "devices": _columns(devices, summary["streams"]),
        "streams": streams,
        "series": {"stream": [streams.index(stream) for stream, _ in series], "device": [at - 1 for _, at in series]},
        "widest": [one for best in found.widest.values() for one in best],
        "draw": _drawn(devices, [at - 1 for _, at in series], named),
    }
    share = np.array([_share(one) for one in devices])
    return told | (_heat(found.worst, share, found.when) if found.when else {"bins": None})


class _Found:
    """What a walk over all windows leaves of them.

    `worst`: each device's least completeness in each bin, ∞ where nothing is known of it; `heard`: by stream whether
    all devices together, and each device, have windows; `widest` intervals by stream and aggregate.
    """

    def __init__(self, devices: int, aggregates: list[str], when: Range | None) -> None:
        self.when, self._aggregates = when, aggregates
        self.worst = np.full((devices, BINS), np.inf)
        self.heard: dict[str, NDArray[np.bool_]] = {}
        self.widest: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def read(self, windows: ds.Dataset, names: pa.Array) -> None:
        """Take all windows; `names` of the devices, ascending."""
        bands = [f"{name}{end}" for name in self._aggregates for end in ("", "_low", "_high")]
        needed = ["stream", "device", "window_start", "windows", "completeness", *bands]
        for batch in windows.to_batches(columns=needed):
            if not batch.num_rows or self.when is None:
                continue
            rows = pa.Table.from_batches([batch])
            device = pc.fill_null(pc.index_in(rows["device"], value_set=names), -1).to_numpy()
            self._take(rows, device, self.when)
            _widest(rows, self._aggregates, self.widest)

    def _take(self, rows: pa.Table, device: NDArray[np.int32], when: Range) -> None:
        share = rows["completeness"].to_numpy()
        known = (device >= 0) & ~np.isnan(share)
        np.minimum.at(self.worst, (device[known], when.of(rows["window_start"].to_numpy()[known])), share[known])
        stream = rows["stream"].combine_chunks().dictionary_encode()
        for number, name in enumerate(stream.dictionary.to_pylist()):
            heard = self.heard.setdefault(name, np.zeros(len(self.worst) + 1, np.bool_))
            heard[device[stream.indices.to_numpy() == number] + 1] = True


def _range(windows: ds.Dataset) -> Range | None:
    ends = [
        (pc.min(batch["window_start"]).as_py(), pc.max(batch["window_start"]).as_py())
        for batch in windows.to_batches(columns=["window_start"])
        if batch.num_rows
    ]
    if not ends:
        return None
    first, last = min(low for low, _ in ends), max(high for _, high in ends)
    return Range(first, (last - first) // BINS + 1)


def _widest(rows: pa.Table, aggregates: list[str], widest: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    """The widest intervals of windows of devices, by stream and aggregate. A span stands for many: it is left out."""
    alone = rows.filter(pc.and_(pc.is_valid(rows["device"]), pc.equal(rows["windows"], 1)))
    for stream in pc.unique(alone["stream"]).to_pylist():
        if len({name for name, _ in widest} | {stream}) > _STREAMS:
            continue
        mine = alone.filter(pc.equal(alone["stream"], stream))
        for name in aggregates:
            width = pc.cast(pc.subtract(mine[f"{name}_high"], mine[f"{name}_low"]), pa.float64())
            values = np.nan_to_num(width.to_numpy(zero_copy_only=False), nan=0.0)
            some = np.argsort(-values, kind="stable")[:WIDEST]
            best = widest.setdefault((stream, name), [])
            best += [_one(mine, name, stream, int(at), float(values[at])) for at in some if values[at] > 0]
            best.sort(key=lambda one: -one["width"])
            del best[WIDEST:]


def _one(rows: pa.Table, name: str, stream: str, at: int, width: float) -> dict[str, Any]:
    told = {"stream": stream, "device": rows["device"][at].as_py(), "aggregate": name, "width": rounded(width)}
    told["start"] = rows["window_start"][at].as_py() // 1000
    ends = {"value": "", "low": "_low", "high": "_high"}
    return told | {called: rounded(_float(rows[f"{name}{end}"][at])) for called, end in ends.items()}


def _float(value: pa.Scalar) -> float | None:
    found = value.as_py()
    return None if found is None else float(found)


def _columns(devices: list[dict[str, Any]], streams: list[dict[str, Any]]) -> dict[str, list[Any]]:
    last: dict[str, int] = {}
    for one in streams:
        last[one["device"]] = max(last.get(one["device"], 0), one.get("last_us") or 0)
    columns = {name: [one[name] for one in devices] for name in ("device", "readings", "missing")}
    columns["completeness"] = [rounded(one["completeness"]) for one in devices]
    return columns | {"last": [last.get(one["device"], 0) // 1_000_000 for one in devices]}


def _drawn(devices: list[dict[str, Any]], series: list[int], named: Sequence[str]) -> list[str] | None:
    """Which devices the page draws: None, all; else those named and the least complete, as many as it holds.

    `series`: the device of each, −1 for all devices.
    """
    if len(series) <= MAX_SERIES:
        return None
    sizes = np.bincount(np.array(series) + 1, minlength=len(devices) + 1)
    of_device = {one["device"]: int(size) for one, size in zip(devices, sizes[1:], strict=True) if size}
    ordered = [*named, *(one["device"] for one in _least_complete(devices))]
    drawn = dict.fromkeys(name for name in ordered if name in of_device)
    return [*_that_fit(drawn, of_device, MAX_SERIES - int(sizes[0]))]


def _that_fit(names: dict[str, None], sizes: dict[str, int], room: int) -> Iterator[str]:
    for name in names:
        room -= sizes[name]
        if room < 0:
            return
        yield name


def _least_complete(devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(devices, key=_share)


def _share(device: dict[str, Any]) -> float:
    """Its completeness, −1 where nothing is known of it."""
    return -1.0 if device["completeness"] is None else float(device["completeness"])


def _heat(worst: NDArray[np.float64], share: NDArray[np.float64], when: Range) -> dict[str, Any]:
    """`bins`: from, step in ms; `classes`: devices of each class in each bin; `rows`: of some devices each bin's worst.

    Those are the least complete by `share`, of equal ones those with the worst bin. −1 is a bin in which nothing is
    known of a device.
    """
    known = np.isfinite(worst)
    at_least = [(known & (worst >= least)).sum(axis=0) for least in CLASSES]
    classes = np.diff(np.stack([np.zeros(BINS, np.int64), *at_least]), axis=0)
    order = np.lexsort((worst.min(axis=1), share))[:ROWS]
    shown = np.where(known, worst.round(4), -1.0)
    return {
        "bins": {"from": when.first // 1000, "step": when.step / 1000},
        "classes": [*classes.tolist(), (len(worst) - at_least[-1]).tolist()],
        "rows": [[int(at), shown[at].tolist()] for at in order],
    }
