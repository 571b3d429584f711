"""Random worlds through the merge, and a score: in one process for devices, in Spark from documents for fleets."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from cloud_streams import Row, frame_rows
from merge_truth import Reading, Truth, judged
from random_worlds import Board, Cut, random_cut, random_fleet

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.estimates.components import components, families
from sluicegate_cloud.estimates.lower import lower
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.names import ALL


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

    def judge(self, rows: Sequence[Mapping[str, Any]], truth: Truth, cut: Cut, what: str = "") -> None:
        """Hold the rows of one device's stream, or of the fleet's, to the truth."""
        checked, missing, wrong = judged(rows, truth, cut.slide, cut.width, cut.origin)
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
    """The score of one random device, some of its buckets as format 1 tells them."""
    score, cut = Score(), random_cut(rng)
    board = random_fleet(rng, cut, 1, 160)[0]
    with np.errstate(all="ignore"):
        rows = one_stream(board.rows(rng, rng.choice([0.0, 0.0, 0.4, 1.0])), cut)
    score.judge(rows, Truth(board.readings), cut)
    return score


def fleets_windows(spark: Any, rng: random.Random, streams: int, boards: int) -> Score:
    """The score of a random fleet of which documents are lost and sent twice: its devices' windows, and its own."""
    score, cut = Score(), random_cut(rng)
    fleets = {f"stream {i}": random_fleet(rng, cut, boards, 60) for i in range(streams)}
    rows = windows_of(spark, fleets, cut, rng)
    for name, fleet in fleets.items():
        mine = [row for row in rows if row["stream"] == name]
        held: list[Reading] = []
        for board in fleet:
            device = [row for row in mine if row["device"] == board.device]
            score.judge(device, Truth(board.readings), cut, f"{cut} {board.device} {name} ")
            held += board.readings
        score.judge([row for row in mine if row["device"] is None], Truth(held), cut, f"{cut} fleet {name} ")
    return score


def windows_of(
    spark: Any, fleets: dict[str, list[Board]], cut: Cut, rng: random.Random | None = None
) -> list[dict[str, Any]]:
    """All windows, from documents; `rng` loses some (and their readings) and sends some twice, in any order."""
    from sluicegate_cloud.dedupe import catalogue
    from sluicegate_cloud.documents import DOCUMENTS, Found, document_batches
    from sluicegate_cloud.frames import merge_frames, place_in_frames
    from sluicegate_cloud.sources import buckets_of
    from sluicegate_cloud.windows import sliding_windows, windows_of_documents

    sent = [one for name, boards in fleets.items() for board in boards for one in _documents(board, name, rng)]
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


def _documents(board: Board, stream: str, rng: random.Random | None) -> list[bytes]:
    """The board's documents; the readings of those that are lost are taken from it."""
    out, kept, at = [], [], 0
    for number, center, buckets in board.incarnations:
        while buckets:
            size = rng.randrange(1, 9) if rng else 9
            run, buckets = buckets[:size], buckets[size:]
            readings = sum(bucket.n for bucket in run)
            if not (rng and out and rng.random() < 0.1):
                out.append(encode(Chunk(board.device, stream, number, center, run, [None] * len(run))))
                kept += board.readings[at : at + readings]
            at += readings
    board.readings[:] = kept
    return out
