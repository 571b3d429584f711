"""Chunk documents in folders, files, at URIs or gateways → a row a document → a row a bucket, each reading once."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sluicegate_cloud.documents import DOCUMENTS, PATHS, decode_contents, decode_files, unpack
from sluicegate_cloud.errors import SourceError, StrictError
from sluicegate_cloud.feed import keep as feed_keep
from sluicegate_cloud.feed import source as feed
from sluicegate_cloud.feed.gateway import Gateway, is_gateway
from sluicegate_cloud.lines.dedupe import USED, catalogue, in_order
from sluicegate_cloud.lines.placing import place
from sluicegate_cloud.places import compacted
from sluicegate_cloud.places.bucket import OBJECTS, Bucket, Object
from sluicegate_cloud.places.folder import Folder
from sluicegate_cloud.places.server import SERVERS, chunks, is_server
from sluicegate_cloud.quality import problems
from sluicegate_cloud.schema import BUCKETS
from sluicegate_cloud.session import parallelism

Source = str | Path | Sequence[str | Path]

#: An agent that is writing a document gives it this ending until it is whole.
UNFINISHED = ".partial"
#: Documents that one task reads at least, and tasks for each core at most: a task has its own cost.
_PER_TASK, _TASKS = 256, 8


class Listed(NamedTuple):
    """What a source comes to: whole files and objects, URIs that Spark lists, and gateways.

    `objects`: of those files that are objects at s3: URLs, or a server's documents, what their listing told.
    """

    files: list[str]
    uris: list[str]
    gateways: list[Gateway]
    objects: dict[str, Object]


def read_buckets(
    spark: SparkSession, source: Source, *, strict: bool = False, keep: str | Path | None = None
) -> DataFrame:
    """One row per bucket of every chunk document of `source`, and one of n = 0 per hole in a stream's ordinals.

    `source`: a folder (searched to any depth), a file, a glob, s3://BUCKET/PREFIX (`places.bucket`),
    couchbases://HOST/BUCKET (`places.server`), a URI that Spark can list, the https:// URL of a Sync Gateway's database
    (gateway.md), or several of these. `keep`: a folder for what a gateway gave, so that only what is new is read.
    Columns: `schema.BUCKETS`, times in µs. Documents are told apart by their id, so re-sent and reordered ones change
    nothing; see `dedupe` for what happens to conflicting and unreadable ones. Raises SourceError when there is nothing
    to read, StrictError when `strict` and any document is refused, in conflict or overlapping.
    """
    documents = read_documents(spark, source, keep=keep)
    if strict:
        require_no_problems(placed := catalogue(documents))
        return buckets_of(placed)
    return in_order(documents).mapInArrow(_place_and_unpack, BUCKETS)


def read_documents(spark: SparkSession, source: Source, *, keep: str | Path | None = None) -> DataFrame:
    """One row per document (`documents.DOCUMENTS`), refused ones with a reason. Raises SourceError, GatewayError."""
    files, uris, gateways, _ = list_sources(source)
    check_keep(gateways, keep)
    frames = [_read_uri(spark, uri) for uri in uris] + ([read_files(spark, files)] if files else [])
    frames += [feed_keep.fetch(spark, at, Path(keep)) if keep else feed.read(spark, at) for at in gateways]
    return reduce(DataFrame.unionByName, frames)


def list_sources(source: Source) -> Listed:
    """The whole files, URIs and gateways that `source` names. Raises SourceError where there is none."""
    named = [str(source)] if isinstance(source, str | Path) else [str(item) for item in source]
    gateways = [Gateway.at(name) for name in named if is_gateway(name)]
    uris = [name for name in named if _is_remote(name)]
    objects = {one.url: one for name in named if _is_objects(name) for one in _objects(name)}
    objects |= {one.url: one for name in named if is_server(name) for one in chunks(name)}
    elsewhere = (_is_remote, is_gateway, _is_objects, is_server)
    local = [name for name in named if not any(of(name) for of in elsewhere)]
    files = sorted({path for name in local for path in _files(name)} | {*objects})
    if not files and not uris and not gateways:
        raise SourceError(f"there are no files in {', '.join(map(repr, named)) or 'an empty list of sources'}")
    return Listed(files, uris, gateways, objects)


def check_keep(gateways: Sequence[Gateway], keep: str | Path | None) -> None:
    """Raises SourceError where `keep` is given and not exactly one gateway is read."""
    if keep and len(gateways) != 1:
        raise SourceError(f"a folder to keep what was read belongs to one gateway, and {len(gateways)} are named")


def buckets_of(documents: DataFrame) -> DataFrame:
    """The documents in use (`dedupe.catalogue`) as rows of buckets, and what is missing as holes (`schema.BUCKETS`)."""
    return documents.where((sf.col("fate") == USED) | (sf.col("hole") > 0)).mapInArrow(unpack, BUCKETS)


def _place_and_unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`catalogue` and `buckets_of` in one: what Spark carries to Python twice costs as much as placing."""
    return unpack(place(batches))


def require_no_problems(documents: DataFrame) -> None:
    """Raise StrictError, which names the first, when any document of `dedupe.catalogue` is refused or in conflict."""
    if found := problems(documents, 3):
        listed = "; ".join(f"{row['path']}: {row['reason']}" for row in found)
        raise StrictError(
            f"strict: {listed}{' …' if len(found) == 3 else ''}. Remove these files, or run without strict"
        )


def _is_remote(source: str) -> bool:
    return "://" in source and not source.startswith(("file://", OBJECTS, *SERVERS)) and not is_gateway(source)


def _is_objects(source: str) -> bool:
    return source.startswith(OBJECTS)


def _objects(source: str) -> Iterator[Object]:
    """Every whole object at an s3: URL or below it; of what was compacted what counts."""
    found = {one.url: one for one in Bucket.at(source).objects()}
    places = compacted.roots(found)
    for one in found.values():
        if _is_whole(one.url.rpartition("/")[2]) and not any(one.url.startswith(f"{at}/") for at in places):
            yield one
    for at in places:
        yield from (found[f"{at}/{name}"] for name in compacted.load(Bucket.at(at)).files)


def _files(source: str) -> Iterator[str]:
    """Every file that `source` names, whole ones only. Raises SourceError when it is not there or cannot be listed."""
    source = source.removeprefix("file://")
    roots = [source] if Path(source).exists() else sorted(glob.glob(source, recursive=True))  # noqa: PTH207 - Path.glob wants a folder to begin in
    if not roots:
        raise SourceError(f"source {source!r} is not there: give a folder of chunk documents, a file or a glob")
    for root in map(os.path.realpath, roots):
        yield from [root] if Path(root).is_file() else _below(root)


def _below(root: str) -> Iterator[str]:
    """Whole files below a folder to any depth, also where links lead; in hidden folders too, for a device may be
    called `.a` or `_b`.

    Of a folder that holds compacted documents what counts.
    """
    seen = {root}
    for folder, folders, names in os.walk(root, onerror=_cannot_list, followlinks=True):
        folders[:] = [name for name in folders if _leads_on(str(Path(folder, name)), root, seen)]
        if compacted.FOLDER in folders and (state := compacted.load(Folder.at(folder))).number:
            folders.clear()
            yield from (str(Path(folder, name)) for name in state.files)
            continue
        yield from (str(Path(folder, name)) for name in names if _is_whole(name))


def _leads_on(path: str, root: str, seen: set[str]) -> bool:
    """Whether to look into a folder: not into one that a link leads to a second time, or that `root` is in or has."""
    if not Path(path).is_symlink():
        return True
    real = os.path.realpath(path)
    if real in seen or os.path.commonpath((real, root)) in (real, root):
        return False
    seen.add(real)
    return True


def _is_whole(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(UNFINISHED)


def _cannot_list(error: OSError) -> None:
    raise SourceError(f"source {error.filename!r} cannot be listed: {error.strerror}") from error


def read_files(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Rows of `documents.DOCUMENTS` of files that every worker can open, read where they are decoded."""
    table = pa.table({"path": pa.array(paths, pa.string())})
    cores = parallelism(spark)
    tasks = min(max(len(paths) // _PER_TASK, cores), _TASKS * cores, len(paths))
    named = spark.createDataFrame(table, PATHS)  # a task for each core, as it comes
    return (named.repartition(tasks) if tasks > cores else named).mapInArrow(decode_files, DOCUMENTS)


def _read_uri(spark: SparkSession, uri: str) -> DataFrame:
    """Objects that Spark fetches. It leaves out names that begin with `_` or `.`."""
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(uri)
    return files.select("path", "content").mapInArrow(decode_contents, DOCUMENTS)
