"""Where PySpark looks for data sources: makes `spark.read.format("sluicegate")` known in every session."""

from sluicegate_cloud.sql.source import SluicegateSource as DefaultSource

__all__ = ["DefaultSource"]
