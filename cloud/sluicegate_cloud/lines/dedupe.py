"""Each reading once: documents are told apart by id, versions by their bytes, and ordinals prove what is missing.

Documents that say the same count once. Of one id with different bytes (which write-once targets make impossible, so two
boards wrote it, or somebody changed a file) the version with most readings is taken, of equals the least digest: the
same choice in every run, and each other version is a conflict. A document whose ordinals overlap those of one in use is
left out and reported: counting a reading twice would be worse than saying that it is missing. `placing` does it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sluicegate_cloud.documents import DOCUMENTS
from sluicegate_cloud.lines.placing import ORDER, PLACED, place
from sluicegate_cloud.schema import COPY, PROBLEMS, REFUSED, USED, ddl

__all__ = ["COPY", "PROBLEMS", "REFUSED", "USED", "catalogue", "in_order"]


def catalogue(documents: DataFrame) -> DataFrame:
    """`documents` with the `fate` of each, the `reason` of one not used, and what is missing at it.

    `hole`: readings missing between the times `hole_from` and `hole_to` in µs: the ordinals before a document that is
    used, or the readings of one left out that no other has. A stream's first document has a hole when it does not begin
    with ordinal 0; no time bounds it from before. All documents of a stream are in one partition, in their order.
    """
    return in_order(documents).mapInArrow(place, f"{DOCUMENTS}, {ddl(PLACED)}")


def in_order(documents: DataFrame) -> DataFrame:
    """As `placing.place` wants them: all of a stream in one partition, by ORDER."""
    by = [sf.col(name.removesuffix(" desc")).desc() if name.endswith(" desc") else sf.col(name) for name in ORDER]
    return documents.repartition("device", "stream").sortWithinPartitions(*by)
