"""Runs of documents promise windows that hold the truth, and no row of a window answered anew that nothing touched."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from arrived_truth import Arrived
from exact_worlds import Score, bucket_times, gaps, lose, truth_of
from random_worlds import MINUTE, Board, random_cut, random_fleet
from table_worlds import definition_of, store_at, table_of, take_in, windows
from test_settled import folded
from thorough import WHOLE, number

from sluicegate.format.bucket import Builder
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.names import ALL
from sluicegate_cloud.table.ledger import empty, judge
from sluicegate_cloud.table.settled import folding
from sluicegate_cloud.table.settled.rows import Settled, load, runs_of
from sluicegate_cloud.table.versions import Definition, Store, Version


def told(board: Board) -> list[bytes]:
    """A board's documents in order."""
    return [
        encode(Chunk(board.device, "s", incarnation, center, run, [None] * len(run)))
        for incarnation, center, run in board.incarnations
    ]


def arriving(sent: list[bytes], rng: random.Random, parts: int) -> list[list[bytes]]:
    """All of them in some runs, mostly in their order: some late, some again, the last run has what is left."""
    out: list[list[bytes]] = [[] for _ in range(parts)]
    for at, one in enumerate(sent):
        due = at * parts // len(sent)
        out[rng.randrange(due, parts) if rng.random() < 0.1 else due].append(one)
        if rng.random() < 0.1:
            out[rng.randrange(parts)].append(one)
    for some in out:
        rng.shuffle(some)
    return [some for some in out if some]


def runs_in(store: Store, version: Version) -> int:
    """How many rows of its ledgers stand for several documents."""
    files = [store.read_json(name)["ledger"] for name in version.shards.values()]
    return sum(int(runs_of(load(store, name)).sum()) for name in files if name)


@pytest.mark.parametrize("seed", range(200) if WHOLE else (12,))
def test_every_row_of_a_table_with_runs_holds_the_truth(seed: int, tmp_path: Path) -> None:
    """Readings, each once, in fractions: of devices and of all, after documents late, lost and twice."""
    rng, score = random.Random(seed), Score()
    cut = random_cut(rng)
    boards = random_fleet(rng, cut, 2, number(90, 40))
    holes = [lose(board, rng, 0.05) for board in boards]
    store, version = store_at(tmp_path, definition_of(cut, ALL, shards=1, cell_us=cut.slide * 40))
    most, since = 0, 0
    with folded(1):
        for some in arriving([one for board in boards for one in told(board)], rng, number(8, 4)):
            table, since = table_of(some, since), since + len(some)
            version = take_in(store, version, table)
            most = max(most, runs_in(store, version))
    rows = windows(store, version)
    for board, of in zip(boards, holes, strict=True):
        arrived = Arrived(bucket_times(board), [*of, *gaps(board)])
        mine = [row for (device, *_), row in rows.items() if device == board.device]
        score.judge(mine, truth_of([board]), cut, f"{board.device} ", arrived)
    score.judge([row for row in rows.values() if row["device"] is None], truth_of(boards), cut, "all ")
    assert (score.missing, score.wrong[:3]) == (0, [])
    assert score.windows > 0
    assert most > 0 or WHOLE


def one(first: int, minute: int, incarnation: int = 0) -> bytes:
    """A document of a bucket of one reading."""
    builder = Builder(20.0)
    builder.add(20.0, minute * MINUTE)
    bucket = builder.close()._replace(first=first)
    return encode(Chunk("d", "s", f"{incarnation:016x}", 20.0, [bucket], [None]))


def test_a_hole_is_judged_by_the_last_documents_of_a_run_alone(tmp_path: Path) -> None:
    """One of before it was ahead of the clock, and one left out after it: neither says how far the board had come."""
    store, definition = Store(tmp_path), Definition(2 * MINUTE, MINUTE, 0, ("count",), 1, 60 * MINUTE)
    last = [one(25, 25), max((one(25, at) for at in range(500, 520)), key=digest)]
    assert digest(last[0]) < digest(last[1])
    sent = [*(one(at, at) for at in range(5)), one(5, 60), *(one(at, at) for at in range(6, 25)), *last]
    new = table_of(sent)
    packed = dict(zip(new["digest"].to_pylist(), new["packed"].to_pylist(), strict=True))

    def load(row: dict[str, Any]) -> Any:
        return packed[row["digest"]]

    rows = judge(empty(), new, definition.cell_us, load, Settled(store)).ledger
    with folded(1):
        runs = folding.folded(store, rows, definition)
    assert [count for count in runs["run"].to_pylist() if count] != []
    assert runs.num_rows < 8
    late = table_of([one(28, 30)], 100)
    found = [judge(table, late, definition.cell_us, load, Settled(store)) for table in (rows, runs)]
    assert found[1].touched == found[0].touched
    [row] = [row for row in found[1].ledger.to_pylist() if row["first"] == 28]
    assert (row["hole"], row["hole_from"], row["hole_to"]) == (2, 25 * MINUTE, 30 * MINUTE)


def digest(document: bytes) -> str:
    """Of which the least of one id is used."""
    return str(table_of([document])["digest"][0])


def test_a_document_between_those_of_a_run_touches_the_windows_beside_it(tmp_path: Path) -> None:
    """Of another incarnation, whose clock was set back: as many rows are answered anew as of documents."""
    definition, changed = Definition(2 * MINUTE, MINUTE, 0, ("count",), 1, 1_000 * MINUTE), []
    for at, least in enumerate((1 << 40, 1)):
        with folded(least):
            store, version = store_at(tmp_path / str(at), definition)
            version = take_in(store, version, table_of([one(first, first) for first in range(100)]))
            assert (runs_in(store, version) > 0) == (least == 1)
            version = take_in(store, version, table_of([one(0, 50, 1)], 1_000))
        changed.append([key for key, row in windows(store, version).items() if row["revision"] == version.number])
    assert sorted(changed[1], key=str) == sorted(changed[0], key=str)
    assert len(changed[0]) == 2 * 2
