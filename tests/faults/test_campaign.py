"""Some of the campaign at each `make test`: 150 kills and 150 cuts over every broker here; nightly twice that."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("paho.mqtt.client", reason="the campaign needs the extra `agent`")
from campaign import pool
from campaign.plan import BROKERS, IDENTITIES, draw
from campaign.sensor import Habits, messages
from campaign.table import table, told
from thorough import number

SEED, RUNS, JOBS = 20, 24, 6


@pytest.mark.faults
@pytest.mark.slow
def test_kills_and_cuts_lose_nothing_and_count_nothing_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """Every promise is kept in each of a dozen runs, two dozen nightly, drawn as `make faults` draws its own."""
    outcomes = list(pool.campaign(pool.plans(SEED, RUNS, lambda plan: True)[:: number(1, 2)], JOBS))
    with capsys.disabled():
        print(f"\n{table(outcomes)}")
    failed = [told(outcome) for outcome in outcomes if outcome.verdict.failed]
    assert not failed, "\n".join(failed)
    assert sum(outcome.kills for outcome in outcomes) >= number(300, 150)
    assert sum(outcome.cuts for outcome in outcomes) >= number(300, 150)


def test_a_run_is_drawn_alike_each_time() -> None:
    """The command that repeats a run repeats its plan."""
    assert draw(7, 31) == draw(7, 31)
    assert draw(7, 31) != draw(7, 32)


def test_every_combination_is_drawn() -> None:
    """Each broker meets each identity, and each family of faults is there, within a few hundred runs."""
    drawn = [draw(1, index) for index in range(400)]
    assert {(plan.broker, plan.identity) for plan in drawn} == {(b, i) for b in BROKERS for i in IDENTITIES}
    assert {event["do"] for plan in drawn for event in plan.events} >= {
        "kill", "kill_at", "restart", "cut", "stall", "half_open", "broker_killed_saved", "broker_killed_bare",
        "disk_full", "read_only", "power_cut", "clock", "share_hangs", "share_away", "gateway_slow", "gateway_lies",
        "session_lost", "reload", "standby",
    }  # fmt: skip


@pytest.mark.parametrize("identity", [*IDENTITIES])
def test_a_sensor_says_each_value_once(identity: str) -> None:
    """Values are unique but where they are constants, and what repeats is the same message."""
    made = list(messages(identity, 300, Habits(skip=0.1, repeat=0.1, shuffle=0.1, reboot=0.02), random.Random(1)))
    once = list({id(message): message for message in made}.values())
    assert len(once) < len(made)
    if identity != "constant":
        assert len({message.value for message in once}) == len(once)


def test_every_form_and_way_is_drawn() -> None:
    """As JSON, MessagePack, CBOR, a list of items, line protocol, Sparkplug B; over MQTT, by POST, in a file."""
    drawn = [draw(1, index) for index in range(400)]
    assert {plan.form for plan in drawn} == {"json", "msgpack", "cbor", "items", "line", "sparkplug"}
    assert {plan.way for plan in drawn} == {"mqtt", "shared", "sparkplug", "http", "tail"}
    assert {plan.kind for plan in drawn if plan.way == "sparkplug"} == {"mosquitto", "rabbitmq", "builtin"}
    assert {plan.form for plan in drawn if plan.identity in ("bare", "constant")} == {"json"}
