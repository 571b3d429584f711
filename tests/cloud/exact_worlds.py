"""Random worlds through the merge, and a score: in one process for devices, in Spark from documents for fleets."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from arrived_truth import Arrived, Missing
from cloud_streams import Row, frame_rows
from merge_truth import Truth, judged
from random_worlds import Board, Cut, random_cut, random_fleet

from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.estimates.components import components, families
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.names import ALL
from sluicegate_cloud.schema import BUCKET_FIELDS


@dataclass
class Score:
    """Windows that were checked, and what was found."""

    worlds: int = 0
    windows: int = 0
    spans: int = 0
    exact: int = 0
    missing: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Score) -> None:
        """Both; of what is wrong the first hundred."""
        self.worlds += 1
        for name in ("windows", "spans", "exact", "missing"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.wrong = (self.wrong + other.wrong)[:100]

    def judge(
        self, rows: Sequence[Mapping[str, Any]], truth: Truth, cut: Cut, what: str = "", arrived: Arrived | None = None
    ) -> None:
        """Hold the rows of one device's stream, or of the fleet's, to the truth."""
        checked, missing, wrong = judged(rows, truth, cut.slide, cut.width, cut.origin, arrived)
        self.windows += checked
        self.missing += missing
        self.spans += sum(row["windows"] > 1 for row in rows)
        self.exact += sum(row["count_exact"] for row in rows)
        self.wrong += [f"{what}{text}" for text in wrong]


def one_stream(buckets: list[Row], cut: Cut) -> list[dict[str, Any]]:
    """All windows of one device's stream, as the table has them, without Spark."""
    grid = Grid(cut.slide, cut.width, cut.origin)
    axis, parts = components(frame_rows(buckets, cut.slide, cut.origin), grid, cut.most, families(ALL))
    with np.errstate(all="ignore"):
        columns = {name: column.tolist() for name, column in lower(parts, ALL).items()}
    columns |= {"window_start": grid.start_us(axis.first).tolist(), "windows": axis.windows.tolist()}
    columns["window_end"] = (grid.start_us(axis.last) + cut.width * cut.slide).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def devices_windows(rng: random.Random) -> Score:
    """The score of one random device, some of its buckets as format 1 tells them, and some of them lost."""
    score, cut = Score(), random_cut(rng)
    board = random_fleet(rng, cut, 1, 160)[0]
    holes = lose(board, rng, rng.choice([0.0, 0.1]))
    told = board.rows(rng, rng.choice([0.0, 0.0, 0.4, 1.0])) + [_hole_row(hole) for hole in holes]
    with np.errstate(all="ignore"):
        rows = one_stream(told, cut)
    arrived = Arrived(bucket_times(board), [*holes, *gaps(board)])
    score.judge(rows, truth_of([board]), cut, arrived=arrived)
    return score


def lose(board: Board, rng: random.Random, share: float) -> list[Missing]:
    """What is missing once a share of the board's documents is lost; a document is one of its `incarnations` then."""
    kept, readings, holes, at = [], [], [], 0
    for number, center, buckets in board.incarnations:
        before, lost, left = None, 0, list(buckets)
        while left:
            size = rng.randrange(1, 9)
            run, left = left[:size], left[size:]
            count = sum(bucket.n for bucket in run)
            if kept and rng.random() < share:
                lost += count
            else:
                since = min(bucket.t_first for bucket in run)
                if lost:
                    low = since if before is None else before
                    holes.append(Missing(*sorted((low, since)), lost, low <= since and _in_order(run)))
                before, lost = max(before or since, *(bucket.t_last for bucket in run)), 0
                kept.append((number, center, run))
                readings += board.readings[at : at + count]
            at += count
    board.incarnations[:], board.readings[:] = kept, readings
    return holes


def _in_order(run: Sequence[Bucket]) -> bool:
    """Whether the first reading is the oldest."""
    return run[0].t_last <= min((bucket.t_first for bucket in run[1:]), default=run[0].t_last)


def truth_of(boards: Iterable[Board]) -> Truth:
    """What their windows together must say."""
    known = [*boards]
    readings = (reading for board in known for reading in board.readings)
    return Truth(readings, (center for board in known for _, center, _ in board.incarnations))


def silent(rows: Sequence[Mapping[str, Any]], boards: Iterable[Board], cut: Cut) -> Iterator[str]:
    """Where windows of all devices do not say how many were heard of before them and never again."""
    last: dict[str, int] = {}
    for board in boards:
        last[board.device] = max([last.get(board.device, board.readings[0][0]), *(time for time, _ in board.readings)])
    for row in rows:
        for start in {row["window_start"], row["window_end"] - cut.slide * cut.width}:
            truth = sum(time < start for time in last.values())
            if row["devices_silent"] != truth:
                yield f"window {start}: {row['devices_silent']} devices are silent, in truth {truth}"


def bucket_times(board: Board) -> list[tuple[int, int]]:
    """First and last time of each bucket."""
    return [(bucket.t_first, bucket.t_last) for _, _, run in board.incarnations for bucket in run]


def gaps(board: Board) -> Iterator[Missing]:
    """What buckets say is missing before their readings."""
    for _, _, run in board.incarnations:
        yield from (Missing(of.t_first, of.t_last, of.gap) for of in run if of.gap)


def _hole_row(hole: Missing) -> Row:
    """As `documents.bucket_rows` tells of it."""
    row = {name: 0 if kind == "bigint" else math.nan for name, kind in BUCKET_FIELDS.items()}
    row |= {"total": 0.0, "gap": hole.readings, "first": -1, "t_first": hole.low, "t_last": hole.high}
    return row | {"device": "board-0", "stream": "s", "incarnation": "hole", "key": None, "center": 0.0, "chunk": ""}


def fleets_windows(spark: Any, rng: random.Random, streams: int, boards: int) -> Score:
    """The score of a random fleet of which documents are lost and sent twice: its devices' windows, and its own."""
    score, cut = Score(), random_cut(rng)
    fleets = {f"stream {i}": random_fleet(rng, cut, boards, 60) for i in range(streams)}
    holes = {name: [lose(board, rng, 0.1) for board in fleet] for name, fleet in fleets.items()}
    rows = windows_of(spark, fleets, cut, rng)
    for name, fleet in fleets.items():
        mine = [row for row in rows if row["stream"] == name]
        missing: list[Missing] = []
        for board, of in zip(fleet, holes[name], strict=True):
            device = [row for row in mine if row["device"] == board.device]
            told = [*of, *gaps(board)]
            what, arrived = f"{cut} {board.device} {name} ", Arrived(bucket_times(board), told)
            score.judge(device, truth_of([board]), cut, what, arrived)
            missing += _anywhere(told, [row for row in device if row["windows"] > 1])
        whole = Arrived([times for board in fleet for times in bucket_times(board)], missing)
        fleets_rows = [row for row in mine if row["device"] is None]
        score.judge(fleets_rows, truth_of(fleet), cut, f"{cut} fleet {name} ", whole)
        score.wrong += silent(fleets_rows, fleet, cut)
    return score


def _anywhere(missing: Sequence[Missing], spans: Sequence[Mapping[str, Any]]) -> Iterator[Missing]:
    """A device's span says of each of its windows what may be missing in any."""
    for one in missing:
        over = [row for row in spans if row["window_start"] <= one.high and one.low < row["window_end"]]
        low = min([one.low, *(row["window_start"] for row in over)])
        high = max([one.high, *(row["window_end"] for row in over)])
        yield Missing(low, high, one.readings, one.sure and not over)


def windows_of(
    spark: Any, fleets: dict[str, list[Board]], cut: Cut, rng: random.Random | None = None
) -> list[dict[str, Any]]:
    """All windows, from documents; `rng` sends some twice, in any order."""
    from sluicegate_cloud.documents import DOCUMENTS, Found, document_batches
    from sluicegate_cloud.frames import merge_frames, place_in_frames
    from sluicegate_cloud.lines.dedupe import catalogue
    from sluicegate_cloud.sources import buckets_of
    from sluicegate_cloud.windows import sliding_windows, windows_of_documents

    sent = [one for name, boards in fleets.items() for board in boards for one in _documents(board, name)]
    if rng:
        sent += rng.sample(sent, len(sent) // 5)
        rng.shuffle(sent)
    found = (Found(f"{number}.json", lambda data=data: data) for number, data in enumerate(sent))
    documents = spark.createDataFrame(pa.Table.from_batches(document_batches(found)), DOCUMENTS).repartition(3)
    make = rng.choice([merge_frames, place_in_frames, None, None]) if rng else None
    if make is None:
        grid = Grid(cut.slide, cut.width, cut.origin)
        long = rng is not None and rng.random() < 0.5
        windows = windows_of_documents(catalogue(documents), grid, ALL, max_empty=cut.most, long=long)
    else:
        frames = make(buckets_of(catalogue(documents)), cut.slide, cut.origin)
        windows = sliding_windows(frames, cut.width, ALL, max_empty=cut.most)
    return list(windows.toArrow().to_pylist())


def _documents(board: Board, stream: str) -> list[bytes]:
    out = []
    for number, center, buckets in board.incarnations:
        for at in range(0, len(buckets), 9):
            run = buckets[at : at + 9]
            out.append(encode(Chunk(board.device, stream, number, center, run, [None] * len(run))))
    return out
