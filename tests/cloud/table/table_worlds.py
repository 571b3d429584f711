"""Runs on a table in this process, without Spark, and rows to compare."""

from __future__ import annotations

import math
import random
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.documents import Found, document_batches
from sluicegate_cloud.table import run, shard
from sluicegate_cloud.table.read import rows_of
from sluicegate_cloud.table.versions import Definition, Store, Version

Rows = dict[tuple[Any, ...], dict[str, Any]]


def documents_of(boards: Sequence[Any], stream: str, rng: random.Random, lost: float = 0.1) -> list[bytes]:
    """Documents of `random_worlds.Board`s, some lost, some cut twice; with tags where a board's number is even."""
    out = []
    for number, board in enumerate(boards):
        again = [one for one in board.incarnations if rng.random() < 0.2]
        for incarnation, center, buckets in (*board.incarnations, *again):
            left = list(buckets)
            while left:
                size = rng.randrange(1, 9)
                part, left = left[:size], left[size:]
                tags = {"site": f"site-{number % 4 // 2}"} if number % 2 == 0 else None
                chunk = Chunk(board.device, stream, incarnation, center, part, [None] * len(part), tags=tags)
                if rng.random() >= lost:
                    out.append(encode(chunk))
    return out


def table_of(documents: Sequence[bytes], since: int = 0) -> pa.Table:
    """Rows of `documents.DOCUMENTS`."""
    found = (Found(f"{since + i}.json", lambda data=data: data) for i, data in enumerate(documents))
    return pa.Table.from_batches(list(document_batches(found)))


def take_in(store: Store, version: Version, documents: pa.Table) -> Version:
    """`run.take_in`, here."""
    shards: dict[int, list[int]] = {}
    for at, row in enumerate(documents.select(["device", "stream"]).to_pylist()):
        number = zlib.crc32(f"{row['device']}/{row['stream']}".encode()) % version.definition.shards
        shards.setdefault(number, []).append(at)
    unreadable = run.refused(store, version)
    done = [
        (number, shard.merge(store, version, number, documents.take(pa.array(at)), unreadable))
        for number, at in shards.items()
    ]
    return store.commit(run.following(store, version, done, here))


def anew(store: Store, version: Version) -> Version:
    """`run.answered_anew`, here."""
    done = [(number, shard.merge(store, version, number, None)) for number in map(int, version.shards)]
    return run.following(store, version, done, here, everything=True)


def here(work: run.Work, numbers: Sequence[int]) -> list[tuple[int, run.Task]]:
    """`run.over`, here."""
    return [(number, work(number)) for number in numbers]


def definition_of(cut: Any, aggregates: Sequence[str], **changes: Any) -> Definition:
    """A definition for a cut of `random_worlds`."""
    told = {"shards": 2, "cell_us": cut.slide * 700, "max_empty": cut.most} | changes
    return Definition(cut.slide * cut.width, cut.slide, cut.origin, tuple(aggregates), **told)


def windows(store: Store, version: Version) -> Rows:
    """The rows of a table, those of devices and of all, by whose and when."""
    rows = rows_of(store, version).to_pylist()
    found = {
        (row["device"], row["stream"], row["rollup"], of_site(row), row["window_start"], row["window_end"]): row
        for row in rows
    }
    assert len(found) == len(rows), "two rows of one window"
    return found


def of_site(row: dict[str, Any]) -> Any:
    """Of a roll-up by sites, or by devices, whose row it is."""
    return row.get("tag_site", row.get("tag_device"))


def differences(one: Rows, other: Rows, center: float = 0.0) -> list[str]:
    """In what they differ: counts and extremes to the bit, the rest beyond rounding.

    `center`: the greatest |center| of a document, where its windows need not be among the rows.
    """
    out = [f"only in one: {key}" for key in one.keys() ^ other.keys()]
    scale = center + max(abs(row[name] or 0.0) for row in one.values() for name in ("min_low", "max_high"))
    for key in one.keys() & other.keys():
        for name, value in one[key].items():
            if name == "revision":
                continue
            if not _same(name, value, other[key][name], one[key]["count_high"], scale):
                out.append(f"{key} {name}: {value!r} and {other[key][name]!r}")
    return out


def _same(name: str, value: Any, other: Any, count: int, scale: float) -> bool:
    if value == other:
        return True
    if not isinstance(value, float) or not isinstance(other, float):
        return False
    rounding = 64 * sys.float_info.epsilon * (count + 8)
    if name.startswith("sum"):
        scale *= max(count, 1)
    if name.startswith(("variance", "std")):
        scale *= scale
    most = rounding * scale
    return math.isclose(value, other, rel_tol=1e-9, abs_tol=math.sqrt(most) if name.startswith("std") else most)


def store_at(folder: Path, definition: Definition) -> tuple[Store, Version]:
    """An empty table."""
    return Store(folder), Version(0, definition)
