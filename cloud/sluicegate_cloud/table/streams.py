"""A row for each stream of a device: how much of it came, when, from which boards, its tags and its agent's health."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.table.grouping.registry import Registry
from sluicegate_cloud.table.units import Ledger
from sluicegate_cloud.table.versions import Store

#: `missing`: readings known to exist that did not come; `doubt`: of `readings`, those that may be repeats; times in µs;
#: `health`: the newest that a document carried, JSON, and `health_us`: the time of that document's last reading. Of a
#: stream none of whose documents is used, since they came too late, health is all that is known.
STREAMS = pa.schema(
    [
        ("device", pa.string()), ("stream", pa.string()),
        *((name, pa.int64()) for name in ("documents", "readings", "buckets", "missing", "doubt", "left_out")),
        ("completeness", pa.float64()), ("first_us", pa.int64()), ("last_us", pa.int64()),
        ("incarnations", pa.list_(pa.string())), ("keys", pa.list_(pa.string())),
        ("tags", pa.map_(pa.string(), pa.string())), ("health", pa.string()), ("health_us", pa.int64()),
    ]
)  # fmt: skip
Tags = dict[tuple[str, str], dict[str, str]]


def streams_of(
    store: Store, before: str | None, ledger: Ledger, new: pa.Table | None, registry: Registry
) -> tuple[str | None, Tags]:
    """Write the rows of all streams of the ledger, and what tags each has. `before`: the file of the version before."""
    health = _health(store, before, new)
    used = {of: rows for of, rows in ledger.streams.items() if ledger.used[rows].any()}
    rows = [
        (_row(ledger, *of, used[of]) if of in used else _unused(*of)) | health.get(of, {})
        for of in sorted({*used, *health})
    ]
    for row in rows:
        if row["device"] in registry:
            row["tags"] = sorted((dict(row["tags"] or []) | registry[row["device"]]).items())
    tags = {(row["device"], row["stream"]): dict(row["tags"] or []) for row in rows}
    return (store.write("streams", pa.Table.from_pylist(rows, STREAMS)) if rows else None), tags


def _row(ledger: Ledger, device: str, stream: str, positions: Any) -> dict[str, Any]:
    used = positions[ledger.used[positions]]
    sums = {name: int(ledger.of[name][used].sum()) for name in ("readings", "buckets", "doubt", "gap")}
    missing = max(sums.pop("gap") + int(ledger.hole[positions].sum()), 0)
    certain = sums["readings"] - sums["doubt"]
    known = certain + missing
    share = certain / known if known else 1.0 if sums["readings"] else None
    some = ledger.table.select(["incarnation", "key"]).take(pa.array(used))
    tags = ledger.table["tags"][ledger.newest((device, stream))]
    return {
        "device": device, "stream": stream, "documents": int(ledger.documents[used].sum()), "missing": missing,
        "completeness": share, "left_out": int(positions.size - used.size),
        "first_us": int(ledger.of["t_first"][used].min()),
        "last_us": int(ledger.of["t_last"][used].max()), "tags": tags.as_py(),
        "incarnations": sorted(some["incarnation"].unique().to_pylist()),
        "keys": sorted(key for key in some["key"].unique().to_pylist() if key), **sums,
    }  # fmt: skip


def _unused(device: str, stream: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("documents", "readings", "buckets", "missing", "doubt", "left_out"), 0)
    return {"device": device, "stream": stream, "tags": None, "incarnations": [], "keys": [], **nothing}


def _health(store: Store, before: str | None, new: pa.Table | None) -> dict[tuple[str, str], dict[str, Any]]:
    """The newest of each stream, of what was known and what comes."""
    out: dict[tuple[str, str], dict[str, Any]] = {}
    told = store.read(before, ["device", "stream", "health", "health_us"]).to_pylist() if before else []
    if new is not None:
        some = new.filter(pc.is_valid(new["health"])).select(["device", "stream", "health", "t_last"])
        told += some.rename_columns(["device", "stream", "health", "health_us"]).to_pylist()
    for row in told:
        of = row["device"], row["stream"]
        if row["health"] and (of not in out or newer(row) > newer(out[of])):
            out[of] = {"health": row["health"], "health_us": row["health_us"]}
    return out


def newer(row: dict[str, Any]) -> tuple[int, str]:
    """What the newest health has most of: of one time the same whatever came first."""
    return row["health_us"], row["health"]
