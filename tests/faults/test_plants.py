"""Whatever is broken on purpose, the campaign finds: each planted defect shows in the columns where it belongs."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

pytest.importorskip("paho.mqtt.client", reason="the campaign needs the extra `agent`")
from campaign import pool, storage
from campaign.plan import FAMILIES, Plan
from campaign.plants import PLANTS

pytestmark = [pytest.mark.faults, pytest.mark.slow]
RUNS, JOBS = 4, 6
#: Of such runs each bucket is sent soon, and no record of readings says again what a deleted document held.
OFTEN_SENT = {"fold": "0s", "sync_every": "50ms", "bucket": 1}


def candidates(name: str) -> list[Plan]:
    """Runs that can show the defect: few events and nothing odd beside it, on brokers that start at once."""
    plant = PLANTS[name]

    def fits(plan: Plan) -> bool:
        return (
            plan.kind != "rabbitmq"
            and plan.way == "mqtt"
            and plan.identity not in ("bare", "constant")
            and plant.identity in (None, plan.identity)
            and plan.families == ((plant.family,) if plant.family else ())
            and (name != "gap left out" or plan.habits.skip > 0)
            and (name != "settle before put" or OFTEN_SENT.items() <= plan.settings.items())
            and (name != "answer of the uncommitted" or plan.settings["every"] in ("200ms", "1s"))
        )

    return [pointed(replace(plan, plant=name)) for plan in pool.plans(1, RUNS, fits)]


def pointed(plan: Plan) -> Plan:
    """The run, killed mostly where its defect shows, and rebooting often where epochs are what it is about."""
    habits = replace(plan.habits, reboot=0.2) if plan.identity == "epochs" else plan.habits
    step = PLANTS[plan.plant].step
    if plan.families:
        harm = [event for event in plan.events if event["do"] in FAMILIES[plan.families[0]]]
        often = [{**event, "seconds": 0.4, "kill": True} for event in harm * 6][:6]
        return replace(plan, habits=habits, events=[*plan.events[:4], *often])
    if not step:
        return replace(plan, habits=habits)
    kept = [event for event in plan.events if event["do"] not in ("kill", "kill_at", "restart")]
    kills = [{"do": "kill_at", "at": f"{number % 3 + 1}@{step}", "after": 0.02} for number in range(8)]
    events = [event for both in zip(kills, kept, strict=False) for event in both]
    return replace(plan, habits=habits, events=events)


def test_every_planted_defect_is_found() -> None:
    """Within a few short runs at least one shows it where it belongs; what was found is not run again."""
    left = {name: candidates(name) for name in PLANTS if name != "fsync left out" or storage.can_cut_power()}
    for at in range(RUNS):
        some = [plans[at] for plans in left.values() if at < len(plans)]
        with closing(pool.campaign(some, JOBS)) as outcomes:
            for outcome in outcomes if some else ():
                if any(getattr(outcome.verdict, column) for column in PLANTS[outcome.plan.plant].shows):
                    del left[outcome.plan.plant]
    assert not [f"{name}: {PLANTS[name].says}" for name in left]
