"""A flood of topics that nobody expected: what is kept of them is bounded by `keys.most`, and each is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from plants import NOON, Plant, configured

from sluicegate_agent.status import gather, show

FLOOD = 250
NUMBER: dict[str, Any] = {"topic": "plant/+", "format": "number", "streams": {"temp": ""}}
NUMBERED: dict[str, Any] = {
    "topic": "plant/+", "streams": {"temp": "v"}, "sequence": "n", "time": "t", "time_format": "us",
}  # fmt: skip


def told(source: dict[str, Any], number: int) -> Any:
    """One message of a source: a number, an object, or what is neither."""
    return {"n": 1, "t": NOON, "v": number} if "sequence" in source else number if number % 3 else "no number"


@pytest.mark.parametrize("evict", ["refuse", "lru"])
@pytest.mark.parametrize("source", [NUMBER, NUMBERED], ids=["bare", "numbered"])
def test_a_flood_of_topics_leaves_nothing_behind(tmp_path: Path, source: dict[str, Any], evict: str) -> None:
    """Ten keys are let in: of hundreds of topics as many stay in memory as keys and a batch, and twice as many rows."""
    config = configured(tmp_path, source | {"keys": {"most": 10, "evict": evict}})
    plant = Plant(config)
    for number in range(FLOOD):
        plant.say(f"plant/{number}", told(source, number))
        if number % 40 == 39:
            plant.commit()
            plant.pipeline.confirmed(plant.pipeline.generation)
    identities = plant.pipeline.identities
    kept = max(len(identities.bare.topics), len(identities.sequences), len(plant.pipeline.entry.senders))
    assert kept <= 10 + config.mqtt.receive_maximum
    if evict == "refuse":
        assert plant.count("refused.key") + plant.count("refused.unreadable") == FLOOD - 10
    rows = [plant.state.store.connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in TABLES]  # noqa: S608
    assert max(rows) <= 2 * 10 + config.mqtt.receive_maximum
    plant.state.close()


TABLES = ("sequence", "retained", "departed", "window")


def test_who_is_not_let_in_is_told_in_the_status(tmp_path: Path) -> None:
    """`status` has how full a source is, which keys there was no room for and how often they came."""
    config = configured(tmp_path, NUMBERED | {"keys": {"most": 1}})
    plant = Plant(config)
    for machine in ("a", "b", "b"):
        plant.say(f"plant/{machine}", told(NUMBERED, 1))
    plant.commit()
    keys = plant.pipeline.entry.members.status()
    plant.state.close()
    text = show(gather(config) | {"process": {"keys": keys}})
    assert "keys of plant/+: 1 of at most 1" in text
    assert "b (2 times)" in text
    assert "key b: there are 1 keys (keys.most), and keys.evict is refuse" in text
