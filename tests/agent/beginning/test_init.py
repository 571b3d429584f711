"""A first configuration: what was heard becomes sources that pass `check` and count what is published."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto
from paho.mqtt.enums import CallbackAPIVersion

from sluicegate_agent.beginning.listen import SAMPLES, TOPICS, Heard
from sluicegate_agent.beginning.shapes import shape_of
from sluicegate_agent.beginning.writing import Answers, configuration
from sluicegate_agent.commands.init import init
from sluicegate_agent.config import load
from sluicegate_agent.messages import Message
from sluicegate_agent.payloads import decode
from sluicegate_agent.plan import plan
from sluicegate_agent.routing.routes import Routes
from sluicegate_demo.ports import free_port

ANSWERS = Answers("d", "localhost", None, "", "", "state")
STATE = {"ts": 1_700_000_000_123, "temp": 20.5, "load": {"kW": 3}, "on": True}
HEARD: dict[str, list[Any]] = {
    "plant/north/press-1/state": [STATE | {"seq": n} for n in (4, 5)],
    "plant/north/press-2/state": [STATE | {"seq": n} for n in (7, 8)],
    "plant/south/press-9/state": [STATE | {"seq": n} for n in (7, 8)],
    "house/kitchen/temperature": [21.5],
    "house/cellar/temperature": [11],
    "house/roof/temperature": [31],
    "house/door": ["open"],
    "meter": [{"time": "2024-01-01T00:00:00Z", "W": 5}],
    "odd name/\u00e4 \u00fc": [{"\u00e4 b": 1, "a.b": 2, 'q"uote': 3}],
}  # fmt: skip


def payloads(said: list[Any]) -> list[bytes]:
    """As they are published."""
    return [each.encode() if isinstance(each, str) else json.dumps(each).encode() for each in said]


def test_what_was_heard_is_read_by_what_is_written(tmp_path: Path) -> None:
    """Every number of every topic becomes a reading, with its time and number where it has any."""
    file = tmp_path / "agent.toml"
    shapes = {topic: shape_of(topic, payloads(said)) for topic, said in HEARD.items()}
    file.write_text(configuration(ANSWERS, shapes, file), encoding="utf-8")
    config = load(file)
    assert 1.5 * plan(config).memory < config.state.memory  # one more window or alert is not refused at once
    routes, found = Routes(config), {}
    for topic, said in HEARD.items():
        source = routes.find(topic)
        if source is not None:
            decoded = decode(source, Message(topic, payloads(said)[0], 1, 1), 77)
            found[topic] = [value for _, _, value in decoded.readings], decoded.sequence, decoded.time_us
    assert found["plant/north/press-1/state"] == ([20.5, 3.0], 4, 1_700_000_000_123_000)
    assert found["plant/south/press-9/state"] == ([20.5, 3.0], 7, 1_700_000_000_123_000)
    assert found["house/roof/temperature"] == ([31.0], None, 77)
    assert found["meter"] == ([5.0], None, 1_704_067_200_000_000)
    assert found["odd name/\u00e4 \u00fc"][0] == [1.0, 3.0]
    assert "house/door" not in found
    topics = {source.subscribed for source in config.sources}
    assert topics >= {"house/{which}/temperature", "plant/{which1}/{which2}/state"}


DOOR = {"battery": 97, "contact": True, "temperature": 21.5}


@pytest.mark.parametrize(
    ("heard", "topics", "streams"),
    [
        (["fjord/oslo/pump/1", "fjord/bergen/pump/2"], ["fjord/{which1}/pump/{which2}"], ["battery", "temperature"]),
        (
            ["zigbee/oslo", "zigbee/bergen", "zigbee/bridge"],
            ["zigbee/oslo", "zigbee/bergen"],
            ["oslo_battery", "oslo_temperature", "bergen_battery", "bergen_temperature"],
        ),
        (["oslo/door", "bergen/door"], ["oslo/door", "bergen/door"], None),
    ],
)
def test_topics_of_one_shape_are_one_source(
    heard: list[str], topics: list[str], streams: list[str] | None, tmp_path: Path
) -> None:
    """Under one root; not where another topic would be among them. None of two equal streams has the shorter name."""
    said = {topic: [{"state": "on"}] if topic.endswith("bridge") else [DOOR] for topic in heard}
    shapes = {topic: shape_of(topic, payloads(each)) for topic, each in said.items()}
    (tmp_path / "agent.toml").write_text(configuration(ANSWERS, shapes, tmp_path / "agent.toml"))
    config = load(tmp_path / "agent.toml")
    assert [source.subscribed for source in config.sources] == topics
    assert streams is None or [*config.names] == streams


@pytest.mark.parametrize(
    ("said", "time", "sequence"),
    [
        ([{"t": 1_700_000_000, "n": 1, "x": 1}, {"t": 1_700_000_001, "n": 2, "x": 1}], ("t", "s"), "n"),
        ([{"t": 20.5, "n": 1, "x": 1}, {"t": 21, "n": 3, "x": 1}], ("", ""), ""),
        ([{"timestamp": 1_700_000_000_000_000, "count": 1}], ("timestamp", "us"), ""),
        ([{"date": "2024-01-01", "x": 1}], ("", ""), ""),
    ],
)
def test_a_time_and_a_number_are_told_by_name_and_values(said: Any, time: tuple[str, str], sequence: str) -> None:
    """A temperature called t is none, and what does not grow by one does not number messages."""
    shape = shape_of("w", payloads(said))
    assert ((shape.time, shape.time_format), shape.sequence) == (time, sequence)


def test_what_is_heard_is_bounded() -> None:
    """However many topics there are, and however long payloads are."""
    heard = Heard()
    for number in range(TOPICS + 50):
        for _ in range(SAMPLES + 3):
            heard.add(f"t/{number}", b"1")
    heard.add("t/0", b"x" * 100_000)
    assert (len(heard.payloads), heard.beyond) == (TOPICS, 50 * (SAMPLES + 3))
    assert all(len(each) == SAMPLES for each in heard.payloads.values())


def test_a_broker_is_listened_to(tmp_path: Path) -> None:
    """Five answers by flags, half a second of Mosquitto: the file passes `check`, and is not written over."""
    with mosquitto(tmp_path, free_port()) as port:
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", port)
        client.loop_start()
        stop = threading.Event()

        def publish() -> None:
            while not stop.wait(0.05):
                for topic, said in HEARD.items():
                    client.publish(topic, payloads(said)[0])

        thread = threading.Thread(target=publish)
        thread.start()
        file = tmp_path / "agent.toml"
        flags = ["--device", "press", "--broker", f"127.0.0.1:{port}", "--state", "state", "--seconds", "0.6", "--yes"]
        try:
            done = CliRunner().invoke(init, [str(file), *flags])
            again = CliRunner().invoke(init, [str(file), *flags])
            silent = CliRunner().invoke(init, [str(tmp_path / "b.toml"), *flags, "--topic", "nobody/#"])
        finally:
            stop.set()
            thread.join()
            client.loop_stop()
    assert done.exit_code == 0, done.output
    assert "house/roof/temperature" in done.output
    assert "31.0" in done.output
    assert {source.topic for source in load(file).sources} >= {"meter", "house/{which}/temperature"}
    assert "is there already" in str(again.exception)
    assert "nothing that could be a reading" in str(silent.exception)


def test_questions_are_asked_where_nothing_is_given(tmp_path: Path) -> None:
    """Five of them; a broker that is not there is said."""
    typed = f"press\n127.0.0.1:{free_port()}\n\n#\nstate\n"
    done = CliRunner().invoke(init, [str(tmp_path / "agent.toml"), "--seconds", "0.5"], input=typed)
    assert "5/5" in done.output
    assert str(done.exception).endswith("are mqtt.host and mqtt.port right?")
    alone = CliRunner().invoke(init, [str(tmp_path / "agent.toml"), "--yes", "--broker", "1883"])
    assert "--broker 1883: expected HOST or HOST:PORT" in str(alone.exception)
