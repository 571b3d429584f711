"""Each reading once: documents are told apart by id, versions by their bytes, and ordinals prove what is missing.

Documents that are the same to the byte count once. Of one id with different bytes (which write-once targets make
impossible, so somebody changed a file) the version with most readings is taken, of equals the least digest: the same
choice in every run, and each other version is a conflict. A document whose ordinals overlap an earlier one's is left
out and reported: counting a reading twice would be worse than saying that it is missing.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf

#: What becomes of a document.
USED, COPY, REFUSED, CONFLICT, OVERLAP = "used", "copy", "refused", "conflict", "overlap"
#: The fates that somebody should look into.
PROBLEMS = (REFUSED, CONFLICT, OVERLAP)


def catalogue(documents: DataFrame) -> DataFrame:
    """`documents` with the `fate` of each, the `reason` of one not used, and the hole before one that is used.

    `hole`: ordinals missing before it, between the times `hole_from` and `hole_to` in µs. A stream's first document
    has a hole when it does not begin with ordinal 0; no time bounds it from before.
    """
    return _with_holes(_without_overlaps(_told_apart(documents)))


def _told_apart(documents: DataFrame) -> DataFrame:
    """The fate of each version of an id: the first by rank is used, its copies are copies, the others in conflict."""
    versions = Window.partitionBy(sf.coalesce("id", "path"))
    ranked = versions.orderBy(sf.col("readings").desc(), "digest", "path")
    taken = sf.first("digest").over(ranked)
    fate = (
        sf.when(sf.col("reason").isNotNull(), REFUSED)
        .when(sf.row_number().over(ranked) == 1, USED)
        .when(sf.col("digest") == taken, COPY)
        .otherwise(CONFLICT)
    )
    return documents.withColumn("fate", fate)


def _without_overlaps(documents: DataFrame) -> DataFrame:
    covered = sf.max(_end()).over(_earlier())
    overlaps = (sf.col("fate") == USED) & (sf.col("first") < covered)
    placed = documents.withColumn("covered", covered).withColumn(
        "fate", sf.when(overlaps, OVERLAP).otherwise(sf.col("fate"))
    )
    return placed.withColumn("reason", sf.coalesce("reason", _reason())).drop("covered")


def _with_holes(documents: DataFrame) -> DataFrame:
    hole = sf.col("first") - sf.coalesce(sf.max(_end()).over(_earlier()), sf.lit(0))
    since = sf.last(_if_used(sf.col("t_last")), ignorenulls=True).over(_earlier())
    return documents.select(
        "*", hole.alias("hole"), sf.coalesce(since, "t_first").alias("hole_from"), sf.col("t_first").alias("hole_to")
    )


def _earlier() -> WindowSpec:
    """A stream's documents before this one, by ordinal."""
    order = Window.partitionBy("device", "stream", "incarnation").orderBy(
        "first", sf.col("readings").desc(), "id", "path"
    )
    return order.rowsBetween(Window.unboundedPreceding, -1)


def _end() -> Column:
    return _if_used(sf.col("first") + sf.col("readings"))


def _if_used(column: Column) -> Column:
    return sf.when(sf.col("fate") == USED, column)


def _reason() -> Column:
    overlap = sf.concat(
        sf.lit("readings "),
        "first",
        sf.lit(" to "),
        sf.col("first") + sf.col("readings") - 1,
        sf.lit(" begin before "),
        "covered",
        sf.lit(", where the document before ends: left out, lest they count twice"),
    )
    conflict = sf.concat(sf.lit("another document has the id "), "id", sf.lit(" and other bytes: that one is used"))
    return sf.when(sf.col("fate") == OVERLAP, overlap).when(sf.col("fate") == CONFLICT, conflict)
