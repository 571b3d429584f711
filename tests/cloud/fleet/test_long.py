"""A stream longer than a task holds promises the windows of the whole, wherever it is cut by time.

Counts, extremes and completeness are those of the whole. The other intervals are held to the readings: how wide they
are follows from all that is read together.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from exact_worlds import Score
from merge_truth import Truth
from random_worlds import MINUTE, Board, random_cut, random_fleet
from table_worlds import differences, documents_of, table_of
from test_many_streams import lists
from thorough import number

from sluicegate.format.bucket import Builder
from sluicegate_cloud import grid as grids
from sluicegate_cloud.fleet import packed, spread, wire
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.lines.placing import ORDER, place
from sluicegate_cloud.merging import answers
from sluicegate_cloud.merging import whole as merging
from sluicegate_cloud.merging.whole import whole
from sluicegate_cloud.names import ALL

WANTED = wire.fields(ALL, folded=False)
WORLDS = number(300, 6)
Batches = list[pa.RecordBatch]
Rows = dict[tuple[Any, ...], dict[str, Any]]
KEYS = [(name, "ascending") for name in ("stream", "window_start", "window_end")]


def windows(batches: Iterable[pa.RecordBatch]) -> Rows:
    """By whose they are and when."""
    rows = pa.Table.from_batches(list(batches)).to_pylist()
    found = {(row["device"], row["stream"], row["window_start"], row["window_end"]): row for row in rows}
    assert len(found) == len(rows), "two rows of one window"
    return found


def answered(tasks: Sequence[Batches], grid: Grid, source: wire.Source, empty: int) -> Rows:
    """All windows, those of all devices too; each task has some of the batches."""
    with np.errstate(all="ignore"):
        return _answered(tasks, grid, source, empty)


def _answered(tasks: Sequence[Batches], grid: Grid, source: wire.Source, empty: int) -> Rows:
    devices, shares = answers.devices(grid, source, ALL, empty), answers.shares(grid, source, ALL, empty)
    added = pa.Table.from_batches([one for batches in tasks for one in shares(batches)])
    added = added.sort_by([(name, "ascending") for name in ("stream", "kind", "frame")])
    added_up = whole(grid, ALL, empty)(added.to_batches())
    return windows([*(one for batches in tasks for one in devices(batches)), *added_up])


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
    return pa.table(columns | lists(rows, WANTED, np.ones(len(rows), bool)))


@pytest.mark.parametrize("seed", range(WORLDS))
def test_rows_of_spark_cut_by_time_have_the_windows_of_the_whole(seed: int) -> None:
    """Silences of months, buckets over weeks, late ones, several incarnations; a cut after every tenth row at least."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    grid = Grid(cut.slide, cut.width, cut.origin)
    boards = random_fleet(rng, cut, 3, 200)
    batches = on_the_wire(boards, grid).to_batches(rng.choice([1, 4, 9]))
    whole, parts = [
        answered([batches], grid, partial(wire.whole_streams, wanted=WANTED, grid=grid, rows=rows, most=most), cut.most)
        for rows, most in ((1 << 16, 1 << 18), (rng.choice([1, 8]), rng.choice([1, 10])))
    ]
    assert differences(discrete(parts), discrete(whole))[:3] == []
    score = Score()
    for name in (None, *(board.device for board in boards)):
        held = [reading for board in boards if name in (None, board.device) for reading in board.readings]
        score.judge([row for (device, *_), row in parts.items() if device == name], Truth(held), cut)
    assert (score.missing, score.wrong[:3]) == (0, [])


@pytest.mark.parametrize("seed", range(WORLDS))
def test_pieces_of_streams_have_the_windows_of_the_whole(seed: int) -> None:
    """Each answered by a task of its own, and cut by time there once more, wherever they begin."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    grid = Grid(cut.slide, cut.width, cut.origin)
    table = on_the_wire(random_fleet(rng, cut, 3, 200), grid)
    cuts = random_cuts(table.filter(pc.greater(table["n"], 0)), rng)
    whole = answered([table.to_batches(9)], grid, wire.source(WANTED, grid), cut.most)
    source = partial(
        wire.whole_streams, wanted=WANTED, grid=grid, rows=rng.choice([1, 8]), most=rng.choice([1, 10]), cuts=cuts
    )
    tasks = [in_pieces(table, cuts, number, grid) for number in (-1, 0, 1, 2, 3)]
    parts = answered([task.to_batches(rng.choice([1, 9])) for task in tasks], grid, source, cut.most)
    assert differences(discrete(parts), discrete(whole))[:3] == []


def random_cuts(readings: pa.Table, rng: random.Random) -> dict[wire.Stream, tuple[wire.Piece, ...]]:
    """Of most streams, up to four pieces."""
    owner, devices, streams, _ = wire.owners(readings)
    frames, out = readings["first_frame"].to_numpy(), {}
    for at, name in enumerate(zip(devices.to_pylist(), streams.to_pylist(), strict=True)):
        mine = np.flatnonzero(owner == at)
        first = mine[np.lexsort([readings[of].to_numpy()[mine] for of in ("first", "first_frame")])[0]]
        edges = [spread.FIRST, *sorted(set(rng.choices(frames[mine].tolist(), k=3))), spread.LAST]
        if rng.random() < 0.8:
            base = readings["center"][int(first)].as_py()
            out[name] = tuple(wire.Piece(low, high, base) for low, high in pairwise(edges))
    return out


def in_pieces(table: pa.Table, cuts: wire.Cuts, number: int, grid: Grid) -> pa.Table:
    """What `spread.placed` and `wire.laid_out` give of the pieces of this number; −1: of streams that are whole."""
    kept = []
    for row in table.select(["device", "stream", "first_frame", "last_frame"]).to_pylist():
        pieces = cuts.get((row["device"], row["stream"]))
        if pieces is None or not 0 <= number < len(pieces):
            kept.append(pieces is None and number < 0)
        else:
            piece = pieces[number]
            kept.append(row["last_frame"] >= piece.low and row["first_frame"] <= piece.high + grid.width)
    some = table.filter(pa.array(kept, pa.bool_()))
    return some.append_column("piece", pa.array(np.full(some.num_rows, number)))


def by_time(documents: pa.Table) -> pa.Table:
    """Placed, and as `windows_of_documents` sorts them for long streams."""
    order = [(name.removesuffix(" desc"), "descending" if " desc" in name else "ascending") for name in ORDER]
    placed = pa.Table.from_batches(place(documents.sort_by(order).to_batches()))
    used = pc.equal(placed["fate"], "used")
    times = pc.if_else(used, placed["t_first"], None), pc.min_element_wise(placed["hole_from"], placed["hole_to"])
    holes = pc.if_else(pc.greater(placed["hole"], 0), times[1], None)
    losses = pc.min_element_wise(placed["loss_from"], placed["loss_to"])
    placed = placed.append_column("since", pc.min_element_wise(times[0], holes, losses))
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
    read = partial(packed.whole_streams, wanted=WANTED, grid=grid)
    whole, parts = [
        answered([batches], grid, partial(read, rows=rows, most=most), cut.most)
        for rows, most in ((1 << 16, 1 << 18), (rng.choice([1, 8]), rng.choice([1, 10])))
    ]
    assert differences(discrete(parts), discrete(whole))[:3] == []


@pytest.mark.parametrize(("rows", "most"), [(1 << 16, 1 << 18), (1, 4)])
@pytest.mark.parametrize(("limit", "refused"), [(157, False), (156, True)])
def test_a_stream_of_too_many_windows_is_refused_however_it_is_cut(
    rows: int, most: int, limit: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket in every fifth of 196 frames: 197 windows, 157 more than the frames that hold one."""
    monkeypatch.setattr(grids, "MAX_WINDOWS", limit)
    builder, buckets, grid = Builder(20.0), [], Grid(20 * MINUTE, 2, 0)
    for at in range(40):
        builder.add(20.0, 100 * MINUTE * at)
        builder.add(21.0, 100 * MINUTE * at + 1)
        buckets.append(builder.close())
    batches = on_the_wire([Board("d", [], [("0" * 16, 20.0, buckets)])], grid).to_batches(1)
    source = partial(wire.whole_streams, wanted=WANTED, grid=grid, rows=rows, most=most)
    for way in (answers.devices, answers.shares):
        told = way(grid, source, ("mean",), 10)(batches)
        if refused:
            with pytest.raises(ValueError, match="windows for s of d pass the limit of"):
                list(told)
        else:
            assert sum(batch.num_rows for batch in told) >= 197


@pytest.mark.parametrize("seed", range(WORLDS))
def test_windows_of_all_are_added_up_some_at_a_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows in the same order, and the first of them come before more is read than may be held."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    grid = Grid(cut.slide, cut.width, cut.origin)
    source, batches = wire.source(WANTED, grid), on_the_wire(random_fleet(rng, cut, 3, 200), grid).to_batches()
    with np.errstate(all="ignore"):
        added = pa.Table.from_batches([*answers.shares(grid, source, ALL, cut.most)(batches)])
    added = added.sort_by([(name, "ascending") for name in ("stream", "kind", "frame")])
    add, read = whole(grid, ALL, cut.most), list[int]()
    at_once = pa.Table.from_batches([*add(added.to_batches())])
    monkeypatch.setattr(merging, "ADDED", 30)
    some = (read.append(batch.num_rows) or batch for batch in added.to_batches(7))
    found, first = [], 0
    for batch in add(some):
        first = first or sum(read)
        found.append(batch)
    assert pa.Table.from_batches(found).sort_by(KEYS).to_pylist() == at_once.sort_by(KEYS).to_pylist()
    others = sum(kind != answers.WINDOW for kind in added["kind"].to_pylist())
    most_of_one = max(Counter(added.filter(pc.equal(added["kind"], answers.WINDOW))["frame"].to_pylist()).values())
    assert first <= others + 30 + most_of_one + 2 * 7
    assert sum(read) == added.num_rows > first
