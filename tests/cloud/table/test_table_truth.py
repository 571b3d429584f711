"""A table's rows against exact arithmetic: of devices, of all of them and of roll-ups by tags, in whatever runs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from arrived_truth import Arrived
from exact_worlds import Score, bucket_times, gaps, lose, truth_of
from random_worlds import Board, random_cut, random_fleet
from table_worlds import Rows, definition_of, store_at, table_of, take_in, windows
from thorough import number

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.names import ALL

SITES = ("north", "north", "south", None)


def told(board: Board, site: str | None) -> list[bytes]:
    """The board's documents, in the tags of its site."""
    tags = {"site": site} if site else None
    return [
        encode(Chunk(board.device, "s", incarnation, center, run, [None] * len(run), tags=tags))
        for incarnation, center, run in board.incarnations
    ]


def changed_in_silence(before: Rows, now: Rows, version: int) -> list[Any]:
    """Rows that say something else than before, under another revision than the version's."""
    other = [of for of in now if now[of] | {"revision": 0} != before.get(of, {}) | {"revision": 0}]
    return [of for of in other if now[of]["revision"] != version]


@pytest.mark.parametrize("seed", range(number(150, 3)))
def test_every_row_of_a_table_holds_the_truth(seed: int, tmp_path: Path) -> None:
    """Documents lost, sent twice and late, in three runs; what a run changes has its number as revision."""
    rng, score = random.Random(seed), Score()
    cut = random_cut(rng)
    boards = random_fleet(rng, cut, len(SITES), 30)
    holes = [lose(board, rng, 0.1) for board in boards]
    sent = [one for board, site in zip(boards, SITES, strict=True) for one in told(board, site)]
    sent += rng.sample(sent, len(sent) // 4)
    rng.shuffle(sent)
    store, version = store_at(tmp_path / "table", definition_of(cut, ALL, by=(("site",),)))
    rows: Rows = {}
    for part in range(3):
        some = sent[part::3]
        if some:
            version = take_in(store, version, table_of(some, 1_000 * part))
            before, rows = rows, windows(store, version)
            assert changed_in_silence(before, rows, version.number) == []
    for board, of in zip(boards, holes, strict=True):
        arrived = Arrived(bucket_times(board), [*of, *gaps(board)])
        mine = [row for (device, *_), row in rows.items() if device == board.device]
        score.judge(mine, truth_of([board]), cut, f"{board.device} ", arrived)
    groups: dict[tuple[str, str | None], list[Board]] = {("", None): boards}
    for board, site in zip(boards, SITES, strict=True):
        groups.setdefault(("site", site), []).append(board)
    for group, some_boards in groups.items():
        mine = [row for (device, _, *of, _, _), row in rows.items() if device is None and tuple(of) == group]
        score.judge(mine, truth_of(some_boards), cut, f"{group} ")
    assert (score.missing, score.wrong[:5]) == (0, [])
