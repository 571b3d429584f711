"""What a table says of streams, devices and alerts against what was sent, in whatever order and runs it came."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from table_worlds import store_at, table_of, take_in
from thorough import number

from sluicegate.format.bucket import Bucket, Builder
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.table import job
from sluicegate_cloud.table.devices import alerts, devices
from sluicegate_cloud.table.versions import Store, Version

SECOND = 1_000_000
DEFINITION = job.definition_of(20 * SECOND, 10 * SECOND, ("mean",), shards=3, by=(("site",),))


@dataclass
class Sent:
    """What was sent of a device's stream; `spans`: first and last time of each of its boards."""

    readings: int = 0
    missing: int = 0
    doubt: int = 0
    times: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def take(self, buckets: Sequence[Bucket]) -> None:
        """A document that comes."""
        self.readings += sum(of.n for of in buckets)
        self.missing += sum(of.gap for of in buckets)
        self.doubt += sum(of.doubt for of in buckets)
        self.times += [time for of in buckets for time in (of.t_first, of.t_last)]


def buckets(rng: random.Random, builder: Builder, now: int) -> tuple[list[Bucket], int]:
    """Those of one document: seconds that stand still or go on, late readings, losses, doubts."""
    out = []
    for _ in range(rng.randrange(1, 4)):
        for place in range(rng.randrange(1, 4)):
            now += rng.choice([0, 0, 1, 3])
            gap, late = rng.choice([0, 0, 2]) if place == 0 else 0, rng.choice([0, 0, 0, 6])
            builder.add(float(rng.randrange(5)), (now - late) * SECOND, gap, rng.choice([0, 0, 0, 1]))
        out.append(builder.close())
    return out, now


def world(rng: random.Random) -> tuple[list[bytes], dict[tuple[str, str], Sent]]:
    """Documents of some devices, each of one or two boards, some lost; and what of them came."""
    sent, truth = list[bytes](), dict[tuple[str, str], Sent]()
    for device, stream in (("press", "temp"), ("press", "flow"), ("saw", "temp")):
        now, told = rng.randrange(50), truth.setdefault((device, stream), Sent())
        for board in range(rng.choice([1, 2])):
            builder, site, missing = Builder(1.0), rng.choice(["north", "south"]), 0
            before = len(told.times)
            for _ in range(rng.randrange(1, 5)):
                run, now = buckets(rng, builder, now)
                if rng.random() < 0.2:
                    missing += sum(of.n for of in run)
                    continue
                told.missing, missing = told.missing + missing, 0  # the ordinals of this document say so
                told.take(run)
                site = rng.choice([site, site, "north", "south"])
                more = {"key": "ab"[board] * 32, "tags": {"site": site}, "health": {"uptime_s": rng.randrange(99)}}
                sent.append(encode(Chunk(device, stream, f"{board:016x}", 1.0, run, [None] * len(run), **more)))
            if mine := told.times[before:]:
                told.spans.append((min(mine), max(mine)))
            now += rng.choice([0, 5, -10])
    return sent, {of: told for of, told in truth.items() if told.times}


def streams(store: Store, version: Version) -> dict[tuple[str, str], Any]:
    """The table's rows of streams."""
    names = [store.read_json(name)["streams"] for name in version.shards.values()]
    rows = [row for name in names if name for row in store.read(name).to_pylist()]
    return {(row["device"], row["stream"]): row for row in rows}


@pytest.mark.parametrize("seed", range(number(150, 4)))
def test_what_is_known_is_what_was_sent(seed: int, tmp_path: Path) -> None:
    """Readings, losses, doubts, times, completeness, boards; the same rows of one run and of several."""
    rng = random.Random(seed)
    sent, truth = world(rng)
    again = sent + rng.sample(sent, len(sent) // 3)
    rng.shuffle(again)
    parts, tables = rng.randrange(2, 5), []
    for name, runs in (("once", [sent]), ("in runs", [again[part::parts] for part in range(parts)])):
        store, version = store_at(tmp_path / name, DEFINITION)
        for place, run in enumerate(runs):
            version = take_in(store, version, table_of(run, 1_000 * place)) if run else version
        raised = sorted((row["device"], row["stream"], row["kind"], row["text"]) for row in alerts(store, version, 0))
        by_name = sorted(devices(store, version), key=lambda row: str(row["device"]))
        tables.append((streams(store, version), by_name, raised))
    assert tables[0] == tables[1]
    rows, of_devices, raised = tables[0]
    assert rows.keys() == truth.keys()
    for of, told in truth.items():
        certain = told.readings - told.doubt
        known = certain + told.missing
        wanted = told.readings, told.missing, told.doubt, min(told.times), max(told.times)
        assert tuple(rows[of][name] for name in ("readings", "missing", "doubt", "first_us", "last_us")) == wanted
        assert rows[of]["completeness"] == (certain / known if known else 1.0)
    met = [of for of, told in truth.items() if len(told.spans) == 2 and _meet(*told.spans)]
    assert [row[:3] for row in raised] == sorted((*of, "two_boards") for of in met)
    for row in of_devices:
        mine = [told for of, told in truth.items() if of[0] == row["device"]]
        assert (row["readings"], row["missing"]) == (sum(of.readings for of in mine), sum(of.missing for of in mine))
        assert (row["last_us"], row["streams"]) == (max(max(of.times) for of in mine), len(mine))


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def test_of_two_documents_of_one_time_the_same_health_is_told_in_any_order(tmp_path: Path) -> None:
    """A coarse clock: the second document has no later reading than the first."""
    told = []
    for order in (0, 1), (1, 0):
        store, version = store_at(tmp_path / str(order), DEFINITION)
        builder, sent = Builder(1.0), []
        for uptime in (5, 77):
            builder.add(1.0, SECOND)
            health = {"uptime_s": uptime}
            sent.append(encode(Chunk("press", "temp", f"{0:016x}", 1.0, [builder.close()], [None], health=health)))
        for place in order:
            version = take_in(store, version, table_of([sent[place]], place))
        told.append(devices(store, version)[0]["uptime_s"])
    assert told[0] == told[1]
