"""`spark.read.format("sluicegate")`: a gateway (`feed.source`), a folder of documents, or a table (`sql.folders`)."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from sluicegate_cloud.feed.source import FeedSource
from sluicegate_cloud.sql.folders import FolderReader, is_folder, require_no_table
from sluicegate_cloud.table.arriving import ArrivalReader

NAME = "sluicegate"


class SluicegateSource(FeedSource):
    """Options of a gateway are those of FeedSource; of a folder `path`, `rows` and, of a table, `version`; of a stream
    of one also those of ArrivalReader.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return NAME

    def schema(self) -> str:
        """Columns and their SQL types. Raises SourceError, TableError for what cannot be read."""
        if not is_folder(self.options):
            return super().schema()
        return ArrivalReader(self.options).schema if "noted" in self.options else FolderReader(self.options).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Everything that is there now."""
        return FolderReader(self.options) if is_folder(self.options) else super().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """What comes at a gateway, or into a folder. Raises SourceError for an option or a place that will not do."""
        if not is_folder(self.options):
            return super().streamReader(schema)
        require_no_table(self.options)
        return ArrivalReader(self.options)
