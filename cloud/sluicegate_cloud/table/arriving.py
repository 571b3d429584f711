"""Chunk documents as they come into a folder or a bucket, for `spark.readStream`: each file as it is, once a query.

What a micro-batch reads is noted as a list of files before Spark knows of it: an offset is how many lists there are, so
the same two offsets read the same files after any crash. A file is known by path, size and time, whatever its time and
name: what comes with an old time, is hidden or was written anew is read too, which Spark's own source of files is not.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from sluicegate_cloud.documents import of_files
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.feed.source import SCHEMAS
from sluicegate_cloud.places.named import Place, place_of
from sluicegate_cloud.sources import list_sources
from sluicegate_cloud.table import sources as seen

NAME = "sluicegate_files"
_OPTIONS = ("path", "rows", "noted", "maxdocuments")
_FOLDER, _FOLDED = "arrived", "arrived-before"
#: Lists beyond which the older ones become one, and of these how many stay for a batch that is read again.
_MOST, _STAY = 64, 16
_PER_TASK = 256
Offset = dict[str, int]


@dataclass(frozen=True)
class Arrived(InputPartition):
    """What one task reads."""

    paths: tuple[str, ...]


class ArrivalSource(DataSource):
    """The format NAME, for streams; options are those of ArrivalReader."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return NAME

    def schema(self) -> str:
        """Columns and their SQL types."""
        return ArrivalReader(self.options).schema

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """What comes. Raises SourceError for an option that will not do."""
        return ArrivalReader(self.options)


class ArrivalReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Options: `path`; `noted`, a place for the lists that belongs to one checkpoint; `rows`; `maxDocuments`."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.options = {name.lower(): value for name, value in dict(given).items()}
        if unknown := sorted({*self.options} - {*_OPTIONS}):
            raise SourceError(f"a stream of a folder has no option {unknown[0]!r}, only {', '.join(_OPTIONS)}")
        if not self.options.get("noted"):
            raise SourceError("a stream of a folder notes what it has read: give the option noted, a place of its own")
        self.kind = self.options.get("rows", "buckets")
        if self.kind not in SCHEMAS:
            raise SourceError(f"option rows={self.kind!r}: expected {' or '.join(SCHEMAS)}")
        self._frozen: pa.Table | None = None
        self._known: pa.Table | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What a task needs: not what is known of files."""
        return self.__dict__ | {"_frozen": None, "_known": None}

    @property
    def schema(self) -> str:
        """Columns and their SQL types."""
        return SCHEMAS[self.kind]

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Nothing is read. Asked again after a crash, too: lists that there are stay."""
        return {"lists": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """`maxDocuments`, or no limit."""
        most = self.options.get("maxdocuments")
        return ReadMaxRows(int(most)) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all that `availableNow` will read."""
        self._frozen = self._files()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """One list more where anything is new: one that a run made before Spark knew, else a new one."""
        there = [number for number in self._numbers(_FOLDER) if number > start["lists"]]
        if there:
            return {"lists": there[0]}
        files = self._files() if self._frozen is None else self._frozen
        new = files.filter(pc.invert(seen.among(files, self._all_known()))).sort_by([("changed_ns", "ascending")])
        if isinstance(limit, ReadMaxRows):
            new = new.slice(0, limit.max_rows)
        if not new.num_rows:
            return start
        number = max([start["lists"], *self._numbers(_FOLDED)]) + 1
        self._place.create(_name(number), _bytes_of(new))
        self._known = pa.concat_tables([self._all_known(), new])
        return {"lists": number}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Some files each; to who begins anew all that older lists had."""
        before = [number for number in self._numbers(_FOLDED) if number > start["lists"]]
        since = max([start["lists"], *before]) + 1
        names = [f"{_FOLDED}/{number:010d}.parquet" for number in before]
        lists = [self._read(name) for name in (*names, *map(_name, range(since, end["lists"] + 1)))]
        names = [path for one in lists for path in one["path"].to_pylist()]
        return [Arrived(tuple(names[at : at + _PER_TASK])) for at in range(0, len(names), _PER_TASK)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches."""
        if not isinstance(partition, Arrived):
            raise TypeError(f"a partition of another source: {partition!r}")
        return of_files(partition.paths, self.kind)

    def commit(self, end: Offset) -> None:
        """Of what is read for good the older lists become one, without the files that are gone."""
        numbers = self._numbers(_FOLDER)
        old = [number for number in numbers if number <= end["lists"] - _STAY]
        if len(numbers) <= _MOST or not old:
            return
        before = sorted(self._place.names(_FOLDED))
        known = pa.concat_tables([self._read(name) for name in (*before, *map(_name, old))])
        left = known.filter(seen.among(known, self._files()))
        self._place.create(f"{_FOLDED}/{old[-1]:010d}.parquet", _bytes_of(left))
        for name in (*before, *map(_name, old)):
            self._place.remove(name)

    @property
    def _place(self) -> Place:
        return place_of(self.options["noted"])

    def _numbers(self, folder: str) -> list[int]:
        """Of the lists in it, ascending."""
        return sorted(int(name.rpartition("/")[2].removesuffix(".parquet")) for name in self._place.names(folder))

    def _files(self) -> pa.Table:
        try:
            found = list_sources(self.options.get("path", ""))
        except SourceError:  # there may be none yet
            return seen.listed([])
        return seen.listed(found.files, found.objects)

    def _all_known(self) -> pa.Table:
        if self._known is None:
            names = [*self._place.names(_FOLDED), *self._place.names(_FOLDER)]
            self._known = pa.concat_tables([seen.listed([]), *map(self._read, names)])
        return self._known

    def _read(self, name: str) -> pa.Table:
        return pq.read_table(pa.BufferReader(self._place.read(name)))


def _name(number: int) -> str:
    return f"{_FOLDER}/{number:010d}.parquet"


def _bytes_of(files: pa.Table) -> bytes:
    into = io.BytesIO()
    pq.write_table(files, into)
    return into.getvalue()
