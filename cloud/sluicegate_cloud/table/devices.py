"""How the devices of a table are: a row each, and what somebody must look into. Needs no Spark: the rows are few.

A device's health is what its newest document carries of it: how its agent was when it sealed that. Without Spark a
million devices take some seconds; with it, `read.streams` has the same by stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud import alarms
from sluicegate_cloud.schema import PROBLEMS
from sluicegate_cloud.table.settled.refused import documents_of
from sluicegate_cloud.table.streams import newer
from sluicegate_cloud.table.told import ledgers, set_aside, tally
from sluicegate_cloud.table.versions import DAY_US, Store, Version

REJECTED, SILENT, AHEAD = "rejected", "silent", "ahead"
#: Documents that are not used of which alerts tell; all are counted.
MOST = 100
_SUMS = ("readings", "buckets", "missing", "doubt", "documents", "left_out")
#: What a device tells of its agent that is a whole number.
_NUMBERS = ("uptime_s", "rss_bytes", "peak_rss_bytes", "outbox_rows", "outbox_bytes")
#: The columns of `devices` and `alerts` as tables; `counters` is JSON.
DEVICES = pa.schema(
    [
        ("device", pa.string()), ("completeness", pa.float64()),
        *((name, pa.int64()) for name in ("streams", *_SUMS, "first_us", "last_us", "boards")),
        ("tags", pa.map_(pa.string(), pa.string())), ("agent_version", pa.string()),
        *((name, pa.int64()) for name in _NUMBERS), ("counters", pa.string()), ("health_us", pa.int64()),
    ]
)  # fmt: skip
ALERTS = pa.schema([(name, pa.string()) for name in ("kind", "device", "stream", "text")])
Row = dict[str, Any]


def devices_table(store: Store, version: Version) -> pa.Table:
    """`devices` as rows of DEVICES; what a device tells in another type is null."""
    return pa.Table.from_pylist([_typed(row) for row in devices(store, version)], DEVICES)


def alerts_table(store: Store, version: Version) -> pa.Table:
    """`alerts` as rows of ALERTS, but for silent devices."""
    return pa.Table.from_pylist([*alerts(store, version, 0)], ALERTS)


def _typed(row: Row) -> Row:
    known = {name: row[name] for name in _NUMBERS if isinstance(row[name], int | float) and abs(row[name]) < 1 << 62}
    out = row | dict.fromkeys(_NUMBERS) | {name: int(value) for name, value in known.items()}
    out["agent_version"] = row["agent_version"] if isinstance(row["agent_version"], str) else None
    out["counters"] = None if row["counters"] is None else json.dumps(row["counters"])
    return out | {"tags": [*row["tags"].items()]}


def devices(store: Store, version: Version) -> list[Row]:
    """A row a device, the longest silent first.

    `last_us`: of its last reading, null where none is used; `readings`, `missing`, `doubt`, `completeness`,
    `documents`, `left_out` of all its streams; `boards`: how many keys its documents have; `tags`; and of its agent's
    newest health `agent_version`, `uptime_s`, `rss_bytes`, `peak_rss_bytes`, `outbox_rows`, `outbox_bytes`, `counters`,
    `health_us`, null where no document told.
    """
    found: dict[str, list[Row]] = {}
    for name in version.shards.values():
        if file := store.read_json(name)["streams"]:
            for row in store.read(file).to_pylist():
                found.setdefault(row["device"], []).append(row)
    return sorted(
        (_device(name, rows) for name, rows in found.items()),
        key=lambda row: (row["last_us"] is not None, row["last_us"], row["device"]),
    )


def _device(name: str, rows: list[Row]) -> Row:
    sums = {of: sum(row[of] for row in rows) for of in _SUMS}
    certain = sums["readings"] - sums["doubt"]
    known = certain + sums["missing"]
    share = certain / known if known else 1.0 if sums["readings"] else None
    told = {"completeness": share, "streams": len(rows), **sums}
    told |= {"boards": len({key for row in rows for key in row["keys"]})}
    used = [row for row in rows if row["last_us"] is not None]
    told |= {"first_us": min((row["first_us"] for row in used), default=None)}
    newest = max(used, key=lambda row: (row["last_us"], row["stream"]), default={"last_us": None, "tags": None})
    told |= {"last_us": newest["last_us"], "tags": dict(newest["tags"] or [])}
    return {"device": name, **told, **_health(rows)}


def _health(rows: list[Row]) -> Row:
    """Of the newest that is JSON of an object; a device may put anything into it."""
    of = (*_NUMBERS, "counters")
    out: Row = dict.fromkeys(("agent_version", *of, "health_us"))
    some = [row for row in rows if row["health"]]
    if some:
        newest = max(some, key=newer)
        told = json.loads(newest["health"])
        out |= {name: told.get(name) for name in of}
        out |= {"agent_version": told.get("version"), "health_us": newest["health_us"]}
    return out


def alerts(store: Store, version: Version, now_us: int, silent_us: int | None = None) -> Iterator[Row]:
    """What somebody must look into: `kind`, `device`, `stream`, `text`.

    Kinds: those of `alarms` (a stream set aside, two boards under one name, two contents), REJECTED (a document that
    is not used, the first MOST), and, where `silent_us` is given, SILENT (no reading since so long before `now_us`) and
    AHEAD (a wrong clock).
    """
    for (device, stream), why in sorted(set_aside(store, version).items()):
        yield {"kind": alarms.SET_ASIDE, "device": device, "stream": stream, "text": why}
    rejected = named = 0
    for ledger in ledgers(store, version):
        yield from (_alarm(row) for row in alarms.alarms(tally(ledger)))
        for row, documents in _rejected(ledger):
            rejected += documents
            if named < MOST and documents == 1:
                named += 1
                yield row
    if rejected > named:
        text = f"{rejected - named:,} more documents are not used"
        yield {"kind": REJECTED, "device": None, "stream": None, "text": text}
    if silent_us is not None:
        yield from silent(devices(store, version), now_us, silent_us)


def silent(rows: Iterable[Row], now_us: int, silent_us: int) -> Iterator[Row]:
    """An alert for each device that has no reading of the last `silent_us` µs, or of which nobody can tell: its last
    reading is dated more than a day after `now_us`.
    """
    for row in rows:
        last, head = row["last_us"], {"device": row["device"], "stream": None}
        if last is None:
            yield {"kind": SILENT, **head, "text": "no reading that the table keeps"}
        elif last < now_us - silent_us:
            yield {"kind": SILENT, **head, "text": f"no reading for {(now_us - last) // 1_000_000:,} s"}
        elif last > now_us + DAY_US:
            text = f"its last reading is dated {(last - now_us) // DAY_US:,} days from now: its clock was wrong"
            yield {"kind": AHEAD, **head, "text": f"{text}, and silence cannot be told"}


def _alarm(row: Row) -> Row:
    return {name: row[name] for name in ("kind", "device", "stream", "text")}


def _rejected(ledger: pa.Table) -> Iterator[tuple[Row, int]]:
    """An alert each, and of how many documents it tells."""
    some = ledger.filter(pc.is_in(ledger["fate"], value_set=pa.array(PROBLEMS)))
    rows = some.select(["device", "stream", "path", "fate", "reason"]).to_pylist()
    for row, documents in zip(rows, documents_of(some).tolist(), strict=True):
        text = f"{row['path']} ({row['fate']}): {row['reason']}"
        yield {"kind": REJECTED, "device": row["device"], "stream": row["stream"], "text": text}, documents
