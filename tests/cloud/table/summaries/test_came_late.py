"""What is told of late readings holds what was late of those that came, in whatever order and runs they came."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner
from table_worlds import here, store_at, table_of, take_in
from thorough import number

from sluicegate.format.bucket import Bucket, Builder, merge
from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.commands import cloud
from sluicegate_cloud.table import job, retention
from sluicegate_cloud.table.summaries.late import late
from sluicegate_cloud.table.versions import DAY_US

HOUR = 3_600_000_000
DEFINITION = job.definition_of(2 * HOUR, HOUR, ("count",), shards=2)


@dataclass
class Came:
    """By day on which its bucket begins: a stream's late readings, all readings, and the latest one's lateness."""

    newest: int = -(1 << 62)
    late: dict[int, int] = field(default_factory=dict)
    readings: dict[int, int] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)

    def take(self, times: list[int]) -> None:
        """The readings of a bucket."""
        day = min(times) // DAY_US
        for time in times:
            by = max(self.newest - time, 0)
            self.late[day] = self.late.get(day, 0) + (by > 0)
            self.readings[day] = self.readings.get(day, 0) + 1
            self.most[day] = max(self.most.get(day, 0), by)
            self.newest = max(self.newest, time)


def world(rng: random.Random) -> tuple[list[bytes], dict[str, Came]]:
    """Documents of some days; buckets that end where time goes back, or not, and neighbours that were merged."""
    sent, truth = list[bytes](), dict[str, Came]()
    for device in ("press", "saw"):
        now, told, builder = rng.randrange(50 * DAY_US), truth.setdefault(device, Came()), Builder(1.0)
        for _ in range(rng.randrange(1, 6)):
            found = list[tuple[Bucket, list[int]]]()
            for _ in range(rng.randrange(1, 6)):
                times = list[int]()
                for _ in range(rng.randrange(1, 4)):
                    now += rng.choice([0, 60, 3_600, 30_000]) * 1_000_000
                    times.append(now - rng.choice([0, 0, 0, 5 * HOUR, 3 * DAY_US]))
                    builder.add(1.0, times[-1])
                found.append((builder.close(), times))
            if len(found) > 1 and rng.random() < 0.5:
                at = rng.randrange(len(found) - 1)
                (a, before), (b, after) = found[at : at + 2]
                found[at : at + 2] = [(merge(a, b), before + after)]
            for _, times in found:
                told.take(times)
            buckets = [of for of, _ in found]
            sent.append(encode(Chunk(device, "temp", "0" * 16, 1.0, buckets, [None] * len(buckets))))
    return sent, truth


@pytest.mark.parametrize("seed", range(number(200, 6)))
def test_between_the_two_numbers_is_what_was_late(seed: int, tmp_path: Path) -> None:
    """How many by day, and how late the latest one came; exact where no bucket is cut by it."""
    rng = random.Random(seed)
    sent, truth = world(rng)
    again = sent + rng.sample(sent, len(sent) // 3)
    rng.shuffle(again)
    store, version = store_at(tmp_path / "table", DEFINITION)
    for part in range(2):
        version = take_in(store, version, table_of(again[part::2], 1_000 * part)) if again[part::2] else version
    rows = {(row["device"], row["day"]): row for of in late(store, version) for row in of.to_pylist()}
    for device, came in truth.items():
        for day, count in came.late.items():
            row = rows.pop((device, day), None)
            if row is None:
                assert count == 0
                continue
            assert row["readings"] == came.readings[day]
            assert row["late_low"] <= count <= row["late_high"] <= row["readings"]
            assert row["late_by_low_us"] <= came.most[day] <= row["late_by_high_us"]
    assert rows == {}


def test_what_retention_took_out_still_says_what_comes_late(tmp_path: Path) -> None:
    """Its documents are gone, their last times are not."""
    builder, sent = Builder(1.0), list[bytes]()
    for time in (10 * DAY_US, 20 * DAY_US, 19 * DAY_US, 21 * DAY_US):
        builder.add(1.0, time)
        bucket = builder.close()
        sent.append(encode(Chunk("d", "s", "0" * 16, 1.0, [bucket], [None])))
    store, version = store_at(tmp_path / "table", DEFINITION)
    version = take_in(store, version, table_of(sent))
    until = retention.horizon_of(version, 15 * DAY_US, {})
    version = retention.retain(here, store, version, until, {}, now_us=0)
    (row,) = [row for of in late(store, version) for row in of.to_pylist()]
    assert (row["day"], row["late_low"], row["late_high"]) == (19, 1, 1)
    assert (row["late_by_low_us"], row["late_by_high_us"]) == (DAY_US, DAY_US)
    done = CliRunner().invoke(cloud, ["quality", str(store.root), "--late"])
    assert done.output.split() == ["1970-01-20", "s", "d", "1", "of", "1", "late,", "by", "1", "d"]
    told = json.loads(CliRunner().invoke(cloud, ["quality", str(store.root), "--late", "--json"]).output)
    assert told == row
    store, version = store_at(tmp_path / "early", DEFINITION)
    take_in(store, version, table_of(sent[:2]))
    assert CliRunner().invoke(cloud, ["quality", str(store.root), "--late"]).output == "No reading came late\n"
