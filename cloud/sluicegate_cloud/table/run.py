"""A run on a table: read what is new, rewrite what it touches, make the next version; Spark spreads shards and cells.

Spark decodes documents and brings a shard's together; one task takes them in and answers the shard's windows in
columns, so that no bucket and no window ever is a row of Spark's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sluicegate_cloud.documents import ARROW
from sluicegate_cloud.grid import expand_ranges
from sluicegate_cloud.session import parallelism
from sluicegate_cloud.table import horizon, shard, whole
from sluicegate_cloud.table import ledger as ledgers
from sluicegate_cloud.table.adding import meets
from sluicegate_cloud.table.grouping import registry as registries
from sluicegate_cloud.table.grouping import silence
from sluicegate_cloud.table.grouping.groups import labels_of
from sluicegate_cloud.table.grouping.registry import Registry
from sluicegate_cloud.table.ranges import FIRST, LAST, Ends, Ranges, crossing, joined, merged
from sluicegate_cloud.table.versions import Definition, Store, Version

_TOLD, _ARROW = "number bigint, name string, told string", pa.schema(
    [("number", pa.int64()), ("name", pa.string()), ("told", pa.string())]
)  # fmt: skip
#: Bytes of a shard's documents that a task takes in at a time: what a run has more is taken in by time, part by part.
MOST_BYTES = 192 << 20
Batches = Iterable[pa.RecordBatch]
Task = tuple[str | None, dict[str, Any]]
Work = Callable[[int], Task]
#: Does some work for each number, wherever that is: (number, what came of it) each.
Over = Callable[[Work, Sequence[int]], list[tuple[int, Task]]]


def take_in(
    spark: SparkSession, store: Store, version: Version, documents: DataFrame, sources: tuple[str, ...] | None = None
) -> Version:
    """The next version, with `documents` (rows of `documents.DOCUMENTS`) in it; `sources`: the lists of what was read.

    Raises TableError where another run made the next version first.
    """
    shards = version.definition.shards
    number = sf.pmod(sf.xxhash64("device", "stream"), sf.lit(shards)).cast("bigint")
    rows = documents.withColumn("shard", number).repartition(min(shards, _tasks(spark)), "shard")
    rows = rows.sortWithinPartitions("shard", "t_first")
    done = _collected(rows.mapInArrow(shards_into(store, version, refused(store, version)), _TOLD))
    return store.commit(following(store, version, done, over(spark), sources))


def registered(spread: Over, store: Store, version: Version, registry: Registry) -> Version:
    """The next version, which keeps a registry, with the windows anew of which that changes the roll-ups."""
    version = replace(version, registry=registries.write(store, registry))
    store.settle()

    def work(number: int) -> Task:
        return shard.merge(store, version, number, ARROW.empty_table())

    done = spread(work, sorted(map(int, version.shards)))
    return store.commit(following(store, version, done, spread))


def refused(store: Store, version: Version) -> frozenset[str]:
    """Paths of the files that were unreadable when they were read last.

    A file that is half written does not say whose it is. So the shard that refused it may not be the one it belongs to.
    """
    return ledgers.unreadable(store, [store.read_json(name) for name in version.shards.values()])


def answer_anew(spark: SparkSession, store: Store, version: Version) -> Version:
    """The next version, all of whose windows are answered anew from the documents that are kept."""
    return store.commit(answered_anew(spark, store, version))


def answered_anew(spark: SparkSession, store: Store, version: Version) -> Version:
    """The same, not committed."""

    def work(number: int) -> Task:
        return shard.merge(store, version, number, None)

    done = over(spark)(work, sorted(map(int, version.shards)))
    return following(store, version, done, over(spark), everything=True)


def over(spark: SparkSession) -> Over:
    """Spark's workers."""

    def spread(work: Work, numbers: Sequence[int]) -> list[tuple[int, Task]]:
        def worker(batches: Batches) -> Iterator[pa.RecordBatch]:
            for number in (numbers[at] for batch in batches for at in batch["id"].to_pylist()):
                yield _one(number, work(number))

        if not numbers:
            return []
        each = spark.range(0, len(numbers), 1, min(len(numbers), _tasks(spark)))
        return _collected(each.mapInArrow(worker, _TOLD))

    return spread


def _collected(rows: DataFrame) -> list[tuple[int, Task]]:
    return [(row["number"], (row["name"], json.loads(row["told"]))) for row in rows.collect()]


def _tasks(spark: SparkSession) -> int:
    return 4 * parallelism(spark)


def shards_into(
    store: Store, version: Version, unreadable: frozenset[str], most: int = MOST_BYTES
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Documents with their `shard`, sorted by it and by time → what came of each shard; `most` bytes are held.

    `unreadable`: `refused`.
    """

    def worker(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number, some in groupby(_by_shard(batches, most), itemgetter(0)):
            yield _one(number, _taken_in(store, version, number, (table for _, table in some), unreadable))

    return worker


def _taken_in(
    store: Store, version: Version, number: int, parts: Iterable[pa.Table], unreadable: frozenset[str]
) -> Task:
    """What came of all of them: each is merged into what came of those before it."""
    name, told = None, dict[str, Any]()
    for part in parts:
        name, more = shard.merge(store, version, number, part, unreadable)
        version = replace(version, shards=version.shards | {str(number): name})
        told = _together(told, more) if told else more
    return name, told


def _together(told: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """One report of a run, from the reports of two of its merges."""
    changed = {of: merged([*told["changed"].get(of, []), *ranges]) for of, ranges in more["changed"].items()}
    added = {name: told[name] + more[name] for name in ("documents", "copies", "refused", "rows", "files", "again")}
    return added | {"changed": told["changed"] | changed}


def _one(number: int, task: Task) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"number": number, "name": task[0], "told": json.dumps(task[1])}], _ARROW)


def _by_shard(batches: Batches, most: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each shard, which come together, some after the other where they are more than `most` bytes."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        numbers = batch["shard"].to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), batch.num_rows]
        for begin, end in pairwise(edges):
            some = batch.slice(begin, end - begin)
            if held and some.num_rows and (size >= most or held[0]["shard"][0] != some["shard"][0]):
                yield held[0]["shard"][0].as_py(), _documents(held)
                held, size = [], 0
            if some.num_rows:
                held.append(some)
                size += some.nbytes
    if held:
        yield held[0]["shard"][0].as_py(), _documents(held)


def _documents(held: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(held).select(ARROW.names).cast(ARROW)


def following(
    store: Store,
    version: Version,
    done: Sequence[tuple[int, Task]],
    spread: Over,
    sources: tuple[str, ...] | None = None,
    *,
    everything: bool = False,
) -> Version:
    """The next version, of what came of the shards: the windows of all devices are answered first."""
    shards = version.shards | {str(number): name for number, (name, _) in done if name}
    shards = dict(sorted(shards.items(), key=lambda of: int(of[0])))  # what they have is added up in this order
    shards |= _without_old_refusals(
        store, shards, {path: number for number, (_, one) in done for path in one.get("again", [])}
    )
    of_all: dict[str, Ranges] = {}
    for _, (_, told) in done:
        for stream, ranges in told["changed"].items():
            of_all[stream] = merged([*of_all.get(stream, []), *((low, high) for low, high in ranges)])
    counts = {name: sum(told[name] for _, (_, told) in done) for name in ("documents", "copies", "refused", "rows")}
    told = counts | {"files": [name for _, (_, one) in done for name in one["files"]], "everything": everything}
    now = replace(
        version,
        number=version.number + 1,
        shards=shards,
        sources=version.sources if sources is None else sources,
        told=told,
    )
    if version.definition.fleet:
        return _fleet(spread, store, version, now, of_all, everything=everything)
    return now


def _without_old_refusals(store: Store, shards: dict[str, str], again: dict[str, int]) -> dict[str, str]:
    """New indexes of the shards that still count a file as refused which another shard has read `again` since."""
    out = {}
    for number, name in shards.items() if again else ():
        theirs = (path for path, of in again.items() if str(of) != number)
        index = ledgers.forgiven(store, store.read_json(name), theirs)
        if index is not None:
            out[number] = store.write_json("index", index)
    if out:
        store.settle()
    return out


def _fleet(
    spread: Over, store: Store, before: Version, now: Version, of_all: dict[str, Ranges], *, everything: bool
) -> Version:
    """The windows of all devices: a task for some cells."""
    indexes = [store.read_json(name) for name in now.shards.values()]
    definition = now.definition
    heard = silence.heard(store, indexes, definition, registries.retired(registries.of_version(store, now)))
    now = replace(now, heard=store.write("shares", heard))
    store.settle()
    if before.heard is None:  # an older Sluicegate's windows say nothing of silence
        everything, of_all = True, {label: [(FIRST, LAST)] for label in whole.marks_of(indexes, definition)}
    elif not everything:
        of_all = _joined(of_all, silence.changed(store.read(before.heard), heard))
    of_all = _with_nearer(store, before, indexes, definition, of_all)
    known = {cell for index in indexes for cell in index["shares"]} | {*before.fleet}
    known |= _cells_of_spans(store, definition, indexes, of_all)
    hull = {"": merged(window for ranges in of_all.values() for window in ranges)}
    cells = sorted(int(cell) for cell in known if meets(int(cell), definition, hull))
    old = {} if everything else before.fleet
    names = [*now.shards.values()]

    def work(cell: int) -> Task:
        told = [store.read_json(name) for name in names]
        return whole.cell(store, now, cell, told, old.get(str(cell)), of_all), {}

    made = {str(cell): name for cell, (name, _) in spread(work, cells) if name}
    fleet = {cell: name for cell, name in old.items() if int(cell) not in cells} | made
    spans = whole.long_spans(store, now, indexes)
    if now.horizon_us is not None:
        fleet = horizon.trim_fleet(store, definition, fleet, now.horizon_us)
        spans = horizon.trim_file(store, definition, spans, now.horizon_us)
    return replace(now, fleet=fleet, spans=spans, told=now.told | {"files": [*now.told["files"], *made.values()]})


def _joined(some: dict[str, Ranges], more: dict[str, Ranges]) -> dict[str, Ranges]:
    return some | {label: merged([*some.get(label, []), *ranges]) for label, ranges in more.items()}


def _with_nearer(
    store: Store, before: Version, indexes: list[dict[str, Any]], definition: Definition, of_all: dict[str, Ranges]
) -> dict[str, Ranges]:
    """`of_all` and, where devices have spans, the windows answered singly only since another device came near."""
    if not any(index["spans"] for index in indexes):
        return of_all
    old, new = (
        whole.marks_of(each, definition)
        for each in ([store.read_json(name) for name in before.shards.values()], indexes)
    )
    out = dict(of_all)
    for label, marks in new.items():
        known = {*_pairs(old[label], definition)} if label in old else set()
        nearer = [pair for pair in _pairs(marks, definition) if pair not in known]
        out[label] = merged([*out.get(label, []), *nearer])
    return out


def _pairs(marks: Any, definition: Definition) -> list[tuple[int, int]]:
    return [(int(low), int(high)) for low, high in zip(*whole.near(marks, definition), strict=True)]


def _cells_of_spans(
    store: Store, definition: Definition, indexes: list[dict[str, Any]], of_all: dict[str, Ranges]
) -> set[str]:
    """The cells in which a device's span may add to windows that are answered one by one."""
    spans: dict[str, Ends] = {}
    for name in (index["spans"] for index in indexes if index["spans"]):
        table = store.read(name, ["stream", "frame", "windows"])
        for stream in table["stream"].unique().to_pylist():
            mine = table.filter(pc.equal(table["stream"], stream))
            first, windows = mine["frame"].to_numpy(), mine["windows"].to_numpy()
            for label in labels_of(definition.by, stream):
                known = spans.get(label, (first[:0], first[:0]))
                spans[label] = joined(np.append(known[0], first), np.append(known[1], first + windows - 1))
    out: set[str] = set()
    for label, marks in whole.marks_of(indexes, definition).items():
        if label in spans and label in of_all:
            anew = np.array(of_all[label], np.int64).reshape(-1, 2)
            _, *ends = crossing(whole.near(marks, definition), (anew[:, 0], anew[:, 1]))
            _, since, until = crossing(spans[label], (ends[0], ends[1]))
            cells = joined(*((definition.grid.start_us(at) // definition.cell_us) for at in (since, until)))
            out.update(map(str, expand_ranges(*cells)[1].tolist()))
    return out
