"""One device of too many windows promises to stop nobody: it keeps what it may have, and all others have their rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from random_worlds import MINUTE, Cut, buckets_of, random_cut, random_fleet
from table_worlds import anew, definition_of, differences, documents_of, here, store_at, table_of, take_in, windows
from thorough import number

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud import grid
from sluicegate_cloud.fleet import block, sparse
from sluicegate_cloud.fleet.sparse import Count, too_many
from sluicegate_cloud.table import aside, read, retention, units
from sluicegate_cloud.table.devices import alerts, devices
from sluicegate_cloud.table.told import of_table
from sluicegate_cloud.table.units import Kept, Ledger
from sluicegate_cloud.table.versions import Store, Version

#: Windows of two minutes, sliding by one; of more than ten empty ones in a row there is no row.
CUT = Cut(MINUTE, 2, 0, 10)
#: A reading in every fifth of 196 frames has 197 windows, 157 more than its 40 buckets.
BEYOND = 157
ASKED = ("count", "mean", "min", "max")


def sparse_documents(device: str = "sparse", size: int = 5, site: str | None = None, stream: str = "s") -> list[bytes]:
    """A reading each five minutes, so many in a document."""
    run = [buckets_of([(5 * MINUTE * at, 1.0)], 1)[0]._replace(first=at) for at in range(40)]
    tags = {"site": site} if site else None
    return [
        encode(Chunk(device, stream, "0" * 16, 1.0, run[at : at + size], [None] * size, tags=tags))
        for at in range(0, 40, size)
    ]


def others() -> list[bytes]:
    """Two boards of the same stream, which have a reading each minute of the same time."""
    run = [buckets_of([(MINUTE * at, 2.0 + at % 7)], 1)[0]._replace(first=at) for at in range(100)]
    return [encode(Chunk(name, "s", "0" * 16, 2.0, run, [None] * 100)) for name in ("dense", "steady")]


def rows_of(place: Path, documents: Sequence[bytes], cut: Cut = CUT) -> Any:
    """The rows of a table of these documents alone."""
    store, version = store_at(place, definition_of(cut, ASKED, shards=1))
    return windows(store, take_in(store, version, table_of(documents)))


def told_of(store: Store, version: Version) -> list[tuple[str, str, str]]:
    """Its alerts."""
    return [(row["kind"], row["device"], row["stream"]) for row in alerts(store, version, 0)]


@pytest.mark.parametrize("most", [1 << 18, 7])
@pytest.mark.parametrize("fits", [True, False])
def test_what_is_too_much_of_a_stream_is_set_aside_and_all_else_is_merged(
    fits: bool, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the window: one more than it may have, and its last document is counted, named, refused with the reason."""
    monkeypatch.setattr(grid, "MAX_WINDOWS", BEYOND - (not fits))
    monkeypatch.setattr(units, "MOST", most)
    definition = definition_of(CUT, ASKED, shards=1)
    store, version = store_at(tmp_path / "table", definition)
    version = take_in(store, version, table_of([*sparse_documents(), *others()]))
    rows = windows(store, version)
    if fits:
        assert sum(row["device"] == "sparse" for row in rows.values()) == 197
        assert told_of(store, version) == []
        return
    assert differences(rows, rows_of(tmp_path / "alone", [*sparse_documents()[:7], *others()])) == []
    assert told_of(store, version) == [("set_aside", "sparse", "s"), ("rejected", "sparse", "s")]
    said = next(alerts(store, version, 0))["text"]
    assert "197 windows of 40 buckets" in said
    assert "what begins at 1970-01-01T02:55:00+00:00 or later is left out" in said
    assert "choose a longer slide" in said
    summary = of_table(store, version).summary
    assert (summary["documents"]["refused"], summary["documents"]["used"]) == (1, 9)
    assert [alarm["kind"] for alarm in summary["alarms"]] == ["set_aside"]
    assert summary["alarms"][0]["readings"] == 5
    known = {row["device"]: (row["readings"], row["missing"]) for row in devices(store, version)}
    assert known == {"dense": (100, 0), "steady": (100, 0), "sparse": (35, 5)}


def test_a_stream_that_grows_too_large_goes_and_comes_back_when_older_documents_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Document by document, each version is what all anew is: at the limit the stream keeps the rows that it had."""
    monkeypatch.setattr(grid, "MAX_WINDOWS", 100)
    store, version = store_at(tmp_path / "table", definition_of(CUT, ASKED, shards=1))
    version = take_in(store, version, table_of(others()))
    known = []
    for at, document in enumerate(sparse_documents()):
        version = take_in(store, version, table_of([document], since=1000 + at))
        rows = windows(store, version)
        assert differences(rows, windows(store, anew(store, version))) == []
        known.append(sum(row["device"] == "sparse" for row in rows.values()))
    assert known == [22, 47, 72, 97, 122, 122, 122, 122]
    assert [kind for kind, *_ in told_of(store, version)].count("set_aside") == 1
    keep = {"horizon_us": retention.horizon_of(version, 120 * MINUTE, {}), "levels": {}, "now_us": 200 * MINUTE}
    version = retention.retain(here, store, version, **keep)
    version = take_in(store, version, table_of([sparse_documents("late")[7]], since=5000))
    ends = {row["window_end"] for row in windows(store, version).values() if row["device"] == "sparse"}
    assert max(ends) == (195 + 2) * MINUTE
    assert "set_aside" not in [kind for kind, *_ in told_of(store, version)]


def test_a_window_that_reaches_into_what_is_set_aside_is_told_as_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two readings a minute apart the second is left out: it is missing where a window would have held both."""
    monkeypatch.setattr(grid, "MAX_WINDOWS", 20)
    run = [buckets_of([(MINUTE * at, 1.0)], 1)[0]._replace(first=i) for i, at in enumerate((0, 5, 10, 11, 19, 27))]
    documents = [encode(Chunk("d", "s", "0" * 16, 1.0, run[a : a + 3], [None] * 3)) for a in (0, 3)]
    for order in (1, -1):
        store, version = store_at(tmp_path / f"table-{order}", definition_of(CUT, ASKED, shards=1))
        for at, document in enumerate(documents[::order]):
            version = take_in(store, version, table_of([document], since=at))
        rows = [row for row in windows(store, version).values() if row["device"] == "d"]
        told = {row["window_start"] // MINUTE: (row["count"], row["completeness"]) for row in rows}
        assert told[9] == (1, 1.0)
        assert told[10][0] == 1
        assert told[10][1] < 1.0
        assert max(told) == 10
        assert differences(windows(store, version), windows(store, anew(store, version))) == []


@pytest.mark.parametrize("seed", range(number(200, 4)))
def test_the_rows_that_a_stream_keeps_are_those_that_it_may_have(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random boards, a random limit, any order of arrival: used are the documents that begin before some time.

    They are as many as may be: those of one more time would have too many windows. Runs agree with all anew.
    """
    rng = random.Random(seed)
    cut = random_cut(rng)
    sent = [*documents_of(random_fleet(rng, cut, 2, 60, ordinary=True), "s", rng), *others()]
    definition = definition_of(cut, ASKED, shards=1)
    most = rng.choice([20, 100, 500])
    monkeypatch.setattr(grid, "MAX_WINDOWS", most)
    rng.shuffle(sent)
    store, version = store_at(tmp_path / "table", definition)
    for at in (0, 1, 2):
        if sent[at::3]:
            version = take_in(store, version, table_of(sent[at::3], since=at * 1_000))
    known = {f"{at * 1_000 + i}.json": one for at in (0, 1, 2) for i, one in enumerate(sent[at::3])}
    there = any(read.window_files(store, version))
    rows = windows(store, version) if there else {}
    if there:
        assert differences(rows, windows(store, anew(store, version)))[:3] == []
    index = store.read_json(version.shards["0"])
    told, ledger = aside.of_index(index), store.read(index["ledger"])
    before = {row["path"]: row["fate"] for row in ledger.to_pylist()}
    for (device, stream), rest in told.items():
        mine = [row for row in aside.without(ledger, told).to_pylist() if row["device"] == device]
        for row in mine:
            used = before[row["path"]] == "used" and (row["part"] or row)["t_first"] < rest.since_us
            assert (row["fate"] == "used") == used
        kept = [row for row in rows.values() if row["device"] == device and row["windows"] == 1]
        buckets = sum((row["part"] or row)["buckets"] for row in mine if row["fate"] == "used")
        assert len(kept) - buckets <= most, stream
        if {before[row["path"]] for row in mine} == {"used"}:
            first = min(row["t_first"] for row in mine)
            one_more = [row for row in mine if row["t_first"] <= max(rest.since_us, first)]
            monkeypatch.setattr(grid, "MAX_WINDOWS", 1 << 30)
            alone = rows_of(tmp_path / device, [known[row["path"]] for row in one_more], cut).values()
            many = sum(row["windows"] == 1 for row in alone if row["device"])
            assert many - sum(row["buckets"] for row in one_more) > most


def test_a_device_that_moves_is_answered_anew_and_set_aside_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site move answers all windows of a stream in one run, which runs before had answered part by part."""
    for most in (BEYOND, BEYOND - 1):
        monkeypatch.setattr(grid, "MAX_WINDOWS", most)
        definition = definition_of(CUT, ASKED, shards=1, by=(("site",),))
        store, version = store_at(tmp_path / f"table-{most}", definition)
        version = take_in(store, version, table_of(others(), since=100))
        for at, document in enumerate([*sparse_documents(site="old")[:7], sparse_documents(site="new")[7]]):
            version = take_in(store, version, table_of([document], since=at))
        rows = windows(store, version).values()
        kept = 197 if most == BEYOND else 172
        assert sum(row["tag_site"] == "new" and row["device"] is None for row in rows) == kept
        assert sum(row["device"] == "sparse" for row in rows) == kept
        assert differences(windows(store, version), windows(store, anew(store, version))) == []


def test_windows_cut_into_short_axes_are_those_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever crosses the cuts, memory holds so many windows at a time."""
    for seed in range(number(100, 4)):
        rng = random.Random(seed)
        cut = random_cut(rng)
        documents = table_of(documents_of(random_fleet(rng, cut, 2, 30, ordinary=True), "s", rng))
        found = []
        for most in (1 << 20, rng.choice([40, 150, 700])):
            monkeypatch.setattr(block, "MOST", most)
            store, version = store_at(tmp_path / f"{seed}-{most}", definition_of(cut, ("std", "min", "max", "count")))
            found.append(windows(store, take_in(store, version, documents)))
        assert differences(*found)[:5] == [], seed


@pytest.mark.parametrize("seed", range(number(100, 6)))
def test_windows_are_counted_as_they_are_answered(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random boards, with silences, spans, holes and documents lost: as many as there are rows of one window."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    documents = table_of(documents_of(random_fleet(rng, cut, 4, 60, ordinary=True), "s", rng))
    store, version = store_at(tmp_path / "table", definition_of(cut, ("count",), shards=1))
    version = take_in(store, version, documents)
    rows = windows(store, version)
    told = {row["device"]: 0 for row in rows.values() if row["device"]}
    for row in rows.values():
        if row["device"]:
            told[row["device"]] += row["windows"] == 1
    monkeypatch.setattr(grid, "MAX_WINDOWS", -1)
    seen: dict[str, Count] = {}
    monkeypatch.setattr(sparse, "too_many", lambda of: seen.update((name[0], one) for name, one in of.items()) or {})
    index = store.read_json(version.shards["0"])
    aside.found(version.definition, Ledger(store.read(index["ledger"])), Kept(store, index["documents"], {}))
    assert {device: count.windows for device, count in seen.items()} == told


def test_small_streams_of_a_device_stay_and_other_devices_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the definition: those with fewest first, as long as all taken of a device have at most 100, then the rest."""
    monkeypatch.setattr(grid, "MAX_WINDOWS", 100)
    counts = {("a", "most"): Count(60, 10), ("a", "small"): Count(40, 10), ("a", "less"): Count(25, 5)}
    counts |= {("a", "none"): Count(3, 9), ("b", "x"): Count(110, 10)}
    assert too_many(counts) == {}
    assert too_many(counts | {("a", "more"): Count(2, 1)}) == {("a", "most"): 49}
    assert too_many(counts | {("a", "most"): Count(400, 10)}) == {("a", "most"): 50}
    assert too_many(counts | {("b", "x"): Count(111, 10)}) == {("b", "x"): 100}


def test_what_is_counted_is_all_that_may_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a device has: a stream is set aside only if its device is looked at."""
    monkeypatch.setattr(grid, "MAX_WINDOWS", 10)
    for seed in range(300):
        rng = random.Random(seed)
        counts = {(rng.choice("ab"), str(at)): Count(rng.randrange(14), rng.randrange(3)) for at in range(9)}
        beyond = [max(count.windows - count.buckets, 0) for count in counts.values()]
        looked_at = sparse.doubtful([*counts], beyond)
        assert too_many(counts) == too_many({of: counts[of] for of in looked_at})
