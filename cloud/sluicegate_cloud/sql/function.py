"""`sluicegate_windows(source, …)` in SQL: the windows of a table, or of a folder's documents, merged in one task.

What a query answers is what `cloud merge --table` would: the same functions, in a folder that goes with the task. For
what is too much for one task there are tables.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from sluicegate_cloud.documents import ARROW, decode_files
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.names import ALL
from sluicegate_cloud.table import read
from sluicegate_cloud.table.versions import Definition, Store, Version

NAME = "sluicegate_windows"
#: Bytes of documents that one task merges; what is more belongs into a table.
MOST_BYTES = 256 << 20
_DEFAULTS = {"window": "24h", "slide": "1h", "aggregates": "sum,mean,min,max"}
_TYPES: dict[str, DataType] = {
    "string": StringType(), "bigint": LongType(), "double": DoubleType(), "boolean": BooleanType(),
    "array<double>": ArrayType(DoubleType()),
}  # fmt: skip


class Windows:
    """The function. `source`: a table's folder, or documents as `cloud merge` takes them; `window`, `slide` and
    `aggregates` as its options, for documents alone: a table answers what it was made for.
    """

    @staticmethod
    def analyze(
        source: AnalyzeArgument, window: AnalyzeArgument | None = None, slide: AnalyzeArgument | None = None,
        aggregates: AnalyzeArgument | None = None,
    ) -> AnalyzeResult:  # fmt: skip
        """The columns. Raises SourceError, TableError, ConfigurationError for what cannot be."""
        given = {"source": source, "window": window, "slide": slide, "aggregates": aggregates}
        told = {name: _constant(name, of) for name, of in given.items() if of is not None}
        definition = _asked(told.pop("source"), told)[2]
        columns = read.schema_of(definition).items()
        return AnalyzeResult(StructType([StructField(name, _TYPES[kind]) for name, kind in columns]))

    def eval(
        self, source: str, window: str | None = None, slide: str | None = None, aggregates: str | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """The rows."""
        given = {"window": window, "slide": slide, "aggregates": aggregates}
        store, version, definition = _asked(source, {name: of for name, of in given.items() if of is not None})
        for table in _of_table(store, version) if version else _of_documents(source, definition):
            for batch in table.to_batches():
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _constant(name: str, of: AnalyzeArgument) -> str:
    if of.isTable or not isinstance(of.value, str):
        raise SourceError(f"{NAME}: {name} is to be a text, such as {_DEFAULTS.get(name, 'the path of a folder')!r}")
    return of.value


def _asked(source: str, asked: dict[str, str]) -> tuple[Store, Version | None, Definition]:
    """The table, its version if there is one, and what is answered."""
    from sluicegate import policies
    from sluicegate_cloud.extras.asked import sorted_out, split, tabled
    from sluicegate_cloud.table.job import definition_of

    store = Store(source)
    version = store.load()
    if version and asked:
        raise SourceError(f"{source} is a table, which answers what it was made for: leave out {', '.join(asked)}")
    if version:
        return store, version, version.definition
    told = _DEFAULTS | asked
    window, slide = (policies.time(told[name]).span for name in ("window", "slide"))
    if window % slide:
        raise SourceError(f"{NAME}: window => {told['window']!r} is no whole number of slide => {told['slide']!r}")
    plain, carried = (ALL, ()) if told["aggregates"] == "all" else sorted_out(split(told["aggregates"]))
    more = tabled(carried, split(told["aggregates"]))
    return store, None, definition_of(window, slide, plain, shards=1, carried=more)


def _of_table(store: Store, version: Version) -> Iterator[pa.Table]:
    for file in read.window_files(store, version):
        yield read.as_asked(store.read(file), version.definition)


def _of_documents(source: str, definition: Definition) -> Iterator[pa.Table]:
    from sluicegate_cloud.sources import list_sources
    from sluicegate_cloud.table import run, shard
    from sluicegate_cloud.table import sources as seen

    listed = list_sources(source)
    documents = _documents(seen.listed(listed.files, listed.objects), source)
    with tempfile.TemporaryDirectory(prefix="sluicegate-sql-") as folder:
        store, version = Store(folder), Version(0, definition)
        done = [(0, shard.merge(store, version, 0, documents))]
        yield from _of_table(store, run.following(store, version, done, _here))


def _here(work: Any, numbers: Sequence[int]) -> list[tuple[int, Any]]:
    return [(number, work(number)) for number in numbers]


def _documents(files: pa.Table, source: str) -> pa.Table:
    """What is read of the files, refused ones too. Raises SourceError where it is too much, or none is a document."""
    size = sum(files["size"].to_pylist())
    if size > MOST_BYTES:
        raise SourceError(
            f"{source} has {size >> 20:,} MiB of documents, and {NAME} merges {MOST_BYTES >> 20} in its one task: "
            "make a table of them (sluicegate cloud merge … --table) and ask that"
        )
    table = pa.Table.from_batches(decode_files(files.to_batches()), ARROW)
    if table["reason"].null_count == 0:
        raise SourceError(f"none of the {files.num_rows} files of {source} is a chunk document; {table['reason'][0]}")
    return table
