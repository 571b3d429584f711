"""One merge of a fleet with copied cards, readings in doubt and a board that sends nonsense: all of it is told."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from cloud_streams import Readings, Row, fold, violations

from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode

pytestmark = pytest.mark.spark

MINUTE, HOUR = 60_000_000, 3_600_000_000
A, B = "a" * 32, "b" * 32
Reading = tuple[int, float]


def readings(seed: int, count: int, since: int = 1_700_000_000_000_000) -> list[Reading]:
    """One about each minute."""
    rng, now, out = random.Random(seed), since, []
    for _ in range(count):
        now += rng.randrange(MINUTE // 2, 2 * MINUTE)
        out.append((now, 20 + rng.randrange(160) / 16))
    return out


def write(
    folder: Path,
    device: str,
    held: Sequence[Reading],
    edges: Sequence[int],
    key: str | None = None,
    incarnation: str = "0" * 16,
    doubtful: frozenset[int] = frozenset(),
) -> None:
    """The board's documents between each two edges, 32 readings a bucket, those of `doubtful` positions in doubt."""
    for begin, end in pairwise(edges):
        cuts = [*range(begin, end, 32), end]
        rows = [fold(held[a:b], 20.0, a) | {"doubt": len(doubtful & {*range(a, b)})} for a, b in pairwise(cuts)]
        buckets = [Bucket(**row) for row in rows]
        data = encode(Chunk(device, "temp", incarnation, 20.0, buckets, [None] * len(buckets), None, key))
        (folder / f"{device}-{(key or 'none')[0]}-{incarnation[-1]}-{begin}-{end}-{held[-1][0]}.json").write_bytes(data)


BEFORE = readings(1, 1_024)
CLONES = [BEFORE + readings(seed, 1_536, BEFORE[-1][0]) for seed in (2, 3)]
BOTH = [*CLONES[0], *CLONES[1][1_024:]]  # 4,096 readings taken
APART = [readings(4, 1_500), readings(5, 1_500)]
DOUBTED = readings(6, 1_500)
REPEATS = frozenset(i for i in range(1_500) if random.Random(i).random() < 0.02)


@pytest.fixture(scope="module")
def merged(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Row], dict[str, Any]]:
    """The rows of the windows, and the summary."""
    from sluicegate_cloud import job
    from sluicegate_cloud.names import ALL

    folder, out = tmp_path_factory.mktemp("chunks"), tmp_path_factory.mktemp("merged")
    for board, edges in zip(CLONES, ([*range(0, 2_561, 256)], [0, 512, 1_024, 1_568, 2_080, 2_560]), strict=True):
        write(folder, "cloned", board, edges)
    for board, edges, key in zip(CLONES, ([*range(0, 2_561, 512)], [0, 1_024, 1_792, 2_560]), (A, B), strict=True):
        write(folder, "keyed", board, edges, key)
    for board, key, incarnation in zip(APART, (A, B), ("0" * 16, "0" * 15 + "1"), strict=True):
        write(folder, "moved", board, [0, 750, 1_500], key, incarnation)
    write(folder, "doubtful", DOUBTED, [0, 750, 1_500], A, doubtful=REPEATS)
    nonsense = encode(Chunk("mad", "temp", "0" * 16, 20.0, [Bucket(**fold(DOUBTED[:9], 20.0, 0))], [None], {"a": 1}))
    (folder / "mad.json").write_bytes(nonsense.replace(b'"a":1', b'"a":' + b"[" * 100_000 + b"]" * 100_000))
    summary = job.merge([str(folder)], out, 6 * HOUR, HOUR, ALL)
    assert json.loads((out / "summary.json").read_text()) == summary
    table = ds.dataset(out / "windows", partitioning="hive").to_table()
    return table.to_pylist(), summary


def device_of(summary: dict[str, Any], name: str) -> Row:
    """Its row."""
    return next(row for row in summary["devices"] if row["device"] == name)


def alarms_of(summary: dict[str, Any], name: str) -> list[Row]:
    """The alarms that name it."""
    return [alarm for alarm in summary["alarms"] if alarm["device"] == name]


def wrong(rows: list[Row], device: str | None, held: Sequence[Reading]) -> list[str]:
    """What the windows of a device say that is not so of its readings."""
    raw, nan = Readings(held), float("nan")
    told = [{k: nan if v is None else v for k, v in row.items()} | {"device": row["device"]} for row in rows]
    mine = [row for row in told if row["device"] == device]
    assert len(mine) > 20
    return [text for row in mine for text in violations(row, raw.window(row["window_start"], row["window_end"]))]


def test_a_cloned_card_is_not_said_to_be_complete(merged: tuple[list[Row], dict[str, Any]]) -> None:
    """4,096 taken, 2,560 merged: 1,536 are missing, and the alarm says so with device, stream, document and number."""
    _, summary = merged
    cloned = device_of(summary, "cloned")
    assert (cloned["readings"], cloned["missing"]) == (2_560, 1_536)
    assert cloned["completeness"] == pytest.approx(2_560 / 4_096)
    (alarm,) = alarms_of(summary, "cloned")
    assert (alarm["kind"], alarm["stream"], alarm["readings"]) == ("two_contents", "temp", 1_536)
    assert alarm["ids"][0].startswith("cloned::temp::")


def test_the_windows_of_a_cloned_card_know_what_is_missing(merged: tuple[list[Row], dict[str, Any]]) -> None:
    """Completeness falls in the hours after the copy, and not before it."""
    rows = [row for row in merged[0] if row["device"] == "cloned" and row["completeness"] is not None]
    parted = BEFORE[-1][0]
    assert {row["completeness"] for row in rows if row["window_end"] < parted} == {1.0}
    after = [row["completeness"] for row in rows if row["window_start"] > parted + HOUR]
    assert after[:-8]
    assert max(after[:-8]) < 0.8


def test_boards_with_keys_both_count(merged: tuple[list[Row], dict[str, Any]]) -> None:
    """In one incarnation: all 4,096, what both had from before once, nothing missing; each window holds the truth."""
    rows, summary = merged
    keyed = device_of(summary, "keyed")
    assert keyed["readings"] == 4_096
    assert (keyed["missing"], keyed["completeness"]) == (0, 1.0)
    (alarm,) = alarms_of(summary, "keyed")
    assert (alarm["kind"], alarm["keys"]) == ("two_keys", [A, B])
    assert wrong(rows, "keyed", BOTH) == []


def test_boards_with_incarnations_of_their_own_both_count(merged: tuple[list[Row], dict[str, Any]]) -> None:
    """Nothing is dropped as a copy of the other's, and the alarm says that two boards speak as one device."""
    rows, summary = merged
    assert device_of(summary, "moved")["readings"] == 3_000
    (alarm,) = alarms_of(summary, "moved")
    assert (alarm["kind"], alarm["keys"], alarm["readings"]) == ("two_boards", [A, B], 1_500)
    assert "boards speak as one device" in alarm["text"]
    assert wrong(rows, "moved", [*APART[0], *APART[1]]) == []


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_doubt_reaches_the_windows(merged: tuple[list[Row], dict[str, Any]], share: float) -> None:
    """Whichever readings in doubt are repeats: each window holds the result without them, and is not called exact."""
    rows, summary = merged
    rng = random.Random(9)
    assert (
        wrong(rows, "doubtful", [x for i, x in enumerate(DOUBTED) if i not in REPEATS or rng.random() >= share]) == []
    )
    uncertain = [row for row in rows if row["device"] in (None, "doubtful") and row["count_low"] < row["count_high"]]
    assert len(uncertain) > 40
    assert not any(row["mean_exact"] or row["sum_exact"] for row in uncertain)
    told = device_of(summary, "doubtful")
    assert (told["doubt"], told["readings"], told["completeness"]) == (len(REPEATS), 1_500, 1.0)
    assert alarms_of(summary, "doubtful") == []


def test_a_document_that_is_no_json_is_named_and_the_rest_is_merged(merged: tuple[list[Row], dict[str, Any]]) -> None:
    """Its id and device as it claims them, and why."""
    _, summary = merged
    assert summary["documents"]["refused"] == 1
    problem = next(one for one in summary["problems"] if one["fate"] == "refused")
    assert (problem["device"], problem["id"]) == ("mad", f"mad::temp::{0:016x}::{0:016d}")
    assert "no JSON" in problem["reason"]


def test_the_terminal_shows_the_alarms(merged: tuple[list[Row], dict[str, Any]]) -> None:
    """The last lines, with device, stream and number."""
    from sluicegate_cloud import job

    shown = [line for line in job.table(merged[1]) if line.startswith("ALARM")]
    assert len(shown) == len(merged[1]["alarms"]) == 3
    assert any("cloned, temp: two contents" in line and "1,536" in line for line in shown)
