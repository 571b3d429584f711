"""The rows of a table's version: without Spark as an Arrow table, or as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.extras.asked import asked_of
from sluicegate_cloud.extras.windows import columns_of
from sluicegate_cloud.places.folder import Folder
from sluicegate_cloud.schema import ddl
from sluicegate_cloud.session import parallelism
from sluicegate_cloud.table.answering import REVISION
from sluicegate_cloud.table.grouping import groups
from sluicegate_cloud.table.streams import STREAMS
from sluicegate_cloud.table.versions import Definition, Store, Version
from sluicegate_cloud.windows import window_columns

#: What a table's windows have beside `windows.window_columns`: of a roll-up the tags that it is by, and their values.
#: A `revision` is the number of the version in which the row was answered last.
ROLLUP = "rollup"
#: The SQL types of the columns of STREAMS.
SQL = {
    pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double", pa.list_(pa.string()): "array<string>",
    pa.map_(pa.string(), pa.string()): "map<string, string>",
}  # fmt: skip


def schema_of(definition: Definition) -> dict[str, str]:
    """Columns and SQL types of a table's windows."""
    return {
        **window_columns(definition.aggregates),
        **columns_of(asked_of(definition.carried)),
        REVISION: "bigint",
        ROLLUP: "string",
        **dict.fromkeys(groups.columns_of(definition.by), "string"),
    }


def window_files(store: Store, version: Version) -> Iterator[str]:
    """The files with rows of windows, of devices and of all."""
    for name in version.shards.values():
        yield from (file for files in store.read_json(name)["windows"].values() for file in files)
    yield from version.fleet.values()
    yield from [version.spans] if version.spans else []


def changed_files(store: Store, before: Version | None, now: Version) -> tuple[list[str], list[str]]:
    """(those that only `now` names, those that only `before` names): files never change, so these hold what did."""
    old = {*window_files(store, before)} if before else set()
    new = {*window_files(store, now)}
    return sorted(new - old), sorted(old - new)


def rows_of(store: Store, version: Version) -> pa.Table:
    """All windows. Those of devices have no `rollup`; of all devices it is empty."""
    tables = [as_asked(store.read(file), version.definition) for file in window_files(store, version)]
    if not tables:
        raise SinkError(f"the table {store.root} holds no windows yet")
    return pa.concat_tables(tables)


def rollup_files(version: Version, level_us: int | None = None) -> Iterator[tuple[int, str]]:
    """(length of a window in µs, file) of what `cloud retain` kept, of one length or of all."""
    for of in version.rollups:
        if level_us is None or of["level_us"] == level_us:
            yield from ((of["level_us"], name) for name in of["files"])


def rollup(store: Store, version: Version, level_us: int) -> pa.Table | None:
    """The windows of a length that `cloud retain` kept, as `rows_of` has them; None where there are none."""
    tables = [store.read(name) for _, name in rollup_files(version, level_us)]
    return pa.concat_tables(tables) if tables else None


def as_asked(table: pa.Table, definition: Definition) -> pa.Table:
    """The rows of a file with all columns of `schema_of`: those of roll-ups are null in a device's."""
    return _with(table, schema_of(definition))


def _with(table: pa.Table, columns: dict[str, str]) -> pa.Table:
    there, rows = {*table.column_names}, table.num_rows
    kinds = {sql: kind for kind, sql in SQL.items()}
    return pa.table({name: table[name] if name in there else pa.nulls(rows, kinds[of]) for name, of in columns.items()})


def windows(spark: SparkSession, store: Store, version: Version) -> DataFrame:
    """The same as a DataFrame; the files are read when it is."""
    return of_files(spark, store, [*window_files(store, version)], schema_of(version.definition))


def streams(spark: SparkSession, store: Store, version: Version) -> DataFrame:
    """A row for each stream of a device (`streams.STREAMS`)."""
    files = [store.read_json(name)["streams"] for name in version.shards.values()]
    return of_files(spark, store, [file for file in files if file], {of.name: SQL[of.type] for of in STREAMS})


def of_files(spark: SparkSession, store: Store, names: Sequence[str], columns: dict[str, str]) -> DataFrame:
    """The rows of some files; what one of them lacks is null. Objects are read by the tasks, without a connector."""
    if not names:
        return spark.createDataFrame([], ddl(columns))
    if isinstance(store.place, Folder):
        return spark.read.schema(ddl(columns)).parquet(*(store.place.uri(name) for name in names))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch["name"].to_pylist():
                yield from _with(store.read(name), columns).to_batches()

    named = spark.createDataFrame(pa.table({"name": pa.array(names)}))
    return named.repartition(min(len(names), 4 * parallelism(spark))).mapInArrow(read, ddl(columns))
