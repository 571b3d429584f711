"""`spark.read.format("sluicegate")`: a gateway (`feed.source`), a folder of documents, or a table (`sql.folders`)."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.feed.source import FeedSource
from sluicegate_cloud.sql.folders import FolderReader, is_folder

NAME = "sluicegate"


class SluicegateSource(FeedSource):
    """Options of a gateway are those of FeedSource; of a folder `path`, `rows` and, of a table, `version`."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return NAME

    def schema(self) -> str:
        """Columns and their SQL types. Raises SourceError, TableError for what cannot be read."""
        return FolderReader(self.options).schema if is_folder(self.options) else super().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Everything that is there now."""
        return FolderReader(self.options) if is_folder(self.options) else super().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """What comes at a gateway. Raises SourceError for a folder."""
        if is_folder(self.options):
            raise SourceError("format sluicegate streams gateways: of a folder use `sluicegate cloud stream`")
        return super().streamReader(schema)
