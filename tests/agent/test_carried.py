"""What buckets carry for the cloud: of their readings, whatever becomes of them, in the budget, through restarts."""

from __future__ import annotations

import json
import random
import shutil
import struct
from array import array
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from carrying_agent import AGGREGATES, ASKED, READINGS, Sent
from durable_agent import NOON, SECOND, configured, sequenced, timed

from sluicegate.format import chunk as chunks
from sluicegate.format.extras import extra
from sluicegate.monoids import kll
from sluicegate.monoids.results import BloomFilter, CountMin
from sluicegate_agent import carried
from sluicegate_agent.changes import asked
from sluicegate_agent.config.aggregates import CARRIED, kind_of
from sluicegate_agent.config.errors import ConfigError
from sluicegate_agent.messages import Message
from sluicegate_agent.outbox import rows_in
from sluicegate_agent.state.parting import note_overtaken
from sluicegate_agent.sync.contract import Document
from sluicegate_agent.sync.splitting import content, halves

NAMES = (
    "area", "bloom_filter(256,3)", "count_min(32,2)", "distinct_count(8)", "line", "quantiles(16)", "top_k(3)",
)  # fmt: skip


@pytest.mark.parametrize(
    ("bucket", "outbox"),
    [
        ({"readings": 150, "span": "30d"}, {}),
        ({"readings": 20}, {"bytes": "22KiB"}),
        ({"readings": 8}, {"rows": 9, "chunk_buckets": 4}),
    ],
    ids=["long buckets", "few bytes", "few rows"],
)
def test_each_bucket_carries_what_its_readings_give(tmp_path: Path, bucket: Any, outbox: Any) -> None:
    """Long ones, and such as were merged: the definition over all readings by ordinal, after any number of restarts."""
    one = Sent(tmp_path, 1, bucket=bucket, outbox=outbox)
    one.feed(restarts=True)
    carrying, following = 0, 0
    for chunk in one.arrived():
        assert chunk.skipped == ()
        for i, b in enumerate(chunk.buckets):
            assert b.first == following
            following += b.n
            if chunk.readings[i] is None:
                carrying += 1
                _check(chunk, i, one.values[b.first : b.first + b.n], one.times[b.first : b.first + b.n])
    assert following == READINGS
    assert carrying


def test_single_readings_that_do_not_say_all_are_carried(tmp_path: Path) -> None:
    """What came late was merged with others: a document leaves its readings out, so it says what they come to."""
    carrying = 0
    for seed in range(6):
        folder, rng = tmp_path / str(seed), random.Random(seed)
        folder.mkdir()
        one = Sent(folder, seed, bucket={"readings": 4}, outbox={"rows": 20, "chunk_buckets": 4})
        order = sorted(range(40), key=lambda number: number + rng.choice((0, 0, 0, 12)))
        for packet, number in enumerate(order, 1):
            one.pipeline.accept(sequenced(number, packet))
            one.pipeline.commit()
        one.pipeline.flush()
        one.pipeline.commit()
        for chunk in one.arrived():
            for place, bucket in enumerate(chunk.buckets):
                if chunk.readings[place] is None:
                    carrying += 1
                    line, kind = chunk.extras["line"][place], extra("line")
                    assert line is not None
                    assert kind is not None
                    assert kind.slots(line)[:3] == (bucket.n, bucket.t_first, bucket.t_last)
        again = [row for document in one.target.documents.values() for row in rows_in(document)]
        assert all(row.readings or "line" in carried.parted(row.bucket)[1] for row in again), "a row once more"
    assert carrying


def _check(chunk: chunks.Chunk, i: int, values: array[float], times: array[int]) -> None:
    """One bucket beside its readings."""
    parts, slots = {name: each[i] for name, each in chunk.extras.items()}, {}
    assert tuple(sorted(parts)) == NAMES
    for name, part in parts.items():
        kind = extra(name)
        assert kind is not None
        assert part is not None
        slots[name] = kind.slots(part)
    assert list(slots["top_k(3)"][1:6:2]) == sorted(values, reverse=True)[:3]
    assert slots["line"][:3] == (len(values), min(times), max(times))
    held = sum(x * (b - a) for x, a, b in zip(values, times, times[1:], strict=False))
    assert slots["area"][0] + slots["area"][1] == pytest.approx(held, rel=1e-9)
    assert slots["area"][5] == sum(a > b for a, b in pairwise(times))
    sketch, ordered = kll.of_slots(16, slots["quantiles(16)"]), sorted(values)
    assert (sketch.n, sketch.low, sketch.high) == (len(values), ordered[0], ordered[-1])
    median, same = sketch.quantile(0.5), Counter(values).most_common(1)[0][1]
    assert median is not None
    assert abs(sum(x <= median for x in values) / len(values) - 0.5) <= 2 * sketch.error + same / len(values) + 1e-9
    often = CountMin(32, 2, slots["count_min(32,2)"])
    assert often.n == len(values)
    assert all(often.most(x) >= values.count(x) for x in {*values})
    there = BloomFilter(struct.pack("<4q", *slots["bloom_filter(256,3)"]), 3)
    assert all(there.might_contain(x) for x in values)
    assert 0.6 * len({*values}) <= _distinct(slots["distinct_count(8)"]) <= 1.5 * len({*values})


def _distinct(slots: tuple[Any, ...]) -> float:
    from sluicegate.monoids import hll

    return hll.answer(8, slots[0], struct.pack(f"<{len(slots) - 1}q", *slots[1:]))[0]


def test_where_nothing_asks_not_a_byte_is_sent_or_kept(tmp_path: Path) -> None:
    """`cloud = false`, the default: the same documents as without the window."""
    sent = []
    for name, cloud in (("a", False), ("b", None)):
        (tmp_path / name).mkdir()
        answered = [name for name in AGGREGATES if kind_of(name) not in CARRIED]
        asked = {} if cloud is None else ASKED | {"aggregate": answered, "cloud": cloud}
        one = Sent(tmp_path / name, 2, asked, outbox={"rows": 16})
        one.feed(restarts=False, readings=300)
        assert not any(lane.carried for lane in one.state.outbox.lanes.values())
        sent.append([(chunk.buckets, chunk.extras) for chunk in one.arrived()])
    assert sent[0] == sent[1]
    assert not any(extras for _, extras in sent[0])


def test_a_section_comes_back_or_is_refused() -> None:
    """`parted` takes what `joined` made, and tells of anything else."""
    record, parts = bytes(256), {"line": bytes(72), "area": b"\1" * 48}
    row = carried.joined(record, parts)
    assert carried.parted(row) == (record, parts)
    assert carried.parted(carried.joined(record, {})) == (record, {})
    assert len(row) - 256 <= carried.most(parts)
    for damaged in (row[:-1], row + b"\0", row[:256] + b"XXXX" + row[260:]):
        with pytest.raises(ValueError, match="malformed"):
            carried.parted(damaged)


def test_a_document_too_large_goes_in_halves(tmp_path: Path) -> None:
    """Each half has what its buckets carry, and a server's copy is read however much that is."""
    one = Sent(tmp_path, 3, bucket={"readings": 150, "span": "30d"})
    one.feed(restarts=False, readings=300)
    one.arrived()
    for name, data in one.target.documents.items():
        assert content(data) is not None
        whole, parts = chunks.decode(data), halves(Document(name, data))
        if parts is not None:
            found = [chunks.decode(part.data).extras for part in parts]
            for kind, each in whole.extras.items():
                halved = [x for half in found for x in half.get(kind, []) if x is not None]
                assert halved == [x for x in each if x is not None]


def test_more_kinds_than_a_document_has_room_for_are_refused(tmp_path: Path) -> None:
    """Sixteen: the check says how many there may be, before anything runs."""
    with pytest.raises(ConfigError, match="at most 15"):
        configured(tmp_path, [ASKED | {"aggregate": [f"top_k({k})" for k in range(1, 17)]}])


@pytest.mark.parametrize("more", [30, 100])
@pytest.mark.parametrize("once_more", [False, True])
def test_what_is_asked_for_no_more_leaves_an_open_bucket_without_it(tmp_path: Path, more: int, once_more: bool) -> None:
    """The bucket goes on for a configuration that asks for nothing: of its first readings alone it says nothing.

    Nor of its first and last ones, where a third configuration asks again.
    """
    one = Sent(tmp_path, 5, bucket={"readings": 250, "span": "30d"})
    for place in range(200 + more):
        if place == 100 or (place == 170 and once_more):
            one.pipeline.commit()
            one.state.close()
            asked = ASKED if place == 170 else ASKED | {"cloud": False, "aggregate": "mean"}
            one.config = configured(tmp_path, [asked], bucket={"readings": 250, "span": "30d"})
            one.open()
        one.pipeline.accept(timed(place, place + 1, float(place)))
        if place % 30 == 0:
            one.pipeline.commit()
    one.pipeline.flush()
    one.pipeline.commit()
    sent = one.arrived()
    assert sum(b.n for chunk in sent for b in chunk.buckets) == 200 + more
    for chunk in sent:
        for i, bucket in enumerate(chunk.buckets):
            assert bucket.first == 250 or not any(parts[i] for parts in chunk.extras.values())


PAIRS: dict[str, Any] = {
    "topic": "plant/pair", "streams": {"both": "x"}, "values": {"both": {"with": "y"}}, "time": "t",
    "time_format": "us",
}  # fmt: skip


@pytest.mark.parametrize("becomes", ["copied", "put back", "renamed", "retagged"])
@pytest.mark.parametrize("readings", [7, 150])
def test_what_a_state_parts_from_carries_it_too(tmp_path: Path, becomes: str, readings: int) -> None:
    """What waits under a former name, and the open bucket at that time, say all that was asked, however merged."""
    few: dict[str, Any] = {"rows": 12, "chunk_buckets": 4}
    parted = {"copied": {"state": {"path": "copy"}}, "renamed": {"device": {"id": "board-2"}}}.get(becomes, {})
    tables: dict[str, Any] = {"bucket": {"readings": readings, "span": "30d"}, "outbox": few, "sources": [PAIRS]}
    one = Sent(tmp_path, 6, **tables)
    one.state.remember(asked(one.config))
    for place in range(200):
        if place == 100:
            _part(one, becomes)
            one.config = configured(tmp_path, [ASKED], **tables, **parted)
            one.open()
        one.pipeline.accept(timed(place, place + 1, place / 7))
        two = {"t": NOON + place * 60 * SECOND, "x": place / 7, "y": place % 5}
        one.pipeline.accept(Message("plant/pair", json.dumps(two).encode(), place + 1000, 1))
        if place % 10 == 9:
            one.pipeline.commit()
    one.pipeline.flush()
    one.pipeline.commit()
    told = Counter[str]()
    for chunk in one.arrived():
        for i, bucket in enumerate(chunk.buckets):
            told[chunk.stream] += bucket.n
            names = {name for name, parts in chunk.extras.items() if parts[i]}
            assert chunk.readings[i] or names >= {*NAMES}
            assert chunk.stream == "heat" or "pair" in names
    assert told == {"heat": 200, "both": 200}


def _part(one: Sent, becomes: str) -> None:
    if becomes == "put back":
        with one.state.transaction() as connection:
            note_overtaken(connection)
    if becomes == "retagged":
        one.pipeline.feed_windows()
        for name in [*one.state.streams]:
            if one.state.retag(name, {"line": "2"}):
                one.pipeline.windows.renumber(name, one.state.streams[name].number)
        one.pipeline.commit()
    one.state.close()
    if becomes == "copied":
        shutil.copytree(one.config.state.path, one.config.state.path.with_name("copy"))
