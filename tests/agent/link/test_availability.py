"""Windows grow coarser while the target is away and finer after, smoothly, and answer as certainly as ever."""

from __future__ import annotations

import random
import sqlite3
from array import array
from collections.abc import Callable
from math import fsum
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured, timed
from msgspec.structs import replace

from sluicegate_agent.agent import Agent
from sluicegate_agent.config.model import AvailabilityConfig
from sluicegate_agent.config.units import Duration, Share
from sluicegate_agent.link.availability import LEAST_BUCKETS, Availability, limit_after, steps_of
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State

MINUTE = 60.0


def made(**keys: Any) -> Availability:
    """One with lengths in minutes and the defaults of shares."""
    lengths = {
        name: Duration(int(60e6 * keys.pop(name, most))) for name, most in (("away", 10), ("back", 5), ("every", 2))
    }
    return Availability(AvailabilityConfig(**lengths, **keys))


def run(subject: Availability, minutes: int, link: str, backlog: float = 0.0, start: int = 0) -> list[int]:
    """The steps after each minute."""
    found = []
    for minute in range(start, start + minutes):
        subject.step(minute * MINUTE, link, backlog)
        found.append(subject.steps)
    return found


def test_it_shrinks_by_steps_after_a_while_and_grows_back_by_steps() -> None:
    """Nothing for ten minutes, then a step every two down to the floor; five minutes of a good link, then back up."""
    subject = made()
    away = run(subject, 40, "down")
    assert away[:10] == [0] * 10
    assert away[10:20] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert away[-1] == 5
    assert [subject.limit(buckets) for buckets in (64, 16, 8, 4)] == [16, 4, 4, 4]
    back = run(subject, 30, "up", start=40)
    assert back[:5] == [5] * 5
    assert back[5:15] == [4, 4, 3, 3, 2, 2, 1, 1, 0, 0]
    assert subject.limit(64) == 64


def test_a_link_that_flickers_changes_nothing() -> None:
    """Away for less than `away`, back for less than `back`: neither squeezed nor freed."""
    subject = made()
    for minute in range(0, 300, 10):
        assert run(subject, 9, "down", start=minute)[-1] == 0
        run(subject, 1, "up", start=minute + 9)
    run(subject, 14, "down", start=400)
    squeezed = subject.steps
    for minute in range(420, 600, 10):
        run(subject, 4, "up", start=minute)
        run(subject, 6, "down", start=minute + 4)
    assert subject.steps == squeezed > 0


def test_a_backlog_squeezes_at_once_and_has_to_fall_by_half_before_it_frees() -> None:
    """The outbox half full while the target is away is reason enough; a quarter is the other threshold."""
    subject = made()
    assert run(subject, 1, "down", 0.5) == [1]
    assert run(subject, 20, "up", 0.4, start=1)[-1] == 1
    assert run(subject, 20, "up", 0.25, start=21)[-1] == 0
    assert run(made(), 60, "up", 1.0)[-1] == 0, "a full outbox that is being emptied is no outage"


@pytest.mark.parametrize("link", ["unknown", "unused", "up"])
def test_without_an_outage_nothing_is_squeezed(link: str) -> None:
    """Not before the target was tried, nor where there is none."""
    assert run(made(), 100, link, 0.9) == [0] * 100


def test_a_floor_of_all_turns_it_off() -> None:
    """`floor = "100%"`: the windows keep their buckets whatever happens."""
    assert run(made(floor=Share(1.0)), 100, "down", 1.0) == [0] * 100


@pytest.mark.parametrize("buckets", [4, 5, 8, 64, 1000])
@pytest.mark.parametrize("floor", [0.01, 0.25, 0.9, 1.0])
def test_limits_stay_within_their_ends_and_tell_the_steps(buckets: int, floor: float) -> None:
    """Never under four or the floor, never up again with more steps; a stored limit leads back to the same limit."""
    limits = [limit_after(steps, buckets, floor) for steps in range(30)]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] == buckets
    assert all(limit >= max(LEAST_BUCKETS, int(buckets * floor)) for limit in limits)
    for limit in limits:
        assert limit_after(steps_of([(limit, buckets), (4, 4)], floor), buckets, floor) == limit
    assert steps_of([], floor) == 0


def pipeline_of(folder: Path) -> Callable[[], tuple[State, Pipeline]]:
    """Opens the same configuration again and again."""
    window = {"name": "w", "policy": {"time": "1h"}, "aggregate": ["mean", "max"], "buckets": 32}
    config = configured(folder, window=[window, {"name": "exact", "policy": {"count": 9}, "buckets": 0}])

    def opened() -> tuple[State, Pipeline]:
        state = State(config)
        return state, Pipeline(config, state)

    return opened


def test_squeezed_windows_lose_no_reading_and_survive_a_restart(tmp_path: Path) -> None:
    """Limits change at random between commits and restarts: counts, intervals and limits are as they must be."""
    opened, rng = pipeline_of(tmp_path), random.Random(3)
    state, pipeline = opened()
    values, times = array("d"), array("q")
    for i in range(600):
        values.append(rng.gauss(20, 5))
        times.append(NOON + i * 30 * SECOND)
        pipeline.accept(timed(i / 2, i % 60000 + 1, values[-1]))
        if rng.random() < 0.1:
            before = rng.randint(0, 5)
            pipeline.squeeze_windows(lambda buckets, steps=before: limit_after(steps, buckets, 0.25))
            assert [window.window.limit for window in pipeline.windows["heat"]] == [limit_after(before, 32, 0.25), 0]
        if rng.random() < 0.2:
            pipeline.commit()
            if rng.random() < 0.3:
                kept = pipeline.squeezed
                state.close()
                state, pipeline = opened()
                assert pipeline.squeezed == kept
        inside = [x for x, t in zip(values, times, strict=True) if t > times[-1] - 3600 * SECOND]
        found = {result.aggregate: result for result in pipeline.answers("heat", "w")}
        assert found["mean"].low <= fsum(inside) / len(inside) <= found["mean"].high
        assert found["max"].low <= max(inside) <= found["max"].high
    assert state.streams["heat"].accepted == 600
    state.close()


def test_a_change_of_the_limit_is_committed_without_a_message(tmp_path: Path) -> None:
    """A silent stream's windows are squeezed on disk too."""
    opened = pipeline_of(tmp_path)
    state, pipeline = opened()
    for i in range(100):
        pipeline.accept(timed(i / 2, i + 1, i % 7))
    pipeline.commit()
    pipeline.squeeze_windows(lambda _: 4)
    assert pipeline.commit() == []
    state.close()
    state, pipeline = opened()
    limits = [window["bucket_limit"] for window in state.status()["windows"] if window["stream"] == "heat"]
    assert limits == [4, 0]
    assert len(pipeline.windows["heat"][0].window) <= 4
    state.close()


def test_the_agent_squeezes_while_its_target_is_away(tmp_path: Path) -> None:
    """From the link's state to the windows, counted: the folder goes, the limit falls; it is back, the limit rises."""
    quick = {"away": "10ms", "back": "10ms", "every": "1ms", "floor": "50%"}
    window = {"name": "w", "policy": {"time": "1h"}, "buckets": 32}
    config = configured(tmp_path, window=[window], availability=quick, outbox={"chunk_age": "1ms"})
    with State(config) as state:
        agent = Agent(config, state)
        subject = agent.pipeline.windows["heat"][0].window
        for i in range(200):
            agent.pipeline.accept(timed(i / 10, i + 1, i % 7))
        agent.pipeline.commit()
        turned(agent, lambda: subject.limit == 16)
        assert len(subject) <= 16
        (tmp_path / "chunks").mkdir()
        turned(agent, lambda: subject.limit == 32)
        assert state.counters.as_dict()["windows.squeezed"] >= 3
        assert state.counters.as_dict()["windows.freed"] >= 3
        agent.finish()


def test_the_agent_squeezes_while_its_store_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits fail: the limit falls to its floor, although the target is there; they work again, and it rises."""
    quick = {"away": "10ms", "back": "10ms", "every": "1ms", "floor": "50%"}
    window = {"name": "w", "policy": {"time": "1h"}, "buckets": 32}
    config = configured(tmp_path, window=[window], availability=quick)
    config = replace(config, sync=replace(config.sync, target="none", path=None))

    def refused() -> list[int]:
        raise sqlite3.OperationalError("database or disk is full")

    with State(config) as state:
        agent = Agent(config, state)
        subject = agent.pipeline.windows["heat"][0].window
        for i in range(30):
            agent.pipeline.accept(timed(i / 10, i + 1, i % 7))
        with monkeypatch.context() as patch:
            patch.setattr(agent.pipeline, "commit", refused)
            agent._commit(0.0)
            turned(agent, lambda: subject.limit == 16)
        agent._commit(0.0)
        turned(agent, lambda: subject.limit == 32)
        assert state.streams["heat"].accepted == 30
        agent.finish()


def turned(agent: Agent, done: Callable[[], bool]) -> None:
    """Step the sync and the availability, as turns do, until it is done."""
    now = 1000.0
    for _ in range(3000):
        now += 1.0
        agent.sync.step(now)
        agent.heed_availability(now)
        if done():
            return
    raise AssertionError("it never came to that")
