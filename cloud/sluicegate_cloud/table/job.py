"""`cloud merge --table`: the documents that are new, into the table's next version; and `cloud reconcile`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.format.tags import NAME as TAG
from sluicegate_cloud import metrics
from sluicegate_cloud.errors import SourceError, TableError
from sluicegate_cloud.progress import step
from sluicegate_cloud.sources import list_sources, read_files
from sluicegate_cloud.table import compare, retention, run
from sluicegate_cloud.table import sources as seen
from sluicegate_cloud.table.grouping import registry
from sluicegate_cloud.table.grouping.groups import ALL_KEYS, LEVEL
from sluicegate_cloud.table.grouping.registry import Registry
from sluicegate_cloud.table.versions import DAY_US, Definition, Store, Version

#: Into how many parts a new table spreads its streams.
SHARDS = 16
#: Windows of one stream that lie in one file, at least: a file has its own cost, and a run rewrites whole files.
_LEAST = 512


def definition_of(
    window_us: int,
    slide_us: int,
    aggregates: Sequence[str],
    *,
    origin_us: int = 0,
    shards: int = SHARDS,
    by: Sequence[Sequence[str]] = (),
    carried: Sequence[str] = (),
) -> Definition:
    """What a new table answers: a file holds days of windows, more where they are few. Raises SourceError."""
    days = -(-slide_us * _LEAST // DAY_US)
    names = tuple(dict.fromkeys(("count", *aggregates)))
    return Definition(
        window_us, slide_us, origin_us, names, shards, days * DAY_US, by=_roll_ups(by), carried=tuple(carried)
    )


def _roll_ups(by: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Each once, in whatever order it names its words: asked for twice, it would count twice. Raises SourceError."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for names in by:
        if not names or not all(name == ALL_KEYS or LEVEL.fullmatch(name) or TAG.fullmatch(name) for name in names):
            raise SourceError(
                f"by {','.join(names)!r}: expected, by comma, names of tags such as site,line, / for all keys, /1 for "
                "a level of the key"
            )
        found.setdefault(frozenset(names), tuple(dict.fromkeys(names)))
    told: dict[str, str] = {}
    for name in (name for names in found for name in sorted(names)):
        if (other := told.setdefault(name.lower(), name)) != name:
            raise SourceError(f"by {other!r} and {name!r}, which differ in case only: SQL takes their columns for one")
    return tuple(found.values())


def opened(store: Store, definition: Definition | None) -> Version:
    """The newest version, or none of a new table. Raises TableError, SourceError."""
    version = store.load()
    if version is None:
        if definition is None:
            raise SourceError(f"{store.root} holds no table: make one by `sluicegate cloud merge … --table`")
        return Version(0, definition)
    wanted = definition and replace(
        definition, shards=version.definition.shards, max_empty=version.definition.max_empty
    )
    if wanted is not None and wanted != version.definition:
        raise TableError(
            f"the table {store.root} answers {_said(version.definition)}, and {_said(wanted)} is asked: "
            "give another --table"
        )
    return version


def _said(definition: Definition) -> str:
    by = "".join(f", by {'+'.join(names)}" for names in definition.by)
    return f"windows of {definition.window_us} us, sliding by {definition.slide_us} us from {definition.origin_us}, " \
           f"{','.join((*definition.aggregates, *definition.carried))}{by}"  # fmt: skip


def merge(spark: SparkSession, sources: Sequence[str], table: str | Path, definition: Definition | None) -> Version:
    """Take what is new in `sources` (folders, files, globs) into the table; the version there is where nothing is.

    Raises SourceError, TableError (another merge has the table, or was first), SinkError.
    """
    listed = list_sources(sources)
    if listed.uris or listed.gateways:
        raise SourceError(
            "a table is merged from folders, files, s3:// and couchbases:// URLs; of a gateway or another URI use "
            "`cloud stream`"
        )
    store = Store(table)
    with store.writing():
        version = opened(store, definition)
        with step("looking for new documents"):
            files = seen.listed(listed.files, listed.objects)
            new = seen.unseen(store, version.sources, files)
        if not new.num_rows:
            return version
        documents = read_files(spark, new["path"].to_pylist())
        with step(f"merging {new.num_rows:,} documents", spark):
            lists = seen.noted(store, version.sources, new, files, [*map(str, sources)])
            return _taken(spark, store, version, documents, lists)


def register(spark: SparkSession, table: str | Path, told: Registry, definition: Definition | None) -> Version:
    """Keep what a registry says of devices; answer anew, in the next version, what that changes. The version there is
    where it says what it said before. Raises TableError, SourceError, SinkError.
    """
    store = Store(table)
    with store.writing():
        version = opened(store, definition)
        if told == registry.of_version(store, version):
            return version
        with step("answering roll-ups by the registry", spark):
            return run.registered(run.over(spark), store, version, told)


def take(spark: SparkSession, documents: DataFrame, table: str | Path, definition: Definition | None) -> Version:
    """Take rows of `documents.DOCUMENTS` into the table, whatever gave them: a micro-batch, a feed."""
    store = Store(table)
    with store.writing():
        return _taken(spark, store, opened(store, definition), documents, None)


def _taken(
    spark: SparkSession, store: Store, version: Version, documents: DataFrame, lists: tuple[str, ...] | None
) -> Version:
    with metrics.timed(spark):
        following = run.take_in(spark, store, version, documents, lists)
    told = {name: following.told[name] for name in ("documents", "copies", "refused")}
    metrics.tell(spark, **told, windows=following.told["rows"], version=following.number)
    store.vacuum()
    return following


def retain(
    spark: SparkSession | None, table: str | Path, keep_us: int, levels: retention.Levels, now_us: int
) -> tuple[Version, dict[str, Any]]:
    """Take what is older than `keep_us` before `now_us` out of the table; its next version, and what went.

    `levels`: roll-ups, length of a window and how long they are kept, µs each. Without `spark`: only what would go.
    Raises SourceError, TableError.
    """
    store = Store(table)
    with store.writing():
        version = opened(store, None)
        if keep_us < version.definition.window_us:
            raise TableError(f"{keep_us} us is less than a window, {version.definition.window_us} us: keep more")
        horizon_us = retention.horizon_of(version, now_us - keep_us, levels)
        if spark is None:
            return replace(version, horizon_us=horizon_us), retention.plan(store, version, horizon_us)
        with step("answering roll-ups, taking out what is old", spark):
            following = retention.retain(run.over(spark), store, version, horizon_us, levels, now_us)
        store.vacuum()
        return following, dict(following.told) if following.number > version.number else {}


def rebuild(spark: SparkSession, table: str | Path) -> Version:
    """Answer all windows anew from the documents that the table keeps: the next version."""
    store = Store(table)
    with store.writing():
        return run.answer_anew(spark, store, opened(store, None))


def reconcile(spark: SparkSession, table: str | Path) -> Iterator[str]:
    """In what the table differs from its own documents, answered anew: nothing, unless it drifted.

    What is answered anew is thrown away.
    """
    store = Store(table)
    with store.writing():
        version = opened(store, None)
        with step("answering all windows anew", spark):
            again = run.answered_anew(spark, store, version)
        try:
            yield from compare.differences(spark, store, version, again)
        finally:
            store.discard(again, version)


def summary(store: Store, version: Version) -> dict[str, Any]:
    """What a run did, for a terminal."""
    told = version.told
    return {
        "version": version.number,
        **{name: told.get(name, 0) for name in ("documents", "copies", "refused", "rows")},
    }
