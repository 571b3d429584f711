"""A table's windows in a Kafka topic: what changed since the version that is there, a message a window.

The message's key says which window it is; its headers say of which table, and with which revision. So a compacted topic
holds each window with its newest revision, and what is sent twice is the same message again. A window that is gone is a
message without a value. A version is noted in a topic beside, when it is begun and when all of it is there: so
publishing again does nothing, and whoever dies in between is made up for the next time. Runs in a session with Spark's
own Kafka connector.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.session import with_setting
from sluicegate_cloud.table import read
from sluicegate_cloud.table.answering import REVISION
from sluicegate_cloud.table.brokers import Topic, topic_at
from sluicegate_cloud.table.grouping.groups import columns_of
from sluicegate_cloud.table.jars import checked
from sluicegate_cloud.table.noted import Noted
from sluicegate_cloud.table.versions import Store, Version

VERSION = "4.2.0"
#: The jars of Kafka for Spark 4.2, from Maven, and their SHA-256 (deploy/spark/kafka.sha256).
JARS = {
    f"spark-sql-kafka-0-10_2.13-{VERSION}.jar": "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    f"spark-token-provider-kafka-0-10_2.13-{VERSION}.jar": (
        "641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c"
    ),
    "kafka-clients-3.9.2.jar": "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    "commons-pool2-2.13.1.jar": "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
}
_NOTE = "published"
#: Whatever a session is set to: a key that has nulls would be another key.
_JSON = {"ignoreNullFields": "true"}
#: Spark shows the options of a query in its pages and logs, but for those of these names.
_HIDDEN = "spark.sql.redaction.options.regex", "(?i)url|secret|password|token|jaas|key"
_KEY, _VALUE, _HEADERS, _TABLE = "key", "value", "headers", "table"


def settings(jars: Path) -> dict[str, str]:
    """What a session with Kafka is started with. Raises SinkError where the jars are not there, or are others."""
    return {"spark.jars": checked(jars, JARS, "kafka")}


def publish(spark: SparkSession, store: Store, version: Version, url: str) -> int:
    """Bring the topic at kafka://HOST:PORT/TOPIC to `version`; how many windows were written or removed.

    Raises SinkError where the session has no Kafka, the topic has another table's windows, or a broker does not answer
    or refuses: some windows may be there then, which the next time makes up for.
    """
    topic = topic_at(url)
    try:
        with with_setting(spark, *_HIDDEN):
            return _published(spark, store, version, topic)
    except (PySparkException, Py4JJavaError) as error:
        raise SinkError(f"cannot publish to {url}: {_reason(error)}") from error


def _published(spark: SparkSession, store: Store, version: Version, topic: Topic) -> int:
    noted = _noted(spark, store, topic)
    since = noted.since(store, version)
    if since.is_at(version):
        return 0
    mine = since.beginning(version)
    _note_down(spark, store, topic, mine)
    written, gone = _changes(spark, store, version, topic, [since.revision, *since.begun], lost=since is not noted)
    rows = written.count() + gone.count()
    _send(spark, written.unionByName(gone), topic, topic.name)
    _note_down(spark, store, topic, mine.ended(version, _noted(spark, store, topic)))
    return rows


def _changes(
    spark: SparkSession, store: Store, version: Version, topic: Topic, before: Sequence[int], *, lost: bool
) -> tuple[DataFrame, DataFrame]:
    """Messages of windows that are new since any of the versions `before`, and of those that are gone since.

    Where one of these versions is no longer kept, the topic itself is asked what it has; where it is `lost`, its
    revisions say nothing.
    """
    if not {*before} <= {*store.numbers()}:
        there = _there(spark, topic)
        written = _messages(spark, store, version, [*read.window_files(store, version)])
        known = (
            (there[_TABLE] == version.identity)
            & (there[REVISION] >= written[REVISION])
            & ~there["gone"]
            & ~sf.lit(lost)
        )
        new = written.join(there, (written[_KEY] == there[_KEY]) & known, "left_anti")
        left = there.where(~there["gone"]).select(_KEY)
    else:
        changed = [read.changed_files(store, store.load(number), version) for number in before]
        new = written = _messages(spark, store, version, sorted({of for files, _ in changed for of in files}))
        left = _messages(spark, store, version, sorted({of for _, files in changed for of in files})).select(_KEY)
    gone = left.distinct().join(written.select(_KEY), _KEY, "left_anti").withColumn(_VALUE, sf.lit(None).cast("string"))
    return new, gone.withColumn(REVISION, sf.lit(version.number)).withColumn(_TABLE, sf.lit(version.identity))


def _messages(spark: SparkSession, store: Store, version: Version, files: Sequence[str]) -> DataFrame:
    """Rows as messages: what is null or no finite number is left out, since JSON has no word for it."""
    columns = read.schema_of(version.definition)
    rows = read.of_files(spark, store, files, columns)
    by = columns_of(version.definition.by)
    key = sf.to_json(sf.struct("stream", "device", read.ROLLUP, *by, "window_start", "window_end"), _JSON)
    value = sf.to_json(sf.struct(*(_finite(name, kind) for name, kind in columns.items())), _JSON)
    return rows.select(key.alias(_KEY), value.alias(_VALUE), REVISION, sf.lit(version.identity).alias(_TABLE))


def _finite(name: str, kind: str) -> Column:
    column = sf.col(name)
    if kind != "double":
        return column
    return sf.when(~sf.isnan(column) & (sf.abs(column) != float("inf")), column).alias(name)


def _there(spark: SparkSession, topic: Topic) -> DataFrame:
    """What the topic has last of each window: its table and revision, and whether it is gone.

    Messages of others have no such headers: they are none of our business, and stay.
    """
    told = sf.struct(_header(_TABLE).alias(_TABLE), _header(REVISION).try_cast("bigint").alias(REVISION),
                     sf.col(_VALUE).isNull().alias("gone"))  # fmt: skip
    messages = _read(spark, topic, topic.name).select(sf.col(_KEY).cast("string"), "offset", told.alias("told"))
    ours = messages.where("told.table is not null and told.revision is not null")
    return ours.groupBy(_KEY).agg(sf.max_by("told", "offset").alias("told")).select(_KEY, "told.*")


def _header(name: str) -> Column:
    named = sf.filter("headers", lambda header: header["key"] == name)
    return sf.get(named, sf.lit(0))["value"].cast("string")


def _noted(spark: SparkSession, store: Store, topic: Topic) -> Noted:
    """What the topic of notes says. Raises SinkError for another table's."""
    notes = _read(spark, topic, topic.notes).where(sf.col(_KEY).cast("string") == _NOTE)
    told = notes.agg(sf.max_by(sf.col(_VALUE).cast("string"), "offset").alias("told")).collect()[0]["told"]
    remedy = f": publish {store.root} to another topic"
    return Noted.of(json.loads(told) if told else None, store, topic.told, remedy)


def _note_down(spark: SparkSession, store: Store, topic: Topic, told: Noted) -> None:
    row = (_NOTE, json.dumps(told.note(store)), told.revision, told.identity)
    named = f"{_KEY} string, {_VALUE} string, {REVISION} bigint, {_TABLE} string"
    _send(spark, spark.createDataFrame([row], named), topic, topic.notes)


def _read(spark: SparkSession, topic: Topic, name: str) -> DataFrame:
    """All messages of a topic that are there now: none where there is no such topic, of which a pattern is no error."""
    known = {"subscribePattern": f"^{re.escape(name)}$", "includeHeaders": "true", "failOnDataLoss": "false"}
    known |= {"fetchOffset.numRetries": "1"}  # each waits as long as the clients do
    return spark.read.format("kafka").options(**known, **topic.options).load()


def _send(spark: SparkSession, messages: DataFrame, topic: Topic, name: str) -> None:
    pair = [sf.struct(sf.lit(of).alias("key"), sf.col(of).cast("string").cast("binary").alias("value"))
            for of in (_TABLE, REVISION)]  # fmt: skip
    rows = messages.select(_KEY, _VALUE, sf.array(*pair).alias(_HEADERS))
    rows.write.format("kafka").options(topic=name, includeHeaders="true", **topic.options).save()


def _reason(error: Any) -> str:
    said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    if "data source: kafka" in said or "DATA_SOURCE_NOT_FOUND" in said:
        return f"this Spark has no Kafka: give --jars, a folder with {' and '.join(JARS)}, or start it with these jars"
    return str((said or "no reason given").strip().splitlines()[0])
