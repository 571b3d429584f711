"""A stored window continues bit for bit: from its snapshot, and from state and leaf rows after a kill at any moment."""

from __future__ import annotations

import math
import random
import struct
import zlib
from array import array
from typing import Any

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, Exact, readings
from thorough import number
from twins import core as pure

import sluicegate as sg
from sluicegate import errors
from sluicegate.catalogue import FACTS
from sluicegate.core import core as compiled
from sluicegate.window import snapshot

EXACT = [name for name, facts in FACTS.items() if facts.exact and name in sg.ENGINES]  # to the bit
both = pytest.mark.usefixtures("implementation_of_window")


def options(rng: random.Random) -> dict[str, Any]:
    """A policy and a bucket limit."""
    limit = rng.choice([0, 4, 5, 6, 7, 8, 16, 33])
    length = rng.choice([1, 2, 5, 9, 40, 100, 300])
    return {
        "policy": sg.policies.count(length) if rng.random() < 0.5 else sg.policies.time(3 * length),
        "histograms": [sg.Constrained(limit)] if limit else [],
    }


class Rows:
    """What an agent keeps: the newest state, and the leaf rows that `changes` gave out."""

    def __init__(self) -> None:
        self.leaves: dict[tuple[int, int], bytes] = {}
        self.state = b""

    def commit(self, window: sg.Window, rng: random.Random) -> None:
        """One transaction; now and then the rows that have left are deleted, as the contract's arithmetic says."""
        changes = window.changes()
        self.leaves |= {(changes.level, index): partial for index, partial in changes.closed}
        self.state = window.state()
        if rng.random() < 0.3:
            self.leaves = {
                (level, index): partial
                for (level, index), partial in self.leaves.items()
                if index >> (changes.level - level) >= changes.head
            }

    def shuffled(self, rng: random.Random) -> list[tuple[int, int, bytes]]:
        """The rows in no order."""
        rows = [(level, index, partial) for (level, index), partial in self.leaves.items()]
        rng.shuffle(rows)
        return rows


def same(a: sg.Window, b: sg.Window) -> None:
    """Equal to the last bit: state, leaves, answers and intervals."""
    b.verify()
    assert a.state() == b.state()
    assert a.query() == b.query()
    assert a.query(bounds=True) == b.query(bounds=True)
    assert [leaf.results for leaf in a.buckets()] == [leaf.results for leaf in b.buckets()]


@pytest.mark.parametrize("seed", range(number(60, 15)))
@both
def test_a_kill_at_any_moment_changes_nothing(seed: int) -> None:
    """Random commits, kills and level evictions: the rebuilt window goes on exactly as the one never killed."""
    rng = random.Random(seed)
    chosen, rows, time_shape = options(rng), Rows(), rng.choice(CLOCKS)
    window, rebuilt = sg.Window(ALL, **chosen), None
    rows.commit(window, rng)
    for value, time in readings(rng, rng.choice(SHAPES), time_shape, rng.choice([20, 90, 400])):
        window.insert(value, time)
        if rebuilt is not None:
            rebuilt.insert(value, time)
        if rng.random() < 0.1:
            rows.commit(window, rng)
            held = rows.state, rows.shuffled(rng)
            ways = [
                lambda state, leaves: sg.Window.rebuild(ALL, state=state, leaves=leaves, **chosen),
                window.rebuilt,
                sg.Window(ALL, **chosen).rebuilt,
            ]
            rebuilt = rng.choice(ways)(*held)
            same(window, rebuilt)
    if rebuilt is not None:
        same(window, rebuilt)


WAYS: dict[str, dict[str, Any]] = {
    "count": {"policy": sg.policies.count(50), "histograms": [sg.Constrained(6)]},
    "time": {"policy": sg.policies.time(90)},
    "pairs": {"policy": sg.policies.time(90), "histograms": [sg.SumLike(0.05), sg.Constrained(8, merge="pairs")]},
    "custom": {"policy": lambda total, old: total["count"] - old["count"] >= 20},
    "centered": {"policy": sg.policies.count(50), "histograms": [sg.Constrained(6)], "center": 20.0},
}


@pytest.mark.parametrize("way", WAYS)
@both
def test_anew_is_as_made_from_its_configuration(way: str) -> None:
    """Whatever the first one took and was limited to, which stays as it is; and a silent one makes silent ones."""
    aggregates = {"mean": sg.mean(), "max": sg.max(), "count": sg.count()}
    made, first = (sg.Window(aggregates, **WAYS[way]) for _ in range(2))
    first.anew().insert(7.0, 3)
    same(made, first)
    rng = random.Random(1)
    for value, time in readings(rng, SHAPES[0], CLOCKS[0], 200):
        first.insert(value, time)
    if first.limit:
        first.limit_to(4)
    before, second = first.state(), first.anew()
    same(made, second)
    assert second.limit == made.limit
    for value, time in readings(rng, SHAPES[0], CLOCKS[0], 200):
        made.insert(value, time)
        second.insert(value, time)
    same(made, second)
    assert first.state() == before


def test_a_window_in_a_store_makes_none_beside_it() -> None:
    """Two windows would write the same pages."""
    window = sg.Window(sg.mean(), policy=sg.policies.count(9), store=sg.stores.Memory())
    with pytest.raises(errors.ConfigurationError, match="in a store"):
        window.anew()


@both
def test_levels_without_end() -> None:
    """A source that is quick by day and slow by night evicts levels for ever; every state still rebuilds."""
    rng, rows, time = random.Random(7), Rows(), 0
    chosen: dict[str, Any] = {"policy": sg.policies.time(1000), "histograms": [sg.Constrained(5)]}
    window = sg.Window(ALL, **chosen)
    for day in range(40):
        for _ in range(120):
            time += 1 if day % 2 else rng.choice([50, 300])
            window.insert(rng.random(), time)
            if rng.random() < 0.05:
                rows.commit(window, rng)
                same(window, sg.Window.rebuild(ALL, state=rows.state, leaves=rows.shuffled(rng), **chosen))
    changes = window.changes()
    assert changes.level > 40
    assert changes.base == changes.level // 16 * 16


@pytest.mark.parametrize("seed", range(20))
@both
def test_what_was_not_committed_is_taken_again(seed: int) -> None:
    """Killed between commits, rebuilt from the last one and given the readings since, it is the same window."""
    rng = random.Random(seed)
    chosen, rows = options(rng), Rows()
    stream = list(readings(rng, rng.choice(SHAPES), "going back", 300))
    window, committed = sg.Window(ALL, **chosen), 0
    rows.commit(window, rng)
    for i, (value, time) in enumerate(stream):
        window.insert(value, time)
        if rng.random() < 0.05:
            rows.commit(window, rng)
            committed = i + 1
        if rng.random() < 0.03:
            window = sg.Window.rebuild(ALL, state=rows.state, leaves=rows.shuffled(rng), **chosen)
            for again in stream[committed : i + 1]:
                window.insert(*again)
    never_killed = sg.Window(ALL, **chosen)
    never_killed.insert_many(array("d", [x for x, _ in stream]), array("q", [t for _, t in stream]))
    same(never_killed, window)


@both
def test_snapshots_continue_bit_for_bit() -> None:
    """At every length of a stream, over engines, policies and limits."""
    for seed in range(number(12, 5)):
        rng = random.Random(seed)
        chosen = {**options(rng), "engine": rng.choice(EXACT)}
        window = sg.Window(ALL, **chosen)
        stream = list(readings(rng, rng.choice(SHAPES), "going back", 60))
        for i, (value, time) in enumerate(stream):
            window.insert(value, time)
            restored = sg.Window.restore(window.snapshot(), ALL, **chosen)
            assert restored.snapshot() == window.snapshot()
            assert restored.changes() == window.changes()
            for later in stream[i + 1 : i + 4]:
                window_then = sg.Window.restore(window.snapshot(), ALL, **chosen)
                window_then.insert(*later)
            same(window, restored)


def test_compiled_and_pure_write_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot by one is restored by the other, and all that follows is equal to the bit."""
    for seed in range(number(25, 10)):
        rng = random.Random(seed)
        chosen, windows = {**options(rng), "engine": rng.choice(EXACT)}, []
        stream = list(readings(rng, rng.choice(SHAPES), rng.choice(CLOCKS), 120))
        for module in (compiled, pure):
            monkeypatch.setattr("sluicegate.window.configure.Core", module.Core)
            windows.append(sg.Window(ALL, **chosen))
        for value, time in stream:
            for window in windows:
                window.insert(value, time)
            assert windows[0].snapshot() == windows[1].snapshot()
            assert windows[0].query() == windows[1].query()
        swapped = sg.Window.restore(windows[0].snapshot(), ALL, **chosen)
        assert swapped.snapshot() == windows[1].snapshot()


def filled(**more: Any) -> sg.Window:
    """A window of a few buckets."""
    chosen = {"policy": sg.policies.count(50), "histograms": [sg.Constrained(6)], **more}
    window = sg.Window({"mean": sg.mean(), "max": sg.max()}, **chosen)
    window.insert_many(array("d", [i * 0.5 for i in range(80)]))
    return window


def restore(data: bytes, **more: Any) -> sg.Window:
    """The same window from bytes."""
    chosen = {"policy": sg.policies.count(50), "histograms": [sg.Constrained(6)], **more}
    return sg.Window.restore(data, {"mean": sg.mean(), "max": sg.max()}, **chosen)


@both
def test_every_flipped_byte_is_noticed() -> None:
    """Each byte of a snapshot changed in turn, and each truncation: refused by a SnapshotError, never anything else."""
    data = filled().snapshot()
    for i in range(len(data)):
        for bits in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[i] ^= bits
            with pytest.raises(errors.SnapshotError):
                restore(bytes(damaged))
    for length in range(0, len(data), 7):
        with pytest.raises(errors.SnapshotError):
            restore(data[:length])
    with pytest.raises(errors.SnapshotError):
        restore(data + b"\0")
    assert restore(data).snapshot() == data


@both
def test_damage_foreign_and_newer_are_told_apart() -> None:
    """Each with its own error and what to do."""
    data = filled().snapshot()
    with pytest.raises(errors.SnapshotError, match="checksum"):
        restore(data[:-30] + bytes([data[-30] ^ 4]) + data[-29:])
    with pytest.raises(errors.SnapshotError, match="truncated"):
        restore(data[:-1])
    with pytest.raises(errors.SnapshotError, match="begin"):
        restore(b"PK\3\4" + data)
    with pytest.raises(errors.ForeignSnapshotError, match="configuration"):
        restore(data, policy=sg.policies.count(51))
    with pytest.raises(errors.ForeignSnapshotError, match="configuration"):
        restore(data, histograms=[sg.Constrained(7)])
    with pytest.raises(errors.ForeignSnapshotError, match="configuration"):
        restore(data, engine="recalc")
    with pytest.raises(errors.ForeignSnapshotError, match="state"):
        restore(filled().state())
    with pytest.raises(errors.SnapshotError, match="center"):
        restore(data, center=3.5)


@both
def test_a_newer_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by a later Sluicegate: refused by number, before its payload is read."""
    with monkeypatch.context() as later:
        later.setattr(snapshot, "version_of", lambda saved: snapshot.VERSION + 1)
        data = filled().snapshot()
    with pytest.raises(errors.NewerSnapshotError, match=f"version {snapshot.VERSION + 1}"):
        restore(data)


@both
def test_a_length_beyond_all_bounds_is_refused() -> None:
    """A stated length is compared with what is there before anything is allocated."""
    data = bytearray(filled().snapshot())
    data[24:32] = (2**63).to_bytes(8, "little")
    with pytest.raises(errors.SnapshotError, match="truncated"):
        restore(bytes(data))


@both
@pytest.mark.parametrize("engine", ["amta", "fiba", "two_stacks"])
def test_more_readings_than_leaves_are_refused(engine: str) -> None:
    """With a checksum that fits: a window by count would let go of what it does not hold, and end the process."""
    given: dict[str, Any] = {"policy": sg.policies.count(7, hop=2), "engine": engine}
    window = sg.Window(sg.sum(), **given)
    window.insert_many([1.0] * 60)
    saved = bytearray(window.snapshot())
    saved[33] = 8  # 2,108 readings of 60
    saved[-4:] = zlib.crc32(saved[:-4]).to_bytes(4, "little")
    with pytest.raises(sg.errors.SnapshotError, match="60 leaves of 2108 readings"):
        sg.Window.restore(bytes(saved), sg.sum(), **given)


@both
@pytest.mark.parametrize("aggregate", [sg.std(), sg.slope(), sg.max(), sg.geometric_mean(), sg.time_weighted_mean()])
@pytest.mark.parametrize("histograms", [[], [sg.Constrained(8)]], ids=["readings", "buckets"])
def test_no_interval_is_told_of_a_leaf_that_is_no_number(aggregate: Any, histograms: list[Any]) -> None:
    """NaN in any slot of a closed leaf: refused when it is loaded, or answered as if it were not there."""
    given: dict[str, Any] = {"policy": sg.policies.count(50), "histograms": histograms}
    window = sg.Window(aggregate, **given)
    window.insert_many([7.25 + i for i in range(40)])
    (level, _, _, closed, _, _), state, refused = window.changes(), window.state(), 0
    for slot in range(len(closed[3][1]) // 8):
        rows = [(level, index, bytearray(leaf)) for index, leaf in closed]
        rows[3][2][8 * slot : 8 * slot + 8] = struct.pack("<d", math.nan)
        try:
            again = sg.Window.rebuild(
                aggregate, state=state, leaves=[(*each[:2], bytes(each[2])) for each in rows], **given
            )
        except sg.errors.SnapshotError as error:
            refused += "NaN in slot" in str(error) and "use an older one or start the window anew" in str(error)
            continue
        (told,) = again.query(bounds=True).values()
        assert told.low <= told.value <= told.high
    assert refused


@both
def test_missing_and_misshapen_rows_are_refused() -> None:
    """A rebuild names the leaf that is missing, a row of a wrong length or of a level to come."""
    chosen: dict[str, Any] = {"policy": sg.policies.count(50), "histograms": [sg.Constrained(6)]}
    aggregates = {"mean": sg.mean(), "max": sg.max()}
    window = filled()
    changes, state = window.changes(), window.state()
    rows = [(changes.level, index, partial) for index, partial in changes.closed]
    same(window, sg.Window.rebuild(aggregates, state=state, leaves=rows, **chosen))
    with pytest.raises(errors.SnapshotError, match=f"{changes.head} of level {changes.level} is missing"):
        sg.Window.rebuild(aggregates, state=state, leaves=rows[1:], **chosen)
    with pytest.raises(errors.SnapshotError, match="expected a level"):
        sg.Window.rebuild(aggregates, state=state, leaves=[*rows, (changes.level + 1, 0, rows[0][2])], **chosen)
    with pytest.raises(errors.SnapshotError, match="bytes, expected"):
        sg.Window.rebuild(aggregates, state=state, leaves=[*rows, (0, 0, b"short")], **chosen)
    swapped = [(level, index ^ (index in (changes.head, changes.head + 1)), partial) for level, index, partial in rows]
    if changes.head % 2 == 0:
        with pytest.raises(errors.SnapshotError, match="do not fit together"):
            sg.Window.rebuild(aggregates, state=state, leaves=swapped, **chosen)
    with pytest.raises(IndexError):
        window.leaf(changes.open)


@both
def test_a_state_stays_small() -> None:
    """Whatever the window holds, its state is a few partials."""
    window = sg.Window(ALL, policy=sg.policies.count(10**6), histograms=[sg.Constrained(1000)])
    window.insert_many(array("d", range(9000)), results=False)
    assert len(window.state()) < 1200


@both
def test_changes_tells_each_closed_leaf_once() -> None:
    """Without level evictions every reading of an exact window is given out exactly once, unless it left before."""
    window, told = sg.Window(sg.sum(), policy=sg.policies.count(10)), []
    for i in range(100):
        window.insert(float(i))
        if i % 4 == 0:
            told += [index for index, _ in window.changes().closed]
    assert told == list(range(97))
    window.insert_many(array("d", range(50)))
    assert [index for index, _ in window.changes().closed] == list(range(140, 150))


def test_the_oracle_of_these_tests_agrees_with_itself() -> None:
    """The exact window's readings go by their time: one that is too old when it comes is late, and is not inside."""
    exact = Exact(sg.policies.time(10))
    for value, time in ((1.0, 100), (2.0, 50), (3.0, 109)):
        exact.insert(value, time)
    assert (exact.results()["sum"], exact.late) == (4.0, 1)
    exact.insert(4.0, 110)
    assert exact.results()["sum"] == 7.0
