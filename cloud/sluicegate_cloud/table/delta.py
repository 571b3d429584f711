"""A table's windows as a Delta table: what changed since the version that is there, merged in one commit.

The commit notes which version it brings. So publishing again does nothing, whoever dies in between leaves the version
before, and a window is there once, by stream, device, tags and times, with its newest revision. Runs in a session with
Delta Lake VERSION, which is the one that was tried with this project's Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.names import SILENT
from sluicegate_cloud.places.uris import is_elsewhere
from sluicegate_cloud.schema import ddl
from sluicegate_cloud.session import with_setting
from sluicegate_cloud.table import read
from sluicegate_cloud.table.grouping.groups import columns_of
from sluicegate_cloud.table.jars import checked
from sluicegate_cloud.table.versions import DAY_US, Store, Version, is_same

VERSION = "4.4.0"
#: The jars of Delta Lake for Spark 4.2, from Maven's group io.delta, and their SHA-256 (deploy/spark/delta.sha256).
JARS = {
    f"delta-spark_4.2_2.13-{VERSION}.jar": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    f"delta-storage-{VERSION}.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
_GONE, _DAY = "gone", "day"
#: The operation of a commit that brings back what an older one had.
_RESTORE = "RESTORE"
#: Days since 1970 of 0001-01-01 and 9999-12-31: a clock may be beyond, and Python has no such date.
_DAYS = -719_162, 2_932_896
#: Days beyond which a merge looks at all of them.
_MOST_DAYS = 1_000


def settings(jars: Path) -> dict[str, str]:
    """What a session with Delta is started with. Raises SinkError where the jars are not there, or are others."""
    return {
        "spark.jars": checked(jars, JARS, "delta"),
        "spark.sql.extensions": _EXTENSION,
        "spark.sql.catalog.spark_catalog": _CATALOG,
        "spark.databricks.delta.snapshotPartitions": "4",
    }


def publish(spark: SparkSession, store: Store, version: Version, place: str) -> int:
    """Bring the Delta table at `place`, a folder or any URI that Spark writes, to `version`; how many rows changed.

    Raises SinkError where the session has no Delta, `place` has something else, or another was first: nothing of it
    counts then.
    """
    if _EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise SinkError(
            f"this Spark has no Delta Lake: give --jars, a folder with {' and '.join(JARS)}, or start the session with "
            f"them and spark.sql.extensions={_EXTENSION}"
        )
    if "`" in place:
        raise SinkError(f"{place!r} is no place for a Delta table: it has a backquote in its name")
    named = f"delta.`{place if is_elsewhere(place) or place.startswith('file:') else Path(place).absolute().as_uri()}`"
    try:
        return _published(spark, store, version, named)
    except (PySparkException, Py4JJavaError) as error:
        said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
        raise SinkError(f"cannot publish to {place}: {(said or 'no reason given').strip().splitlines()[0]}") from error


def _published(spark: SparkSession, store: Store, version: Version, named: str) -> int:
    columns = {**read.schema_of(version.definition), _DAY: "date"}
    spark.sql(f"CREATE TABLE IF NOT EXISTS {named} ({ddl(columns)}) USING delta PARTITIONED BY ({_DAY})")
    there = [*spark.table(named).columns]
    if there == [name for name in columns if name != SILENT]:  # an older Sluicegate made it
        spark.sql(f"ALTER TABLE {named} ADD COLUMNS ({SILENT} {columns[SILENT]} AFTER buckets)")
    elif there != [*columns]:
        raise SinkError(f"{named} has other columns than the windows of {store.root}: publish them elsewhere")
    since = _since(spark, store, version, named)
    if since is not None and since >= version.number:
        return 0
    before = store.load(since) if since in store.numbers() else None
    note: dict[str, Any] = {"place": str(store.root), "version": version.number, "identity": version.identity}
    note |= {"made_us": version.made_us, "since": before.number if before else None}
    with with_setting(spark, _NOTE, json.dumps({"sluicegate": note})):
        changes = _changes(spark, store, before, version)
        return _merged(spark, changes, named, [*columns], _keys(version), everything=before is None)


def _since(spark: SparkSession, store: Store, version: Version, named: str) -> int | None:
    """The version that is there; None where no commit that is kept tells. Raises SinkError for another table's."""
    notes = _notes(spark, named)
    told = next(notes, None)
    if told is None:
        return None
    if told["place"] != str(store.root):
        raise SinkError(f"{named} has the windows of {told['place']}: publish {store.root} elsewhere")
    former = next(notes, None) if told.get("since") is not None else None
    if former is not None and int(former["version"]) != told["since"]:
        return None  # another published after this one had looked: there are rows of both
    number = int(told["version"])
    return number if is_same(store, version, number, told.get("identity"), told.get("made_us")) else None


def _notes(spark: SparkSession, named: str) -> Iterator[dict[str, Any]]:
    """The notes of commits of ours whose rows are there, the newest first."""
    history = spark.sql(f"DESCRIBE HISTORY {named}").where(f"userMetadata is not null or operation = '{_RESTORE}'")
    commits = history.orderBy(sf.desc("version")).select("version", "operation", "operationParameters", "userMetadata")
    restored: int | None = None
    for number, operation, parameters, note in commits.toLocalIterator():
        if restored is not None and number > restored:
            continue  # what it brought is gone again
        if operation == _RESTORE:
            if not (to := parameters.get("version")):
                return  # it was asked for by a time
            restored = int(to)
            continue
        with suppress(ValueError, TypeError, KeyError):  # else a commit of somebody else's
            yield json.loads(note)["sluicegate"]


def _changes(spark: SparkSession, store: Store, before: Version | None, now: Version) -> DataFrame:
    """Rows of files that only the new version has, and, as GONE, those that only the old one has."""
    written, removed = (_rows(spark, store, now, files) for files in read.changed_files(store, before, now))
    keys = _keys(now)
    same = [written[name].eqNullSafe(removed[name]) for name in keys]
    gone = removed.join(written, same, "left_anti")
    return written.withColumn(_GONE, sf.lit(False)).unionByName(gone.withColumn(_GONE, sf.lit(True)))


def _rows(spark: SparkSession, store: Store, version: Version, files: Sequence[str]) -> DataFrame:
    rows = read.of_files(spark, store, files, read.schema_of(version.definition))
    day = sf.greatest(sf.lit(_DAYS[0]), sf.least(sf.lit(_DAYS[1]), sf.floor(sf.col("window_start") / DAY_US)))
    return rows.withColumn(_DAY, sf.date_from_unix_date(day.cast("int")))


def _keys(version: Version) -> list[str]:
    return ["stream", "device", read.ROLLUP, *columns_of(version.definition.by), "window_start", "window_end"]


def _merged(
    spark: SparkSession, changes: DataFrame, named: str, columns: list[str], keys: list[str], *, everything: bool
) -> int:
    same = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in (_DAY, *keys))
    if not everything:  # so that the merge reads only the days that change
        days = [f"DATE'{row[0]}'" for row in changes.select(_DAY).distinct().limit(_MOST_DAYS + 1).collect()]
        if len(days) <= _MOST_DAYS:
            same += f" AND t.{_DAY} IN ({', '.join(days) or 'NULL'})"
    update = ", ".join(f"t.`{name}` = s.`{name}`" for name in columns)
    insert = ", ".join(f"`{name}`" for name in columns), ", ".join(f"s.`{name}`" for name in columns)
    newer = "" if everything else " AND s.revision > t.revision"
    view = "sluicegate_changes"
    changes.createOrReplaceTempView(view)
    try:
        told = spark.sql(
            f"MERGE INTO {named} t USING {view} s ON {same} "  # noqa: S608 - names are ours, values are none
            f"WHEN MATCHED AND s.{_GONE} THEN DELETE "
            f"WHEN MATCHED{newer} THEN UPDATE SET {update} "
            f"WHEN NOT MATCHED AND NOT s.{_GONE} THEN INSERT ({insert[0]}) VALUES ({insert[1]})"
            + (" WHEN NOT MATCHED BY SOURCE THEN DELETE" if everything else "")
        )
        return int(told.collect()[0]["num_affected_rows"])
    finally:
        spark.catalog.dropTempView(view)
