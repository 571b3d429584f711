"""What an exact window holds in memory: little a reading, given back after much has left, a chunk an operation."""

from __future__ import annotations

import os
import platform
import random
import resource
from array import array
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import sluicegate as sg
from sluicegate import core as engines
from sluicegate.memory.chunks import give_back_heap

pytestmark = pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
LARGE = 64 * 1024
SMALL = 1024 + 8


def filled(policy: Any, readings: int) -> sg.Window:
    """A window of sums that so many readings went through, one a µs."""
    window = sg.Window(sg.sum(), policy=policy)
    for start in range(0, readings, 1 << 16):
        n = min(1 << 16, readings - start)
        window.insert_many(array("d", [1.0]) * n, array("q", range(start, start + n)), results=False)
    return window


@pytest.mark.parametrize("size", [2**14, 2**15, 2**17, 2**18])
@pytest.mark.parametrize(("by", "partial"), [("count", 8), ("time", 16)])
def test_bytes_a_reading(by: str, partial: int, size: int) -> None:
    """At most 2.5 times the partial; a time window's partial is a sum and its time, which nodes do not keep."""
    window = filled(getattr(sg.policies, by)(size), 3 * size)
    assert len(window) == size
    assert partial * size < window.footprint.bytes <= 2.5 * partial * size


@pytest.mark.parametrize("size", [2**10, 2**12])
@pytest.mark.parametrize("at_once", [1, 100, 1000, 100_000])
def test_bytes_of_a_thousand_readings(at_once: int, size: int) -> None:
    """At most 2.5 times the partial, however the readings came: links, rings and what is spare are counted."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine="amta")
    feed(window, 3 * size, at_once)
    assert window.footprint.bytes <= 2.5 * 8 * size
    feed(window, 3 * at_once, at_once)  # the last batch is a whole one
    assert window.footprint.bytes <= 2.5 * 8 * size


def sizes_between(least: int, most: int) -> list[int]:
    """One every 5 %."""
    sizes = [least]
    while sizes[-1] * 1.05 < most:
        sizes.append(round(sizes[-1] * 1.05))
    return [*sizes, most]


@pytest.mark.parametrize(("at_once", "most"), [(1, 2**16), (30, 2**13), (100, 2**17), (1000, 2**18), (100_000, 2**18)])
def test_bytes_at_every_size(at_once: int, most: int) -> None:
    """At most 2.6 times the partial from 1,024 readings on, wherever a queue moves to longer chunks; 2 KB below."""
    over = {}
    for size in sizes_between(60, most):
        window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine="amta")
        feed(window, 2 * size, max(at_once, min(size, 1000)))
        feed(window, max(size // 8, 4 * at_once), at_once)
        if window.footprint.bytes > 2.4 * 8 * size + (2200 if size < 1024 else 0.2 * 8 * size):
            over[size] = window.footprint.bytes / (8 * size)
    assert over == {}


@pytest.mark.parametrize(("engine", "times"), [("two_stacks", 2.6), ("daba", 2.6), ("two_stacks_lite", 1.6)])
def test_queues_are_as_small_at_every_size(engine: str, times: float) -> None:
    """An element and its leaf, or the element alone, with what is begun at both ends of their queues."""
    over = {}
    for size in sizes_between(2**10, 2**15):
        window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine=engine)
        feed(window, 2 * size, 1000)
        if window.footprint.bytes > times * 8 * size:
            over[size] = window.footprint.bytes / (8 * size)
    assert over == {}


def test_a_window_by_time_is_as_small_at_every_size() -> None:
    """The times of even readings add next to nothing, wherever they and the nodes move to longer chunks."""
    for size in sizes_between(2**10, 2**18):
        window = filled(sg.policies.time(size), 2 * size + 1000)
        assert len(window) == size
        assert window.footprint.bytes <= 2.6 * 8 * size, size


def test_a_window_of_uneven_times_is_as_small_at_every_size() -> None:
    """The same with eight bytes more a reading for its time, and a page, wherever these move to longer chunks."""
    rng, over = random.Random(1), {}
    times = array("q", accumulate(1 + int(rng.expovariate(0.001)) for _ in range(2 * 2**18 + 1000)))
    for size in sizes_between(2**10, 2**18):
        window = sg.Window(sg.sum(), policy=sg.policies.time(1001 * size))
        feed_timed(window, times[: 2 * size + 1000])
        if window.footprint.bytes > (2.6 * 8 + 9) * len(window) + 4_096:
            over[size] = window.footprint.bytes / len(window)
    assert over == {}


@pytest.mark.parametrize(
    ("size", "single", "batch"),
    [(4, 520, 1600), (16, 950, 1600), (60, 2750, 2800), (64, 2900, 2850), (128, 3950, 2900), (256, 6300, 5100)],
)
def test_bytes_of_small_windows(size: int, single: int, batch: int) -> None:
    """One by one and in batches; next to nothing when empty."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(size), engine="amta")
    assert window.footprint.bytes <= 256
    feed(window, 3 * size, 1)
    assert window.footprint.bytes <= single
    feed(window, 3 * max(size, 100), 100)
    assert window.footprint.bytes <= batch


@pytest.mark.parametrize("by", ["count", "time"])
@pytest.mark.parametrize(("buckets", "most"), [(16, 3700), (64, 9400), (1024, 72_900)])
def test_bytes_of_buckets(buckets: int, most: int, by: str) -> None:
    """Of a mean and a maximum, whose buckets have 184 bytes each; a level eviction leaves more than half of them."""
    rng, size = random.Random(3), 64 * buckets
    values = array("d", (rng.gauss(20, 1) for _ in range(2 * size)))
    times = array("q", accumulate((rng.randrange(900_000, 1_100_000) for _ in values), initial=1_790_000_000_000_000))
    policy = sg.policies.count(size) if by == "count" else sg.policies.time(1_000_000 * size)
    asked = {"mean": sg.mean(), "max": sg.max()}
    window = sg.Window(asked, policy=policy, histograms=[sg.Constrained(buckets)])
    window.insert_many(values, times[:-1], results=False)
    assert len(window) > buckets // 2
    assert window.footprint.bytes <= most


def test_a_window_of_few_gives_back_what_most_have_left() -> None:
    """From 600 readings to 60, one by one: it is smaller by half, after a batch little larger than others of so few."""
    window = sg.Window(sg.sum(), policy=sg.policies.count(600), engine="amta")
    feed(window, 2000, 1)
    assert window.footprint.bytes > 9000
    window.evict(580)
    feed(window, 40, 1)
    assert len(window) == 60
    assert window.footprint.bytes <= 6300
    feed(window, 20, 20)
    assert window.footprint.bytes <= 4100
    window.verify()


def feed_timed(window: sg.Window, times: array[int]) -> None:
    """A one at each of these, 2^16 in a call."""
    for start in range(0, len(times), 1 << 16):
        some = times[start : start + (1 << 16)]
        window.insert_many(array("d", [1.0]) * len(some), some, results=False)


def feed(window: sg.Window, readings: int, at_once: int) -> None:
    """So many readings, so many in a call."""
    for start in range(0, readings, at_once):
        if at_once == 1:
            window.slide(1.0)
        else:
            window.insert_many(array("d", [1.0]) * min(at_once, readings - start), results=False)


def resident() -> int:
    """Bytes of this process's own in memory: no files' pages, which come and go with what else the machine does."""
    _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    return (int(resident) - int(shared)) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_small_windows_by_the_thousand_take_little() -> None:
    """Resident bytes a window of 60 readings: after a batch nothing of what only that needed is left with it."""
    windows = [sg.Window(sg.sum(), policy=sg.policies.count(60)) for _ in range(1000)]
    values = array("d", [1.0]) * 300
    windows[0].insert_many(values)
    before = resident()
    for window in windows:
        window.insert_many(values)
    assert resident() - before <= 1000 * 4096


def test_what_left_at_once_goes_back_a_chunk_an_operation() -> None:
    """The eviction itself returns at most a small one; each later operation a chunk, of nodes or of times."""
    size = 2**19
    window = filled(sg.policies.time(size), size + 1000)
    before = window.footprint.bytes
    window.slide(1.0, size + 1000 + size // 2)
    assert len(window) == size // 2
    assert abs(window.footprint.bytes - before) <= SMALL  # after the gap one block's times are no step apart
    held, time = before, size + 1001 + size // 2
    for _ in range(2000):
        window.slide(1.0, time)
        time += 1
        now = window.footprint.bytes
        assert held - now <= LARGE
        held = now
    assert held <= 1.25 * 24 * len(window)
    window.verify()


@pytest.mark.parametrize("at_once", [1, 2000])
def test_what_buckets_held_goes_back_while_readings_join(at_once: int) -> None:
    """A window that keeps few buckets once it knows its hop has a ninth of the bytes of before, at most."""
    window = sg.Window({"mean": sg.mean()}, policy=sg.policies.count(20_000, hop=500), histograms=[sg.Hop()])
    feed_one(window, 25_000, 1)
    most = window.footprint.bytes
    feed_one(window, 40_000, at_once)
    assert window.footprint.held < 200
    assert window.footprint.bytes < most / 9


def feed_one(window: sg.Window, readings: int, at_once: int) -> None:
    """So many readings of a saw, so many in a call; single ones by `insert`."""
    values = array("d", [i * 7919 % 1013 for i in range(readings)])
    for start in range(0, readings, at_once):
        if at_once == 1:
            window.insert(values[start])
        else:
            window.insert_many(values[start : start + at_once], results=False)


def test_a_queue_moves_to_large_chunks_once() -> None:
    """Where many small chunks become few large ones nothing is lost or changed, by single readings and by batch."""
    values = array("d", [(i * 7919 % 1013) / 7 for i in range(70_000)])
    batch, single = (sg.Window(sg.sum(), policy=sg.policies.count(45_000)) for _ in range(2))
    results = batch.insert_many(values)["sum"]
    assert array("d", [single.slide(x) for x in values]) == results
    assert batch.snapshot() == single.snapshot()
    batch.verify()


def test_times_move_to_large_chunks_once() -> None:
    """The same of uneven times, in windows just below where they do so and above."""
    rng = random.Random(2)
    values = array("d", [(i * 7919 % 1013) / 7 for i in range(70_000)])
    times = array("q", accumulate(1 + int(rng.expovariate(0.001)) for _ in values))
    for size in (25_000, 29_000, 40_000):
        batch, single = (sg.Window(sg.sum(), policy=sg.policies.time(1001 * size), engine="amta") for _ in range(2))
        results = batch.insert_many(values, times)["sum"]
        assert array("d", [single.slide(x, time) for x, time in zip(values, times, strict=True)]) == results
        assert batch.snapshot() == single.snapshot()
        batch.verify()


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer keeps what was freed")
def test_a_window_that_goes_takes_its_memory_along() -> None:
    """A hundred windows one after the other leave the process as large as ten did."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc here")
    sizes = []
    for i in range(100):
        filled(sg.policies.time(2**15), 2**16)
        if i in (9, 99):
            sizes.append(resident())
    assert sizes[1] - sizes[0] < 1 << 20


def test_a_gap_lets_all_but_the_newest_leave() -> None:
    """From any size, by time: what is left is right, and the window goes on."""
    for size in (3, 100, 5000, 40_000):
        window = filled(sg.policies.time(size), 2 * size)
        assert window.slide(5.0, 10**9) == 5.0
        assert len(window) == 1
        assert window.slide(6.0, 10**9 + 1) == 11.0
        window.verify()


def test_a_window_that_stays_silent_has_no_core() -> None:
    """Its state can be stored and taken up again meanwhile; the first reading makes it."""
    given: dict[str, Any] = {"policy": sg.policies.time(1000), "histograms": [sg.Constrained(16)]}
    window = sg.Window({"mean": sg.mean()}, **given)
    again = sg.Window.rebuild({"mean": sg.mean()}, state=window.state(), leaves=[], **given)
    for each in (window, again):
        assert each._is_silent
        insert = each.insert
        insert(1.0, 5)
        assert not each._is_silent
        assert each.query() == {"mean": 1.0}
    assert window.state() == again.state()
    moved = sg.Window({"mean": sg.mean()}, **given)
    moved.advance(7)
    moved = sg.Window.rebuild({"mean": sg.mean()}, state=moved.state(), leaves=[], **given)
    moved.insert(1.0, 7 - 1000)
    assert (moved.late, moved.accepted) == (1, 0)


def test_buckets_take_little_more_than_their_partials() -> None:
    """Five quarters of them, what is begun at both ends, and a stack of a partial a level."""
    for limit in (8, 64, 1000, 20_000):
        window = sg.Window({"mean": sg.mean()}, policy=sg.policies.count(10**6), histograms=[sg.Constrained(limit)])
        window.insert_many([float(i % 97) for i in range(40 * limit)], results=False)
        partial = 8 * window._layout.width
        assert window.footprint.bytes <= (1.36 * len(window) + 32) * partial


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer keeps what was freed")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's heap")
def test_what_many_windows_left_goes_back_to_the_system() -> None:
    """Of what lies between windows that stay, too."""
    windows = [sg.Window(sg.sum(), policy=sg.policies.count(500)) for _ in range(2000)]
    for window in windows:
        window.insert_many(array("d", [1.0]) * 600, results=False)
    del windows[::2], windows[::2]
    before = resident()
    give_back_heap()
    assert resident() < before - 2_000_000
