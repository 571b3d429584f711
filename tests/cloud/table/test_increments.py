"""Runs on a table promise the rows of one run over all documents, whatever comes when, twice or late."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from random_worlds import MINUTE, random_cut, random_fleet
from table_worlds import anew, definition_of, differences, documents_of, here, store_at, table_of, take_in, windows
from thorough import number

from sluicegate.format.bucket import Builder
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.names import ALL
from sluicegate_cloud.table import adding, answering, run, shard, units, whole
from sluicegate_cloud.table.versions import DAY_US, Definition

WORLDS = number(300, 4)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_runs_over_parts_in_any_order_have_the_rows_of_one_run(seed: int, tmp_path: Path) -> None:
    """Random documents, some lost, some twice, split at random and shuffled: row for row the same table."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    documents = documents_of(random_fleet(rng, cut, boards=4, ordinary=True), "s", rng)
    definition = definition_of(cut, ALL, by=(("site",),))
    one, version = store_at(tmp_path / "one", definition)
    wanted = windows(one, take_in(one, version, table_of(documents)))
    sent = documents + rng.sample(documents, len(documents) // 4)
    rng.shuffle(sent)
    parts, version = store_at(tmp_path / "parts", definition)
    while sent:
        some, sent = sent[: (size := rng.randrange(1, 30))], sent[size:]
        version = take_in(parts, version, table_of(some, since=len(sent)))
    center = max(map(abs, table_of(documents)["center"].to_pylist()))
    assert differences(windows(parts, version), wanted, center)[:5] == []


def test_long_streams_cut_by_time_have_the_rows_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut after every seven buckets, whatever crosses the cuts: silences, spans, holes, windows longer than a part.

    Less the geometric mean: how wide its certain interval is follows from all readings that are read with the window's.
    """
    cuts: list[int] = []
    asked = [name for name in ALL if name != "geometric_mean"]
    counted, most = units.Ledger.cuts, units.MOST
    monkeypatch.setattr(units.Ledger, "cuts", lambda *of: cuts.append(len(told := counted(*of))) or told)
    for seed in range(number(100, 5)):
        rng = random.Random(seed)
        cut = random_cut(rng)
        documents = table_of(documents_of(random_fleet(rng, cut, 2, 150, ordinary=True), "s", rng))
        found = []
        for held in (most, 7):
            monkeypatch.setattr(units, "MOST", held)
            store, version = store_at(tmp_path / f"{seed}-{held}", definition_of(cut, asked))
            found.append(windows(store, take_in(store, version, documents)))
        assert differences(*found)[:5] == [], seed
    assert max(cuts) > 5


def test_cells_answered_some_groups_at_a_time_have_the_rows_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In three runs, of many streams and sites, with spans: however many rows a task holds of them."""
    made: list[int] = []
    sliced = whole._slices
    for seed in range(number(60, 1)):
        rng = random.Random(seed)
        cut = random_cut(rng)
        documents = [
            one for at in range(4) for one in documents_of(random_fleet(rng, cut, 2, 20, ordinary=True), f"s-{at}", rng)
        ]
        rng.shuffle(documents)
        found = []
        for rows in (whole.MOST, 9):
            monkeypatch.setattr(whole, "MOST", rows)
            monkeypatch.setattr(adding, "SHARES", rows)
            monkeypatch.setattr(whole, "_slices", lambda *of: made.append(len(told := sliced(*of))) or told)
            store, version = store_at(tmp_path / f"{seed}-{rows}", definition_of(cut, ALL, by=(("site",),)))
            for part in range(3):
                version = take_in(store, version, table_of(documents[part::3], 1_000 * part))
            found.append(windows(store, version))
            assert max(made) > 3 or rows > 9
        assert found[0] == found[1], seed
        monkeypatch.undo()


def test_a_shard_taken_in_by_parts_has_the_rows_of_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More documents in one run than a task holds: it takes them in by time, some after the other."""
    merges: list[int] = []
    merge = shard.merge
    monkeypatch.setattr(shard, "merge", lambda *of: merges.append(of[2]) or merge(*of))
    for seed in range(number(60, 3)):
        rng = random.Random(seed)
        cut = random_cut(rng)
        sent = documents_of(random_fleet(rng, cut, boards=3, ordinary=True), "s", rng)
        documents = table_of([*sent, *rng.sample(sent, len(sent) // 4), b"{}"])
        definition = definition_of(cut, ALL, by=(("site",),), shards=1)
        store, version = store_at(tmp_path / f"one-{seed}", definition)
        one = take_in(store, version, documents)
        wanted = windows(store, one)
        rows = documents.append_column("shard", pa.array([0] * documents.num_rows)).sort_by("t_first")
        store, version = store_at(tmp_path / f"parts-{seed}", definition)
        merges.clear()
        told = list(run.shards_into(store, version, frozenset(), most=1)(rows.to_batches(3)))
        assert len(merges) == -(-documents.num_rows // 3) > 1
        done = [(row["number"], (row["name"], json.loads(row["told"]))) for of in told for row in of.to_pylist()]
        version = store.commit(run.following(store, version, done, here))
        assert differences(windows(store, version), wanted)[:5] == []
        assert [version.told[of] for of in ("documents", "refused")] == [
            one.told[of] for of in ("documents", "refused")
        ]


def test_what_goes_to_the_disk_between_has_the_rows_of_what_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little is held of windows and of what they add to all, and nothing of it stays on the disk.

    Less sums and means: how wide their certain intervals are follows from how many are added up at a time.
    """
    folders: list[str] = []
    made = adding.TemporaryDirectory
    monkeypatch.setattr(adding, "TemporaryDirectory", lambda **of: folders.append((one := made(**of)).name) or one)
    for seed in range(number(60, 3)):
        rng = random.Random(seed)
        cut = random_cut(rng)
        sent = documents_of(random_fleet(rng, cut, boards=4, ordinary=True), "s", rng)
        found = []
        for most in (1 << 20, rng.choice([1, 40])):
            for module, name in ((answering, "_HELD"), (answering, "_ADDED"), (adding, "_HELD"), (units, "_ROWS")):
                monkeypatch.setattr(module, name, most)
            definition = definition_of(cut, ("count", "min", "max", "range", "max_count"), by=(("site",),), shards=1)
            store, version = store_at(tmp_path / f"{seed}-{most}", definition)
            for at in (0, 1):
                version = take_in(store, version, table_of(sent[at::2], since=at * 1_000))
            found.append(windows(store, version))
        assert differences(*found)[:5] == [], seed
    assert len(folders) > 2
    assert not any(map(os.path.exists, folders))


def test_losses_that_nobody_can_place_cost_no_reading_of_their_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count in each window of the stream; a run with a new document reads it and its neighbour, no more."""
    rows, days = list[int](), [*_days_of_a_clock_set_back(13)]
    store, version = store_at(tmp_path, Definition(2 * MINUTE, MINUTE, 0, ("count", "min", "max"), 1, DAY_US))
    version = take_in(store, version, table_of(days[:12]))
    packed = units._packed
    monkeypatch.setattr(units, "_packed", lambda *of: rows.append(of[2].size) or packed(*of))
    version = take_in(store, version, table_of(days[12:], since=12))
    assert 1 <= sum(rows) <= 2
    assert differences(windows(store, version), windows(store, anew(store, version))) == []
    assert max(row["completeness"] or 0 for row in windows(store, version).values()) < 1


def test_a_new_device_is_added_to_the_windows_of_its_own_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the devices that are there it reads what lies in these, no more; so it does where its next document comes."""
    rows, days = list[int](), [[*_days(range(12), "d")], [*_days(range(5, 7), "e")]]
    store, version = store_at(tmp_path, Definition(2 * MINUTE, MINUTE, 0, ("count", "min", "max"), 1, DAY_US))
    version = take_in(store, version, table_of(days[0]))
    packed = units._packed
    monkeypatch.setattr(units, "_packed", lambda *of: rows.append(of[2].size) or packed(*of))
    for at in (0, 1):
        version = take_in(store, version, table_of(days[1][at : at + 1], since=100 + at))
    assert 2 <= sum(rows) <= 9
    assert differences(windows(store, version), windows(store, anew(store, version))) == []


def _days(days: range, device: str) -> Iterator[bytes]:
    """A document of half an hour a day."""
    builder = Builder(20.0)
    for day in days:
        buckets = []
        for at in range(30):
            builder.add(20.0, 20_000 * DAY_US + day * DAY_US + at * MINUTE)
            buckets.append(builder.close())
        yield encode(Chunk(device, "s", "0" * 16, 20.0, buckets, [None] * len(buckets)))


def _days_of_a_clock_set_back(days: int) -> Iterator[bytes]:
    """A document a day; in each, but for the last, readings are lost just where the clock is set back."""
    builder = Builder(20.0)
    for day in range(days):
        buckets, start = [], 20_000 * DAY_US + day * DAY_US
        for at in range(30):
            is_back = at == 20 and day < days - 1
            builder.add(20.0, start + (10 if is_back else at) * MINUTE + is_back, 3 if is_back else 0)
            buckets.append(builder.close())
        yield encode(Chunk("d", "s", "0" * 16, 20.0, buckets, [None] * len(buckets)))


def test_a_table_of_documents_that_cannot_be_read_has_no_rows(tmp_path: Path) -> None:
    """The run ends, and its version names them: a shard without a readable document stopped it."""
    store, version = store_at(tmp_path / "table", definition_of(random_cut(random.Random(1)), ("count",)))
    version = take_in(store, version, table_of([b"not a document", b"{}"]))
    ledgers = [store.read(store.read_json(name)["ledger"]) for name in version.shards.values()]
    assert [fate for ledger in ledgers for fate in ledger["fate"].to_pylist()] == ["refused", "refused"]
