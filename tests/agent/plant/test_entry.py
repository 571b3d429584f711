"""Streams that come as they are heard of: by topic and by key, each counted like one of the configuration."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from plants import NOON, SECOND, Plant, configured, documents

from sluicegate.format import chunk as chunks
from sluicegate_agent import faults
from sluicegate_agent.sync.contract import Document
from sluicegate_agent.sync.splitting import halves

NUMBERED: dict[str, Any] = {
    "topic": "plant/{site}/{machine}/+",
    "streams": {"temp": "temp"},
    "time": "t",
    "time_format": "us",
    "sequence": "n",
}
KEYED: dict[str, Any] = {"topic": "gateway/up", "key": "sensor", "streams": {"temp": "temp"}, "sequence": "n"}
BARE: dict[str, Any] = {"topic": "meter/{id}", "format": "number", "streams": {"power": ""}}


def numbered(number: int, value: float) -> dict[str, Any]:
    """A message with a number and a time that follows from it."""
    return {"n": number, "t": NOON + number * SECOND, "temp": value}


def test_each_topic_has_its_own_stream_and_numbers(tmp_path: Path) -> None:
    """Two machines that count alike are two senders: nothing of one is taken for a repeat of the other's."""
    plant = Plant(configured(tmp_path, NUMBERED))
    for number in range(10):
        for machine in ("press", "saw"):
            plant.say(f"plant/north/{machine}/state", numbered(number, number))
            plant.say(f"plant/north/{machine}/state", numbered(number, number), dup=True)
    plant.commit()
    assert (plant.count("accepted"), plant.count("duplicates")) == (20, 20)
    found = plant.hand_over(tmp_path)
    assert found == {("gateway", f"temp/north/{m}/state"): [float(n) for n in range(10)] for m in ("press", "saw")}


def test_what_came_before_a_restart_is_known_after_it(tmp_path: Path) -> None:
    """A topic's stream, windows and numbers go on after a restart, and its losses are told once."""
    plant = Plant(configured(tmp_path, NUMBERED))
    for number in (0, 1, 2, 5):
        plant.say("plant/north/press/state", numbered(number, number))
    plant.commit()
    plant.restart()
    for number in (5, 6, 9):
        plant.say("plant/north/press/state", numbered(number, number))
    plant.commit()
    assert plant.count("duplicates") == 1
    name = "temp/north/press/state"
    assert plant.pipeline.answers(name, "last")[0].value == 1 + 2 + 5 + 6 + 9
    assert plant.hand_over(tmp_path)["gateway", name] == [0, 1, 2, 5, 6, 9]
    assert sum(bucket.gap for chunk in documents(tmp_path) for bucket in chunk.buckets) == 4


def test_a_commit_that_failed_leaves_no_half_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new topic whose first commit is rolled back is there whole after the next one, or comes anew after a crash."""
    plant = Plant(configured(tmp_path, NUMBERED))
    plant.say("plant/north/press/state", numbered(0, 1.0))

    def full(step: str) -> None:
        if step != "commit: begin":
            raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(faults, "step", full)
        with pytest.raises(sqlite3.OperationalError):
            plant.commit()
    assert not plant.state.store.connection.execute("SELECT 1 FROM stream").fetchone()
    plant.commit()
    plant.restart()
    plant.say("plant/north/press/state", numbered(0, 1.0), dup=True)
    plant.say("plant/north/press/state", numbered(1, 2.0))
    assert plant.hand_over(tmp_path) == {("gateway", "temp/north/press/state"): [1.0, 2.0]}


def test_a_key_of_the_payload_has_numbers_of_its_own(tmp_path: Path) -> None:
    """Sensors behind one topic that count alike are told apart by their key; two of one key are one sender."""
    plant = Plant(configured(tmp_path, KEYED))
    for number in range(6):
        for sensor in ("a", 7):
            plant.say("gateway/up", {"n": number, "sensor": sensor, "temp": number})
            plant.say("gateway/up", {"n": number, "sensor": sensor, "temp": number}, dup=True)
    found = plant.hand_over(tmp_path)
    assert found == {("gateway", f"temp/{key}"): [0.0, 1, 2, 3, 4, 5] for key in ("a", "7")}


def test_an_array_has_a_key_for_each_item(tmp_path: Path) -> None:
    """Each item of a list goes to the stream of its own key; one without a key is refused with its place."""
    source = {"topic": "batch", "format": "array", "key": "id", "streams": {"level": "v"}}
    plant = Plant(configured(tmp_path, source))
    plant.say("batch", [{"id": "a", "v": 1}, {"id": "b", "v": 2}, {"v": 3}, {"id": "a", "v": 4}])
    found = plant.hand_over(tmp_path)
    assert found == {("gateway", "level/a"): [1.0, 4.0], ("gateway", "level/b"): [2.0]}
    assert plant.count("refused.value") == 1


def test_bare_numbers_of_many_topics_are_known_again(tmp_path: Path) -> None:
    """What a broker sends again after a cut counts once, for each topic of a wildcard as for a single one."""
    plant = Plant(configured(tmp_path, BARE))
    plant.pipeline.connected(session_present=False)
    for value in range(30):
        plant.say(f"meter/{value % 3}", value)
        if value == 19:
            plant.commit()
    plant.pipeline.connected(session_present=True)
    plant.packet = 20  # the broker sends again what it never saw acknowledged, and goes on
    for value in range(20, 32):
        plant.say(f"meter/{value % 3}", value, dup=value < 30)
    found = plant.hand_over(tmp_path)
    assert found == {("gateway", f"power/{i}"): [float(v) for v in range(32) if v % 3 == i] for i in range(3)}


def test_a_level_can_name_the_stream(tmp_path: Path) -> None:
    """`{metric}` as a stream's name makes one of each metric that is heard of."""
    source = {"topic": "line/{machine}/{metric}", "format": "number", "streams": {"{metric}": ""}}
    plant = Plant(configured(tmp_path, source))
    for metric in ("heat", "speed"):
        plant.say(f"line/saw/{metric}", 1)
    assert set(plant.hand_over(tmp_path)) == {("gateway", "heat/saw"), ("gateway", "speed/saw")}


@pytest.mark.parametrize(
    "topic", ["plant/a::b/press/x", "plant/a\x07/press/x", "plant/{a}/press/x", "plant/" + "x" * 70]
)
def test_what_can_be_no_name_is_refused_and_counted(tmp_path: Path, topic: str) -> None:
    """A level that cannot be part of a key costs its message alone: counted, with a reason, and acknowledged."""
    plant = Plant(configured(tmp_path, NUMBERED | {"topic": "plant/#", "sequence": "n"}))
    plant.say(topic, numbered(0, 1.0))
    assert plant.commit() == [1]
    assert (plant.count("refused.key"), plant.count("accepted")) == (1, 0)


def test_only_keys_that_are_allowed_get_in(tmp_path: Path) -> None:
    """keys.allow is a regular expression for the whole key."""
    plant = Plant(configured(tmp_path, KEYED | {"keys": {"allow": "[a-z]+"}}))
    for sensor in ("ab", "a1", "../etc"):
        plant.say("gateway/up", {"n": 0, "sensor": sensor, "temp": 1})
    assert set(plant.hand_over(tmp_path)) == {("gateway", "temp/ab")}
    assert plant.count("refused.key") == 2


def test_one_agent_speaks_for_several_devices(tmp_path: Path) -> None:
    """`device = "{machine}"`: each has its own documents in its own folder, and only those that are let in."""
    source = NUMBERED | {"device": "{machine}", "devices": "press-[0-9]+", "topic": "plant/{machine}"}
    plant = Plant(configured(tmp_path, source))
    for machine in ("press-1", "press-2", "gateway", "saw-1"):
        plant.say(f"plant/{machine}", numbered(0, 1.0))
    assert set(plant.hand_over(tmp_path)) == {("press-1", "temp"), ("press-2", "temp")}
    assert sorted(path.name for path in (tmp_path / "chunks").iterdir() if path.is_dir()) == ["press-1", "press-2"]
    assert plant.count("refused.key") == 2


def test_tags_travel_with_the_chunks_and_a_change_begins_another(tmp_path: Path) -> None:
    """Fixed ones, one of the topic and one of the payload; ordinals go on where a tag changes, and windows too."""
    source = NUMBERED | {
        "topic": "plant/{site}/{machine}",
        "key": "{machine}",
        "tags": {"owner": "us", "site": "{site}", "model": "{payload.meta.model}"},
    }
    source.pop("sequence")
    plant = Plant(configured(tmp_path, source))
    for number in range(12):
        model = {"meta": {"model": "A" if number < 6 else "B"}} if number != 8 else {}
        plant.say("plant/north/press", numbered(number, number) | model)
        if number == 8:
            plant.commit()
            plant.restart()
    name = "temp/press"
    plant.commit()
    assert plant.pipeline.answers(name, "last")[0].value == 7 + 8 + 9 + 10 + 11
    assert plant.hand_over(tmp_path) == {("gateway", name): [float(number) for number in range(12)]}
    told = [(chunk.tags or {}, sum(bucket.n for bucket in chunk.buckets)) for chunk in documents(tmp_path)]
    both = {"owner": "us", "site": "north"}
    assert {each["model"] for each, _ in told} == {"A", "B"}
    assert all(tags == both | {"model": tags["model"]} for tags, _ in told)
    assert sum(n for tags, n in told if tags["model"] == "A") == 6
    assert len({chunk.incarnation for chunk in documents(tmp_path)}) == 1


def test_a_document_that_is_halved_keeps_its_tags(tmp_path: Path) -> None:
    """A target that takes only less at once gets the tags with each part."""
    plant = Plant(configured(tmp_path, NUMBERED | {"tags": {"owner": "us"}}))
    for number in range(16):
        plant.say("plant/north/press/state", numbered(number, number))
    plant.hand_over(tmp_path)
    (whole,) = (path.read_bytes() for path in (tmp_path / "chunks").rglob("*.json"))
    parts = halves(Document("whole", whole))
    assert parts is not None
    assert [chunks.decode(part.data).tags for part in parts] == [{"owner": "us"}] * 2
