"""How complete and how exact the streams of a table are: what is known of a stream's windows and documents in one row.

A shard is read file by file, so that memory grows with streams, never with their windows. Needs no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.extras.asked import asked_of
from sluicegate_cloud.table import read
from sluicegate_cloud.table.versions import Definition, Store, Version

#: Stands for all devices together.
ALL = ""
_INT, _FLOAT = pa.int64(), pa.float64()
_COUNTS = ("readings", "missing", "doubt", "left_out", "documents")
#: What a window adds, by column; then what of all windows the least and the greatest is.
_SUMS = ("windows", "held", "complete", "known", "share", "covered", "resolution")
_HELD = 1 << 16
Row = dict[str, Any]


def schema_of(definition: Definition) -> pa.Schema:
    """The columns of a stream's row.

    `device`: null for all devices together; `maybe_missing`: of its agent, all streams together; `windows`: how many
    hold a reading, may hold one, or lack one; of these the share that is `complete`, the least and the mean
    `completeness`; `resolution_us`: of a window's buckets, the mean and the greatest. Of each aggregate the share of
    windows with readings that is exact, and how wide its interval is relative to the greater end's magnitude (0 … 2),
    in the mean and at most. `lag_us`: from the last reading to when the version was made.
    """
    widths = (f"{name}{end}" for name in names_of(definition) for end in ("_exact", "_width", "_width_most"))
    return pa.schema(
        [
            ("device", pa.string()), ("stream", pa.string()),
            *((name, _INT) for name in (*_COUNTS, "maybe_missing")), ("completeness", _FLOAT), ("windows", _INT),
            *((name, _FLOAT) for name in ("complete", "completeness_least", "completeness_mean")),
            *((name, _FLOAT) for name in ("resolution_us", "resolution_most_us", *widths)),
            *((name, _INT) for name in ("first_us", "last_us", "lag_us")), ("tags", pa.map_(pa.string(), pa.string())),
        ]
    )  # fmt: skip


def names_of(definition: Definition) -> tuple[str, ...]:
    """What of its answers an interval of values is told of: not lists, and not times."""
    asked = (each for each in asked_of(definition.carried) if each.kind not in ("top_k", "argmin", "argmax"))
    return *definition.aggregates, *(name for each in asked for name in each.names)


def quality(store: Store, version: Version) -> Iterator[pa.Table]:
    """The rows of all devices together, a row a stream, then those of each device, some at a time."""
    for name in (ALL, *version.shards.values()):
        yield part(store, version, name)


def part(store: Store, version: Version, name: str) -> pa.Table:
    """The rows of ALL devices together, or of each device whose streams the shard of this index has."""
    return _of_all(store, version) if name == ALL else _of_shard(store, version, name)


def _of_shard(store: Store, version: Version, name: str) -> pa.Table:
    index = store.read_json(name)
    known = _streams(store, name)
    files = (file for files in index["windows"].values() for file in files)
    measured = _measured(store, version, files)
    rows = [_row(version, of, told, measured.get(of)) for of, told in sorted(known.items())]
    return pa.Table.from_pylist(rows, schema_of(version.definition))


def _of_all(store: Store, version: Version) -> pa.Table:
    known: dict[str, Row] = {}
    for name in version.shards.values():
        for (_, stream), told in _streams(store, name).items():
            known[stream] = _together(known[stream], told) if stream in known else told
    files = [*version.fleet.values(), *([version.spans] if version.spans else [])]
    measured = _measured(store, version, files)
    some = ((None, stream) for stream in sorted(known))
    rows = [_row(version, of, known[of[1]] | {"tags": None, "health": None}, measured.get(of)) for of in some]
    return pa.Table.from_pylist(rows, schema_of(version.definition))


def _streams(store: Store, name: str) -> dict[tuple[str, str], Row]:
    file = store.read_json(name)["streams"]
    return {(row["device"], row["stream"]): row for row in store.read(file).to_pylist()} if file else {}


def _together(a: Row, b: Row) -> Row:
    """Of two devices."""
    sums = {name: a[name] + b[name] for name in _COUNTS}
    ends = {"first_us": min, "last_us": max}
    times = {name: [of[name] for of in (a, b) if of[name] is not None] for name in ends}
    return sums | {name: pick(times[name], default=None) for name, pick in ends.items()}


def _row(version: Version, of: tuple[str | None, str], told: Row, found: Row | None) -> Row:
    certain = told["readings"] - told["doubt"]
    known = certain + told["missing"]
    share = certain / known if known else 1.0 if told["readings"] else None
    last = told["last_us"]
    head = {"device": of[0], "stream": of[1], **{name: told[name] for name in (*_COUNTS, "first_us", "last_us")}}
    head |= {"completeness": share, "lag_us": None if last is None else version.made_us - last, "tags": told["tags"]}
    return head | {"maybe_missing": _maybe_missing(told["health"])} | _shares(found, version.definition)


def _maybe_missing(health: str | None) -> int | None:
    """What its agent counted when it sealed the newest document; a device may put anything there."""
    counters = json.loads(health).get("counters") if health else None
    found = counters.get("maybe_missing", 0) if isinstance(counters, dict) else None
    return found if type(found) is int and abs(found) < 1 << 62 else None


def _shares(found: Row | None, definition: Definition) -> Row:
    if found is None:
        return {"windows": 0}
    out = {"windows": found["windows"], "complete": _of(found["complete"], found["windows"])}
    out |= {"completeness_least": found["share_least"], "completeness_mean": _of(found["share"], found["known"])}
    out |= {"resolution_us": _of(found["resolution"], found["covered"]), "resolution_most_us": found["resolution_most"]}
    for name in names_of(definition):
        out[f"{name}_exact"] = _of(found[f"{name}_exact"], found["held"])
        out[f"{name}_width"] = _of(found[f"{name}_width"], found[f"{name}_told"])
        out[f"{name}_width_most"] = found[f"{name}_width_most"]
    return out


def _of(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _measured(store: Store, version: Version, files: Iterable[str]) -> dict[tuple[str | None, str], Row]:
    """What the windows of some files come to, by device and stream."""
    aggregates = names_of(version.definition)
    held: list[pa.Table] = []
    for file in files:
        held.append(_added([_of_windows(_alone(store, file, aggregates), aggregates)], aggregates))
        if sum(table.num_rows for table in held) > _HELD:
            held = [_added(held, aggregates)]
    rows = _added(held, aggregates).to_pylist() if held else []
    return {(row["device"], row["stream"]): row for row in rows}


def _alone(store: Store, file: str, aggregates: Sequence[str]) -> pa.Table:
    """The rows of windows of devices, and of all devices: of no roll-up by tags."""
    ends = [f"{name}{end}" for name in aggregates for end in ("_low", "_high", "_exact")]
    columns = dict.fromkeys(("device", "stream", "windows", "completeness", "resolution_us", "count_high", *ends))
    if file.startswith("windows/"):
        return store.read(file, [*columns])
    table = store.read(file, [*columns, read.ROLLUP])
    return table.filter(pc.equal(table[read.ROLLUP], ""))


def _of_windows(rows: pa.Table, aggregates: Sequence[str]) -> pa.Table:
    """What each row adds; a row of a span counts as often as there are windows for which it stands."""
    weight = rows["windows"].to_numpy()
    share, resolution = (_floats(rows[name]) for name in ("completeness", "resolution_us"))
    known, covered = ~np.isnan(share), ~np.isnan(resolution)
    held = rows["count_high"].to_numpy() > 0
    told = {
        "windows": weight * (held | known), "held": weight * held, "known": weight * known,
        "complete": weight * (share >= 1.0), "share": weight * np.where(known, share, 0.0),
        "covered": weight * covered, "resolution": weight * np.where(covered, resolution, 0.0),
        "share_least": pa.array(share, from_pandas=True), "resolution_most": pa.array(resolution, from_pandas=True),
    }  # fmt: skip
    for name in aggregates:
        width = _width(_floats(rows[f"{name}_low"]), _floats(rows[f"{name}_high"]))
        some = held & ~np.isnan(width)
        told[f"{name}_exact"] = weight * (held & rows[f"{name}_exact"].fill_null(False).to_numpy())
        told[f"{name}_told"], told[f"{name}_width"] = weight * some, weight * np.where(some, width, 0.0)
        told[f"{name}_width_most"] = pa.array(np.where(some, width, np.nan), from_pandas=True)
    return pa.table({"device": rows["device"], "stream": rows["stream"], **told})


def _width(low: Any, high: Any) -> Any:
    """(high − low) / max(|low|, |high|): 0 … 2, 2 where an end is not finite, NaN where there is no interval."""
    greatest = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(all="ignore"):
        width = np.where(greatest > 0, high / greatest - low / greatest, 0.0)
    return np.where(np.isnan(low) | np.isnan(high), np.nan, np.where(np.isinf(greatest), 2.0, width))


def _added(tables: Iterable[pa.Table], aggregates: Sequence[str]) -> pa.Table:
    how = dict.fromkeys(_SUMS, "sum") | {"share_least": "min", "resolution_most": "max"}
    for name in aggregates:
        how |= dict.fromkeys((f"{name}_exact", f"{name}_told", f"{name}_width"), "sum") | {f"{name}_width_most": "max"}
    found = pa.concat_tables(tables).group_by(["device", "stream"], use_threads=False).aggregate([*how.items()])
    return pa.table({name: found[name] for name in ("device", "stream")} | {
        name: found[f"{name}_{of}"] for name, of in how.items()
    })  # fmt: skip


def _floats(column: pa.ChunkedArray) -> Any:
    return column.cast(_FLOAT).to_numpy(zero_copy_only=False)
