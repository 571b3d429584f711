"""Folders as `spark.read.format("sluicegate")`: of chunk documents, or a table, at one version for the whole read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from sluicegate_cloud.documents import DOCUMENTS, of_files
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.feed.gateway import is_gateway
from sluicegate_cloud.schema import BUCKETS, ddl
from sluicegate_cloud.table import devices, read
from sluicegate_cloud.table.streams import STREAMS
from sluicegate_cloud.table.summaries import late, quality
from sluicegate_cloud.table.versions import Store, Version

#: What a folder of documents gives, and a table: the first where no `rows` is asked.
OF_DOCUMENTS = ("buckets", "documents")
OF_TABLES = ("windows", "streams", "quality", "late", "rollups", "devices", "alerts")
_OPTIONS = ("path", "rows", "version")
#: Of a table what one task answers: the columns, and the rows.
_BY_ONE = {"devices": (devices.DEVICES, devices.devices_table), "alerts": (devices.ALERTS, devices.alerts_table)}
_PER_TASK = {
    **dict.fromkeys(("devices", "alerts", "quality", "late"), 1), **dict.fromkeys(("windows", "streams", "rollups"), 8),
    **dict.fromkeys(OF_DOCUMENTS, 256),
}  # fmt: skip


@dataclass(frozen=True)
class Files(InputPartition):
    """What one task reads: paths of documents, or names of a table's files."""

    names: tuple[str, ...]


class FolderReader(DataSourceReader):
    """Reads a folder's `rows`. Raises SourceError, TableError for an option or a folder that will not do."""

    def __init__(self, given: Mapping[str, str]) -> None:
        options = {name.lower(): value for name, value in dict(given).items()}
        if unknown := sorted(set(options) - {*_OPTIONS}):
            raise SourceError(f"format sluicegate of a folder has no option {unknown[0]!r}, only {', '.join(_OPTIONS)}")
        self.path = options.get("path", "")
        self._store, self._version = _table(self.path, options.get("version"))
        kinds = OF_TABLES if self._version else OF_DOCUMENTS
        self.kind = options.get("rows", kinds[0])
        if self.kind not in kinds:
            raise SourceError(f"option rows={self.kind!r}: {self.path} has {', '.join(kinds)}")

    @property
    def schema(self) -> str:
        """Columns and their SQL types."""
        if self._version and self.kind == "windows":
            return ddl(read.schema_of(self._version.definition))
        if self._version and self.kind == "rollups":
            return ddl({**read.schema_of(self._version.definition), "level_us": "bigint"})
        if self._version:
            known = {"quality": quality.schema_of(self._version.definition), "late": late.LATE_ROWS}
            columns = _BY_ONE[self.kind][0] if self.kind in _BY_ONE else known.get(self.kind, STREAMS)
            return ddl({of.name: read.SQL[of.type] for of in columns})
        return {"buckets": BUCKETS, "documents": DOCUMENTS}[self.kind]

    def partitions(self) -> list[InputPartition]:
        """Some files each."""
        names, size = self._names(), _PER_TASK[self.kind]
        return [Files(tuple(names[at : at + size])) for at in range(0, len(names), size)] or [Files(())]

    def _names(self) -> list[str]:
        if self.kind in _BY_ONE:
            return [self.kind]
        if self._version and self.kind == "quality":
            return [quality.ALL, *self._version.shards.values()]
        if self._version and self.kind == "late":
            return [*self._version.shards.values()]
        if self._version and self.kind == "windows":
            return [*read.window_files(self._store, self._version)]
        if self._version and self.kind == "rollups":
            return [f"{level} {name}" for level, name in read.rollup_files(self._version)]
        if self._version:
            found = (self._store.read_json(name)["streams"] for name in self._version.shards.values())
            return [name for name in found if name]
        from sluicegate_cloud.sources import list_sources

        return list_sources(self.path).files

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches."""
        if not isinstance(partition, Files):
            raise TypeError(f"a partition of another source: {partition!r}")
        if self._version is None:
            yield from of_files(partition.names, self.kind)
            return
        if self.kind in _BY_ONE:
            yield from _BY_ONE[self.kind][1](self._store, self._version).to_batches()
            return
        if self.kind == "quality":
            yield from (batch for name in partition.names
                        for batch in quality.part(self._store, self._version, name).to_batches())  # fmt: skip
            return
        if self.kind == "late":
            yield from (batch for name in partition.names for batch in late.part(self._store, name).to_batches())
            return
        for named in partition.names:
            level, _, name = named.rpartition(" ")
            table = self._store.read(name)
            rows = table.cast(STREAMS) if self.kind == "streams" else read.as_asked(table, self._version.definition)
            if level:
                rows = rows.append_column("level_us", pa.array([int(level)] * rows.num_rows, pa.int64()))
            yield from rows.to_batches()


def _table(path: str, number: str | None) -> tuple[Store, Version | None]:
    """The table that a folder is, if it is one. Raises SourceError where a version is asked that there is not."""
    if not path:
        raise SourceError("format sluicegate needs a path: a folder of documents, a table, or a gateway's URL")
    if number is not None and not number.isdigit():
        raise SourceError(f"option version={number!r}: expected the number of one")
    store = Store(path)
    found = store.load(int(number)) if number and store.numbers() else store.load()
    if number is not None and found is None:
        raise SourceError(f"{path} is no table, so it has no version {number}")
    return store, found


def is_folder(given: Mapping[str, str]) -> bool:
    """Whether these options name a folder, and no gateway."""
    options = {name.lower(): value for name, value in dict(given).items()}
    path = options.get("path", "")
    return path != "" and "url" not in options and not is_gateway(path)


def require_no_table(given: Mapping[str, str]) -> None:
    """Raises SourceError where the folder is a table: none of its files is a document, so a stream would have none."""
    path = next(value for name, value in dict(given).items() if name.lower() == "path")
    if Store(path).numbers():
        raise SourceError(f"{path} is a table, and only what comes into a folder of documents is streamed: read it")
