"""A window that is put away is its rows alone: it wakes to the bit, by a reading or when something has to leave it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, configured, timed
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_stores import empty
from test_windows import WINDOWS, commit, insert, whole

from sluicegate_agent.config import WindowConfig
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State, windows
from sluicegate_agent.state.asleep import UNREAD_MOST
from sluicegate_agent.state.store import StoreDamaged
from sluicegate_agent.state.windows import StoredWindow

TIMED = [each for each in WINDOWS if each.policy.time is not None]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that took few readings is put away by the commit, and stays so where more wait beside its rows."""
    monkeypatch.setattr(windows, "AWAY", 0.0)
    monkeypatch.setattr(windows, "REST", 0.0)


def is_asleep(window: StoredWindow) -> bool:
    """Whether nothing of it is in memory."""
    return not hasattr(window, "_window")


@pytest.mark.parametrize("config", WINDOWS, ids=lambda config: config.name)
@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(-80, 80), st.integers(-60, 60)) | st.integers(0, 120), min_size=1, max_size=80
    ),
    every=st.integers(1, 40),
    asked=st.booleans(),
    rest=st.sampled_from([0.0, 60.0]),
)
def test_it_wakes_to_the_bit(
    config: WindowConfig, steps: list[tuple[int, int] | int], every: int, asked: bool, rest: float
) -> None:
    """Readings in order and late ones, and times that are told: what leaves is told at the same time.

    Where nobody asks, readings wait beside the rows. Where the tables are written often, they do not for long.
    """
    windows.REST = rest
    store, slept, time = empty(), 0, 0
    awake, stored = StoredWindow(empty(), 1, config), StoredWindow(store, 1, config)
    for i, step in enumerate(steps):
        if isinstance(step, tuple):
            time += step[1]
            insert(awake, step[0] / 8, time)
            insert(stored, step[0] / 8, time)
        else:
            time += step
            assert awake.advance(time) == stored.advance(time)
        if i % every == 0:
            for _ in range(3):  # the first writes it, the last finds that nothing came
                commit(store, stored)
            slept += is_asleep(stored)
        assert awake.now == stored.now
        assert awake.limit == stored.limit
        assert not asked or awake.held == stored.held
    assert slept
    assert whole(stored) == whole(awake)
    if config.buckets:
        assert stored.squeeze(4) == awake.squeeze(4)
        assert whole(stored) == whole(awake)


@pytest.mark.parametrize("config", TIMED, ids=lambda config: config.name)
def test_a_time_at_which_nothing_leaves_wakes_nothing(config: WindowConfig) -> None:
    """It is known from when on something may."""
    store = empty()
    window = StoredWindow(store, 1, config)
    insert(window, 1.0, 1000)
    for _ in range(2):
        commit(store, window)
    assert not any(window.advance(1000 + later) for later in range(100))
    assert is_asleep(window)
    assert window.now == 1099
    window.advance(1200)
    assert not is_asleep(window)
    assert window.held == 0


def test_rows_that_are_damaged_meanwhile_end_the_agent() -> None:
    """The next start begins it anew, as it does with any window whose rows are of no use, and says so."""
    store = empty()
    window = StoredWindow(store, 1, WINDOWS[1])
    for time in range(60):
        insert(window, 1.0, time)
    for _ in range(2):
        commit(store, window)
    store.execute("UPDATE window SET state = zeroblob(40)")
    insert(window, 1.0, 61)
    with pytest.raises(StoreDamaged, match="start again"):
        window.save(store)
    again = StoredWindow(store, 1, WINDOWS[1])
    assert again.is_damaged
    assert again.count == 0


def test_an_agent_puts_away_what_is_silent_and_answers_as_ever(tmp_path: Path) -> None:
    """After a restart too."""
    config = configured(tmp_path, window=[{"name": "hour", "policy": {"time": "1h"}, "aggregate": ["mean", "max"]}])
    now = [NOON]
    with State(config) as state:
        pipeline = Pipeline(config, state, lambda: now[0], Recorder(config, state))
        pipeline.accept(timed(0, 1, 5.0))
        pipeline.commit()
        before = pipeline.answers("heat", "hour")
        for _ in range(2):
            pipeline.saving.fold()
        (window,) = pipeline.windows["heat"]
        assert isinstance(window, StoredWindow)
        assert is_asleep(window)
        assert pipeline.answers("heat", "hour") == before
    with State(config) as state:
        pipeline = Pipeline(config, state, lambda: now[0], Recorder(config, state))
        (window,) = pipeline.windows["heat"]
        assert isinstance(window, StoredWindow)
        assert is_asleep(window)
        pipeline.accept(timed(1, 2, 8.0))
        pipeline.commit()
        assert is_asleep(window)
        pipeline.saving.fold()
        assert is_asleep(window)
        for _ in range(2):  # the second one wakes it after it was written
            mean, peak = pipeline.answers("heat", "hour")
            assert (mean.value, peak.value, mean.count) == (6.5, 8.0, 2)
            pipeline.saving.fold()


def test_readings_wait_beside_the_rows_while_they_are_few() -> None:
    """The tables are written without it; it is in memory when there are too many, and when somebody asks."""
    store, config = empty(), WINDOWS[0]
    straight, window = StoredWindow(empty(), 1, config), StoredWindow(store, 1, config)
    commit(store, window)
    for time in range(100):
        for each in (straight, window):
            insert(each, time / 8, time)
        if time == 30:
            commit(store, window)
        assert is_asleep(window) == (time < 31 + UNREAD_MOST)
    restarted = StoredWindow(store, 1, config)
    for time in range(31, 100):
        insert(restarted, time / 8, time)
    assert whole(restarted) == whole(window) == whole(straight)


def test_a_commit_that_fails_loses_nothing_that_waits() -> None:
    """The next one writes it, or whoever asks finds it."""
    for asks in (False, True):
        store, config = empty(), WINDOWS[0]
        straight, window = StoredWindow(empty(), 1, config), StoredWindow(store, 1, config)
        for time in range(40):
            for each in (straight, window):
                insert(each, time / 8, time)
            if time == 10:
                commit(store, window)
            if time in (20, 30):
                store.execute("BEGIN")
                window.save(store)
                store.execute("ROLLBACK")
            if time == 35 and asks:
                assert whole(window) == whole(straight)
        commit(store, window)
        assert whole(StoredWindow(store, 1, config)) == whole(window) == whole(straight)
