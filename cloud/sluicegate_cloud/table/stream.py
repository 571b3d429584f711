"""`cloud stream`: chunk documents into a table as they come, by Spark's structured streaming and the merge of runs.

Each micro-batch is a run of `job.take`: the rows are those of batch whatever comes in which order, and a batch that is
tried again after a crash adds nothing, since its documents are known. There is no watermark: a document may come years
late, and corrects its windows, whose `revision` is then the newer version's number.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate_cloud.documents import DOCUMENTS, decode_contents
from sluicegate_cloud.errors import SourceError, SparkError
from sluicegate_cloud.feed import source as feed
from sluicegate_cloud.feed.access import require_access
from sluicegate_cloud.feed.gateway import Gateway, is_gateway
from sluicegate_cloud.session import is_remote
from sluicegate_cloud.table import job
from sluicegate_cloud.table.versions import Definition, Store

#: Documents of a micro-batch, at most: so a backlog is worked off in bounded steps.
MOST = 5_000
_FILES = "path string, modificationTime timestamp, length bigint, content binary"


def stream(
    spark: SparkSession,
    source: str,
    table: str | Path,
    definition: Definition | None,
    *,
    every: str | None = None,
    most: int = MOST,
    checkpoint: str | None = None,
) -> StreamingQuery:
    """Start to take the documents of `source` into the table as they come.

    `source`: a folder (any URI that Spark lists, to any depth), or the https:// URL of a Sync Gateway's database
    (docs/couchbase.md). `every`: an interval such as "10 seconds" for ever; None: what is there now, then the query
    ends. What was read is kept at `checkpoint`, else below the table, so that a new query goes on where one ended; of a
    table in a bucket Spark's connector keeps it. Raises SourceError, TableError, GatewayError.
    """
    if is_remote(spark):
        raise SparkError(
            "a stream needs a driver of its own, whose process merges each batch: not through Spark Connect; run "
            "`cloud stream` with another --master, or `cloud merge --table` now and then"
        )
    store = Store(table)
    job.opened(store, definition)
    place, documents = _documents(spark, source, most)

    def take(batch: DataFrame, _: int) -> None:
        job.take(spark, batch, table, definition)

    writer = documents.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint or store.place.uri(place))
    writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
    return writer.start()


def _documents(spark: SparkSession, source: str, most: int) -> tuple[str, DataFrame]:
    """Where below the table is kept what was read of it, and rows of DOCUMENTS as they come."""
    if is_gateway(source):
        at = Gateway.at(source)
        require_access(at)
        return f"stream-{hashlib.sha256(at.url.encode()).hexdigest()[:16]}", feed.stream(spark, at, most)
    if "://" not in source and not Path(source).is_dir():
        raise SourceError(f"source {source!r} is no folder: give one into which chunk documents come")
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.json")
        .option("maxFilesPerTrigger", most)
        .load(source)
    )
    return "stream", files.select("path", "content").mapInArrow(decode_contents, DOCUMENTS)


def finish(query: StreamingQuery) -> dict[str, Any]:
    """Wait until the query ends, and tell what its last batch did. Raises SparkError with its reason."""
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        said = str(error.getMessage() or error).strip().splitlines()
        reason = next((line for line in reversed(said) if "Error: " in line), said[0])
        raise SparkError(f"the stream stopped: {reason.rpartition('Error: ')[2]}") from error
    return dict(query.lastProgress or {})
