"""No window says that it is more complete than it is: numbered readings, lost and late, against what was sent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sent_worlds import SECOND, Found, Held, Sent, World, buckets, document, random_world
from table_worlds import store_at, table_of, take_in
from thorough import number

from sluicegate_agent.backlog.rows import one_of
from sluicegate_agent.streams import Stream
from sluicegate_cloud.documents import ARROW
from sluicegate_cloud.fleet import packed, wire
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.lines.placing import ORDER, place
from sluicegate_cloud.merging import answers
from sluicegate_cloud.merging.whole import whole
from sluicegate_cloud.table import read
from sluicegate_cloud.table.versions import Definition


def in_batch(documents: Sequence[bytes], grid: Grid, max_empty: int) -> Iterator[dict[str, Any]]:
    """All windows of documents, as the batch answers them, in this process."""
    by = [(name.removesuffix(" desc"), "descending" if name.endswith("desc") else "ascending") for name in ORDER]
    ordered = table_of(documents).cast(ARROW).sort_by(by).combine_chunks()
    placed = pa.Table.from_batches([*place(ordered.to_batches())])
    source = packed.source(wire.fields(("count",), folded=False), grid)
    of_devices = answers.devices(grid, source, ("count",), max_empty, bounded=False)
    yield from (row for batch in of_devices(placed.to_batches()) for row in batch.to_pylist())
    shares = pa.Table.from_batches([*answers.shares(grid, source, ("count",), max_empty)(placed.to_batches())])
    shares = shares.sort_by([(name, "ascending") for name in ("stream", "kind", "frame")]).combine_chunks()
    yield from (row for batch in whole(grid, ("count",), max_empty)(shares.to_batches()) for row in batch.to_pylist())


def some_came(rng: random.Random, world: World) -> dict[str, list[tuple[bytes, range]]]:
    """Of each stream the documents that came: the first ones did, since nothing is known of what was before."""
    lost = rng.choice([0.0, 0.0, 0.2])
    return {
        stream: [one for at, one in enumerate(held.documents) if at < 2 or rng.random() >= lost]
        for stream, held in world.streams.items()
    }


def judged(found: Found, rng: random.Random, worlds: Sequence[World]) -> None:
    """Hold what a batch says of devices, of which some documents came, and of all of them to the truth."""
    grid = Grid(rng.choice([7, 30, 200]) * SECOND, rng.choice([1, 1, 2, 5]), 0)
    came = [some_came(rng, world) for world in worlds]
    documents = [one for streams in came for some in streams.values() for one, _ in some]
    if not documents:
        return
    rows = [*in_batch(documents, grid, rng.choice([2, 10_000]))]
    width = grid.width * grid.slide_us
    for stream in ("s", "t"):
        everyone = []
        for world, streams in zip(worlds, came, strict=True):
            ordinals = {at for _, run in streams.get(stream, ()) for at in run}
            if ordinals:
                everyone.append((world.streams[stream], ordinals))
                mine = [row for row in rows if row["device"] == world.device and row["stream"] == stream]
                found.judge(mine, everyone[-1:], grid.slide_us, width)
        if everyone:
            mine = [row for row in rows if row["device"] is None and row["stream"] == stream]
            found.judge(mine, everyone, grid.slide_us, width)


@pytest.mark.parametrize("seed", range(number(400, 15)))
def test_no_window_says_more_than_is_true(seed: int) -> None:
    """Of devices and of all: what is lost is missing in each window in which it was taken."""
    rng, found = random.Random(seed), Found()
    for _ in range(4):
        judged(found, rng, [random_world(rng, device) for device in "ab"[: rng.choice([1, 2])]])
    assert found.wrong[:5] == []


@pytest.mark.parametrize("comes_on", [False, True])
def test_what_did_not_come_is_missing_though_all_after_it_came_late(*, comes_on: bool) -> None:
    """Of 5 to 7 the document is missing, and the next one has just 1, which came late: they lie after 4, wherever.

    Once 8 and 9 come it is known until when.
    """
    order = [Sent(number, number * SECOND, ("s",)) for number in (0, 2, 3, 4, 5, 6, 7, 1, 8, 9)]
    made = buckets(order, "s", Stream(1, "s", 1, 3_600 * SECOND))
    documents = [document("d", "s", made[here], made[0]) for here in (slice(1), slice(1, 4), slice(7, 8), slice(8, 10))]
    held = Held({one.number: one.time for one in order}, order, {1: 1})
    came = {*range(4), 7, *(range(8, 10) if comes_on else ())}
    found = Found()
    for width in (1, 2, 3, 5, 10):
        rows = in_batch(documents[: 3 + comes_on], Grid(width * SECOND, 1, 0), 10_000)
        mine = [row for row in rows if row["device"] is not None]
        found.judge(mine, [(held, came)], width * SECOND, width * SECOND)
    assert found.wrong == []
    assert found.complete < found.windows


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("back", [5, 30])
def test_a_clock_that_is_set_back_and_ahead_again_within_a_loss_hides_nothing(back: int, size: int) -> None:
    """Nobody sees it: but at the pace of its sensor so many readings do not lie between the two that came.

    Where it lacks more than a third of their time.
    """
    found = Found()
    for before, after in product((0, 3), (1, 9, 30)):
        lost = range(20 - before, 20 + after)
        clock = {number: (number - back * (number >= 20)) * SECOND for number in range(60)}
        order = [Sent(number, time, ("s",)) for number, time in clock.items() if number not in lost]
        if clock[lost.stop] < clock[lost.start - 1]:
            continue  # this one is seen
        if 3 * back < len(lost) + size:
            continue  # so fast its readings may just have been
        made = buckets(order, "s", Stream(1, "s", size, 3_600 * SECOND))
        held = Held(clock, order, dict.fromkeys(lost, lost.start))
        rows = in_batch([document("d", "s", made, made[0])], Grid(2 * SECOND, 1, 0), 10_000)
        mine = [row for row in rows if row["device"] is not None]
        found.judge(mine, [(held, {*range(len(order))})], 2 * SECOND, 2 * SECOND)
    assert found.wrong == []
    assert found.windows > 10


@pytest.mark.parametrize("since", [8, 12, 16])
def test_a_clock_that_is_set_back_in_a_merged_bucket_hides_no_loss(since: int) -> None:
    """What was lost just there may have any time, also where the bucket begins before it: here 20 to 25."""
    clock = {number: (number - 15 * (number >= 23)) * SECOND for number in range(50)}
    order = [Sent(number, time, ("s",)) for number, time in clock.items() if not 20 <= number < 26]
    made = buckets(order, "s", Stream(1, "s", 4, 3_600 * SECOND))
    last = 1 + max(at for at, each in enumerate(made) if each.first <= 20)
    begin = next(at for at, each in enumerate(made) if each.first >= since)
    while last - begin > 1:
        made[begin : begin + 2] = [one_of(made[begin : begin + 2], (), keeps=False)]
        last -= 1
    found, held = Found(), Held(clock, order, dict.fromkeys(range(20, 26), 20))
    rows = in_batch([document("d", "s", made, made[0])], Grid(2 * SECOND, 1, 0), 10_000)
    mine = [row for row in rows if row["device"] is not None]
    found.judge(mine, [(held, {*range(len(order))})], 2 * SECOND, 2 * SECOND)
    assert found.wrong == []


@pytest.mark.parametrize("seed", range(number(400, 10)))
def test_a_coarse_clock_hides_no_loss(seed: int) -> None:
    """Many readings have one time, and losses lie between equal times."""
    rng, found = random.Random(seed), Found()
    for clock in (1, 30, 60):
        rare, merged = rng.choice([0.3, 0.6]), rng.choice([0, 4])
        judged(found, rng, [random_world(rng, rare=rare, merged=merged, clock=clock * SECOND)])
    assert found.wrong[:5] == []


@pytest.mark.parametrize(("merged", "rare"), [(2, 0.0), (8, 0.0), (40, 0.0), (0, 0.3), (8, 0.7)])
def test_where_nothing_is_lost_each_window_says_so(merged: int, rare: float) -> None:
    """A bucket that was merged keeps what its parts took back: what came late hides nothing, and nothing is missing.

    Nor is it of a stream that was not in what came late.
    """
    complete = say = 0
    for seed in range(number(300, 30)):
        rng = random.Random(seed)
        world = random_world(rng, lossless=True, merged=merged, rare=rare)
        documents = [one for held in world.streams.values() for one, _ in held.documents]
        grid = Grid(rng.choice([7, 30, 200]) * SECOND, rng.choice([1, 2, 5]), 0)
        for row in in_batch(documents, grid, 10_000):
            complete += row["count"] > 0
            say += row["completeness"] == 1.0
    assert complete > 1_000
    assert say >= complete * 99 // 100, "but where a bucket has more of these than it says the times of"


def said(rows: Sequence[dict[str, Any]]) -> dict[Any, tuple[int, float | None]]:
    """Of each window how many readings it has, and how complete it is."""
    return {
        (row["device"], row["stream"], row["window_start"], row["window_end"]): (row["count"], row["completeness"])
        for row in rows
    }


@pytest.mark.parametrize("seed", range(number(400, 10)))
def test_increments_say_what_batch_says(seed: int, tmp_path: Path) -> None:
    """Documents in any order, in some runs, some of them twice."""
    rng = random.Random(seed)
    grid, most = Grid(rng.choice([7, 30, 200]) * SECOND, rng.choice([1, 1, 2, 5]), 0), rng.choice([2, 10_000])
    worlds = [random_world(rng, device) for device in "ab"[: rng.choice([1, 2])]]
    documents = [one for world in worlds for some in some_came(rng, world).values() for one, _ in some]
    sent = [*documents, *rng.sample(documents, len(documents) // 5)]
    rng.shuffle(sent)
    width, slide = grid.width * grid.slide_us, grid.slide_us
    told = {"shards": 2, "cell_us": slide * 50, "max_empty": most}
    store, version = store_at(tmp_path / "table", Definition(width, slide, 0, ("count",), **told))
    runs = rng.choice([1, 2, 5, len(sent)])
    for part in range(runs):
        if some := sent[part::runs]:
            version = take_in(store, version, table_of(some, 1_000 * part))
    if documents:
        rows = read.rows_of(store, version).to_pylist()
        assert said(rows) == said([*in_batch(documents, grid, most)])
