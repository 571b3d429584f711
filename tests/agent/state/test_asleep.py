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
from sluicegate_agent.state.store import StoreDamaged
from sluicegate_agent.state.windows import StoredWindow

TIMED = [each for each in WINDOWS if each.policy.time is not None]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that took nothing since the last commit is put away by the next."""
    monkeypatch.setattr(windows, "AWAY", 0.0)


def is_asleep(window: StoredWindow) -> bool:
    """Whether nothing of it is in memory."""
    return not hasattr(window, "_window")


@pytest.mark.parametrize("config", WINDOWS, ids=lambda config: config.name)
@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(-80, 80), st.integers(-60, 60)) | st.integers(0, 120), min_size=1, max_size=80
    ),
    every=st.integers(1, 4),
)
def test_it_wakes_to_the_bit(config: WindowConfig, steps: list[tuple[int, int] | int], every: int) -> None:
    """Readings in order and late ones, and times that are told: what leaves is told at the same time."""
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
        assert (awake.held, awake.limit) == (stored.held, stored.limit)
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
    with pytest.raises(StoreDamaged, match="start again"):
        insert(window, 1.0, 61)
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
        assert pipeline.answers("heat", "hour") == before
