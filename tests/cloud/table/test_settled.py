"""Runs of documents promise what the documents' own rows would: the same windows, alerts and fates, whatever comes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from random_worlds import MINUTE, Board, Cut, buckets_of, random_cut, random_fleet
from table_worlds import anew, definition_of, differences, here, store_at, table_of, take_in, windows
from thorough import WHOLE, number

from sluicegate.format.bucket import Builder, merge
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.table import devices, retention
from sluicegate_cloud.table.ledger import empty, judge
from sluicegate_cloud.table.settled import folding
from sluicegate_cloud.table.settled.rows import Settled, load, runs_of
from sluicegate_cloud.table.versions import FORMAT, Definition, Store, Version


@contextmanager
def folded(least: int) -> Iterator[None]:
    """Where so many documents become runs; with 1 every one that may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "LEAST", least)
        if least == 1:
            for name, value in (("EACH", 0), ("SHORTEST", 2), ("CELLS", 1), ("MOST_FILES", 3), ("OF_CELL", 1)):
                patch.setattr(folding, name, value)
            patch.setattr(folding, "MORE", 0)
        yield


def told(board: Board, rng: random.Random) -> list[bytes]:
    """A board's documents in order, few buckets each; some in other words, or of a second board."""
    out = []
    for incarnation, center, buckets in board.incarnations:
        left = list(buckets)
        while left:
            part, left = left[: (size := rng.randrange(1, 4))], left[size:]
            chunk = Chunk(board.device, "s", incarnation, center, part, [None] * len(part))
            out.append(encode(chunk))
            if rng.random() < 0.02 and len(part) > 1:
                one = [merge(part[0], part[1]), *part[2:]]
                out.append(encode(Chunk(board.device, "s", incarnation, center, one, [None] * len(one))))
            if rng.random() < 0.01:
                again = Chunk(board.device, "s", incarnation, center, part, [None] * len(part), key="b" * 32)
                out.append(encode(again))
    return out


def arrivals(boards: list[Board], rng: random.Random) -> list[list[bytes]]:
    """Documents of boards as some runs get them."""
    return arriving([told(board, rng) for board in boards], rng, 25)[:25]


def arriving(sent: list[list[bytes]], rng: random.Random, most: int) -> list[list[bytes]]:
    """Mostly in their order, some lost, late, twice, or unreadable; of each `most` a run."""
    out: list[list[bytes]] = []
    late: list[bytes] = []
    before: list[bytes] = []
    while any(sent) or late:
        some: list[bytes] = []
        for of in sent:
            mine, of[:] = of[: (size := rng.randrange(most))], of[size:]
            for one in mine:
                kind = rng.random()
                (late if kind < 0.03 else some if kind < 0.97 else []).append(one)
        if rng.random() < 0.3 or not any(sent):
            some, late = [*some, *late], []
        some += [rng.choice(before)] if before and rng.random() < 0.3 else []
        some += [b"{}"] if rng.random() < 0.05 else []
        before += some
        rng.shuffle(some)
        out.append(some)
    return [some for some in out if some]


def shaky(rng: random.Random) -> list[bytes]:
    """A board's documents in order: its clock is set back and ahead, and some of what it sends is lost before."""
    builder, now, sent = Builder(20.0), 1_000 * MINUTE, []
    for _ in range(80):
        buckets, kind = [], rng.random()
        now += MINUTE * (-rng.randrange(1, 30) if kind < 0.12 else rng.randrange(1, 60) if kind < 0.2 else 0)
        for _ in range(rng.randrange(1, 4)):
            late = rng.choice([0] * 8 + [5 * MINUTE, 40 * MINUTE])
            builder.add(20.0, now - late, -1 if late and rng.random() < 0.7 else rng.choice([0, 0, 0, 2]))
            buckets.append(builder.close())
            now += rng.randrange(1, 3 * MINUTE)
        sent.append(encode(Chunk("d", "s", f"{MINUTE:016x}", 20.0, buckets, [None] * len(buckets))))
    return sent


@pytest.mark.parametrize("seed", range(1_000) if WHOLE else (3, 17, 21))
def test_new_documents_are_judged_by_runs_as_by_their_documents(seed: int, tmp_path: Path) -> None:
    """Fates, holes and losses of all, and which times are touched, whatever the clock does, and what comes late."""
    rng = random.Random(seed)
    store, definition = Store(tmp_path), Definition(2 * MINUTE, MINUTE, 0, ("count",), 1, 60 * MINUTE)
    tables, packed, since = [empty(), empty()], dict[Any, Any](), 0

    def load(row: dict[str, Any]) -> Any:
        return packed[row["digest"]]

    for some in arriving([shaky(rng)], rng, 8):
        new, since = table_of(some, since), since + len(some)
        packed |= zip(new["digest"].to_pylist(), new["packed"].to_pylist(), strict=True)
        found = [judge(table, new, definition.cell_us, load, Settled(store)) for table in tables]
        assert [of[2:] for of in found[1:]] == [of[2:] for of in found[:1]]
        assert found[0].fresh.equals(found[1].fresh)
        with folded(1):
            tables = [found[0].ledger, folding.folded(store, found[1].ledger, definition)]
    assert Settled(store).whole(tables[1]).to_pylist() == tables[0].to_pylist()


def documents(store: Store, version: Version) -> list[dict[str, Any]]:
    """A row a document, and no run."""
    out: list[dict[str, Any]] = []
    for name in version.shards.values():
        table = Settled(store).whole(load(store, store.read_json(name)["ledger"]))
        assert not runs_of(table).any()
        out += table.to_pylist()
    return sorted(out, key=lambda row: [row[name] or "" for name in ("device", "id", "digest", "path")])


def said(store: Store, version: Version) -> list[Any]:
    """What the table tells of its devices and documents."""
    alerts = [*devices.alerts(store, version, 0)]
    return [devices.devices(store, version), sorted(alerts, key=str)]


@pytest.mark.parametrize("seed", range(number(100, 1)))
def test_runs_of_documents_tell_what_their_rows_do(seed: int, tmp_path: Path) -> None:
    """Row for row, after each of many runs of a table that keeps no row it need not keep; none of its rows is lost."""
    rng = random.Random(seed)
    cut = random_cut(rng)
    boards = random_fleet(rng, cut, 2, 100, ordinary=True)
    sent = arrivals(boards, rng)
    definition = definition_of(cut, ("count", "min", "max"), shards=1, cell_us=cut.slide * 40)
    stores = [store_at(tmp_path / name, definition) for name in ("rows", "runs")]
    since = 0
    for some in sent:
        table, since = table_of(some, since), since + len(some)
        for at, least in enumerate((1 << 40, 1)):
            with folded(least):
                stores[at] = stores[at][0], take_in(*stores[at], table)
    assert said(*stores[1]) == said(*stores[0])
    assert documents(*stores[1]) == documents(*stores[0])
    assert windows(*stores[1]) == windows(*stores[0])
    assert differences(windows(*stores[1]), windows(stores[1][0], anew(*stores[1])))[:3] == []


@pytest.mark.parametrize("seed", range(number(100, 1)))
def test_what_retention_takes_out_becomes_runs_too(seed: int, tmp_path: Path) -> None:
    """With what comes late, or again, after it."""
    rng = random.Random(seed)
    cut = Cut(60_000_000, 2, 0, 30)
    sent = arrivals(random_fleet(rng, cut, 2, 120, ordinary=True), rng)
    definition = definition_of(cut, ("count", "sum", "min"), shards=1, cell_us=cut.slide * 40)
    stores = [store_at(tmp_path / name, definition) for name in ("rows", "runs")]
    times: list[int] = []
    since = 0
    for some in [*sent, *rng.sample(sent, len(sent) // 3)]:
        table, since = table_of(some, since), since + len(some)
        times += [time for time in table["t_last"].to_pylist() if time is not None]
        keep = rng.random() < 0.4
        until = retention.horizon_of(stores[0][1], rng.choice(sorted(times)[: len(times) // 2 + 1]), {})
        for at, least in enumerate((1 << 40, 1)):
            with folded(least):
                store, version = stores[at]
                version = take_in(store, version, table)
                if keep:
                    planned, before = retention.plan(store, version, until), version.number
                    version = retention.retain(here, store, version, until, {}, 0)
                    assert version.number == before or planned == {name: version.told[name] for name in planned}
                stores[at] = store, version
        assert said(*stores[1]) == said(*stores[0])
    assert documents(*stores[1]) == documents(*stores[0])
    assert windows(*stores[1]) == windows(*stores[0])


def test_a_stream_in_order_costs_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many documents it has: what is new opens none of its runs, and a copy just looks into one file."""
    builder, sent = Builder(20.0), []
    for at in range(1, 601):
        builder.add(20.0, at * MINUTE)
        if at % 2 == 0:
            sent.append(encode(Chunk("d", "s", "0" * 16, 20.0, [builder.close()], [None])))
    store, version = store_at(tmp_path, Definition(2 * MINUTE, MINUTE, 0, ("count",), 1, 100 * MINUTE))
    opened: list[int] = []
    rows = Settled._rows
    monkeypatch.setattr(Settled, "_rows", lambda *of: opened.append(of[1].num_rows) or rows(*of))
    for at in range(0, len(sent), 50):
        with folded(1):
            version = take_in(store, version, table_of(sent[at : at + 50], at))
    assert sum(opened) == 0
    with folded(1 << 40):
        version = take_in(store, version, table_of(sent[:1], 1_000))
    [name] = version.shards.values()
    table = load(store, store.read_json(name)["ledger"])
    assert not any(name == "" for name in store.files(version))
    assert (sum(opened), version.told["copies"]) == (0, 1)
    assert table.num_rows < 20 < len(documents(store, version)) == len(sent)


@pytest.mark.parametrize("ahead", [None, 0, 7, 150])
def test_a_document_far_ahead_keeps_no_later_one_out_of_runs(ahead: int | None, tmp_path: Path) -> None:
    """One whose clock was years off, for itself: what comes after it costs as few rows as without it."""
    sent = []
    for at in range(200):
        builder = Builder(20.0)
        builder.add(20.0, at * MINUTE + (5_000_000 * MINUTE if at == ahead else 0))
        bucket = builder.close()._replace(first=at)
        sent.append(encode(Chunk("d", "s", "0" * 16, 20.0, [bucket], [None])))
    store, definition = Store(tmp_path), Definition(2 * MINUTE, MINUTE, 0, ("count",), 1, 100 * MINUTE)
    found = judge(empty(), table_of(sent, 0), definition.cell_us, dict[Any, Any]().get, Settled(store))
    with folded(1):
        table = folding.folded(store, found.ledger, definition)
    assert table.num_rows < 12
    assert Settled(store).whole(table).to_pylist() == found.ledger.to_pylist()


def test_a_table_of_before_is_read_and_one_of_later_refused(tmp_path: Path) -> None:
    """Its ledger has no runs; an older Sluicegate would take a run for a document, so that it has to refuse it."""
    store, version = store_at(tmp_path, Definition(2 * MINUTE, MINUTE, 0, ("count",), 1, 100 * MINUTE))
    sent = [encode(Chunk("d", "s", f"{at:016x}", 1.0, buckets_of([(at * MINUTE, 1.0)], 1), [None])) for at in (1, 2)]
    version = take_in(store, version, table_of(sent[:1]))
    index = store.read_json(version.shards["0"])
    del index["settled"]
    old = store.read(index["ledger"]).drop_columns(["run"])
    before = replace(
        version, number=2, shards={"0": store.write_json("index", index | {"ledger": store.write("ledger", old)})}
    )
    store.commit(before)
    path = tmp_path / "versions" / "00000002.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"format": 1}))
    loaded = store.load()
    assert loaded is not None
    version = take_in(store, loaded, table_of(sent, 10))
    assert [row["fate"] for row in documents(store, version)] == ["used", "used"]
    path.write_text(json.dumps(told | {"format": FORMAT + 1}))
    with pytest.raises(SourceError, match="update Sluicegate"):
        store.load(2)
