"""Windows, documents and tables in SQL: the function `sluicegate_windows`, and folders as `format("sluicegate")`."""

from __future__ import annotations

from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make both known in a session."""
    from pyspark.sql.functions import udtf

    from sluicegate_cloud.sql.function import NAME, Windows
    from sluicegate_cloud.sql.source import SluicegateSource

    spark.dataSource.register(SluicegateSource)
    spark.udtf.register(NAME, udtf(Windows))  # type: ignore[arg-type]  # given a class, no decorator comes back
