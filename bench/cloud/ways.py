"""The same windows in four ways: ours with certain intervals, and plain values by Spark, DuckDB and Polars.

The others count a bucket in the frame in which it begins: they have no bounds, and no cut buckets.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.cloud.buckets import SLIDE_US

from sluicegate_cloud.frames import place_in_frames
from sluicegate_cloud.windows import sliding_windows, windows_of_files

SIX = ("count", "sum", "mean", "std", "min", "max")
#: Given the file and a window's width in frames, compute every row and throw it away.
Way = Callable[[Path, int], None]
_MOMENTS = "sum(n) OVER w AS count, sum(s) OVER w AS total, sum(q) OVER w AS squares"
_SQL = """
SELECT count(*), sum(total), sum(squares), min(low), max(high), sum(mean), sum(std) FROM (
  SELECT count, total, squares, low, high, total / count AS mean,
         sqrt(greatest(squares / count - (total / count) * (total / count), 0)) AS std FROM (
    SELECT {moments}, min(low) OVER w AS low, max(high) OVER w AS high FROM (
      SELECT device, CAST(floor(t_first / {slide}) AS BIGINT) AS frame, n, total + n * center AS s, low, high,
             m2 + n * (total / n + center) * (total / n + center) AS q FROM {source})
    WINDOW w AS (PARTITION BY device ORDER BY frame RANGE BETWEEN CURRENT ROW AND {ahead} FOLLOWING)))
"""


def _sql(source: str, width: int) -> str:
    return _SQL.format(moments=_MOMENTS, slide=SLIDE_US, source=source, ahead=width - 1)


def ours(spark: Any, aggregates: tuple[str, ...] = SIX, *, fleet: bool = False) -> Way:
    """Devices' windows with intervals, the file read by the workers; `fleet`: those of all too."""

    def run(path: Path, width: int) -> None:
        windows = windows_of_files(spark, path, SLIDE_US, width, aggregates, fleet=fleet)
        windows.write.format("noop").mode("overwrite").save()

    return run


def ours_of_rows(spark: Any, *, spread: bool = False) -> Way:
    """The same of a DataFrame, whose rows Spark reads and brings together; `spread`: large streams to several tasks."""

    def run(path: Path, width: int) -> None:
        frames = place_in_frames(spark.read.parquet(str(path)), SLIDE_US)
        windows = sliding_windows(frames, width, SIX, fleet=False, spread=spread)
        windows.write.format("noop").mode("overwrite").save()

    return run


def plain_spark(spark: Any) -> Way:
    """Spark's own RANGE windows."""

    def run(path: Path, width: int) -> None:
        spark.read.parquet(str(path)).createOrReplaceTempView("buckets")
        spark.sql(_sql("buckets", width)).collect()

    return run


def duckdb() -> Way | None:
    """None where DuckDB is not installed."""
    try:
        import duckdb as library
    except ImportError:
        return None

    def run(path: Path, width: int) -> None:
        with library.connect() as connection:
            connection.execute("SET threads = 2")
            connection.execute(_sql(f"read_parquet('{path}')", width)).fetchall()

    return run


def polars() -> Way | None:
    """None where Polars is not installed."""
    try:
        import polars as pl
    except ImportError:
        return None

    def run(path: Path, width: int) -> None:
        n, mean = pl.col("n"), pl.col("total") / pl.col("n") + pl.col("center")
        rows = pl.read_parquet(path, columns=["device", "t_first", "n", "total", "center", "m2", "low", "high"])
        frame, squares = (pl.col("t_first") // SLIDE_US).alias("frame"), (pl.col("m2") + n * mean * mean).alias("q")
        rows = rows.select("device", frame, n, "low", "high", (n * mean).alias("s"), squares).sort("device", "frame")
        over = rows.rolling("frame", period=f"{width}i", group_by="device").agg(
            pl.col("n").sum(), pl.col("s").sum(), pl.col("q").sum(), pl.col("low").min(), pl.col("high").max()
        )
        over.with_columns((pl.col("q") / pl.col("n") - (pl.col("s") / pl.col("n")) ** 2).sqrt()).sum()

    return run
