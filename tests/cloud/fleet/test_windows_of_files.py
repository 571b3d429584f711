"""Buckets in Parquet files promise the windows of the same buckets, however the files and their row groups are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cloud_streams import Row
from test_many_streams import buckets_of, on_the_wire, rows_of

from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.fleet import files, listing, parts, spread, wire
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.merging import answers
from sluicegate_cloud.names import ALL
from sluicegate_cloud.schema import BUCKET_FIELDS, OWNER

GRID = Grid(300, 4, 0)


@pytest.fixture(scope="module")
def fleet() -> list[list[Row]]:
    """Thirty devices; a device has two streams where its number is odd."""
    found = [buckets_of(seed) for seed in range(30)]
    return found + [[row | {"stream": "other"} for row in found[at]] for at in range(1, 30, 4)]


def table_of(rows: list[Row]) -> pa.Table:
    """Rows as `read_buckets` gives them."""
    kinds = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
    fields = {**OWNER, **BUCKET_FIELDS}
    return pa.table({name: pa.array([row.get(name) for row in rows], kinds[kind]) for name, kind in fields.items()})


def written(folder: Path, table: pa.Table, rows: int, names: int = 3) -> list[str]:
    """Several files of row groups of so many rows."""
    each = -(-table.num_rows // names)
    for number in range(names):
        pq.write_table(table.slice(number * each, each), folder / f"part-{number}.parquet", row_group_size=rows)
    (folder / "_SUCCESS").touch()
    return listing.listed([folder])


def parts_of(paths: list[str], tasks: int, large: int = parts.LARGE) -> list[parts.Part] | None:
    """Row groups are looked at here."""

    def look(groups: Any, devices: frozenset[str], grid: Grid) -> pa.Table:
        return pa.Table.from_batches(parts.looked(enumerate(groups), devices, grid))

    return parts.parts_of(paths, tasks, GRID, look, large)


def windows(paths: list[str], tasks: int, least: int, large: int = parts.LARGE) -> list[dict[str, Any]]:
    """What all parts of the files say, each part being a task's."""
    wanted, found = wire.fields(ALL, folded=False), parts_of(paths, tasks, large)
    assert found is not None
    out = []
    for part in found:

        def source(_: Any, part: parts.Part = part) -> Any:
            return files.streams_of(part, wanted, GRID, least, least)

        out += list(answers.devices(GRID, source, ALL, 50)([]))
    return sorted(rows_of(out), key=lambda row: (row["device"], row["stream"], row["window_start"]))


def discrete(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what is rounded, which follows from all that is read together."""
    rounded = ("sum", "mean", "variance", "std", "geometric_mean")
    return [{name: value for name, value in row.items() if not name.startswith(rounded)} for row in rows]


@pytest.fixture(scope="module")
def expected(fleet: list[list[Row]]) -> list[dict[str, Any]]:
    """The windows of the rows that Spark lays out."""
    wanted = wire.fields(ALL, folded=False)
    alone = [on_the_wire([stream], GRID, wanted) for stream in fleet]
    out = [
        batch for one in alone for batch in answers.devices(GRID, wire.source(wanted, GRID), ALL, 50)(one.to_batches())
    ]
    return sorted(rows_of(out), key=lambda row: (row["device"], row["stream"], row["window_start"]))


@pytest.mark.parametrize(("rows", "tasks", "least"), [(100_000, 1, 1 << 16), (97, 7, 200), (23, 40, 1), (1, 3, 50)])
def test_parts_have_the_windows_of_the_fleet(
    tmp_path: Path, fleet: list[list[Row]], expected: list[dict[str, Any]], rows: int, tasks: int, least: int
) -> None:
    """Devices that lie in several row groups and files are whole, in one part, and equal to the bit."""
    some = fleet if rows > 1 else fleet[:4]
    ordered = sorted((row for stream in some for row in stream), key=lambda row: row["device"])
    found, names = windows(written(tmp_path, table_of(ordered), rows), tasks, least), {row["device"] for row in ordered}
    assert found == [row for row in expected if (row["device"] in names and row["stream"] == "s") or some is fleet]


@pytest.mark.parametrize(("rows", "tasks"), [(37, 1), (20, 4)])
def test_a_large_device_is_cut_by_time(
    tmp_path: Path, fleet: list[list[Row]], expected: list[dict[str, Any]], rows: int, tasks: int
) -> None:
    """Of a device with two streams and of one beside, all with row groups of their own: the windows are the same."""
    ordered = sorted((row for stream in fleet for row in stream), key=lambda row: (row["device"], row["t_first"]))
    paths = written(tmp_path, table_of(ordered), rows)
    found = parts_of(paths, tasks, 2 * rows) or []
    assert sum(part.pieces is not None for part in found) > 4, "nothing was cut"
    assert discrete(windows(paths, tasks, 30, 2 * rows)) == discrete(expected)
    last = [max(row["t_last"] for row in stream) for stream in fleet if stream[0]["stream"] == "s"]
    heard = [time // 300 for time, count in heard_of(found) for _ in range(count)]
    assert sorted(heard) == sorted(time // 300 for time in last), "a device is heard of last in one of its parts"


def heard_of(found: list[parts.Part]) -> list[tuple[int, int]]:
    """When devices of stream s were heard of last, as tasks tell it, and how many."""
    wanted, out = wire.fields(ALL, folded=False), []
    for part in found:

        def source(_: Any, part: parts.Part = part) -> Any:
            return files.streams_of(part, wanted, GRID, 30, 30)

        rows = pa.Table.from_batches([*answers.shares(GRID, source, ALL, 50)([])]).to_pylist()
        out += [
            (row["frame"] * 300, row["windows"])
            for row in rows
            if row["kind"] == answers.HEARD and row["stream"] == "s"
        ]
    return out


def test_a_device_that_may_have_too_many_windows_is_one_task(
    tmp_path: Path, fleet: list[list[Row]], expected: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cut by time there, and its windows are counted."""
    monkeypatch.setattr(spread, "MAX_WINDOWS", -1_000_000)
    ordered = sorted((row for stream in fleet for row in stream), key=lambda row: (row["device"], row["t_first"]))
    paths = written(tmp_path, table_of(ordered), 37)
    cut = [part.pieces for part in parts_of(paths, 4, 74) or [] if part.pieces is not None]
    assert cut
    assert len(cut) == len({device for pieces in cut for device, _ in pieces})
    assert discrete(windows(paths, 4, 30, 74)) == discrete(expected)


def test_rows_of_a_row_group_may_be_in_any_order(
    tmp_path: Path, fleet: list[list[Row]], expected: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statistics say between which devices a row group lies, not that its rows are by device."""
    monkeypatch.setattr(files, "ROWS", 16)
    ordered = sorted((row for stream in fleet for row in stream), key=lambda row: row["device"])
    table, rng = table_of(ordered), np.random.default_rng(2)
    mixed = [np.arange(at, min(at + 400, len(ordered))) for at in range(0, len(ordered), 400)]
    order = np.concatenate([rng.permutation(some) for some in mixed])
    pq.write_table(table.take(pa.array(order)), tmp_path / "one.parquet", row_group_size=400)
    assert windows([str(tmp_path / "one.parquet")], 5, 40) == expected


def test_what_does_not_lie_by_device_is_left_to_spark(tmp_path: Path, fleet: list[list[Row]]) -> None:
    """Neither mixed rows, which each part would read, nor files without statistics."""
    rows = [row for stream in fleet for row in stream]
    mixed = [rows[at] for at in np.random.default_rng(1).permutation(len(rows))]
    assert parts_of(written(tmp_path, table_of(mixed), 50), 16) is None
    silent = tmp_path / "silent.parquet"
    pq.write_table(table_of(rows), silent, write_statistics=False)
    assert parts_of([str(silent)], 16) is None


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """A folder without files, and no folder at all."""
    with pytest.raises(SourceError, match="no Parquet files in"):
        listing.listed([tmp_path])
    with pytest.raises(SourceError, match="nothing at"):
        listing.listed([tmp_path / "missing"])
