"""A stream longer than a task holds promises the windows of the whole, wherever it is cut by time.

Counts, extremes and completeness are those of the whole. The other intervals are held to the readings: how wide they
are follows from all that is read together.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from exact_worlds import Score
from merge_truth import Truth
from random_worlds import random_cut, random_fleet
from table_worlds import differences, documents_of, table_of
from thorough import number

from sluicegate_cloud.fleet import packed, wire
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.merging import answers
from sluicegate_cloud.names import ALL
from sluicegate_cloud.placing import ORDER, place
from sluicegate_cloud.schema import BUCKET_FIELDS

WANTED = wire.fields(ALL, folded=False)
WORLDS = number(300, 6)
Batches = list[pa.RecordBatch]
Rows = dict[tuple[Any, ...], dict[str, Any]]


def windows(batches: Iterable[pa.RecordBatch]) -> Rows:
    """By whose they are and when."""
    rows = pa.Table.from_batches(list(batches)).to_pylist()
    found = {(row["device"], row["stream"], row["window_start"], row["window_end"]): row for row in rows}
    assert len(found) == len(rows), "two rows of one window"
    return found


def answered(batches: Batches, grid: Grid, source: wire.Source, empty: int) -> Rows:
    """All windows, those of all devices too."""
    with np.errstate(all="ignore"):
        return _answered(batches, grid, source, empty)


def _answered(batches: Batches, grid: Grid, source: wire.Source, empty: int) -> Rows:
    shares = pa.Table.from_batches(answers.shares(grid, source, ALL, empty)(batches))
    shares = shares.sort_by([(name, "ascending") for name in ("stream", "kind", "frame")])
    whole = answers.whole(grid, ALL, empty)(shares.to_batches())
    return windows([*answers.devices(grid, source, ALL, empty)(batches), *whole])


def discrete(rows: Rows) -> Rows:
    """Without what is rounded."""
    rounded = ("sum", "mean", "variance", "std", "geometric_mean")
    return {of: {name: each for name, each in row.items() if not name.startswith(rounded)} for of, row in rows.items()}


def on_the_wire(boards: Any, grid: Grid) -> pa.Table:
    """What `wire.laid_out` gives of them in one partition; two streams share a hash."""
    rows = [row | {"lane": (at // 2 << 38) + (row["t_first"] >> 26) + (1 << 37)}
            for at, board in enumerate(boards) for row in board.rows()]  # fmt: skip
    rows.sort(key=lambda row: row["lane"])
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in ("device", "stream")}
    columns |= {name: np.array([row[name] for row in rows]) for name in (*WANTED.every, "lane")}
    for name in ("first", "last"):
        columns[f"{name}_frame"] = grid.frame_of(np.array([row[f"t_{name}"] for row in rows]))
    kinds = {"bigint": "i8", "double": "f8"}
    cut = {name: pa.array(np.array([row[name] for row in rows], kinds[BUCKET_FIELDS[name]])) for name in WANTED.cut}
    return pa.table(columns | {"cut": pa.StructArray.from_arrays([*cut.values()], [*cut])})


@pytest.mark.parametrize("seed", range(WORLDS))
def test_rows_of_spark_cut_by_time_have_the_windows_of_the_whole(seed: int) -> None:
    """Silences of months, buckets over weeks, late ones, several incarnations; a cut after every tenth row at least."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    grid = Grid(cut.slide, cut.width, cut.origin)
    boards = random_fleet(rng, cut, 3, 200)
    batches = on_the_wire(boards, grid).to_batches(rng.choice([1, 4, 9]))
    whole, parts = [
        answered(batches, grid, partial(wire.whole_streams, wanted=WANTED, rows=rows, most=most), cut.most)
        for rows, most in ((1 << 16, 1 << 18), (rng.choice([1, 8]), rng.choice([1, 10])))
    ]
    assert differences(discrete(parts), discrete(whole))[:3] == []
    score = Score()
    for name in (None, *(board.device for board in boards)):
        held = [reading for board in boards if name in (None, board.device) for reading in board.readings]
        score.judge([row for (device, *_), row in parts.items() if device == name], Truth(held), cut)
    assert (score.missing, score.wrong[:3]) == (0, [])


def by_time(documents: pa.Table) -> pa.Table:
    """Placed, and as `windows_of_documents` sorts them for long streams."""
    order = [(name.removesuffix(" desc"), "descending" if " desc" in name else "ascending") for name in ORDER]
    placed = pa.Table.from_batches(place(documents.sort_by(order).to_batches()))
    used = pc.equal(placed["fate"], "used")
    times = pc.if_else(used, placed["t_first"], None), pc.min_element_wise(placed["hole_from"], placed["hole_to"])
    holes = pc.if_else(pc.greater(placed["hole"], 0), times[1], None)
    placed = placed.append_column("since", pc.min_element_wise(times[0], holes))
    placed = placed.filter(pc.or_(used, pc.greater(placed["hole"], 0)))
    return placed.sort_by([(name, "ascending") for name in ("device", "stream", "since", "first")])


@pytest.mark.parametrize("seed", range(WORLDS))
def test_documents_cut_by_time_have_the_windows_of_the_whole(seed: int) -> None:
    """Some lost, some twice: what is missing between two pieces is missing once."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    grid = Grid(cut.slide, cut.width, cut.origin)
    documents = documents_of(random_fleet(rng, cut, 3, 200, ordinary=True), "s", rng)
    batches = by_time(table_of(documents)).to_batches(rng.choice([1, 3]))
    whole, parts = [
        answered(batches, grid, partial(packed.whole_streams, wanted=WANTED, grid=grid, rows=rows, most=most), cut.most)
        for rows, most in ((1 << 16, 1 << 18), (rng.choice([1, 8]), rng.choice([1, 10])))
    ]
    assert differences(discrete(parts), discrete(whole))[:3] == []
