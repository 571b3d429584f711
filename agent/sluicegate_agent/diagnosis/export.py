"""The buckets that wait in a state, or their single readings, as rows: read beside a running agent, nothing changes."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Bucket
from sluicegate_agent.backlog.rows import sound, unpacked
from sluicegate_agent.carried import unpack_readings
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.state.status import looked_into
from sluicegate_agent.streams import Stream

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

BUCKETS = ("device", "stream", "first", "count", "t_first_us", "t_last_us", "sum", "mean", "min", "max", "missing")
READINGS = ("device", "stream", "ordinal", "time_us", "value")
Row = tuple[Any, ...]
#: Rows of one group of a Parquet file.
_GROUP = 65_536


class Rows:
    """Names of columns and an iterator over rows; of one snapshot of the store."""

    def __init__(self, columns: tuple[str, ...], rows: Iterator[Row]) -> None:
        self.columns, self.rows = columns, rows


def rows_of(config: Config, stream: str | None = None, *, readings: bool = False) -> Rows:
    """What waits: documents that are sealed, then rows of the outbox, the oldest of each stream first.

    Raises EnvironmentRefused while it is read where the state cannot be, or has none.
    """
    device = config.device.id
    found = _waiting(config, stream)
    if readings:
        return Rows(READINGS, _readings(device, found))
    return Rows(BUCKETS, (_bucket(device, name, bucket, center) for name, bucket, center, _ in found))


Waiting = tuple[str, Bucket, float, Any]


def _waiting(config: Config, wanted: str | None) -> Iterator[Waiting]:
    with looked_into(config.state.path) as connection:
        if connection is None:
            raise EnvironmentRefused(f"{config.state.path}: no agent has run here yet; check [state] path")
        query = "SELECT document FROM chunk ORDER BY number"
        for (document,) in connection.execute(query):
            chunk = chunks.decode(document)
            if wanted in (None, chunk.stream):
                for bucket, singles in zip(chunk.buckets, chunk.readings, strict=True):
                    yield chunk.stream, bucket, chunk.center, singles
        yield from _of_outbox(connection, wanted)


def _of_outbox(connection: sqlite3.Connection, wanted: str | None) -> Iterator[Waiting]:
    for number, name, row in connection.execute("SELECT id, name, row FROM stream ORDER BY id").fetchall():
        stream = Stream(number, name, 1, 1)
        stream.restore(row)
        if stream.builder is None or wanted not in (None, name):
            continue
        query = "SELECT first, bucket, readings, crc FROM outbox WHERE stream = ? ORDER BY first"
        for first, packed, singles, crc in connection.execute(query, (number,)):
            bucket, kept = sound(number, first, packed, singles, crc)
            yield name, unpacked(bucket), stream.builder.center, unpack_readings(kept) if kept else None


def _bucket(device: str, name: str, bucket: Bucket, center: float) -> Row:
    """`total` is kept from the stream's center, so that large offsets cost no digits."""
    total = bucket.total + bucket.n * center
    times = bucket.t_first, bucket.t_last
    extremes = bucket.low, bucket.high
    return device, name, bucket.first, bucket.n, *times, total, total / bucket.n, *extremes, bucket.gap


def _readings(device: str, found: Iterator[Waiting]) -> Iterator[Row]:
    for name, bucket, _, singles in found:
        times, values = singles or ((), ())
        for offset, (time, value) in enumerate(zip(times, values, strict=True)):
            yield device, name, bucket.first + offset, time, value


def write(rows: Rows, form: str, out: IO[str]) -> int:
    """Write "csv" or "jsonl"; how many rows."""
    count = 0
    table = csv.writer(out, lineterminator="\n")
    if form == "csv":
        table.writerow(rows.columns)
    for count, row in enumerate(rows.rows, 1):  # noqa: B007  the count is what is returned
        if form == "csv":
            table.writerow(row)
        else:
            out.write(json.dumps(dict(zip(rows.columns, row, strict=True))) + "\n")
    return count


def write_parquet(rows: Rows, path: Path) -> int:
    """Write a Parquet file, group by group; how many rows. Raises ModuleNotFoundError without the extra `cloud`."""
    from itertools import islice

    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"device": pa.string(), "stream": pa.string(), "value": pa.float64()}
    kinds |= dict.fromkeys(("sum", "mean", "min", "max"), pa.float64())
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in rows.columns])
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        while group := [*islice(rows.rows, _GROUP)]:
            columns = [
                pa.array(column, kind) for column, kind in zip(zip(*group, strict=True), schema.types, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            count += len(group)
    return count
