"""Buckets → frames: what lies inside one slide step becomes one row, what crosses its edge stays a row of its own.

Source: paper Hazelcast, "Break into Frames". One hash aggregate with code generation does both: a crossing bucket is a
group of its own. Rows of one stream are sorted before they are folded, so a sum has the same bits in every run. Squares
are folded around their group's mean, which a window function over the same sorted rows gives first: nothing cancels.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from sluicegate_cloud.schema import BUCKET_FIELDS, KNOWN_TO_LIE, OWNER, SURE

_EPSILON = sys.float_info.epsilon
_FOLDED = ("first", "n", "t_first", "t_last", "total", "low", "high", "gap", "low_n", "high_n", "doubt")
_KEYS = (*OWNER, "first_frame", "last_frame", "in_doubt", "single")


def merge_frames(buckets: DataFrame, slide_us: int, origin_us: int = 0) -> DataFrame:
    """Per (device, stream, incarnation): a row per frame of `slide_us` µs and a row per bucket that crosses an edge.

    A frame's buckets with readings in doubt are a row of their own: what others are known to hold stays certain.
    `buckets` as `read_buckets` gives them. Columns: OWNER, `first_frame`, `last_frame` (frame k begins at `origin_us +
    k · slide_us`), the bucket's fields (on a folded row only n, total, low, high, low_n, high_n, gap, doubt, first and
    the times mean anything), KNOWN_TO_LIE, SURE, `buckets` (how many were folded) and `span_us` (the time they cover,
    summed). Slide and origin travel as metadata of `first_frame`. Raises ValueError for a slide below 1 µs.
    """
    if slide_us < 1:
        raise ValueError(f"slide_us is {slide_us}: a frame must be at least 1 us long")
    metadata = {"slide_us": slide_us, "origin_us": origin_us}
    placed = _placed(buckets, slide_us, origin_us)
    ordered = placed.repartition("device", "stream").sortWithinPartitions(*_KEYS, "first")
    folded = ordered.select("*", *_of_the_group()).groupBy(*_KEYS).agg(*_aggregates()).drop("single", "in_doubt")
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
        *OWNER,
        *BUCKET_FIELDS,
        *_bounds(),
        _sure("low", sf.least).alias("sure_low"),
        _sure("high", sf.greatest).alias("sure_high"),
        first.alias("first_frame"),
        last.alias("last_frame"),
        (sf.col("doubt") > 0).alias("in_doubt"),
        single.alias("single"),
    )


def _bounds() -> list[Column]:
    """KNOWN_TO_LIE of one bucket. Squares that it does not say: half the squared range at least, since both extremes
    are there, at most n · (high − mean) · (mean − low). Logarithms: between those of the least value and of the mean.
    """
    n, low, high, center = (sf.col(name) for name in ("n", "low", "high", "center"))
    apart = sf.col("total") / sf.nullif(n, sf.lit(0))  # from the center: nothing is lost far from 0
    rounded = (n + 8) * (sf.abs(center) + sf.greatest(sf.abs(low), sf.abs(high))) * (2 * _EPSILON)
    zero = sf.lit(0.0)
    above, below = (sf.greatest(of + rounded, zero) for of in (high - center - apart, apart - (low - center)))
    widest, mean = n * above * below, sf.least(high, center + apart + rounded)
    base = sf.when(center > 0, sf.ln(center)).otherwise(0.0)
    none = sf.lit(float("nan"))
    least, most = (sf.when(low > 0, n * sf.ln(sf.greatest(x, low))).otherwise(none) for x in (low, mean))
    logs, m2 = sf.coalesce(sf.col("log_total") + n * base, none), sf.coalesce("m2", none)
    bounds = [
        sf.nanvl(m2, (high - low) * (high - low) / 2),
        sf.nanvl(m2, widest),
        sf.nanvl(logs, least),
        sf.nanvl(logs, most),
    ]
    return [sf.when(n > 0, of).alias(name) for name, of in zip(KNOWN_TO_LIE, bounds, strict=True)]


def _sure(name: str, pick: Callable[..., Column]) -> Column:
    """The extreme of one bucket that is there whichever of its readings are repeats.

    It may be lost where all places of it are in doubt. Then the next one is known where one reading is, else the
    other extreme, as long as any reading is certain.
    """
    doubt, often, none = sf.col("doubt"), sf.col(f"{name}_n"), sf.lit(math.inf if name == "low" else -math.inf)
    beside = pick(f"{name}_pre", f"{name}_suf")  # NaN, where one is not known, is greater than all
    known = ~sf.isnan(f"{name}_pre") & ~sf.isnan(f"{name}_suf")
    return (
        sf.when((doubt == 0) | (often > doubt), sf.col(name))
        .when((doubt == 1) & (often == 1) & (sf.col("n") > 1) & known, beside)
        .when(sf.col("n") > doubt, sf.col("high" if name == "low" else "low"))
        .otherwise(none)
    )


def _of_the_group() -> list[Column]:
    """What every row must know of all that are folded with it: their mean and their extremes."""
    group = Window.partitionBy(*_KEYS)
    mean = sf.sum("total").over(group) / sf.nullif(sf.sum("n").over(group), sf.lit(0))
    return [
        mean.alias("group_mean"),
        sf.min("low").over(group).alias("group_low"),
        sf.max("high").over(group).alias("group_high"),
    ]


def _frame(time: Column, slide_us: int, origin_us: int) -> Column:
    """Floor of (time − origin) / slide in integers: a double would lose microseconds."""
    offset = time - sf.lit(origin_us).cast("bigint")
    slide = sf.lit(slide_us).cast("bigint")
    return sf.call_function("div", offset - sf.pmod(offset, slide), slide)


def _aggregates() -> list[Column]:
    some = sf.col("n") > 0
    span = sf.col("t_last") - sf.col("t_first")
    apart = sf.col("total") / sf.nullif(sf.col("n"), sf.lit(0)) - sf.col("group_mean")
    squares = sf.col("n") * apart * apart
    return [
        *(sf.min(name).alias(name) for name in ("first", "t_first")),
        sf.max("t_last").alias("t_last"),
        *(sf.sum(name).alias(name) for name in ("n", "total", "gap", "doubt")),
        sf.min(SURE[0]).alias(SURE[0]),
        sf.max(SURE[1]).alias(SURE[1]),
        sf.min("low").alias("low"),
        sf.max("high").alias("high"),
        *(sf.max(name).alias(name) for name in BUCKET_FIELDS if name not in _FOLDED),
        *(_occurrences(name).alias(f"{name}_n") for name in ("low", "high")),
        *(sf.sum(sf.col(name) + squares).alias(name) for name in KNOWN_TO_LIE[:2]),
        *(sf.sum(name).alias(name) for name in KNOWN_TO_LIE[2:]),
        sf.sum(some.cast("bigint")).alias("buckets"),
        sf.sum(sf.when(some, span).otherwise(0)).alias("span_us"),
    ]


def _occurrences(name: str) -> Column:
    """How often the group's extreme occurs; −1 where one of its buckets does not say."""
    here = sf.when(sf.col(name) == sf.col(f"group_{name}"), sf.col(f"{name}_n"))
    none = sf.lit(0).cast("bigint")
    return sf.when(sf.min(here) < 0, sf.lit(-1).cast("bigint")).otherwise(sf.coalesce(sf.sum(here), none))
