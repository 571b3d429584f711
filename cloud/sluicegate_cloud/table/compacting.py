"""`cloud compact`: many small documents into few Parquet files, which are read in their place and hold each once.

A run writes its files, then a list that names them (`places.compacted`): until it is there nothing of the run counts.
Only then may the chunk files be removed, and only those that are as they were read. What cannot be read stays where it
is: it is neither compacted nor removed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sluicegate_cloud.documents import ARROW
from sluicegate_cloud.errors import BusyError, SourceError
from sluicegate_cloud.places import compacted
from sluicegate_cloud.places.bucket import OBJECTS, Bucket
from sluicegate_cloud.places.server import is_server
from sluicegate_cloud.progress import step
from sluicegate_cloud.sources import Listed, list_sources, read_files
from sluicegate_cloud.table import sources as seen
from sluicegate_cloud.table.versions import Store

#: Bytes of chunk files that one file is made of, about; lists that are kept; seconds until an unnamed file is nobody's.
_BYTES, _LISTS, _ABANDONED_S = 32 << 20, 8, 24 * 3600
_ORDER = ("device", "stream", "first")
_WRITTEN = "name string, documents bigint"


class Done(NamedTuple):
    """What a run did: `documents` that are new, `refused` files that stay as they are, `removed` chunk files."""

    documents: int
    refused: int
    removed: int


def compact(spark: SparkSession, sources: Sequence[str], to: str | Path, *, remove: bool = False) -> Done:
    """Take what is new in `sources` (folders, files, globs, s3: URLs) into the place `to`.

    `remove`: the chunk files too, once what they say is there for good. Raises SourceError, SinkError, PlaceError,
    BusyError where another run has the place or was first.
    """
    listed = list_sources(sources)
    if listed.uris or listed.gateways:
        raise SourceError("documents are compacted from folders, files and s3:// URLs; a gateway has --keep")
    if remove and any(map(is_server, listed.files)):
        raise SourceError("a server's documents are not removed: leave out --remove")
    store = Store(to)
    _require_apart(listed, str(store.root))
    with store.writing():
        state = compacted.load(store.place)
        files = seen.listed(listed.files, listed.objects)
        new = seen.unseen(store, state.sources, files)
        documents = refused = 0
        if new.num_rows:
            with step(f"compacting {new.num_rows:,} documents", spark):
                state, documents, refused = _taken(spark, store, state, new, files, sources)
        _clear(store, state)
        removed = _removed(store, state, sources) if remove and state.number else 0
    return Done(documents, refused, removed)


def _require_apart(listed: Listed, root: str) -> None:
    inside = next((file for file in listed.files if file.startswith(f"{root}/")), None)
    if inside is not None:
        raise SourceError(f"{root} lies in what is to be compacted ({inside}): give another --to")


def _taken(
    spark: SparkSession, store: Store, state: compacted.Compacted, new: pa.Table, files: pa.Table,
    sources: Sequence[str],
) -> tuple[compacted.Compacted, int, int]:  # fmt: skip
    """The next state, which counts; documents that are new in it, and files that cannot be read."""
    rows = read_files(spark, new["path"].to_pylist()).persist()
    try:
        refused = [row["path"] for row in rows.where("reason is not null").select("path").collect()]
        written = _write(store, _fresh(spark, store, state, rows), sum(new["size"].to_pylist()))
    finally:
        rows.unpersist()
    read = new.filter(pc.invert(pc.is_in(new["path"], value_set=pa.array(refused, pa.string()))))
    lists = seen.noted(store, state.sources, read, files, [*map(str, sources)])
    names = (*state.files, *(name for name, _ in written))
    now = compacted.Compacted(state.number + 1, names, lists)
    if read.num_rows:
        store.settle()
        try:
            compacted.commit(store.place, now)
        except FileExistsError as error:
            raise BusyError(f"another run compacted into {store.root} meanwhile: run it again") from error
    return (now if read.num_rows else state), sum(count for _, count in written), len(refused)


def _fresh(spark: SparkSession, store: Store, state: compacted.Compacted, rows: DataFrame) -> DataFrame:
    """Documents that can be read and are not there yet, each once."""
    fresh = rows.where("reason is null").dropDuplicates(["digest"])
    there = [store.read(name, ["digest"]) for name in state.files]
    if not there:
        return fresh
    return fresh.join(spark.createDataFrame(pa.concat_tables(there)), "digest", "left_anti")


def _write(store: Store, rows: DataFrame, size: int) -> list[tuple[str, int]]:
    """The files that were written, and how many documents each has."""

    def worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts: list[int] = []

        def parts() -> Iterator[pa.Table]:
            for batch in batches:
                counts.append(batch.num_rows)
                yield pa.Table.from_batches([batch]).select(ARROW.names).cast(ARROW)

        name = store.write_parts("documents", parts(), 4_096)
        if name is not None:
            store.settle()
            yield pa.RecordBatch.from_pydict({"name": [name], "documents": [sum(counts)]})

    ordered = rows.repartitionByRange(max(size // _BYTES, 1), *_ORDER).sortWithinPartitions(*_ORDER)
    found = ordered.select(*(sf.col(name) for name in ARROW.names)).mapInArrow(worker, _WRITTEN).collect()
    return [(row["name"], row["documents"]) for row in found]


def _clear(store: Store, state: compacted.Compacted) -> None:
    """Remove files of runs that died, and lists before the newest."""
    since, named = time.time() - _ABANDONED_S, {*state.files, *state.sources}
    for folder in ("documents", "sources"):
        for name, written in store.place.names(folder).items():
            if name not in named and written < since:
                store.place.remove(name)
    for name in sorted(store.place.names(compacted.FOLDER))[:-_LISTS]:
        store.place.remove(name)


def _removed(store: Store, state: compacted.Compacted, sources: Sequence[str]) -> int:
    """Remove those of the chunk files that are now as they were when they were compacted; how many."""
    listed = list_sources(sources)
    files = seen.listed(listed.files, listed.objects)
    gone = files.filter(seen.known(store, state.sources, files))
    for path in gone["path"].to_pylist():
        remove_file(path)
    return int(gone.num_rows)


def remove_file(path: str) -> None:
    """Of a folder or a bucket."""
    if path.startswith(OBJECTS):
        bucket, _, name = path.removeprefix(OBJECTS).partition("/")
        Bucket.at(OBJECTS + bucket).remove(name)
    else:
        Path(path).unlink(missing_ok=True)
