"""The cloud's part: buckets of all devices → frames → windows per device and fleet-wide, tables and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `sluicegate_windows(…)` and the format `sluicegate` known to the SQL of a session (docs/how-to/sql.md)."""
    from sluicegate_cloud.sql import register as registered

    registered(spark)
