"""Retention promises that what stays is as if nothing had gone, and roll-ups that are as exact as ever."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from cloud_streams import fold
from random_worlds import Cut, buckets_of, random_cut, random_fleet
from table_worlds import (
    Rows,
    anew,
    definition_of,
    differences,
    documents_of,
    here,
    store_at,
    table_of,
    take_in,
    windows,
)
from test_devices import document
from thorough import number

import sluicegate_cloud
from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.commands import cloud
from sluicegate_cloud.errors import TableError
from sluicegate_cloud.table import job, read, retention
from sluicegate_cloud.table.devices import alerts, devices
from sluicegate_cloud.table.versions import Store, Version

MOST = 300
ASKED = ("count", "sum", "mean", "std", "min", "max")
WORLDS = number(200, 4)


def last_start(row: dict[str, Any], window_us: int) -> int:
    """Where the last window begins that a row stands for."""
    return int(row["window_end"]) - window_us


def from_on(rows: Rows, cut: Cut, since: int) -> Rows:
    """Those that begin at `since` or later; of one that stands for many, those of them."""
    out: Rows = {}
    for (*whose, _, end), row in rows.items():
        start, last = max(row["window_start"], since), last_start(row, cut.slide * cut.width)
        if start <= last:
            told = {"window_start": start, "windows": (last - start) // cut.slide + 1}
            out[*whose, start, end] = row | told
    return out


def same(one: Rows, other: Rows, center: float = 0.0) -> bool:
    """Whether both are the same, but for rounding (`differences`)."""
    assert bool(one) == bool(other)
    assert not one or differences(one, other, center)[:3] == []
    return True


def rows_now(store: Store, version: Version) -> Rows:
    """The rows of a version, which may have none."""
    return windows(store, version) if [*read.window_files(store, version)] else {}


def rolled(store: Store, version: Version, level: int) -> list[dict[str, Any]]:
    """Rows of a level."""
    found = read.rollup(store, version, level)
    return [] if found is None else found.to_pylist()


def one_by_one(rows: Any, level: int, since: int | None, until: int) -> Rows:
    """A row a window, those that begin between the times, but for rows that stand for very many."""
    out: Rows = {}
    for row in rows:
        first = max(row["window_start"], since) if since is not None else row["window_start"]
        end = min(last_start(row, level) + 1, until)
        for start in range(first, end if (end - first) // level <= MOST else first, level):
            key = (row["device"], row["stream"], row["rollup"], row.get("tag_site"), start, start + level)
            assert key not in out
            out[key] = row | {"window_start": start, "window_end": start + level, "windows": 1}
    return out


@pytest.mark.parametrize("seed", range(WORLDS))
def test_what_stays_is_as_if_nothing_had_gone(seed: int, tmp_path: Path) -> None:
    """Runs and retentions in turn, documents late, beside a table that keeps all, and one of the level's windows."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    level = cut.slide * rng.choice([2, 3, 12])
    documents = documents_of(random_fleet(rng, cut, 3, 30, ordinary=True), "s", rng)
    rows_of = table_of(documents)
    order = sorted(range(len(documents)), key=lambda at: rows_of["t_last"][at].as_py() + rng.choice([0, 0, 0, 10**12]))
    made = definition_of(cut, ASKED, by=(("site",),))
    coarse = replace(made, window_us=level, slide_us=level)
    (some, mine), (every, all_of) = store_at(tmp_path / "some", made), store_at(tmp_path / "all", made)
    levels, version_of_level = store_at(tmp_path / "level", coarse)
    refused, known, center = 0, set[str](), max(map(abs, rows_of["center"].to_pylist()))
    for part in range(3):
        new = rows_of.take(pa.array(order[part * len(order) // 3 : (part + 1) * len(order) // 3], pa.int64()))
        if not new.num_rows:
            continue
        mine = take_in(some, mine, new)
        late = [mine.horizon_us is not None and of < mine.horizon_us and digest not in known
                for of, digest in zip(new["t_last"].to_pylist(), new["digest"].to_pylist(), strict=True)]  # fmt: skip
        known |= {*new["digest"].to_pylist()}  # what was refused and comes again is a copy
        refused += sum(late)
        kept = new.filter([not of for of in late])
        if kept.num_rows:
            all_of, version_of_level = take_in(every, all_of, kept), take_in(levels, version_of_level, kept)
        times = sorted(rows_of.take(order[: (part + 1) * len(order) // 3])["t_last"].to_pylist())
        since, until = mine.horizon_us, retention.horizon_of(mine, times[len(times) * 2 // 3], {level: None})
        planned = retention.plan(some, mine, until)
        before = mine
        mine = retention.retain(here, some, mine, until, {level: None}, now_us=0)
        if mine.number > before.number:
            assert planned == {name: mine.told[name] for name in planned}
            wanted = one_by_one(windows(levels, version_of_level).values(), level, since, until)
            got = [row for row in rolled(some, mine, level) if since is None or row["window_start"] >= since]
            assert same(one_by_one(got, level, since, until), wanted, center)
        wanted = from_on(windows(every, all_of), cut, mine.horizon_us)
        assert same(rows_now(some, mine), wanted, center)
    assert same(rows_now(some, anew(some, mine)), rows_now(some, mine), center), "it has drifted"
    assert sum(row["fate"] == "refused" for row in _ledger(some, mine)) == refused


def _ledger(store: Store, version: Version) -> list[dict[str, Any]]:
    names = [store.read_json(name)["ledger"] for name in version.shards.values()]
    return [row for name in names for row in store.read(name).to_pylist()]


def test_a_level_that_comes_later_begins_on_its_own_grid(tmp_path: Path) -> None:
    """With the first of its windows of which no document went, also where one row stands for many."""
    store, version = store_at(tmp_path / "table", definition_of(Cut(60, 1, 0, 5), ("count",)))
    long = buckets_of([(10, 1.0), (54_007, 2.0), (54_008, 2.0)], 3)
    later = buckets_of([(60_000, 1.0), (60_060, 2.0)], 1)
    sent = [encode(Chunk("a", "s", f"{n:016x}", 1.0, of, [None] * len(of))) for n, of in ((1, long), (2, later))]
    version = take_in(store, version, table_of(sent))
    version = retention.retain(here, store, version, 12_000, {120: None}, 0)
    version = retention.retain(here, store, version, 47_880, {120: None, 840: None}, 0)
    rows = rolled(store, version, 840)
    assert {(row["window_start"], row["window_end"], row["windows"]) for row in rows} == {(12_600, 47_880, 42)}


def test_levels_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    """By the table's slide, by one another, and by how long they are kept."""
    _, version = store_at(tmp_path / "table", definition_of(Cut(60, 2, 0, 30), ("count",)))
    assert retention.horizon_of(version, 1_000, {120: None, 480: None}) == 960
    for levels in ({90: None}, {120: None, 300: None}):
        with pytest.raises(TableError, match="is no whole number of"):
            retention.horizon_of(version, 1_000, levels)
    with pytest.raises(TableError, match="keep it longer"):
        retention.levels_of([(3_600, 3_600)])


def test_roll_ups_go_when_they_are_too_old(tmp_path: Path) -> None:
    """By the end of what a retention rolled up; those kept for ever stay."""
    cut, rng = Cut(60_000_000, 2, 0, 30), random.Random(4)
    store, version = store_at(tmp_path / "table", definition_of(cut, ("count",)))
    rows = table_of(documents_of(random_fleet(rng, cut, 2, 30, ordinary=True), "s", rng))
    times = sorted(rows["t_last"].to_pylist())
    version, hour, day = take_in(store, version, rows), 3_600_000_000, 86_400_000_000
    until = [retention.horizon_of(version, times[-1] + number * 2 * day, {hour: day, day: None}) for number in (1, 2)]
    version = retention.retain(here, store, version, until[0], {hour: day, day: None}, now_us=until[0])
    assert {of["level_us"] for of in version.rollups} == {hour, day}
    assert windows_of(rolled(store, version, day)) > 0
    version = retention.retain(here, store, version, until[1], {hour: day, day: None}, now_us=until[0] + 2 * day)
    assert [of["until_us"] for of in version.rollups if of["level_us"] == hour] == [until[1]]
    assert [of["until_us"] for of in version.rollups if of["level_us"] == day] == until
    store.vacuum(kept=1, abandoned_s=-1)
    assert windows_of(rolled(store, version, day)) > 0


def windows_of(rows: list[dict[str, Any]]) -> int:
    """For how many windows they stand."""
    return sum(row["windows"] for row in rows)


def one_bucket(device: str, row: Any) -> bytes:
    """A document of the incarnation of `document`."""
    return encode(Chunk(device, "temp", f"{1:016x}", 1.0, [Bucket(**row)], [None]))


def test_a_silence_across_the_horizon_keeps_its_empty_windows(tmp_path: Path) -> None:
    """The document before it stays: without it nothing would say that there was a stream."""
    second = 1_000_000
    store, version = store_at(tmp_path / "table", definition_of(Cut(second, 2, 0, 30), ASKED))
    after = one_bucket("press", fold([(second * (60 + i), 1.0 + i) for i in range(10)], 1.0, 40))
    version = take_in(store, version, table_of([document("press", 0), document("press", 20), after]))
    version = retention.retain(here, store, version, 50 * second, {}, now_us=0)
    assert [row["first"] for row in _ledger(store, version) if row["fate"] == "retired"] == [0]
    rows = windows(store, anew(store, version))
    assert same(rows, windows(store, version))
    assert sum(row["count_high"] == 0 for row in rows.values() if row["device"]) == 9


def test_a_span_across_the_horizon_is_cut_there(tmp_path: Path) -> None:
    """Its first window depends on a document that goes; with it in the row a table would seem to have drifted."""
    second = 1_000_000
    store, version = store_at(tmp_path / "table", definition_of(Cut(second, 2, 0, 30), ASKED))
    across = fold([(second * 5, 1.0), (second * 5_000, 2.0)], 1.0, 20)
    version = take_in(store, version, table_of([document("press", 0), one_bucket("press", across)]))
    version = retention.retain(here, store, version, 1_000 * second, {}, now_us=0)
    assert [row["fate"] for row in _ledger(store, version)] == ["retired", "used"]
    rows = windows(store, version)
    assert {row["window_start"] for row in rows.values() if row["windows"] > 1} == {1_000 * second}
    assert same(rows_now(store, anew(store, version)), rows)


def test_a_device_has_the_tags_of_its_newest_document(tmp_path: Path) -> None:
    """Also when that is gone, and the one that stays has older readings."""
    second, made = 1_000_000, definition_of(Cut(1_000_000, 2, 0, 30), ("count",), by=(("site",),))
    store, version = store_at(tmp_path / "table", made)
    sent = []
    for first, since, site in ((0, 50, "old"), (20, 60, "new"), (40, 30, "old")):
        run = Bucket(**fold([(second * (since + i), 1.0) for i in range(20)], 1.0, first))
        sent.append(encode(Chunk("press", "s", f"{1:016x}", 1.0, [run], [None], tags={"site": site})))
    version = take_in(store, version, table_of(sent))
    version = retention.retain(here, store, version, 100 * second, {}, now_us=0)
    assert [row["fate"] for row in _ledger(store, version)] == ["retired", "retired", "used"]
    assert [row["tags"] for row in devices(store, version)] == [{"site": "new"}]


def test_what_comes_too_late_is_refused_once_however_it_comes(tmp_path: Path) -> None:
    """Twice in one run, in a later one, and read again because its file was touched: it stays among the refused."""
    second = 1_000_000
    store, version = store_at(tmp_path / "table", definition_of(Cut(second, 2, 0, 30), ("count",)))
    version = take_in(store, version, table_of([document("press", 100)]))
    version = retention.retain(here, store, version, 90 * second, {}, now_us=0)
    late = document("press", 0)
    told = []
    for some, since in (([late, late], 1), ([late], 7), ([late], 1), ([late], 1)):
        version = take_in(store, version, table_of(some, since))
        told.append((version.told["refused"], version.told["copies"]))
        assert [row["fate"] for row in _ledger(store, version)] == ["used", "refused"]
    assert told == [(1, 1), (0, 1), (1, 0), (1, 0)]
    assert [row["device"] for row in alerts(store, version, 0)] == ["press"]


def test_a_second_board_is_judged_by_what_is_left(tmp_path: Path) -> None:
    """What is gone cannot be compared: its documents stay gone, those of the newcomer count, and all can be re-sent."""
    second = 1_000_000
    store, version = store_at(tmp_path / "table", definition_of(Cut(second, 2, 0, 30), ("count",)))
    sent = [document("press", first, key="a" * 32) for first in range(0, 100, 20)]
    version = take_in(store, version, table_of(sent))
    version = retention.retain(here, store, version, 70 * second, {}, now_us=0)
    gone = [row["first"] for row in _ledger(store, version) if row["fate"] == "retired"]
    assert gone == [0, 20, 40]
    clone = document("press", 80, 9.0, key="b" * 32)
    version = take_in(store, version, table_of([clone, *sent], since=5))
    fates = {(row["first"], row["key"][0]): row["fate"] for row in _ledger(store, version)}
    assert fates == {(at, "a"): "retired" if at < 60 else "used" for at in range(0, 100, 20)} | {(80, "b"): "used"}
    counts = {row["window_start"]: row["count_high"] for row in windows(store, version).values() if row["device"]}
    assert min(counts) == 70 * second
    assert counts[85 * second] > counts[75 * second], "both boards' readings"


@pytest.mark.spark
def test_the_command_says_what_would_go_and_takes_it_out(spark: Any, tmp_path: Path) -> None:
    """Dry first, which changes nothing; then once; then nothing is older. What is left has not drifted."""
    cut, rng = Cut(60_000_000, 2, 0, 30), random.Random(6)
    store, version = store_at(tmp_path / "table", definition_of(cut, ("count", "mean"), by=(("site",),)))
    rows = table_of(documents_of(random_fleet(rng, cut, 3, 40, ordinary=True), "s", rng))
    take_in(store, version, rows)
    middle = sorted(rows["t_last"].to_pylist())[rows.num_rows // 2] + 86_400_000_000
    keep = time.time_ns() // 1_000_000_000 - middle // 1_000_000
    asked = ["retain", str(store.root), "--keep", f"{keep}s", "--rollup", "1h=99999d", "--rollup", "1d"]
    would = CliRunner().invoke(cloud, [*asked, "--dry-run"])
    assert would.exit_code == 0, would.output
    assert store.numbers() == [1]
    done = CliRunner().invoke(cloud, asked)
    assert done.exit_code == 0, done.output
    assert would.stdout.partition(": ")[2] == done.stdout.partition("\n")[0].partition(": ")[2] + "\n"
    assert "0 documents" not in done.stdout
    assert "Nothing is older" in CliRunner().invoke(cloud, asked).output
    assert list(job.reconcile(spark, store.root)) == []
    sluicegate_cloud.register(spark)
    told = spark.read.format("sluicegate").option("rows", "rollups").load(str(store.root))
    levels = {row["level_us"] for row in told.select("level_us").distinct().collect()}
    assert levels == {3_600_000_000, 86_400_000_000}
    kept = store.load()
    assert kept is not None
    assert told.count() == sum(of["rows"] for of in kept.rollups)
