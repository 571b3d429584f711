"""Many streams at once promise the rows of each alone, however they are cut into batches, blocks and windows."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cloud_streams import Row, frame_rows, older, random_stream
from test_cloud_doubt import marked

from sluicegate.format.gaps import NEVER
from sluicegate_cloud import sinks
from sluicegate_cloud.estimates.components import answer, components, families, names
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.fleet import wire
from sluicegate_cloud.fleet.block import blocks
from sluicegate_cloud.fleet.part import parts
from sluicegate_cloud.grid import Columns, Grid
from sluicegate_cloud.merging import answers
from sluicegate_cloud.merging.whole import whole
from sluicegate_cloud.names import ALL, MORE
from sluicegate_cloud.schema import BUCKET_FIELDS

NEEDED = families(MORE)


def buckets_of(seed: int) -> list[Row]:
    """One random stream's buckets: some in doubt, some of format 1, some days of silence under a long one."""
    rng = random.Random(seed)
    rows, _ = marked(random_stream(seed, f"board {seed}", "s", rng.choice([1, 2, 3]), 120), rng, rng.choice([0, 0.3]))
    rows = [older(row) | {"doubt": row["doubt"]} if rng.random() < 0.2 else row for row in rows]
    if rng.random() < 0.3:
        longest = max(rows, key=lambda row: row["n"])
        longest |= {"t_last": longest["t_last"] + 90_000, "flags": 0}
    return rows


@pytest.fixture(scope="module")
def fleet() -> list[list[Row]]:
    """Forty streams."""
    return [buckets_of(seed) for seed in range(40)]


def together(fleet: list[list[Row]], grid: Grid) -> Columns:
    """The frames of all streams, in any order."""
    held = [frame_rows(rows, grid.slide_us, grid.origin_us) for rows in fleet]
    owner = np.repeat(np.arange(len(held)), [rows["n"].size for rows in held])
    mixed = np.random.default_rng(1).permutation(owner.size)
    columns = {name: np.concatenate([rows[name] for rows in held])[mixed] for name in held[0] if name != "incarnation"}
    return columns | {"owner": owner[mixed]}


@pytest.mark.parametrize("width", [1, 4, 30])
@pytest.mark.parametrize("most", [1 << 14, 37, 1])
def test_streams_on_one_line_have_the_windows_of_each_alone(fleet: list[list[Row]], width: int, most: int) -> None:
    """Equal to the bit in every component, whatever stands beside a stream and however many windows go at a time."""
    grid = Grid(300, width, -40)
    some = fleet if most > 1 else fleet[:4]
    found: dict[int, list[tuple[Any, Any, Columns]]] = {}
    for owners, block in blocks(together(some, grid), grid, 50):
        for part in parts(block, 50, most):
            told = answer(part, NEEDED)
            for owner in np.unique(part.owner):
                mine = part.owner == owner
                columns = {name: told[name][mine] for name in names(NEEDED)}
                found.setdefault(int(owners[owner]), []).append((part.start_us[mine], part.axis.windows[mine], columns))
    assert sorted(found) == list(range(len(some)))
    for number, pieces in found.items():
        axis, alone = components(frame_rows(some[number], 300, -40), grid, 50, NEEDED)
        assert np.array_equal(np.concatenate([start for start, _, _ in pieces]), grid.start_us(axis.first))
        assert np.array_equal(np.concatenate([windows for _, windows, _ in pieces]), axis.windows)
        for name in names(NEEDED):
            column = np.concatenate([told[name] for _, _, told in pieces])
            assert np.array_equal(column, alone[name], equal_nan=True), (number, name)


def test_what_is_missing_from_before_a_stream_is_said_where_it_is_silent_too() -> None:
    """Beside others as alone: of readings 400 frames apart, from long before to long after them, one is missing."""
    grid = Grid(300, 4, 0)
    stream = [bucket for bucket in buckets_of(3) if bucket["doubt"] == 0][:1]
    early = stream[0] | {"t_first": 0, "t_last": 0, "gap": 0, "n": 1, "flags": 0}
    late = early | {"t_first": 120_000, "t_last": 120_000, "first": early["first"] + 1}
    gone = early | {"t_first": -(1 << 50), "t_last": 1 << 50, "n": 0, "gap": 1, "first": NEVER}
    for count in (1, 3):
        found: dict[int, list[tuple[int, float]]] = {number: [] for number in range(count)}
        for owners, block in blocks(together([[early, late, gone]] * count, grid), grid, 50):
            for part in parts(block, 50):
                for owner, windows, missing in zip(part.owner, part.axis.windows, part.missing(), strict=True):
                    found[int(owners[owner])].append((int(windows), float(missing)))
        assert [[(396, 1.0)]] * count == [[one for one in of if one[0] > 1] for of in found.values()]


def on_the_wire(fleet: list[list[Row]], grid: Grid, wanted: wire.Fields) -> pa.Table:
    """What `wire.laid_out` gives of the fleet in one partition; two streams share a hash."""
    rows = [row | {"lane": at // 2} for at, stream in enumerate(fleet) for row in stream]
    rows.sort(key=lambda row: (row["lane"], row["t_first"] >> 26))
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in ("device", "stream")}
    for name in wanted.every:
        columns[name] = np.array([row[name] for row in rows])
    for name in ("first", "last"):
        columns[f"{name}_frame"] = grid.frame_of(np.array([row[f"t_{name}"] for row in rows]))
    doubt = np.array([row["doubt"] for row in rows])
    needs = (columns["first_frame"] != columns["last_frame"]) | (doubt > 0)
    return pa.table(columns | lists(rows, wanted, needs) | {"lane": np.array([row["lane"] for row in rows]) << 38})


def lists(rows: list[Row], wanted: wire.Fields, needs: Any) -> dict[str, pa.Array]:
    """What a cut `needs` of the rows, as `wire.laid_out` has it."""
    out = {}
    for of, kind, arrow in (("cut_numbers", "bigint", pa.int64()), ("cut_values", "double", pa.float64())):
        names = [name for name in wanted.cut if BUCKET_FIELDS[name] == kind]
        told = [[row[name] for name in names] if cut else None for row, cut in zip(rows, needs, strict=True)]
        out[of] = pa.array(told, pa.list_(arrow))
    return out


@pytest.mark.parametrize(("batch", "rows"), [(10_000, 1 << 16), (97, 300), (1, 1)])
def test_batches_may_end_anywhere(fleet: list[list[Row]], batch: int, rows: int) -> None:
    """Streams are whole where they are answered, though a batch ends within them and a hash is that of two."""
    grid, some = Grid(300, 4, 0), fleet if batch > 1 else fleet[:6]
    wanted = wire.fields(ALL, folded=False)
    table = on_the_wire(some, grid, wanted)
    seen: dict[str, int] = {}
    for told in wire.whole_streams(table.to_batches(batch), wanted, grid, rows):
        counts = np.bincount(told.columns["owner"], minlength=len(told.devices))
        for name, count in zip(told.devices.to_pylist(), counts, strict=True):
            assert name not in seen
            seen[name] = int(count)
    assert seen == {stream[0]["device"]: len(stream) for stream in some}


def rows_of(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Sorted by device and window."""
    rows = pa.Table.from_batches(batches).to_pylist()
    return sorted(rows, key=lambda row: (row["device"] or "", row["window_start"]))


def test_the_pass_gives_the_rows_of_the_core(fleet: list[list[Row]]) -> None:
    """Arrow batches in, window rows out: what each stream's components come to when they are lowered."""
    grid, wanted = Grid(300, 4, 0), wire.fields(ALL, folded=False)
    table = on_the_wire(fleet, grid, wanted)
    rows = rows_of(list(answers.devices(grid, wire.source(wanted, grid), ALL, 50)(table.to_batches(500))))
    for stream in fleet:
        mine = [row for row in rows if row["device"] == stream[0]["device"]]
        axis, told = components(frame_rows(stream, 300, 0), grid, 50, NEEDED)
        with np.errstate(all="ignore"):
            expected = lower(told, ALL)
        assert [row["window_start"] for row in mine] == grid.start_us(axis.first).tolist()
        for name in ("count_low", "count_high", "min_low", "max_high", "mean_low", "std_high", "geometric_mean_low"):
            for row, value in zip(mine, expected[name].tolist(), strict=True):
                same = (
                    row[name] is None
                    if math.isnan(value)
                    else math.isclose(row[name], value, rel_tol=1e-9, abs_tol=1e-9)
                )
                assert same, (name, row["window_start"])


def fleet_rows(tables: list[pa.Table], grid: Grid, wanted: wire.Fields) -> list[dict[str, Any]]:
    """The windows of all devices, each table being a task's."""
    told = answers.shares(grid, wire.source(wanted, grid), ALL, 50)
    shares = [batch for table in tables for batch in told(table.to_batches(500))]
    held = pa.Table.from_batches(shares).sort_by([(name, "ascending") for name in ("stream", "kind", "frame")])
    return rows_of(list(whole(grid, ALL, 50)(held.to_batches(300))))


def test_tasks_add_up_to_the_fleet(fleet: list[list[Row]]) -> None:
    """One task or eight: the same windows, counts and extremes; intervals of sums hardly wider, spans among them."""
    grid, wanted = Grid(300, 4, 0), wire.fields(ALL, folded=False)
    one = fleet_rows([on_the_wire(fleet, grid, wanted)], grid, wanted)
    many = fleet_rows([on_the_wire(fleet[at::8], grid, wanted) for at in range(8)], grid, wanted)
    exact = ("window_start", "window_end", "windows", "count", "count_low", "count_high", "min_low", "max_high",
             "min_count_low", "buckets")  # fmt: skip
    assert [[row[name] for name in exact] for row in one] == [[row[name] for name in exact] for row in many]
    last = [max(row["t_last"] for row in stream) for stream in fleet]
    for rows in (one, many):
        assert all(row["devices_silent"] == sum(time < row["window_start"] for time in last) for row in rows)
    assert any(row["windows"] > 1 for row in one)
    assert all(a["max_count_high"] <= b["max_count_high"] for a, b in zip(one, many, strict=True))
    for name in ("sum", "mean", "std"):
        widths = [[row[f"{name}_high"] - row[f"{name}_low"] for row in rows if row["count"]] for rows in (one, many)]
        assert sum(widths[1]) < 1.05 * sum(widths[0])


def test_one_pass_writes_the_rows_of_two(fleet: list[list[Row]], tmp_path: Path) -> None:
    """What tasks write while they tell what their devices add, and what that adds up to, are the rows of either."""
    grid, wanted = Grid(300, 4, 0), wire.fields(ALL, folded=False)
    tables = [on_the_wire(fleet[at::3], grid, wanted) for at in range(3)]
    sink, asked = sinks.Sink(str(new := sinks.new_windows(tmp_path))), (grid, wire.source(wanted, grid), ALL, 50)
    told = [batch for table in tables for batch in answers.both(*asked, sink)(table.to_batches(500))]
    held = pa.Table.from_batches(told).sort_by([(name, "ascending") for name in ("stream", "kind", "frame")])
    named = answers.unnamed(whole(grid, ALL, 50), sink)(held.to_batches(300))
    sinks.replace_windows((name for batch in named for name in batch["name"].to_pylist()), new)
    alone = [batch for table in tables for batch in answers.devices(*asked)(table.to_batches(500))]
    expected = [*rows_of(alone), *fleet_rows(tables, grid, wanted)]
    found = sinks.read_windows(tmp_path).select([*expected[0]])
    assert rows_of(found.to_batches()) == sorted(expected, key=lambda row: (row["device"] or "", row["window_start"]))
