"""Spans of many devices promise to count in each window that they reach, in bounded memory, and to name its cell."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sluicegate_cloud.estimates.components import INTEGERS, families, names
from sluicegate_cloud.table import run, whole
from sluicegate_cloud.table.grouping.groups import group
from sluicegate_cloud.table.versions import Definition

DEFINITION = Definition(30, 10, 3, ("count",), 1, 500, by=(("site",),), max_empty=7)
NAMES = [*names(families(DEFINITION.aggregates))]
GROUPS = [[group("s"), group("s", ("site",), {"site": site})] for site in ("north", "south")]


class Files:
    """What reads the files of spans."""

    def __init__(self, *tables: pa.Table) -> None:
        self.tables = tables

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """See `Store`."""
        return self.tables[int(name)].select(columns) if columns else self.tables[int(name)]


def spans_of(first: Any, windows: Any) -> pa.Table:
    """Spans whose components are 1, of devices in turn at two sites."""
    size = len(first)
    groups = pa.array([GROUPS[at % 2] for at in range(size)], pa.list_(pa.string()))
    head = {"device": [f"d-{at}" for at in range(size)], "stream": ["s"] * size, "groups": groups}
    ones = {name: pa.array(np.ones(size), pa.int64() if name in INTEGERS else pa.float64()) for name in NAMES}
    return pa.table({**head, "frame": pa.array(first, pa.int64()), "windows": pa.array(windows, pa.int64()), **ones})


def frames(ranges: Any) -> set[int]:
    """All from each first to its last."""
    return {frame for low, high in ranges for frame in range(low, high + 1)}


def world(rng: random.Random) -> tuple[list[pa.Table], list[dict[str, Any]], set[int]]:
    """Spans in two shards, their indexes, and the windows that all devices' are answered one by one in."""
    tables = [
        spans_of(*zip(*((rng.randrange(-200, 400), rng.randrange(2, 90)) for _ in range(5)), strict=True))
        for _ in range(2)
    ]
    marks = [sorted(rng.sample(range(-30, 70), rng.randrange(4))) for _ in tables]
    indexes = [{"spans": str(at), "marks": {"s": of}} for at, of in enumerate(marks)]
    known = np.array(sorted({*marks[0], *marks[1]}), np.int64)
    return tables, indexes, frames(zip(*whole.near(known, DEFINITION), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_cells_and_rows_of_spans_are_those_of_each_window(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Window by window: which of them a span reaches, in which cells these lie, and how many spans each has."""
    rng = random.Random(seed)
    tables, indexes, near = world(rng)
    touched = ((low := rng.randrange(-200, 500), low + rng.randrange(60)) for _ in range(rng.randrange(1, 5)))
    of_all = {"s": run.merged(touched)}
    rows = [row for table in tables for row in table.to_pylist()]
    reached = [frames([(row["frame"], row["frame"] + row["windows"] - 1)]) & near for row in rows]
    wanted = {str((3 + 10 * frame) // 500) for of in reached for frame in of & frames(of_all["s"])}
    store: Any = Files(*tables)
    assert run._cells_of_spans(store, DEFINITION, indexes, of_all) == wanted
    monkeypatch.setattr(whole, "MOST", rng.choice([3, 1 << 19]))
    runs = {stream: whole.near(of, DEFINITION) for stream, of in whole.marks_of(indexes, DEFINITION).items()}
    for cell in range(-5, 12):
        low, high = whole.frames_of(cell, DEFINITION)
        found = whole._of_spans(store, DEFINITION, cell, indexes, runs, ("", None))
        got: dict[tuple[str, int], int] = {}
        for row in (row for table in found for row in table.to_pylist()):
            got[row["group"], row["frame"]] = got.get((row["group"], row["frame"]), 0) + row["buckets"]
        told: dict[tuple[str, int], int] = {}
        for row, of in zip(rows, reached, strict=True):
            for key in ((name, frame) for name in row["groups"] for frame in of if low <= frame <= high):
                told[key] = told.get(key, 0) + 1
        assert got == told


def test_a_fleet_of_ten_thousand_spans_holds_no_row_for_each_window_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weekend of 10,000 boards in a cell of 8,640 windows: 86,400,000 rows, one by one."""
    first = np.arange(10_000) % 100
    table = spans_of(first, np.full(10_000, 9_000))
    definition = Definition(30, 10, 0, ("count",), 1, 86_400)
    held: list[int] = []
    added_up = whole.added_up
    monkeypatch.setattr(
        whole, "added_up", lambda parts, *of: held.append(parts[0]["frame"].size) or added_up(parts, *of)
    )
    store: Any = Files(table)
    indexes = [{"spans": "0", "marks": {"s": [0]}}]
    runs = {"s": whole.near(np.array([0]), definition)}
    found = pa.concat_tables(whole._of_spans(store, definition, 0, indexes, runs, ("", None)))
    assert max(held) <= 2 * whole.MOST
    mine = found.filter(pc.and_(pc.equal(found["group"], GROUPS[0][0]), pc.equal(found["frame"], 150)))
    assert (found.num_rows, pc.sum(mine["buckets"]).as_py()) == (3 * 8_640 - 1, 10_000)
    cells = run._cells_of_spans(store, definition, indexes, {"s": [(-(1 << 61), 1 << 61)]})
    assert cells == {"0", "1"}
