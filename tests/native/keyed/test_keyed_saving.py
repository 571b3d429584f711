"""Snapshots and changes: what was taken up again goes on as before; what is damaged or foreign is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

import sluicegate as sg

TOLD: dict[str, Any] = {
    "aggregates": {"n": sg.count(), "s": sg.sum(), "m": sg.max()}, "policy": sg.policies.time(100),
    "partitions": sg.PartitionEviction(count=40, age=400, select="lfu"),
}  # fmt: skip


def feed(windows: list[sg.KeyedWindows], rng: random.Random, now: int) -> int:
    """The same batch into all."""
    count = rng.randrange(60)
    keys = [rng.choice((rng.randrange(60), f"k{rng.randrange(9)}")) for _ in range(count)]
    times = [now + rng.randrange(30) - rng.choice((0, 0, 90)) for _ in range(count)]
    values = [float(rng.randrange(100)) for _ in range(count)]
    for window in windows:
        window.insert_many(keys, values, times)
        window.advance(now)
    return now + rng.randrange(40)


def answers(window: sg.KeyedWindows) -> dict[Any, Any]:
    """All of them."""
    return {key: each for piece in window.query_all(bounds=True) for key, each in piece.items()}


@pytest.mark.parametrize("buckets", [None, 6])
def test_what_is_taken_up_goes_on_as_before(core: str, buckets: int | None) -> None:
    """From a snapshot and changes; answers, counters and who leaves next are the same ever after."""
    rng, now = random.Random(buckets or 1), 0
    window = sg.KeyedWindows(**TOLD, buckets=buckets)
    now = feed([window], rng, now)
    saved = [window.snapshot()]
    for _ in range(30):
        now = feed([window], rng, now)
        saved.append(window.changes())
    again = sg.KeyedWindows(**TOLD, buckets=buckets)
    again.restore(*saved)
    for _ in range(30):
        assert answers(again) == answers(window)
        assert (again.accepted, again.late, again.left) == (window.accepted, window.late, window.left)
        assert again.changes() == window.changes()
        again.verify()
        now = feed([window, again], rng, now)
    assert window.left["count"] > 10
    assert window.left["age"] > 0


def test_changes_hold_what_changed_only(core: str) -> None:
    """One key of a thousand: some hundred bytes; nothing: a header."""
    window = sg.KeyedWindows(sg.sum(), policy=sg.policies.count(20))
    keys = [f"k{i}" for i in range(1_000)] * 10
    window.insert_many(keys, [1.0] * 10_000)
    first = window.changes()
    assert len(first) > 150_000, "the first is a snapshot"
    window.insert("k7", 2.0)
    assert len(window.changes()) < 700
    assert len(window.changes()) < 300


def test_a_chain_that_is_not_whole_is_refused(core: str) -> None:
    """One missing, in another order, damaged at any byte, cut at any byte; the window stays as it was."""
    window = sg.KeyedWindows(**TOLD)
    saved = []
    for i in range(3):
        window.insert_many([1, "b", i], [1.0, 2.0, 3.0], [i, i, i])
        saved.append(window.changes())
    again = sg.KeyedWindows(**TOLD)
    again.insert(5, 7.0, 1)
    for chain in ([saved[0], saved[2]], [saved[1]], [saved[0], saved[2], saved[1]]):
        with pytest.raises(sg.errors.SnapshotError, match="does not follow"):
            again.restore(*chain)
    for i in range(len(saved[0])):
        flipped = bytearray(saved[0])
        flipped[i] ^= 1 << i % 8
        for damaged in (bytes(flipped), saved[0][:i]):
            with pytest.raises(sg.errors.SnapshotError):
                again.restore(damaged)
    assert answers(again).keys() == {5}
    again.restore(*saved)
    assert answers(again) == answers(window)


def test_of_another_definition_is_refused(core: str) -> None:
    """Another length, policy, aggregate, number of buckets or clock; limits and callbacks may be others."""
    saved = sg.KeyedWindows(sg.sum(), policy=sg.policies.count(20)).snapshot()
    for told in (
        {"aggregates": sg.sum(), "policy": sg.policies.count(21)},
        {"aggregates": sg.sum(), "policy": sg.policies.time(20)},
        {"aggregates": sg.max(), "policy": sg.policies.count(20)},
        {"aggregates": sg.sum(), "policy": sg.policies.count(20), "buckets": 5},
        {"aggregates": sg.sum(), "policy": sg.policies.count(20), "clock": "shared"},
    ):
        with pytest.raises(sg.errors.ForeignSnapshotError, match="snapshot: of"):
            sg.KeyedWindows(**told).restore(saved)  # type: ignore[arg-type]
    sg.KeyedWindows(sg.sum(), policy=sg.policies.count(20), partitions=sg.PartitionEviction(count=3)).restore(saved)
    newer = saved[:7] + bytes([2]) + saved[8:]
    with pytest.raises(sg.errors.NewerSnapshotError, match="version 2"):
        sg.KeyedWindows(sg.sum(), policy=sg.policies.count(20)).restore(newer)


def test_no_text_where_a_checksum_fits(core: str) -> None:
    """A key that is no UTF-8, a header that is no JSON: refused as any damage is."""
    from zlib import crc32

    window = sg.KeyedWindows(**TOLD)
    window.insert("key", 1.0, 1)
    whole = window.snapshot()
    for at in (whole.rindex(b"key"), 20):
        saved = bytearray(whole)
        saved[at] = 255
        saved[-4:] = crc32(saved[:-4]).to_bytes(4, "little")
        with pytest.raises(sg.errors.SnapshotError, match="damaged"):
            window.restore(bytes(saved))


def test_verify_finds_what_contradicts_itself(core: str) -> None:
    """A row out of order, with a checksum that fits: refused when it is taken up."""
    from zlib import crc32

    window = sg.KeyedWindows(sg.sum(), policy=sg.policies.time(100))
    window.insert_many([1, 1], [1.0, 2.0], [5, 9])
    saved = bytearray(window.snapshot())
    first, second = bytes(saved[-36:-28]), bytes(saved[-20:-12])
    assert (int.from_bytes(first, "little"), int.from_bytes(second, "little")) == (5, 9)
    saved[-36:-28], saved[-20:-12] = second, first
    saved[-4:] = crc32(saved[:-4]).to_bytes(4, "little")
    with pytest.raises(sg.errors.SnapshotError, match="contradicts itself"):
        window.restore(bytes(saved))
    assert window.query(1) == 3.0
