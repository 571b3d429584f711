"""A table's versions: each names every file that is valid; the one whose name is made last counts, or none of it does.

TABLE/versions/00000012.json is made only when all that it names is on the disk, and only if no other run has made it.
So a run that dies leaves the version before, and of two at once one fails. Files are never changed; those that no kept
version names are removed (`vacuum`).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sluicegate_cloud.errors import BusyError, SourceError, TableError
from sluicegate_cloud.grid import MAX_EMPTY, Grid
from sluicegate_cloud.places.named import place_of
from sluicegate_cloud.table.grouping.groups import across_keys

#: What is written: since 2 a ledger has runs of documents, which an older Sluicegate would take for one that is used;
#: 3 where roll-ups are of several keys, or by a registry; 4 where windows of all say how many devices are silent.
FORMAT = 4
DAY_US = 86_400_000_000
#: Versions that are kept for who still reads them, and for going back.
KEPT = 8
#: Folders of files that versions name. What else lies in a table, such as a stream's place, is not ours to remove.
KINDS = (
    "documents",
    "ledger",
    "windows",
    "shares",
    "carried",
    "spans",
    "fleet",
    "streams",
    "sources",
    "index",
    "rollups",
    "registry",
)
_VERSIONS = "versions"
#: Files of a run that is under way are younger than this; what no version names and is older is of one that died.
_ABANDONED_S = 24 * 3600


@dataclass(frozen=True)
class Definition:
    """What a table answers; it stays the same for all versions of it.

    `cell_us`: the stretch of window starts, or of documents, that lies in one file; `shards`: into how many parts
    streams are spread; `by`: words for each roll-up (`grouping.groups`); `carried`: what is asked of what buckets
    carry.
    """

    window_us: int
    slide_us: int
    origin_us: int
    aggregates: tuple[str, ...]
    shards: int
    cell_us: int
    fleet: bool = True
    by: tuple[tuple[str, ...], ...] = ()
    max_empty: int = MAX_EMPTY
    carried: tuple[str, ...] = ()

    @property
    def grid(self) -> Grid:
        """The grid of its windows."""
        return Grid(self.slide_us, self.window_us // self.slide_us, self.origin_us)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Definition:
        """As `asdict` and JSON have it."""
        carried = tuple(told.get("carried", ()))
        lists = {"aggregates": tuple(told["aggregates"]), "by": tuple(map(tuple, told["by"])), "carried": carried}
        return cls(**told | lists)


@dataclass(frozen=True)
class Version:
    """One version: the index file of each shard, the fleet's files by cell, and which documents were read.

    `spans`: the file of the fleet's spans; `sources`: files that list the documents read; `changed`: what this version
    rewrote, (file of window rows, cell) each. `horizon_us`: windows that begin before it are not kept, but for
    `rollups`: `level_us`, `since_us`, `until_us`, `files` and `rows` each. `identity`: of the table, since its first
    version: another one that is made later at the same place has another; empty in what an older Sluicegate made.
    `registry`: the file of what is said of devices (`grouping.registry`); `heard`: of when they were heard of last
    (`silence`), None in what an older Sluicegate made.
    """

    number: int
    definition: Definition
    made_us: int = 0
    shards: dict[str, str] = field(default_factory=dict)
    fleet: dict[str, str] = field(default_factory=dict)
    spans: str | None = None
    sources: tuple[str, ...] = ()
    told: dict[str, Any] = field(default_factory=dict)
    horizon_us: int | None = None
    rollups: tuple[dict[str, Any], ...] = ()
    identity: str = ""
    registry: str | None = None
    heard: str | None = None


class Store:
    """The files of a table at one place that all workers see."""

    def __init__(self, root: str | Path) -> None:
        self.place = place_of(str(root))
        self._unsettled: list[str] = []

    @property
    def root(self) -> Any:
        """The folder, or the URL of the place: to be shown, and compared."""
        return self.place.root

    def new(self, kind: str) -> str:
        """A name below the root that no file has, such as "windows/0123….parquet". Raises ValueError."""
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is no kind of file of a table: {', '.join(KINDS)}")
        ending = "json" if kind == "index" else "parquet"
        return f"{kind}/{uuid.uuid4().hex}.{ending}"

    def write(self, kind: str, table: pa.Table, rows: int = 1 << 17) -> str:
        """Write a new file, which is on the disk after `settle`, and return its name. Raises SinkError."""
        return self._written(kind, table.schema, (table,), rows)

    def write_parts(self, kind: str, tables: Iterable[pa.Table], rows: int = 1 << 17) -> str | None:
        """The same of tables of one schema, which are made one after the other; None where they have no row."""
        some = (table for table in tables if table.num_rows)
        first = next(some, None)
        return None if first is None else self._written(kind, first.schema, chain((first,), some), rows)

    def _written(self, kind: str, schema: pa.Schema, tables: Iterable[pa.Table], rows: int) -> str:
        name = self.new(kind)
        texts = [of.name for of in schema if pa.types.is_string(of.type)]
        how = {"compression": "zstd", "compression_level": 1, "use_dictionary": texts}
        with self.place.written(name) as into, pq.ParquetWriter(into, schema, **how) as writer:
            for table in tables:
                writer.write_table(table, rows)
        self._unsettled.append(name)
        return name

    def row_groups(self, name: str, column: str) -> list[tuple[str, int]]:
        """Of a file's row groups the least text of a column ("": not known), and how many rows."""
        told = pq.ParquetFile(self.place.opened(name, some=True)).metadata
        at = told.schema.names.index(column)
        groups = [told.row_group(i) for i in range(told.num_row_groups)]
        known = [(of.column(at).statistics, of.num_rows) for of in groups]
        return [(one.min if one is not None and one.has_min_max else "", rows) for one, rows in known]

    def write_json(self, kind: str, told: dict[str, Any]) -> str:
        """The same for a small object."""
        name = self.new(kind)
        with self.place.written(name) as into:
            into.write(json.dumps(told).encode())
        self._unsettled.append(name)
        return name

    def settle(self) -> None:
        """All that was written is on the disk: after a task's last file, since the first sync waits for the others."""
        self.place.settle(self._unsettled)
        self._unsettled = []

    def read(self, name: str, columns: list[str] | None = None, filters: Any = None) -> pa.Table:
        """The rows of a file. Raises TableError where a version names it and it is not there."""
        try:
            source = self.place.opened(name, some=filters is not None)
            return pq.ParquetFile(source).read(columns) if filters is None else pq.read_table(
                source, columns=columns, filters=filters, partitioning=None
            )  # fmt: skip
        except FileNotFoundError as error:
            raise TableError(f"{self.root}/{name} is missing: a version newer than your reader removed it") from error

    def read_json(self, name: str) -> dict[str, Any]:
        """What `write_json` wrote."""
        told: dict[str, Any] = json.loads(self.place.read(name))
        return told

    def numbers(self) -> list[int]:
        """The versions that are there, ascending."""
        stems = (name.rpartition("/")[2].removesuffix(".json") for name in self.place.names(_VERSIONS))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def load(self, number: int | None = None) -> Version | None:
        """A version, the newest where none is named; None where there is no table yet. Raises SourceError."""
        found = self.numbers()
        if number is None and not found:
            return None
        wanted = found[-1] if number is None else number
        if wanted not in found:
            raise SourceError(f"{self.root} has no version {wanted}; there are: {', '.join(map(str, found)) or 'none'}")
        told = self.read_json(_path(wanted))
        if told.pop("format") not in range(1, FORMAT + 1):
            raise SourceError(f"{self.root}/{_path(wanted)} is of another format than 1 to {FORMAT}: update Sluicegate")
        definition = Definition.from_json(told.pop("definition"))
        lists = {name: tuple(told.get(name, ())) for name in ("sources", "rollups")}
        return Version(**told | {"definition": definition, **lists})

    def commit(self, version: Version) -> Version:
        """Make `version` the newest. Raises BusyError where another run was first: nothing of this one counts then."""
        self.settle()
        version = replace(version, made_us=time.time_ns() // 1000, identity=version.identity or uuid.uuid4().hex)
        try:
            self.place.create(_path(version.number), json.dumps(_told(version)).encode())
        except FileExistsError as error:
            raise BusyError(
                f"another merge made version {version.number} of {self.root} meanwhile: nothing of this one counts; "
                "run it again"
            ) from error
        return version

    def vacuum(self, kept: int = KEPT, abandoned_s: float = _ABANDONED_S) -> int:
        """Remove versions before the newest `kept`, and files that no version names; how many files went."""
        for number in self.numbers()[:-kept]:
            self.place.remove(_path(number))
        named = {name for number in self.numbers() for name in self.files(self.load(number))}
        gone, since = 0, time.time() - abandoned_s
        for name, written in (of for kind in KINDS for of in self.place.names(kind).items()):
            if name not in named and written < since:
                self.place.remove(name)
                gone += 1
        return gone

    def discard(self, version: Version, kept: Version) -> None:
        """Remove the files of a version that was not committed; those of `kept` stay."""
        stay = {*self.files(kept)}
        for name in [*self.files(version)]:
            if name not in stay:
                self.place.remove(name)

    def files(self, version: Version | None) -> Iterator[str]:
        """Every file that a version needs."""
        if version is None:
            return
        yield from version.fleet.values()
        yield from version.sources
        yield from (name for of in version.rollups for name in of["files"])
        yield from (name for name in (version.spans, version.registry, version.heard) if name)
        for name in version.shards.values():
            yield name
            yield from files_of_index(self.read_json(name))

    def writing(self) -> AbstractContextManager[None]:
        """The table for one run of this machine at a time. Raises TableError, SinkError."""
        return self.place.alone()


def is_same(store: Store, version: Version, number: int, identity: str | None, made_us: int | None = None) -> bool:
    """Whether a version that somebody noted, as older ones did without `made_us`, may be of the table as it is now.

    It is not where the table was made anew since, or restored from before it: its numbers come again with other rows.
    """
    if identity and identity != version.identity:
        return False
    numbers = store.numbers()
    if number > max([version.number, *numbers]):
        return False
    there = store.load(number) if made_us and number in numbers else None
    return there is None or there.made_us == made_us


def _told(version: Version) -> dict[str, Any]:
    """In the oldest format that has all of it: an older Sluicegate would roll up otherwise, and refuses the newest."""
    told = {name: of for name, of in asdict(version).items() if of is not None or name not in ("registry", "heard")}
    has_more = version.registry is not None or any(map(across_keys, version.definition.by))
    return {"format": FORMAT if version.heard is not None else 3 if has_more else 2, **told}


def _path(number: int) -> str:
    return f"{_VERSIONS}/{number:08d}.json"


def files_of_index(index: dict[str, Any]) -> Iterator[str]:
    """The files that a shard's index names."""
    for name in ("ledger", "spans", "streams"):
        yield from [index[name]] if index.get(name) else []
    yield from index.get("settled", ())
    for of in ("documents", "windows"):
        yield from (name for names in index[of].values() for name in names)
    for of in ("shares", "carried"):
        yield from index.get(of, {}).values()
