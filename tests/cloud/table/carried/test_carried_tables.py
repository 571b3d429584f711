"""A table promises of what buckets carry the rows of one merge of all documents, in whatever order these come."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from carried_worlds import Carrying, Device, random_device
from cloud_streams import fold
from table_worlds import anew, here, store_at, table_of, take_in
from thorough import number

from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.extras.asked import asked_of
from sluicegate_cloud.extras.long import NONE
from sluicegate_cloud.extras.piece import Share, added
from sluicegate_cloud.extras.stored import of_row, to_row
from sluicegate_cloud.extras.windows import answered, columns_of, piece_of, rows_of, shares
from sluicegate_cloud.table import postgres, read, retention
from sluicegate_cloud.table.carried import windows as carried
from sluicegate_cloud.table.job import definition_of
from sluicegate_cloud.table.summaries.quality import quality
from sluicegate_cloud.table.told import of_table
from sluicegate_cloud.table.versions import Definition, Store, Version

NAMES = ("first", "last", "argmin", "argmax", "slope(1s)", "time_weighted_mean", "covariance", "quantiles(8)",
         "distinct_count(8)", "top_k(3)")  # fmt: skip
ASKED = asked_of(NAMES)
SITES = ("north", "south", None)
Rows = dict[tuple[Any, ...], dict[str, Any]]


def told(
    device: Device, name: str, site: str | None, rng: random.Random, stream: str = "s"
) -> list[bytes]:  # fmt: skip
    """The device's documents, a few buckets each, with what they carry."""
    lines: dict[int, list[Carrying]] = {}
    for one in device.buckets:
        lines.setdefault(one.readings[0].incarnation, []).append(one)
    out = []
    for incarnation, left in lines.items():
        center, rest = left[0].readings[0].x, [*left]
        while rest:
            size = rng.randrange(1, 7)
            part, rest = rest[:size], rest[size:]
            kinds = sorted({kind for one in part for kind in one.parts})
            # A single reading says the rest itself; `pair` it does not.
            extras = {kind: [one.parts[kind] if one.bucket.n > 1 or kind == "pair" else None for one in part]
                      for kind in kinds}  # fmt: skip
            tags = {"site": site} if site else None
            buckets, some = [one.bucket for one in part], {kind: of for kind, of in extras.items() if any(of)}
            head = Chunk(name, stream, f"{incarnation:016x}", center, buckets, [None] * len(part), tags=tags)
            out.append(encode(replace(head, extras=some or None)))
    return out


def wanted(documents: Sequence[bytes], definition: Definition) -> dict[tuple[str | None, str, int], Share]:
    """By device, site and frame: all pieces of a device at once, then the devices in order, as `--out` has them."""
    table, out = table_of(documents), dict[tuple[str | None, str, int], Share]()
    by_device: dict[str, list[Any]] = {}
    for batch in rows_of(ASKED)(table.to_batches()):
        for row in batch.to_pylist():
            by_device.setdefault(row["device"], []).append(row)
    of = {row["device"]: dict(row["tags"] or []).get("site") for row in table.select(["device", "tags"]).to_pylist()}
    for device in sorted(by_device):
        rows = sorted(by_device[device], key=lambda row: (row["t_first"], row["incarnation"], row["first"]))
        for share in shares([piece_of(row) for row in rows], definition.grid, ASKED):
            out[device, "", share.start] = share
            for key in ((None, "", share.start), (None, f"site {of[device]}", share.start)):
                out[key] = added(out[key], share, ASKED) if key in out else share
    return out


def found(store: Store, version: Version) -> Rows:
    """The rows of a table that stand for one window."""
    return keyed(read.rows_of(store, version).to_pylist())


def keyed(rows: Iterable[dict[str, Any]]) -> Rows:
    """By device, site and start."""
    out = {}
    for row in rows:
        if row["windows"] == 1:
            site = f"site {row['tag_site']}" if row["rollup"] else ""
            out[row["device"], site, row["window_start"]] = row
    return out


def differing(rows: Rows, truth: dict[Any, Share], *, but: Sequence[str] = ()) -> list[Any]:
    """Windows whose columns are not those of the truth, to the bit; `but`: columns of all devices not compared."""
    out = []
    for key, row in rows.items():
        share = truth.get(key)
        says = answered(key[0], "s", share, ASKED, NONE) if share else dict.fromkeys(columns_of(ASKED))
        names = [name for name in columns_of(ASKED) if key[0] or not name.startswith(tuple(but))]
        if any(row[name] != says[name] for name in names):
            out.append((key, {name: (row[name], says[name]) for name in names if row[name] != says[name]}))
    return out


def world(seed: int) -> tuple[random.Random, list[bytes], Definition]:
    """Three devices, what is asked, and all documents."""
    rng = random.Random(seed)
    devices = [random_device(rng) for _ in SITES]
    sent = [one for at, of in enumerate(devices) for one in told(of, f"d-{at}", SITES[at], rng)]
    slide = rng.choice((40, 150, 1_000))
    return rng, sent, asked_for(slide, slide * rng.choice((1, 2, 5)), shards=1)


def asked_for(slide: int, window: int, shards: int) -> Definition:
    """What a table answers."""
    return definition_of(window, slide, ("mean",), by=(("site",),), carried=NAMES, shards=shards)


@pytest.mark.parametrize("seed", range(number(150, 1)))
def test_runs_in_any_order_have_the_rows_of_one_merge(seed: int, tmp_path: Path) -> None:
    """Of devices, of all and of roll-ups by tags, to the bit; some documents twice; reconciled it is the same."""
    rng, sent, definition = world(seed)
    truth = wanted(sent, definition)
    store, version = store_at(tmp_path / "table", definition)
    left = sent + rng.sample(sent, len(sent) // 3)
    rng.shuffle(left)
    while left:
        size = rng.randrange(1, 60)
        some, left = left[:size], left[size:]
        version = take_in(store, version, table_of(some, len(left)))
    rows = found(store, version)
    assert {*rows} >= {*truth}
    assert differing(rows, truth)[:2] == []
    assert differing(found(store, anew(store, version)), truth)[:2] == []


@pytest.mark.parametrize("seed", range(number(40, 1)))
def test_keys_together_have_what_one_stream_of_them_has(seed: int, tmp_path: Path) -> None:
    """Three devices, or three keys of their own: all keys have the rows of all devices, to the bit, in any runs."""
    rng = random.Random(seed)
    devices, rows = [random_device(rng) for _ in range(3)], []
    for name, streams in (("devices", ("s", "s", "s")), ("keys", ("s/a", "s", "s/b/c"))):
        store, version = store_at(
            tmp_path / name, definition_of(400, 200, ("mean",), by=(("/",),), carried=NAMES, shards=1)
        )
        sent = [told(of, f"d-{at}", None, random.Random(7), streams[at]) for at, of in enumerate(devices)]
        for at, some in enumerate((sent[0][::2] + sent[2], sent[1] + sent[0][1::2])):
            version = take_in(store, version, table_of(some, 1_000 * at))
        every = read.rows_of(store, version).to_pylist()
        mine = [row | {"revision": 0} for row in every if row["rollup"] == "/"]
        rows.append({(row["stream"], row["window_start"], row["window_end"]): row for row in mine})
        assert len(mine) == len(rows[-1]) > 3
    assert rows[0] == rows[1]


def test_several_shards_add_up_but_for_where_a_sketch_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sketches of quantiles depend on the order in which devices are added, and so on how many windows are held."""
    monkeypatch.setattr(carried, "_HELD", 3)
    monkeypatch.setattr(carried, "_ROWS", 2)
    for seed in range(number(40, 1)):
        rng, sent, definition = world(1_009 - seed % 10)
        definition = asked_for(definition.slide_us, definition.window_us, shards=3)
        store, version = store_at(tmp_path / str(seed), definition)
        rng.shuffle(sent)
        for part in range(3):
            version = take_in(store, version, table_of(sent[part::3], 1_000 * part)) if sent[part::3] else version
        rounded = ("p05", "p25", "p50", "p75", "p95", "slope", "time", "cov")
        assert differing(found(store, version), wanted(sent, definition), but=rounded)[:2] == []


def test_a_share_is_what_it_was_when_it_is_read_again() -> None:
    """All of it but what tells readings of one device apart."""
    _, sent, definition = world(7)
    for share in wanted(sent, definition).values():
        again = of_row(to_row(share))
        assert repr(to_row(again)) == repr(to_row(share))
        assert answered(None, "s", again, ASKED, NONE) == answered(None, "s", share, ASKED, NONE)


def test_a_bucket_over_too_many_windows_leaves_them_without_an_answer(tmp_path: Path) -> None:
    """Its device's and those of all, from when it comes; another device keeps its own."""

    def document(device: str, first: int, times: Sequence[int]) -> bytes:
        bucket = Bucket(**fold([(time, 1.0) for time in times], 1.0, first))
        return encode(Chunk(device, "s", f"{1:016x}", 1.0, [bucket], [None]))

    definition = definition_of(10, 10, ("mean",), carried=("first",), shards=2)
    store, version = store_at(tmp_path / "table", definition)
    version = take_in(store, version, table_of([document("a", 0, (10,)), document("b", 0, (200,))]))
    assert {key[0]: row["first"] for key, row in found(store, version).items() if row["count"]} == {
        "a": 1.0, "b": 1.0, None: 1.0,
    }  # fmt: skip
    version = take_in(store, version, table_of([document("a", 1, (20, 2_000_000))], 10))
    rows = {key: row for key, row in found(store, version).items() if row["count_low"]}
    assert rows[None, "", 10]["first"] == 1.0
    assert rows["b", "", 200]["first"] == 1.0
    assert rows[None, "", 200]["first"] is None
    assert rows["a", "", 20]["first"] is None


def test_what_retention_keeps_has_them_too(tmp_path: Path) -> None:
    """Windows that stay, also after a late document, and the coarser ones of what went."""
    _, sent, definition = world(5)
    store, version = store_at(tmp_path / "table", definition)
    version = take_in(store, version, table_of(sent[1:]))
    starts, level = sorted(of[2] for of in found(store, version)), 4 * definition.slide_us
    until = retention.horizon_of(version, starts[len(starts) // 2], {level: None})
    version = retention.retain(here, store, version, until, {level: None}, now_us=0)
    kept, truth = found(store, version), wanted(sent[1:], definition)
    assert kept
    assert all(of[2] >= until for of in kept)
    assert differing(kept, truth) == []
    coarse = wanted(sent[1:], asked_for(level, level, shards=1))
    files = [store.read(name) for name in version.rollups[0]["files"]]
    rows = {key: row for key, row in keyed(row for of in files for row in of.to_pylist()).items() if key[2] < until}
    assert rows
    assert differing(rows, coarse) == []
    late = take_in(store, version, table_of(sent[:1], 10))
    assert differing(found(store, late), wanted(sent, definition)) == []


def test_who_reads_a_table_finds_them(tmp_path: Path) -> None:
    """The report's shares, the quality of a stream, and PostgreSQL, which writes a list in braces."""
    _, sent, definition = world(3)
    store, version = store_at(tmp_path / "table", definition)
    version = take_in(store, version, table_of(sent))
    shares_of = of_table(store, version).summary["windows"]["exact"]
    assert {"p50", "distinct_count", "slope", "top_k"} <= {*shares_of}
    row = next(row for some in quality(store, version) for row in some.to_pylist())
    assert (row["p50_exact"], row["distinct_count_exact"]) == pytest.approx(
        (share(store, version, "p50"), share(store, version, "distinct_count"))
    )
    names = [*read.schema_of(definition)]
    (block, *_) = postgres._blocks(store, [*read.window_files(store, version)], version, ["tags", *names])
    lists = {match.count(b",") for match in re.findall(rb'"\{([^}]*)\}"', block)}
    assert lists
    assert max(lists) == 2


def share(store: Store, version: Version, name: str) -> float:
    """Of the windows of all devices that may hold a reading, in how many this is exact."""
    rows = [row for row in read.rows_of(store, version).to_pylist() if row["rollup"] == "" and row["count_high"] > 0]
    return sum(row["windows"] * bool(row[f"{name}_exact"]) for row in rows) / sum(row["windows"] for row in rows)


def test_sketches_themselves_are_refused() -> None:
    """With what to do instead."""
    from click.testing import CliRunner

    from sluicegate_cloud.commands import cloud

    ran = CliRunner().invoke(cloud, ["merge", ".", "--table", "none", "--aggregates", "mean,count_min(32,2)"])
    assert "use --out" in str(ran.exception or ran.output)
