"""A stored window continues to the bit from append-only rows, however often it starts, and its rows stay few."""

from __future__ import annotations

import sqlite3
from array import array
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import configured
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_stores import empty
from thorough import number

from sluicegate_agent.config import WindowConfig
from sluicegate_agent.state.leaf_rows import TIDIED
from sluicegate_agent.state.windows import StoredWindow, forget

WINDOWS = configured(
    Path("/"),
    window=[
        {"name": "time", "policy": {"time": "100us"}, "aggregate": ["sum", "max", "first"], "buckets": 5},
        {"name": "count", "policy": {"count": 40}, "aggregate": ["mean", "argmin"], "buckets": 8},
        {"name": "exact", "policy": {"count": 30}, "aggregate": ["mean", "last"], "buckets": 0},
        {"name": "bins", "policy": {"time": "100us"}, "aggregate": ["histogram(-40, 0, 40)", "max"], "buckets": 5},
        {
            "name": "single-readings",
            "policy": {"count": 30},
            "aggregate": ["rate(1s)", "frequency", "longest_run", "distinct_count(8)", "top_k(3)", "mean"],
            "buckets": 0,
        },
        {
            "name": "sum-like_hop",
            "policy": {"time": "100us", "hop": "20us"},
            "aggregate": ["mean", "max"],
            "buckets": 7,
            "sum_like": {"error": "5%", "floor": 0.5, "of": "mean"},
            "hop": {"hint": 6, "deviation": 2},
        },
        {
            "name": "max-like",
            "policy": {"time": "100us", "up_to": "max"},
            "aggregate": "max",
            "buckets": 6,
            "max_like": {"block": 4},
        },
        {"name": "pairs", "policy": {"time": "100us"}, "aggregate": ["mean", "max"], "buckets": 6, "merge": "pairs"},
        {
            "name": "staircase",
            "policy": {"time": "100us"},
            "aggregate": ["max", "min"],
            "buckets": 6,
            "merge": "pairs",
            "max_like": {"staircase": True, "staging": 5},
        },
        {
            "name": "staircase-unbounded",
            "policy": {"count": 40, "up_to": "min"},
            "aggregate": "min",
            "buckets": 0,
            "max_like": {"staircase": True},
        },
        {
            "name": "late-blocks",
            "policy": {"count": 50},
            "aggregate": "max",
            "buckets": 7,
            "merge": "pairs",
            "max_like": {"block": 4, "staging": 3},
        },
        {"name": "unbounded", "policy": {"count": 30}, "aggregate": "mean", "buckets": 0, "sum_like": {"error": 0.1}},
    ],
).windows


def commit(store: sqlite3.Connection, window: StoredWindow) -> None:
    """What the pipeline does with a window in a commit."""
    window.save(store)
    window.saved()


def insert(window: StoredWindow, value: float, time: int) -> None:
    """One reading."""
    assert window.insert_many(array("d", [value]), array("q", [time])) == 0


def whole(window: StoredWindow) -> tuple[object, ...]:
    """Everything a window says and holds."""
    buckets = [repr(bucket) for bucket in window.window.buckets()]
    return window.window.query(bounds=True) if len(window.window) else None, buckets, window.count


@pytest.mark.parametrize("config", WINDOWS, ids=lambda config: config.name)
@settings(max_examples=60, deadline=None)
@given(
    readings=st.lists(st.tuples(st.integers(-80, 80), st.integers(-5, 30)), min_size=1, max_size=150),
    every=st.integers(1, 12),
    restarts=st.sets(st.integers(0, 30)),
)
def test_a_restart_after_any_commit_changes_no_bit(
    config: WindowConfig, readings: list[tuple[int, int]], every: int, restarts: set[int]
) -> None:
    """Through evictions, level evictions and times that go back: the restarted window is the one that went on."""
    store, other = empty(), empty()
    straight, stored = StoredWindow(other, 1, config), StoredWindow(store, 1, config)
    time = 0
    for i, (eighths, step) in enumerate(readings):
        time += step
        insert(straight, eighths / 8, time)
        insert(stored, eighths / 8, time)
        if i % every == 0:
            commit(store, stored)
            if i // every in restarts:
                stored = StoredWindow(store, 1, config)
                stored.window.verify()
                assert whole(stored) == whole(straight)
    assert whole(stored) == whole(straight)
    store.close()
    other.close()


@pytest.mark.parametrize("config", WINDOWS, ids=lambda config: config.name)
def test_rows_are_few_and_written_once(config: WindowConfig) -> None:
    """After every commit at most the window's leaves and a bounded rest are stored; no commit writes a whole window."""
    store = empty()
    window = StoredWindow(store, 1, config)
    most_changed = 0
    for i in range(number(5000, 2500)):
        insert(window, i % 13 / 4, i * (1 + i // number(1000, 500)))
        before = store.total_changes
        commit(store, window)
        most_changed = max(most_changed, store.total_changes - before)
        held = store.execute("SELECT count(*) FROM window_leaf").fetchone()[0]
        assert held <= len(window.window) + 1
    assert most_changed <= 2 * TIDIED
    store.close()


def test_tidying_is_bounded_and_ends() -> None:
    """A gap of days empties a large window: its rows go a few a commit, and a restart in between is the same window."""
    config = configured(
        Path("/"), window=[{"name": "w", "policy": {"time": "1000us"}, "aggregate": "sum", "buckets": 2000}]
    ).windows[0]
    store = empty()
    window = StoredWindow(store, 1, config)
    for time in range(1000):
        insert(window, 1.0, time)
        commit(store, window)
    insert(window, 1.0, 10**6)
    held = []
    for time in range(20):
        before = store.total_changes
        commit(store, window)
        assert store.total_changes - before <= 3 * TIDIED
        held.append(store.execute("SELECT count(*) FROM window_leaf").fetchone()[0])
        assert whole(StoredWindow(store, 1, config)) == whole(window)
        insert(window, 1.0, 10**6 + 1 + time)
    assert held[0] > 800
    assert held[-1] <= 21
    store.close()


def test_leaves_that_closed_together_are_one_row() -> None:
    """They take each other's place in runs as levels are evicted, and leave together; a restart changes no bit."""
    asked = {"name": "w", "policy": {"time": "900us"}, "aggregate": ["mean", "max"], "buckets": 64}
    config, store, held = configured(Path("/"), window=[asked]).windows[0], empty(), list[int]()
    window = StoredWindow(store, 1, config)
    for time in range(6000):
        insert(window, time % 17 / 4, time + time // 3000 * 400)
        if time % 100 == 99:
            commit(store, window)
            runs, leaves = store.execute("SELECT count(*), sum(last - first + 1) FROM window_run").fetchone()
            held.append(leaves)
            assert runs <= 14
            assert whole(StoredWindow(store, 1, config)) == whole(window)
    assert window.window.changes().level > 3, "no level was evicted"
    assert max(held) <= 2 * config.buckets
    assert store.execute("SELECT count(*) FROM window_leaf").fetchone()[0] <= TIDIED
    store.close()


def test_damaged_rows_cost_one_window_and_say_so() -> None:
    """A leaf is gone: that window begins anew and is counted; nothing else is touched."""
    store = empty()
    windows = [StoredWindow(store, 1, config) for config in WINDOWS[:3]]
    for window in windows:
        for time in range(60):
            insert(window, 1.0, time)
        commit(store, window)
    lost = windows[1].number
    for table in ("window_leaf", "window_run"):
        store.execute(f"DELETE FROM {table} WHERE window = ?", (lost,))  # noqa: S608  our own names
    again = [StoredWindow(store, 1, config) for config in WINDOWS[:3]]
    assert [window.begun_anew for window in again] == [False, True, False]
    assert [len(window.window) > 0 for window in again] == [True, False, True]
    store.close()


def test_one_reading_that_a_window_refuses_costs_one_reading() -> None:
    """What came with it in the same batch still counts."""
    window = StoredWindow(empty(), 1, WINDOWS[2])
    assert window.insert_many(array("d", [1.0, 1e300, 2.0]), array("q", [1, 2, 3])) == 1
    assert window.count == 2


def test_forgetting_takes_the_leaves_along() -> None:
    """A window that is not asked for any more leaves no row behind."""
    store = empty()
    kept, gone = (StoredWindow(store, 1, config) for config in WINDOWS[1:3])
    for window in (kept, gone):
        for time in range(60):
            insert(window, 1.0, time)
        commit(store, window)
    forget(store, "id NOT IN (SELECT ?)", (kept.number,))
    leaves = "SELECT window FROM window_leaf UNION SELECT window FROM window_run"
    assert store.execute(leaves).fetchall() == [(kept.number,)]
    assert store.execute("SELECT id FROM window").fetchall() == [(kept.number,)]
    store.close()


def test_a_changed_definition_begins_anew_and_is_counted() -> None:
    """Other histograms are another window: its rows go, the new one begins empty and says so; the first never does."""
    asked = {"name": "w", "policy": {"time": "1h"}, "aggregate": ["mean"], "buckets": 8}
    plain, by_error = (
        configured(Path("/"), window=[asked | more]).windows[0] for more in ({}, {"sum_like": {"error": "1%"}})
    )
    store = empty()
    window = StoredWindow(store, 1, plain)
    assert not window.begun_anew
    for time in range(60):
        insert(window, 1.0, time)
    commit(store, window)
    assert not StoredWindow(store, 1, plain).begun_anew
    changed = StoredWindow(store, 1, by_error)
    assert changed.begun_anew
    assert len(changed.window) == 0
    assert store.execute("SELECT count(*) FROM window_leaf").fetchone()[0] == 0
    assert store.execute("SELECT count(*) FROM window_run").fetchone()[0] == 0
    store.close()


def test_levels_are_evicted_without_end() -> None:
    """Bursts and silences evict levels again and again: past level 64 rows are few and a restart changes no bit."""
    store, config = empty(), WINDOWS[0]
    stored, time = StoredWindow(store, 1, config), 0
    for burst in range(150):
        time += 500
        for i in range(30):
            time += 3
            insert(stored, float((burst * 7 + i * i) % 31), time)
            if i % 9 == 0:
                commit(store, stored)
    commit(store, stored)
    level, rows = store.execute("SELECT max(level), count(*) FROM window_leaf").fetchone()
    assert level > 64, "the stream was meant to evict more levels than an integer has bits"
    assert rows <= 4 * config.buckets
    again = StoredWindow(store, 1, config)
    again.window.verify()
    assert whole(again) == whole(stored)
    store.close()
