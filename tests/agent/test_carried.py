"""What buckets carry for the cloud: of their readings, whatever becomes of them, in the budget, through restarts."""

from __future__ import annotations

import random
import struct
from array import array
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, configured, timed
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate.format.extras import extra
from sluicegate.monoids import kll
from sluicegate_agent import carried
from sluicegate_agent.config.errors import ConfigError
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync
from sluicegate_agent.sync.contract import Document
from sluicegate_agent.sync.splitting import content, halves

AGGREGATES = ["slope(1h)", "intercept", "time_weighted_mean", "quantiles(16)", "distinct_count(8)", "top_k(3)", "mean"]
NAMES = ("area", "distinct_count(8)", "line", "quantiles(16)", "top_k(3)")
ASKED: dict[str, Any] = {
    "name": "asked",
    "policy": {"time": "1h"},
    "aggregate": AGGREGATES,
    "buckets": 8,
    "cloud": True,
}
READINGS = 1000


class Sent:
    """An agent over a target in memory that is away until the end; every reading, by ordinal."""

    def __init__(self, folder: Path, seed: int, **tables: Any) -> None:
        self.config = configured(folder, [ASKED], **tables)
        self.target, self.rng = MemoryTarget(), random.Random(seed)
        self.target.away = True
        self.values, self.times = array("d"), array("q")
        self.open()

    def open(self) -> None:
        """Start, or start again."""
        self.state = State(self.config)
        self.pipeline = Pipeline(self.config, self.state, clock=lambda: NOON + 10**12)
        self.sync = Sync(self.config, self.state, self.target)

    def feed(self, restarts: bool, readings: int = READINGS) -> None:
        """Readings of which some go back in time, commits between them, and the agent killed now and then."""
        minute = 0.0
        for i in range(readings):
            minute += 1e-6 + self.rng.choice((0.0, 0.5, 1.0, -3.0 if self.rng.random() < 0.1 else 2.0))
            value = round(self.rng.gauss(20, 4), 1)
            self.values.append(value)
            self.times.append(NOON + round(minute * 60_000_000))
            self.pipeline.accept(timed(minute, i % 65535 + 1, value))
            if self.rng.random() < 0.2 or self.pipeline.pending > 30:
                self.pipeline.commit()
                outbox = self.state.outbox
                assert outbox.bytes_held <= outbox.bytes_most
                kept = sum(lane.cost for lane in outbox.lanes.values()), outbox.rows
                outbox.load(self.state.store.connection)
                assert kept == (sum(lane.cost for lane in outbox.lanes.values()), outbox.rows)
                if restarts and self.rng.random() < 0.05:
                    self.state.close()
                    self.open()
        self.pipeline.flush()
        self.pipeline.commit()

    def arrived(self) -> list[chunks.Chunk]:
        """What reaches the target once it is back."""
        self.target.away, now = False, 0.0
        while not self.sync.is_done():
            now += 1000.0
            self.sync.step(now, flush=True)
        self.state.close()
        return [chunks.decode(self.target.documents[name]) for name in sorted(self.target.documents)]


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
    assert 0.6 * len({*values}) <= _distinct(slots["distinct_count(8)"]) <= 1.5 * len({*values})


def _distinct(slots: tuple[Any, ...]) -> float:
    from sluicegate.monoids import hll

    return hll.answer(8, slots[0], struct.pack(f"<{len(slots) - 1}q", *slots[1:]))[0]


def test_where_nothing_asks_not_a_byte_is_sent_or_kept(tmp_path: Path) -> None:
    """`cloud = false`, the default: the same documents as without the window."""
    sent = []
    for name, cloud in (("a", False), ("b", None)):
        (tmp_path / name).mkdir()
        one = Sent.__new__(Sent)
        asked: list[dict[str, Any]] = [] if cloud is None else [ASKED | {"cloud": cloud}]
        one.config = configured(tmp_path / name, asked, outbox={"rows": 16})
        one.target, one.rng, one.values, one.times = MemoryTarget(), random.Random(2), array("d"), array("q")
        one.open()
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
    """Seventeen: the check says how many there may be, before anything runs."""
    with pytest.raises(ConfigError, match="at most 16"):
        configured(tmp_path, [ASKED | {"aggregate": [f"top_k({k})" for k in range(1, 18)]}])
