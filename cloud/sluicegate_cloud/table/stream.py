"""`cloud stream`: chunk documents into a table as they come, by Spark's structured streaming and the merge of runs.

Each micro-batch is a run of `job.take`: the rows are those of batch whatever comes in which order, and a batch that is
tried again after a crash adds nothing, since its documents are known. There is no watermark: a document may come years
late, and corrects its windows, whose `revision` is then the newer version's number.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate_cloud.documents import DOCUMENTS, decode_contents
from sluicegate_cloud.errors import BusyError, SourceError, SparkError
from sluicegate_cloud.feed import source as feed
from sluicegate_cloud.feed.access import require_access
from sluicegate_cloud.feed.gateway import Gateway, is_gateway
from sluicegate_cloud.places.bucket import OBJECTS
from sluicegate_cloud.places.uris import is_elsewhere
from sluicegate_cloud.session import is_remote
from sluicegate_cloud.table import job
from sluicegate_cloud.table.arriving import NAME, ArrivalSource
from sluicegate_cloud.table.versions import Definition, Store

#: Documents of a micro-batch, at most: so a backlog is worked off in bounded steps.
MOST = 5_000
#: How long a batch waits for others that write the table, and a stream for a process of its source.
_PATIENCE_S = 600.0
#: What Spark says where the process of a source had no time to start.
_TOO_BUSY = "Python worker failed to connect back"
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

    `source`: a folder or s3:// URL (to any depth), another URI that Spark lists, or the https:// URL of a Sync
    Gateway's database (gateway.md). `every`: an interval such as "10 seconds" for ever; None: what is there now,
    then the query ends. What was read is kept at `checkpoint`, else below the table, so that a new query goes on where
    one ended; of a table in a bucket Spark's connector keeps it. Where others write the table a batch waits for them.
    Raises SourceError, TableError, GatewayError, and SparkError through Spark Connect.
    """
    if is_remote(spark):
        raise SparkError(
            "a stream needs a driver of its own, whose process merges each batch: not through Spark Connect; run "
            "`cloud stream` with another --master, or `cloud merge --table` now and then"
        )
    store = Store(table)
    job.opened(store, definition)
    place, documents = _documents(spark, store, source, most)

    def take(batch: DataFrame, _: int) -> None:
        _patiently(lambda: job.take(spark, batch, table, definition))

    writer = documents.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint or store.place.uri(place))
    writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
    return writer.start()


def _patiently(work: Callable[[], Any]) -> None:
    """Do it when nobody else writes the table. Raises BusyError where somebody does for _PATIENCE_S."""
    end, wait = time.monotonic() + _PATIENCE_S, 0.1
    while True:
        try:
            work()
            return
        except BusyError:
            if time.monotonic() > end:
                raise
        time.sleep(wait)
        wait = min(2 * wait, 5.0)


def _documents(spark: SparkSession, store: Store, source: str, most: int) -> tuple[str, DataFrame]:
    """Where below the table is kept what was read of it, and rows of DOCUMENTS as they come."""
    if is_gateway(source):
        at = Gateway.at(source)
        require_access(at)
        return _place(at.url), feed.stream(spark, at, most)
    if is_elsewhere(source) and not source.startswith(OBJECTS):
        return _place(source), _of_spark(spark, source, most)
    folder = source if source.startswith(OBJECTS) else str(Path(source.removeprefix("file://")).absolute())
    if not source.startswith(OBJECTS) and not Path(folder).is_dir():
        raise SourceError(f"source {source!r} is no folder: give one into which chunk documents come")
    spark.dataSource.register(ArrivalSource)
    told = {"rows": "documents", "noted": f"{store.root}/{_place(folder)}-files", "maxDocuments": str(most)}
    return _place(folder), spark.readStream.format(NAME).options(**told).load(folder)


def _place(source: str) -> str:
    return f"stream-{hashlib.sha256(source.encode()).hexdigest()[:16]}"


def _of_spark(spark: SparkSession, uri: str, most: int) -> DataFrame:
    """Objects that Spark lists, however old they are. It leaves out names that begin with `_` or `.`."""
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .options(recursiveFileLookup="true", pathGlobFilter="*.json", maxFileAge="36500d", maxFilesPerTrigger=str(most))
        .load(uri)
    )
    return files.select("path", "content").mapInArrow(decode_contents, DOCUMENTS)


def finish(start: Callable[[], StreamingQuery]) -> dict[str, Any]:
    """Start a stream and wait until it ends, or for Ctrl-C; what its last batch did. Raises SparkError with its reason.

    Spark gives the process of a source ten seconds to import it, from a zip and so without compiled files; no setting
    changes that. Where the machine is too busy the stream is started again, and goes on where it was.
    """
    end = time.monotonic() + _PATIENCE_S
    while True:
        query = start()
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            query.stop()
        except StreamingQueryException as error:
            said = str(error.getMessage() or error).strip().splitlines()
            reason = next((line for line in reversed(said) if "Error: " in line), said[0])
            if _TOO_BUSY in reason and time.monotonic() < end:
                continue
            raise SparkError(f"the stream stopped: {reason.rpartition('Error: ')[2]}") from error
        break
    return dict(query.lastProgress or {})
