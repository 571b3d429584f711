"""From an agent's readings to `cloud merge --aggregates`: sketches keep their promise, at the stated probability."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")
pytest.importorskip("msgspec", reason="the readings come from an agent, which needs the extra `agent`")

from carrying_agent import ASKED, Sent

from sluicegate.monoids.results import BloomFilter, CountMin

DEVICES = ("greenhouse", "silo")
ASKED_OF_ALL = ("count", "count_min(32,2)", "bloom_filter(256,3)")
HOUR = 3_600_000_000
Readings = list[tuple[int, float]]


def _sent(folder: Path, device: str, seed: int) -> Readings:
    """What an agent that is restarted now and then, and sends at its end, was told; its documents are in `folder`."""
    own = folder / device
    own.mkdir()
    one = Sent(own, seed, ASKED, device={"id": device}, bucket={"readings": 24}, outbox={"bytes": "48KiB"})
    one.feed(restarts=True, readings=600)
    one.arrived()
    for name, data in one.target.documents.items():
        (folder / f"{name.replace('::', '_')}.json").write_bytes(data)
    return list(zip(one.times, one.values, strict=True))


@pytest.mark.spark
def test_counts_and_sets_from_the_agent_to_the_window(spark: Any, tmp_path: Path) -> None:
    """No value told too rarely, none denied; too great, or falsely there, no more often than is stated."""
    from sluicegate_cloud import job
    from sluicegate_cloud.sinks import read_windows

    sent = tmp_path / "sent"
    sent.mkdir()
    devices = {device: _sent(sent, device, seed) for seed, device in enumerate(DEVICES)}
    summary = job.merge([str(sent)], tmp_path / "out", HOUR, HOUR // 4, ASKED_OF_ALL)
    assert summary["extras"] == {"passed_over": [], "too_long": 0}
    rows = [row for row in read_windows(tmp_path / "out").to_pylist() if row["stream"] == "heat"]
    assert {row["device"] for row in rows} == {*DEVICES, None}
    told, off, allowed = 0, 0, 0.0
    for row in rows:
        of = [*devices.values()] if row["device"] is None else [devices[row["device"]]]
        inside = [x for some in of for t, x in some if row["window_start"] <= t < row["window_end"]]
        counts = CountMin(32, 2, _slots(row["count_min"]), row["count_min_doubt"])
        assert len(inside) <= counts.n <= len(inside) + counts.doubt
        assert not row["count_min_exact"] or counts.n == len(inside)
        for x in {*inside}:
            often = inside.count(x)
            assert counts.most(x) >= often
            told, off = told + 1, off + (counts.most(x) > often + counts.error + counts.doubt)
            allowed += counts.failure
        assert all(BloomFilter(row["bloom_filter"], 3).might_contain(x) for x in inside)
    assert told > 1000
    assert off <= allowed
    _falsely_there(rows)


def _slots(packed: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(packed[at : at + 8], "little") for at in range(0, len(packed), 8))


def _falsely_there(rows: list[dict[str, Any]]) -> None:
    """Values that no reading has, against the share that the sets state."""
    rng, found, stated, asked = random.Random(7), 0, 0.0, 0
    for row in rows:
        there = BloomFilter(row["bloom_filter"], 3)
        values = [rng.uniform(1e6, 2e6) for _ in range(200)]
        found, asked = found + sum(map(there.might_contain, values)), asked + len(values)
        stated += there.false_positives * len(values)
    assert stated < asked
    assert found <= stated + 4 * stated**0.5
