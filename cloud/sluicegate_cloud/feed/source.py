"""A gateway as a data source of Spark, to be read and streamed: a partition a channel, Arrow batches, exact offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from sluicegate_cloud.documents import DOCUMENTS, buckets_of
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.feed import access, changes, gateway, rows
from sluicegate_cloud.feed.client import Client
from sluicegate_cloud.feed.gateway import Gateway
from sluicegate_cloud.feed.provision import shards
from sluicegate_cloud.schema import BUCKETS

NAME = "sluicegate_feed"
SCHEMAS = {"buckets": BUCKETS, "documents": DOCUMENTS}
_OPTIONS = ("path", "url", "rows", "channels", "ca", "credentials", "timeout", "maxdocuments")
Offset = dict[str, str]


class Range(InputPartition):
    """A stretch of one channel: after `since`, up to `until` or, without it, up to now."""

    def __init__(self, channel: str, since: str = changes.BEGINNING, until: str | None = None) -> None:
        self.channel, self.since, self.until = channel, since, until


class FeedSource(DataSource):
    """The buckets, or with `rows` = `documents` the chunk documents, at a Sync Gateway's database (gateway.md).

    Options: the URL by `load(url)` or `url`; `channels`, by comma, instead of the 16 shards; `ca`, a file of roots;
    `timeout` in seconds; `maxDocuments` a micro-batch; `credentials`, the path of a file with name and password.
    Without it these come from the environment; they never are options, which Spark shows.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return NAME

    def schema(self) -> str:
        """`schema.BUCKETS`, or `documents.DOCUMENTS`. Raises SourceError for an unknown option."""
        return SCHEMAS[_options(self.options)["rows"]]

    def reader(self, schema: StructType) -> DataSourceReader:
        """Everything that is there now."""
        return FeedReader(_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """What comes, in micro-batches whose ends Spark keeps."""
        return FeedStreamReader(_options(self.options))


class FeedReader(DataSourceReader):
    """Reads each channel from its beginning to where it ends now."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)

    def partitions(self) -> list[InputPartition]:
        """One a channel. Raises GatewayError where the gateway does not know this reader."""
        access.require_access(_gateway(self.options))
        return [Range(channel) for channel in _channels(self.options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one channel. Raises GatewayError."""
        return _read(self.options, partition)


class FeedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the feed's own sequence of each channel; the same two offsets read the same documents."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)
        self._most: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """The beginning. Raises GatewayError where the gateway does not know this reader."""
        access.require_access(_gateway(self.options))
        return self._beginning()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """`maxDocuments`, or no limit."""
        most = self.options.get("maxdocuments")
        return ReadMaxRows(int(most)) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all that `availableNow` will read."""
        self._most = self._newest(self._beginning(), None)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Where each channel ends now, or where its share of `limit` ends.

        Raises GatewayError, also where the database was made anew: what it has before `start` would never be read.
        """
        begun = self._beginning() | start
        most = max(1, limit.max_rows // len(begun)) if isinstance(limit, ReadMaxRows) else None
        return _least(self._newest(begun, most), self._most)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """One for each channel that has gone on."""
        return [
            Range(name, start.get(name, changes.BEGINNING), end[name]) for name in end if end[name] != start.get(name)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches between two offsets of one channel. Raises GatewayError."""
        return _read(self.options, partition)

    def _beginning(self) -> Offset:
        return dict.fromkeys(_channels(self.options), changes.BEGINNING)

    def _newest(self, since: Offset, most: int | None) -> Offset:
        with Client(_gateway(self.options)) as client:
            access.require_same_feed(client, since.values())
            return {name: changes.newest(client, name, at, most) for name, at in since.items()}


def _read(options: Mapping[str, str], partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, Range):
        raise TypeError(f"a partition of another source: {partition!r}")
    with Client(_gateway(options)) as client:
        pages = changes.pages(client, partition.channel, partition.since, partition.until)
        documents = rows.batches(client, pages)
        yield from documents if options["rows"] == "documents" else buckets_of(documents, partition.channel)


def _least(one: Offset, other: Offset | None) -> Offset:
    return one if other is None else {name: min(one[name], other[name], key=changes.order) for name in one}


def _options(given: Mapping[str, str]) -> dict[str, str]:
    """The options with their defaults, checked. Raises SourceError."""
    options = {"rows": "buckets"} | {key.lower(): value for key, value in dict(given).items()}
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise SourceError(
            f"format sluicegate has no option {unknown[0]!r}, only {', '.join(_OPTIONS)}; name and password are in the "
            f"file `credentials`, or in {gateway.USER} and {gateway.PASSWORD} of the environment"
        )
    if options["rows"] not in SCHEMAS:
        raise SourceError(f"option rows={options['rows']!r}: expected buckets or documents")
    options["url"] = _gateway(options).url
    return options


def _gateway(options: Mapping[str, str]) -> Gateway:
    try:
        timeout = float(options.get("timeout", "60"))
    except ValueError:
        timeout = 0.0
    if not 0 < timeout <= 3600:
        raise SourceError(f"option timeout={options.get('timeout')!r}: expected seconds, at most 3600")
    url = options.get("url") or options.get("path") or ""
    return Gateway.at(url, options.get("ca", ""), timeout, options.get("credentials", ""))


def _channels(options: Mapping[str, str]) -> list[str]:
    named = [name.strip() for name in options.get("channels", "").split(",") if name.strip()]
    return list(dict.fromkeys(named)) or shards()


def read(spark: Any, at: Gateway, kind: str = "documents") -> Any:
    """The DataFrame of a gateway's whole feed."""
    spark.dataSource.register(FeedSource)
    return spark.read.format(NAME).options(**_named(at), rows=kind).load()


def stream(spark: Any, at: Gateway, most: int) -> Any:
    """The DataFrame of its chunk documents as they come, at most so many a micro-batch."""
    spark.dataSource.register(FeedSource)
    return spark.readStream.format(NAME).options(**_named(at), rows="documents", maxDocuments=str(most)).load()


def _named(at: Gateway) -> dict[str, str]:
    return {"url": at.url, "ca": at.ca, "credentials": at.credentials, "timeout": str(at.timeout)}
