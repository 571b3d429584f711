"""A table's rows against exact arithmetic: of devices, of all of them and of roll-ups by tags, in whatever runs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from arrived_truth import Arrived
from exact_worlds import Score, bucket_times, gaps, lose, silent, truth_of
from merge_truth import Truth
from random_worlds import Board, Cut, random_cut, random_fleet
from table_worlds import Rows, anew, definition_of, here, store_at, table_of, take_in, windows
from thorough import number

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.names import ALL
from sluicegate_cloud.table import job, read, retention
from sluicegate_cloud.table.versions import Store, Version

SITES = ("north", "north", "south", None)
#: Device, stream and site of boards whose keys are added up: two keys of one device, names that begin alike, no key.
KEYED = (
    ("d", "s/north/1", "x"), ("d", "s/north/2", "y"), ("e", "s/north/1", "x"), ("e", "s/south", None), ("f", "s", "x"),
    ("f", "st/north/1", "y"),
)  # fmt: skip


def told(board: Board, site: str | None, stream: str = "s") -> list[bytes]:
    """The board's documents, in the tags of its site."""
    tags = {"site": site} if site else None
    return [
        encode(Chunk(board.device, stream, incarnation, center, run, [None] * len(run), tags=tags))
        for incarnation, center, run in board.incarnations
    ]


def changed_in_silence(before: Rows, now: Rows, version: int) -> list[Any]:
    """Rows that say something else than before, under another revision than the version's."""
    other = [of for of in now if now[of] | {"revision": 0} != before.get(of, {}) | {"revision": 0}]
    return [of for of in other if now[of]["revision"] != version]


@pytest.mark.parametrize("seed", range(number(150, 2)))
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
        score.wrong += silent(mine, some_boards, cut)
    assert (score.missing, score.wrong[:5]) == (0, [])


@pytest.mark.parametrize("seed", range(number(150, 2)))
def test_every_row_of_keys_together_holds_the_truth(seed: int, tmp_path: Path) -> None:
    """All keys of a name, those of a level, of a device, and of a level at a site; documents in three runs."""
    rng, score = random.Random(seed), Score()
    cut = random_cut(rng)
    boards = random_fleet(rng, cut, len(KEYED), 12)
    for board, (device, *_) in zip(boards, KEYED, strict=True):
        board.device = device
        lose(board, rng, 0.1)
    of = {id(board): (stream, site) for board, (_, stream, site) in zip(boards, KEYED, strict=True)}
    sent = [one for board in boards for one in told(board, of[id(board)][1], of[id(board)][0])]
    rng.shuffle(sent)
    by = (("/",), ("/1",), ("device", "/"), ("site", "/2"), ("site",))
    store, version = store_at(tmp_path / "table", definition_of(cut, ALL, by=by))
    rows: dict[Any, Any] = {}
    for part in range(3):
        if some := sent[part::3]:
            version = take_in(store, version, table_of(some, 1_000 * part))
            before, rows = rows, {whose(row): row for row in read.rows_of(store, version).to_pylist()}
            assert changed_in_silence(before, rows, version.number) == []
    groups: dict[Any, list[Board]] = {}
    for board in boards:
        stream, site = of[id(board)]
        name, *levels = stream.split("/")
        first, second = (levels[at] if at < len(levels) else None for at in (0, 1))
        for group in (
            (board.device, stream, None), (None, stream, ""), (None, name, "/"), (None, name, "/1", ("key_1", first)),
            (None, name, "device,/", ("tag_device", board.device)),
            (None, name, "site,/2", ("tag_site", site), ("key_2", second)), (None, stream, "site", ("tag_site", site)),
        ):  # fmt: skip
            groups.setdefault((*group[:3], frozenset(one for one in group[3:] if one[1] is not None)), []).append(board)
    found: dict[Any, list[Any]] = {group: [] for group in groups}
    for row in rows.values():
        found[whose(row)[:4]].append(row)  # a group that is none is a KeyError
    for group, some_boards in groups.items():
        score.judge(found[group], truth_of(some_boards), cut, f"{group} ")
        score.wrong += silent([row for row in found[group] if row["device"] is None], some_boards, cut)
    assert (score.missing, score.wrong[:5]) == (0, [])
    again = anew(store, version)
    assert {whose(row) for row in read.rows_of(store, again).to_pylist()} == rows.keys()


def whose(row: dict[str, Any]) -> tuple[Any, ...]:
    """Whose window it is, and when."""
    told = frozenset((name, of) for name, of in row.items() if name.startswith(("tag_", "key_")) and of is not None)
    return row["device"], row["stream"], row["rollup"], told, row["window_start"], row["window_end"]


@pytest.mark.parametrize("seed", range(number(150, 3)))
def test_every_row_that_retention_keeps_holds_the_truth(seed: int, tmp_path: Path) -> None:
    """Windows that stay and roll-ups of two lengths, of devices, all, and sites that devices moved to, in two steps."""
    rng, score = random.Random(seed), Score()
    cut = random_cut(rng)
    boards = random_fleet(rng, cut, len(SITES), 30, ordinary=True)
    store, version = store_at(tmp_path / "table", definition_of(cut, ALL, by=(("site",),)))
    first = [one for board in boards for one in told(board, "elsewhere")[:1]]
    version = take_in(store, version, table_of(first))
    rest = [one for board, site in zip(boards, SITES, strict=True) for one in told(board, site)]
    version = take_in(store, version, table_of(rest, 1_000))
    of = {row["device"]: dict(row["tags"] or []).get("site") for row in streams(store, version)}
    times, levels = sorted(time for board in boards for time, _ in board.readings), {cut.slide * 2: None}
    since = None
    for share in (3, 2):
        until = retention.horizon_of(version, times[len(times) // share], levels)
        if since is None or until > since:
            version = retention.retain(here, store, version, until, levels, now_us=0)
            for kept in version.rollups[-len(levels) :]:
                coarse = Cut(kept["level_us"], 1, cut.origin, cut.most)
                rows = [row for name in kept["files"] for row in store.read(name).to_pylist()]
                judge_between(score, rows, boards, of, coarse, (kept["since_us"], kept["until_us"]))
            since, levels = until, {cut.slide * 2: None, cut.slide * 6: None}
    rows = [*windows(store, version).values()] if [*read.window_files(store, version)] else []
    judge_between(score, rows, boards, of, cut, (since, None))
    assert score.windows > 0
    assert (score.missing, score.wrong[:5]) == (0, [])


def judge_between(
    score: Score,
    rows: list[Any],
    boards: list[Board],
    of: dict[str, Any],
    cut: Cut,
    times: tuple[int | None, int | None],
) -> None:
    """Hold the rows of each device, of all, and of each site to the truth of the windows that begin between."""
    groups: dict[Any, list[Board]] = {(None, "", None): boards}
    for board in boards:
        groups[board.device, None, None] = [board]
        groups.setdefault((None, "site", of[board.device]), []).append(board)
    mine: dict[Any, list[Any]] = {group: [] for group in groups}
    for row in rows:
        mine[row["device"], row["rollup"], row["tag_site"]].append(row)
    for group, some in groups.items():
        score.judge(mine[group], Between(some, times), cut, f"{cut} {times} {group} ")


BY = (("site",), ("site", "line"), ("line", "site", "site"), ("site",))


def test_a_roll_up_is_made_once() -> None:
    """Of the same tags in any order there is one, and what can be no tag is refused: it would stand for all devices."""
    assert job.definition_of(60, 60, ("mean",), by=BY).by == (("site",), ("site", "line"))
    for names in ((), ("",), ("site", ""), (" line",)):
        with pytest.raises(SourceError, match="expected, by comma, names of tags"):
            job.definition_of(60, 60, ("mean",), by=(names,))
    for by in ((("site",), ("Site",)), (("site", "SITE"),)):
        with pytest.raises(SourceError, match="differ in case only"):
            job.definition_of(60, 60, ("mean",), by=by)


@pytest.mark.parametrize("seed", range(number(150, 4)))
def test_a_roll_up_has_all_of_the_devices_that_moved_there(seed: int, tmp_path: Path) -> None:
    """Sites and lines of a device's newest document, wherever it was before; late documents, in three runs."""
    rng, score = random.Random(seed), Score()
    cut = random_cut(rng)
    boards = random_fleet(rng, cut, 4, 30)
    by = job.definition_of(cut.slide, cut.slide, ("mean",), by=BY).by
    store, version = store_at(tmp_path / "table", definition_of(cut, ALL, by=by))
    sent, newest = list[bytes](), dict[str, tuple[Any, dict[str, str]]]()
    for board in boards:
        tags: dict[str, str] = {}
        for incarnation, center, buckets in board.incarnations:
            left = list(buckets)
            while left:
                run, left = left[:5], left[5:]
                if rng.random() < 0.4:
                    tags = {name: rng.choice("ab") for name in ("site", "line") if rng.random() < 0.8}
                sent.append(encode(Chunk(board.device, "s", incarnation, center, run, [None] * len(run), tags=tags)))
                ends = max(of.t_last for of in run), min(of.t_first for of in run), incarnation, run[0].first
                newest[board.device] = max(newest.get(board.device, (ends, tags)), (ends, tags), key=lambda of: of[0])
    rng.shuffle(sent)
    for part in range(3):
        if sent[part::3]:
            version = take_in(store, version, table_of(sent[part::3], 1_000 * part))
    groups: dict[tuple[str, ...], list[Board]] = {}
    for board in boards:
        for names in by:
            where = (
                ",".join(names),
                *(newest[board.device][1].get(name) for name in ("site", "line") if name in names),
            )
            groups.setdefault(where, []).append(board)  # type: ignore[arg-type]  # None: it has no such tag
    rows = [row for row in read.rows_of(store, version).to_pylist() if row["rollup"]]
    told: dict[tuple[str, ...], list[Any]] = {where: [] for where in groups}
    for row in rows:
        names = row["rollup"].split(",")
        told[(row["rollup"], *(row[f"tag_{name}"] for name in ("site", "line") if name in names))].append(row)
    for where, some in groups.items():
        score.judge(told[where], truth_of(some), cut, f"{where} ")
    assert (score.missing, score.wrong[:5]) == (0, [])
    assert score.windows > 0


class Between(Truth):
    """Of all readings, and of the windows that begin between two times, None where there is no such end."""

    def __init__(self, boards: list[Board], times: tuple[int | None, int | None]) -> None:
        readings = (reading for board in boards for reading in board.readings)
        super().__init__(readings, (center for board in boards for _, center, _ in board.incarnations))
        self._times = times

    def occupied(self, slide: int, width: int, origin: int) -> set[int]:
        """Only these."""
        low, high = self._times
        every = super().occupied(slide, width, origin)
        return {at for at in every if (low is None or at >= low) and (high is None or at < high)}


def streams(store: Store, version: Version) -> list[dict[str, Any]]:
    """The rows of the streams' table."""
    names = [store.read_json(name)["streams"] for name in version.shards.values()]
    return [row for name in names if name for row in store.read(name).to_pylist()]
