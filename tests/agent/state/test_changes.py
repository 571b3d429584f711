"""A changed configuration: what a start would lose of the state is listed, and refused unless it is accepted."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from brokers import mosquitto, until
from durable_agent import SEQUENCED, TIMED, bare, configured, sequenced, timed

from sluicegate_agent.agent import Agent
from sluicegate_agent.changes import WouldLose, list_losses, refuse_losses
from sluicegate_agent.commands.check import check
from sluicegate_agent.config import Config
from sluicegate_agent.config.errors import ConfigError
from sluicegate_agent.identity.kinds import asked_before
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.frame import Body
from sluicegate_agent.record.recovery import Player
from sluicegate_agent.state import State
from sluicegate_demo.ports import free_port

#: In place of the directory.
GATEWAY = {"target": "sync-gateway", "path": None, "url": "https://gateway.example/readings"}


def windows(**changed: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Two windows, `day` and `last`; a changed key of one, or None for a window that is left out."""
    plain: dict[str, dict[str, Any]] = {
        "day": {"name": "day", "policy": {"time": "24h"}, "aggregate": ["mean", "max"], "buckets": 8},
        "last": {"name": "last", "policy": {"count": 9}, "buckets": 0},
    }
    kept = {name: window for name, window in plain.items() if changed.get(name, {}) is not None}
    return [window | (changed.get(name) or {}) for name, window in kept.items()]


def used(folder: Path, **tables: Any) -> Config:
    """A state with readings of every source, all of it waiting."""
    config = configured(folder, window=windows(), **tables)
    with State(config) as state:
        agent = Agent(config, state)
        for i in range(60):
            for message in (sequenced(i, 1), timed(i, 2, value=i), bare(i, 3)):
                agent.pipeline.accept(message)
            agent.pipeline.commit()
    return config


@pytest.mark.parametrize(
    ("tables", "is_lost"),
    [
        ({"device": {"id": "board-2"}}, True),
        ({"mqtt": {"client_id": "other"}}, True),
        ({"device": {"id": "board-2"}, "mqtt": {"client_id": "sluicegate-board-1"}}, False),
    ],
)
def test_another_client_id_loses_the_session(tmp_path: Path, tables: dict[str, Any], is_lost: bool) -> None:
    """What the broker holds for the old one nobody would take: told, once there is a session."""
    config = used(tmp_path)
    changed = configured(tmp_path, window=windows(), **tables)
    assert list_losses(changed) == []
    with State(config) as state:
        state.remember(asked_before(state.store.connection) | {"subscribed_us": 1})
    lost = list_losses(changed)
    assert bool(lost) == is_lost
    assert all('it was "sluicegate-board-1"' in each for each in lost)


def test_a_start_plays_the_record_back_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be lost is seen in the tables; another device, a smaller outbox or fewer dead letters need it played."""
    config = configured(tmp_path, window=windows())
    with State(config) as state:
        pipeline = Agent(config, state).pipeline
        for i in range(12):
            pipeline.accept(sequenced(i, 1))
            pipeline.accept(Message(SEQUENCED, b"nonsense", 2, 1))
            pipeline.commit()
    played: list[Body] = []
    play = Player.play
    monkeypatch.setattr(Player, "play", lambda player, body: (played.append(body), play(player, body)))
    dropped = configured(tmp_path, window=windows(day=None))
    assert (
        "window day of flow, level" in list_losses(dropped)[0] or "window day of level, flow" in list_losses(dropped)[0]
    )
    refuse_losses(config, accept=False)
    assert not played
    for changed, told in (
        ({"device": {"id": "another"}, "sync": GATEWAY}, "buckets of that device wait"),
        ({"outbox": {"rows": 4, "chunk_buckets": 2}}, "buckets wait and would be merged"),
        ({"dead_letters": {"rows": 10}}, ""),
        ({"dead_letters": {"rows": 3}}, "are kept, the oldest would be dropped"),
    ):
        lost = list_losses(configured(tmp_path, window=windows(), **changed))
        assert told in "".join(lost)
        assert bool(lost) is bool(told)
    before = len(played)
    with State(config) as state:
        assert state.streams["level"].accepted == 12
    assert 9 < len(played) - before == before / 3


def without(topic: str) -> list[dict[str, Any]]:
    """The sources but one."""
    kept = [
        {"topic": SEQUENCED, "streams": {"level": "level", "flow": "flow"}, "time": "t", "time_format": "us"},
        {"topic": TIMED, "streams": {"heat": "heat"}, "time": "t", "time_format": "us"},
        {"topic": "plant/bare", "streams": {"door": ""}, "format": "number"},
    ]
    kept[0] |= {"sequence": "n", "epoch": "boot"}
    return [source for source in kept if source["topic"] != topic]


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"window": [*windows(), {"name": "new", "policy": {"count": 3}, "buckets": 0}]},
        {"window": windows(day={"name": "whole_day", "was": "day"})},
        {"window": windows(day={"was": "before_that"})},
        {"outbox": {"rows": 5000, "bytes": "2MiB", "chunk_buckets": 4}},
        {"bucket": {"readings": 2}},
        {"identity": {"horizon": 9000}},
        {"source": [*without(""), {"topic": "plant/new", "streams": {"new": "x"}}]},
        {"mqtt": {"receive_maximum": 10}},
        {"device": {"id": "board-2"}},
    ],
)
def test_what_loses_nothing_starts_unasked(tmp_path: Path, tables: dict[str, Any]) -> None:
    """An upgrade, a new window, stream or source, a larger budget, a renamed window: no list, and no refusal."""
    used(tmp_path)
    config = configured(tmp_path, **{"window": windows()} | tables)
    assert list_losses(config) == []
    refuse_losses(config, accept=False)


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"window": windows(day=None)}, ["window day of level, flow, heat, door: no longer in the configuration"]),
        ({"window": windows(day={"name": "renamed"})}, ["window day of level, flow, heat, door: no longer in"]),
        ({"window": windows(day={"buckets": 9})}, ["window day of level, flow, heat, door: changed (buckets: 8 → 9)"]),
        ({"window": windows(day={"streams": ["heat"]})}, ["window day of level, flow, door: no longer in"]),
        ({"window": windows(day={"name": "other", "was": "day", "buckets": 9})}, ["window day of level"]),
        ({"outbox": {"rows": 20}}, ["outbox.rows = 20: 60 buckets wait"]),
        ({"outbox": {"bytes": "12KiB"}}, ["outbox.bytes = 12288:"]),
        ({"identity": {"horizon": 50}}, ["identity.horizon = 50: it was 4096"]),
        (
            {"device": {"id": "board-2"}, "sync": GATEWAY},
            ['device.id = "board-2": it was "board-1", and buckets of that device wait'],
        ),
        (
            {"source": without(TIMED)},
            [
                "source plant/timed: no longer in the configuration: the agent unsubscribes",
                "window day of heat: no source",
            ],
        ),
        (
            {"source": [without("")[0] | {"sequence": None, "epoch": None}, *without("")[1:]]},
            ["source plant/sequenced: its messages were known again by sequence numbers, now by their time"],
        ),
    ],
)
def test_what_a_start_would_lose_is_listed(tmp_path: Path, tables: dict[str, Any], told: list[str]) -> None:
    """Each line names the key and what goes; `run` refuses with exit code 2, unless it is accepted."""
    used(tmp_path)
    tables = {"window": windows()} | tables
    if "source" in tables:
        tables["source"] = [{k: v for k, v in source.items() if v is not None} for source in tables["source"]]
    config = configured(tmp_path, **tables)
    found = list_losses(config)
    for line in told:
        assert any(line in each for each in found), found
    with pytest.raises(WouldLose, match="--accept") as refused:
        refuse_losses(config, accept=False)
    assert refused.value.exit_code == 2
    refuse_losses(config, accept=True)


def test_what_a_kill_left_beyond_the_same_outbox_is_no_loss(tmp_path: Path) -> None:
    """The next commit would have merged it anyway: an agent that was killed starts again with what it had."""
    used(tmp_path)
    config = configured(tmp_path, window=windows(), outbox={"rows": 20})
    assert list_losses(config) != []
    with closing(sqlite3.connect(tmp_path / "state" / "state.db")) as connection, connection:
        (before,) = connection.execute("SELECT value FROM meta WHERE key = 'asked'").fetchone()
        asked = json.loads(before) | {"outbox": [20, int(config.outbox.bytes)]}
        connection.execute("UPDATE meta SET value = ? WHERE key = 'asked'", (json.dumps(asked),))
    assert list_losses(config) == []


def test_a_start_after_acceptance_asks_no_more(tmp_path: Path) -> None:
    """What was accepted is gone after one start: the next one has nothing to lose."""
    used(tmp_path)
    config = configured(tmp_path, window=windows(day=None), source=without(TIMED))
    assert list_losses(config)
    with State(config) as state:
        agent = Agent(config, state)
        assert agent.link.retired == (TIMED,)
    assert list_losses(config) == []
    with State(config) as state:
        agent = Agent(config, state)
        assert agent.link.retired == (TIMED,), "the broker has not confirmed it yet"
        agent.link.retired = ()
        agent._note_subscriptions()
    with State(config) as state:
        assert Agent(config, state).link.retired == ()


def test_a_renamed_window_keeps_its_history(tmp_path: Path) -> None:
    """`was` names what it was: the answers go on to the bit, and the old name may stay in the file for ever."""
    config = used(tmp_path)
    with State(config) as state:
        answers = Pipeline(config, state).answers("heat", "day")
    renamed = configured(tmp_path, window=windows(day={"name": "whole_day", "was": "day"}))
    for _ in range(2):
        with State(renamed) as state:
            found = Pipeline(renamed, state).answers("heat", "whole_day")
            assert [(a.aggregate, a.value, a.low, a.high) for a in found] == [
                (a.aggregate, a.value, a.low, a.high) for a in answers
            ]
            assert state.counters["windows.begun_anew"] == 0


def test_an_old_name_that_another_window_has_is_refused(tmp_path: Path) -> None:
    """`was` must be free: a swap of two names would not say whose history is whose."""
    with pytest.raises(ConfigError, match=r"window\[1\]\.was"):
        configured(tmp_path, window=windows(day={"was": "last"}))


def test_check_compares_with_the_state(tmp_path: Path) -> None:
    """`sluicegate check` says it before the start does, changes nothing, and ends with 1."""
    file = tmp_path / "agent.toml"
    text = f"""
[device]
id = "board-1"
[state]
path = "state"
[guard]
future = "0"
[[source]]
topic = "{TIMED}"
time = "t"
time_format = "us"
streams = {{ heat = "heat" }}
"""
    window = '[[window]]\nname = "day"\npolicy = { time = "24h" }\n'
    file.write_text(text + window)
    from sluicegate_agent.config import load

    config = load(file)
    fresh = CliRunner().invoke(check, [str(file)])
    assert (fresh.exit_code, (tmp_path / "state").exists()) == (0, False)
    with State(config) as state:
        pipeline = Pipeline(config, state)
        pipeline.accept(timed(1, 1))
        pipeline.commit()
    assert CliRunner().invoke(check, [str(file)]).exit_code == 0
    file.write_text(text)
    told = CliRunner().invoke(check, [str(file)])
    assert told.exit_code == 1
    assert "window day of heat: no longer in the configuration" in told.output
    assert "--accept" in told.output


def test_a_window_that_begins_later_than_its_stream_says_so(tmp_path: Path) -> None:
    """What it would hold of before is in none of its answers: none is exact until that would have left it."""
    used(tmp_path)
    added = {"name": "hours", "policy": {"time": "3h"}, "aggregate": ["count", "max"], "buckets": 8}
    config = configured(tmp_path, window=[*windows(day={"policy": {"time": "2h"}}), added])
    exact: dict[str, list[bool]] = {}
    for minute in (61, 178, 240):
        with State(config) as state:
            pipeline = Pipeline(config, state)
            pipeline.accept(timed(minute, 1, value=minute))
            pipeline.commit()
            for name in ("day", "last", "hours"):
                exact.setdefault(name, []).append(pipeline.answers("heat", name)[-1].exact)
    assert exact == {"day": [False, False, True], "last": [True, True, True], "hours": [False, False, True]}


def connected(config: Config) -> None:
    """Run until the broker has confirmed all that was asked of it."""
    with State(config) as state:
        agent = Agent(config, state)
        until(lambda: agent.turn() or agent.link.state == "connected", told=agent.link.status)
        until(lambda: agent.turn() or not agent._asked["retired"], told=agent.link.status)
        agent.finish()


def test_a_removed_source_is_unsubscribed_from(tmp_path: Path) -> None:
    """A real broker: what is published there after the start never comes, and the state forgets the topic."""
    mqtt = pytest.importorskip("paho.mqtt.publish")
    with mosquitto(tmp_path, free_port()) as port:
        tables: dict[str, Any] = {"mqtt": {"port": port, "receive_maximum": 40}, "window": []}
        for sources in (without(""), without(TIMED)):
            config = configured(tmp_path, source=sources, **tables)
            connected(config)
        mqtt.single(TIMED, timed(1, 1).payload, qos=1, port=port)
        mqtt.single(SEQUENCED, sequenced(1, 1).payload, qos=1, port=port)
        with State(config) as state:
            agent = Agent(config, state)
            assert agent.link.retired == ()
            until(lambda: agent.turn() or state.counters["accepted"] == 2, told=agent.link.status)
            assert state.counters["refused.unknown_topic"] == 0
            agent.finish()
