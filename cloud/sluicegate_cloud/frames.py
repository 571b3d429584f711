"""Buckets → frames: what lies inside one slide step becomes one row, what crosses its edge stays a row of its own.

Source: paper Hazelcast, "Break into Frames". One hash aggregate with code generation does both: a crossing bucket is a
group of its own. Rows of one stream are sorted before they are folded, so a sum has the same bits in every run.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.schema import BUCKET_FIELDS, OWNER

_FOLDED = ("first", "n", "t_first", "t_last", "total", "low", "high", "gap")
_KEYS = (*OWNER, "first_frame", "last_frame", "single")


def merge_frames(buckets: DataFrame, slide_us: int, origin_us: int = 0) -> DataFrame:
    """Per (device, stream, incarnation): a row per frame of `slide_us` µs and a row per bucket that crosses an edge.

    `buckets` as `read_buckets` gives them. Columns: OWNER, `first_frame`, `last_frame` (frame k begins at `origin_us +
    k · slide_us`), the bucket's fields (on a folded row only n, total, low, high, gap, first and the times mean
    anything), `buckets` (how many were folded) and `span_us` (the time they cover, summed). Slide and origin travel
    as metadata of `first_frame`. Raises ValueError for a slide below 1 µs.
    """
    if slide_us < 1:
        raise ValueError(f"slide_us is {slide_us}: a frame must be at least 1 us long")
    metadata = {"slide_us": slide_us, "origin_us": origin_us}
    placed = _placed(buckets, slide_us, origin_us)
    ordered = placed.repartition("device", "stream").sortWithinPartitions("device", "stream", "incarnation", "first")
    folded = ordered.groupBy(*_KEYS).agg(*_aggregates()).drop("single")
    return folded.withColumn("first_frame", sf.col("first_frame").alias("first_frame", metadata=metadata))


def frame_times(frames: DataFrame) -> tuple[int, int]:
    """(slide_us, origin_us) that `frames` were merged with. Raises ValueError for what merge_frames did not make."""
    fields = {field.name: field.metadata for field in frames.schema.fields}
    metadata = fields.get("first_frame", {})
    if "slide_us" not in metadata:
        raise ValueError("these are not frames: expected the DataFrame that merge_frames returned")
    return int(metadata["slide_us"]), int(metadata["origin_us"])


def _placed(buckets: DataFrame, slide_us: int, origin_us: int) -> DataFrame:
    """Every bucket with its frames; `single` is set on those that must not be folded with others."""
    first, last = (_frame(sf.col(name), slide_us, origin_us) for name in ("t_first", "t_last"))
    single = sf.when(first != last, sf.col("first"))
    return buckets.select(
        *OWNER, *BUCKET_FIELDS, first.alias("first_frame"), last.alias("last_frame"), single.alias("single")
    )


def _frame(time: Column, slide_us: int, origin_us: int) -> Column:
    """Floor of (time − origin) / slide in integers: a double would lose microseconds."""
    offset = time - sf.lit(origin_us).cast("bigint")
    slide = sf.lit(slide_us).cast("bigint")
    return sf.call_function("div", offset - sf.pmod(offset, slide), slide)


def _aggregates() -> list[Column]:
    some = sf.col("n") > 0
    span = sf.col("t_last") - sf.col("t_first")
    return [
        *(sf.min(name).alias(name) for name in ("first", "t_first")),
        sf.max("t_last").alias("t_last"),
        *(sf.sum(name).alias(name) for name in ("n", "total", "gap")),
        sf.min("low").alias("low"),
        sf.max("high").alias("high"),
        *(sf.max(name).alias(name) for name in BUCKET_FIELDS if name not in _FOLDED),
        sf.sum(some.cast("bigint")).alias("buckets"),
        sf.sum(sf.when(some, span).otherwise(0)).alias("span_us"),
    ]
