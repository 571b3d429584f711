"""The link gives every message once to its caller, bounded in size, and acknowledges only what it is told to."""

from __future__ import annotations

import contextlib
import random
import select
import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
import paho.mqtt.client as mqtt
from brokers import mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from sluicegate_agent.config import Config, build
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.link import Client, Link, parse_publish
from sluicegate_agent.messages import Message
from sluicegate_demo.ports import free_port


class Counts(Counter[str]):
    """The state's counters, as far as the link needs them."""

    def add(self, name: str, amount: int = 1) -> None:
        """Count."""
        self[name] += amount


def config(port: int, **mqtt_table: Any) -> Config:
    """A configuration for a broker on this machine with the topics `w` and `v`."""
    raw = {
        "device": {"id": "d"},
        "state": {"path": "s"},
        "mqtt": {"host": "127.0.0.1", "port": port} | mqtt_table,
        "limits": {"payload": 1000},
        "source": [{"topic": "w", "streams": {"temp": "t"}}, {"topic": "v", "streams": {"hum": "h"}}],
    }
    return build(raw, Path("/tmp/agent.toml"))  # noqa: S108  only relative paths are taken from it


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[int]:
    """A Mosquitto for one test."""
    with mosquitto(tmp_path, free_port()) as port:
        yield port


def gather(link: Link, count: int, most: int = 100) -> list[Message]:
    """Poll until so many messages came."""
    got: list[Message] = []
    until(lambda: got.extend(link.poll(0.05, most)) or len(got) >= count, told=lambda: f"{len(got)} of {count} came")
    return got


def subscribed(link: Link) -> None:
    """Poll until the link is connected and has subscribed."""
    until(lambda: link.poll(0.05, 10) == [] and link.state == "connected", told=lambda: link.state)


def send(port: int, topic: str, *payloads: bytes, qos: int = 1) -> None:
    """Publish from another client and wait for the broker to have them."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for info in [client.publish(topic, payload, qos) for payload in payloads]:
        info.wait_for_publish(120)
    client.disconnect()
    client.loop_stop()


@pytest.mark.parametrize("version", [5, "3.1.1"])
def test_what_is_not_acknowledged_comes_again(broker: int, version: Any) -> None:
    """After a lost connection only the acknowledged messages are gone from the broker; the session was kept."""
    counts = Counts()
    link = Link(config(broker, version=version), counts)
    subscribed(link)
    send(broker, "w", *(b"%d" % i for i in range(10)))
    first = gather(link, 10)
    assert [message.payload for message in first] == [b"%d" % i for i in range(10)]
    link.ack([message.packet_id for message in first[:4]])
    link.poll(0.1, 10)
    link._client._sock_close()
    again = gather(link, 6)
    assert [message.payload for message in again] == [b"%d" % i for i in range(4, 10)]
    assert (counts["mqtt.connects"], counts["mqtt.sessions_lost"]) == (2, 0)
    link.close()


def test_an_acknowledgement_of_an_old_connection_is_not_sent(broker: int) -> None:
    """A packet id belongs to its connection: after a reconnect it may name another message."""
    link = Link(config(broker), Counts())
    subscribed(link)
    send(broker, "w", b"1")
    old = gather(link, 1)
    link._client._sock_close()
    link._client.on_disconnect(link._client, None, None, "gone", None)
    link.ack([message.packet_id for message in old])
    assert [message.payload for message in gather(link, 1)] == [b"1"]
    link.close()


def test_a_lost_session_is_counted(tmp_path: Path) -> None:
    """A broker that comes back without our session may have lost messages: that shows."""
    port, counts = free_port(), Counts()
    with mosquitto(tmp_path, port):
        link = Link(config(port), counts)
        subscribed(link)
    link.poll(0.1, 10)
    with mosquitto(tmp_path, port):
        until(lambda: link.poll(0.05, 10) == [] and link.connected)
    assert (counts["mqtt.connects"], counts["mqtt.disconnects"], counts["mqtt.sessions_lost"]) == (2, 1, 1)
    link.close()


def test_a_broker_that_is_not_there_yet(tmp_path: Path) -> None:
    """The link keeps trying, says what is wrong, and connects as soon as it can."""
    port, counts = free_port(), Counts()
    link = Link(config(port), counts)
    until(lambda: link.poll(0.05, 10) == [] and counts["mqtt.connect_failures"] >= 2)
    assert "nobody listens there" in link.state
    assert link.publish("r", b"x") is False
    with mosquitto(tmp_path, port):
        until(lambda: link.poll(0.05, 10) == [] and link.connected)
    link.close()


def test_a_caller_gets_no_more_than_it_asked_for(broker: int) -> None:
    """Back-pressure is a return value: what the caller has no room for stays at the broker or in the socket."""
    link = Link(config(broker, receive_maximum=20), Counts())
    subscribed(link)
    send(broker, "w", *(b"%d" % i for i in range(50)))
    got: list[Message] = []
    while len(got) < 50:
        batch = link.poll(0.2, 7)
        assert len(batch) <= 7
        got += batch
        if not batch or len(got) >= 20:
            link.ack([message.packet_id for message in got])
    assert [message.payload for message in got] == [b"%d" % i for i in range(50)]
    link.close()


def test_receive_maximum_holds_the_broker_back(broker: int) -> None:
    """Unacknowledged messages never exceed Receive Maximum: that is what bounds the agent's memory."""
    link = Link(config(broker, receive_maximum=8), Counts())
    subscribed(link)
    send(broker, "w", *(b"%d" % i for i in range(30)))
    got = gather(link, 8)
    assert len(got) == 8
    assert [link.poll(0.05, 100) for _ in range(4)] == [[]] * 4
    link.close()


def test_a_payload_too_large_is_cut_while_it_arrives(broker: int) -> None:
    """Only its beginning is ever held; the message can still be acknowledged, and its size is known."""
    link = Link(config(broker), Counts())
    subscribed(link)
    send(broker, "w", b"a" * 3_000_000, b"small")
    large, small = gather(link, 2)
    assert large.whole == 3_000_000
    assert len(large.payload) < 70_000
    assert set(large.payload) == {ord("a")}
    assert (small.payload, small.whole) == (b"small", 0)
    link.ack([large.packet_id, small.packet_id])
    link.poll(0.1, 10)
    link._client._sock_close()
    assert [link.poll(0.05, 10) for _ in range(20)] == [[]] * 20
    link.close()


def test_properties_too_large_are_cut_as_well(broker: int) -> None:
    """Whoever publishes such a message must not stop the agent for ever: it is acknowledged, with its whole size."""
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = [("name", "v" * 60_000)] * 5
    link = Link(config(broker), Counts())
    subscribed(link)
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.connect("127.0.0.1", broker)
    client.loop_start()
    client.publish("w", b"1", 1, properties=properties).wait_for_publish(60)
    client.publish("w", b"2", 1).wait_for_publish(60)
    client.disconnect()
    client.loop_stop()
    large, small = gather(link, 2)
    assert (large.topic, large.payload, small.payload) == ("w", b"", b"2")
    assert large.whole > 300_000
    link.ack([large.packet_id, small.packet_id])
    link.poll(0.1, 10)
    link._client._sock_close()
    assert [link.poll(0.05, 10) for _ in range(20)] == [[]] * 20
    link.close()


def test_properties_that_end_beyond_their_packet_are_none() -> None:
    """Cut among its properties or not: what breaks the protocol is no message."""
    none = (b"\xff\xff\x7f", b"\xff\xff\xff\xff\x01", b"")
    for said, is_message in ((b"\x90\x4e", True), *((each, False) for each in none)):
        packet = b"\0\x01w\0\x09" + said + (b"\x26" * 100 if said else b"")
        message = parse_publish(0x32, packet, True, 10_100)
        assert (message is not None) == is_message
        assert message is None or (message.packet_id, message.payload, message.whole) == (9, b"", 10_094)


def test_a_refused_client_keeps_trying_with_a_reason(tmp_path: Path) -> None:
    """A wrong password is told with the key to look at; the password is nowhere in what is told."""
    (tmp_path / "secret").write_text("hush-hush\n")
    counts = Counts()
    with mosquitto(tmp_path, free_port(), "allow_anonymous false") as port:
        link = Link(config(port, username="agent", password_file=str(tmp_path / "secret")), counts)
        until(lambda: link.poll(0.05, 10) == [] and counts["mqtt.connect_failures"] >= 2)
    assert "check mqtt.username" in link.state
    assert "hush" not in f"{link.state} {link.status()}"


def test_tls_is_verified(tmp_path: Path) -> None:
    """A certificate that no known authority signed is refused; with its authority named, messages flow."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on PATH")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert]
    subprocess.run([*map(str, make), *subject], check=True, capture_output=True)
    key.chmod(0o644)
    tmp_path.chmod(0o755)
    files = (f"cafile {cert}", f"certfile {cert}", f"keyfile {key}", "user root")
    counts = Counts()
    with mosquitto(tmp_path, free_port(), *files) as port:
        stranger = Link(config(port, tls={"enabled": True}), counts)
        until(lambda: stranger.poll(0.05, 10) == [] and counts["mqtt.connect_failures"] >= 1)
        assert "certificate is not trusted" in stranger.state
        link = Link(config(port, tls={"enabled": True, "ca_file": str(cert)}), counts)
        subscribed(link)
        assert link.publish("w", b"x" * 900)
        assert gather(link, 1)[0].payload == b"x" * 900
        link.close()


def test_a_missing_secret_is_the_environments_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password that should be in the environment and is not ends the start with exit code 4."""
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    with pytest.raises(EnvironmentRefused, match="NO_SUCH_SECRET"):
        Link(config(1, username="u", password_env="NO_SUCH_SECRET"), Counts())  # noqa: S106  the name of a variable


def publish(topic: bytes, payload: bytes, packet_id: int, properties: bytes = b"\x00") -> bytes:
    """A QoS-1 PUBLISH of MQTT 5, as a broker sends it."""
    body = len(topic).to_bytes(2, "big") + topic + packet_id.to_bytes(2, "big") + properties + payload
    head, rest = bytearray([0x32]), len(body)
    while True:
        rest, digit = divmod(rest, 128)
        head.append(digit | (128 if rest else 0))
        if not rest:
            return bytes(head) + body


CONNACK = b"\x20\x03\x00\x00\x00"
STREAM = (
    CONNACK
    + publish(b"w", b"1", 1)
    + publish(b"w", b"", 2, b"\x05\x26\x00\x00\x00\x00")
    + b"\xd0\x00"
    + publish(b"w", b"x" * 80_000, 3)
    + publish(b"v", b"2" * 200, 65535)
)
EXPECTED = [(b"1", 1, 0), (b"", 2, 0), (b"x", 3, 80_000), (b"2" * 200, 65535, 0)]


@contextlib.contextmanager
def fed() -> Iterator[tuple[Client, socket.socket]]:
    """A client over a socket pair whose other end is ours."""
    ours, theirs = socket.socketpair()
    client = Client(1000, client_id="c", protocol=mqtt.MQTTv5)
    client._create_socket = lambda: theirs  # type: ignore[method-assign, return-value]
    client.connect_async("127.0.0.1", 1, clean_start=False)
    client.reconnect()
    try:
        yield client, ours
    finally:
        ours.close()
        client._sock_close()


def _shown(messages: list[Message]) -> list[tuple[bytes, int, int]]:
    return [(m.payload[:1] if m.whole else m.payload, m.packet_id, m.whole) for m in messages]


@pytest.mark.parametrize("start", range(0, 60, 6))
def test_bytes_cut_anywhere_mean_the_same(start: int) -> None:
    """However the network cuts the stream, the same messages come out, those of stock paho."""
    offsets = [*range(start, min(start + 6, len(STREAM))), len(STREAM) - 1 - start, 40_000 + start]
    for offset in offsets:
        with fed() as (client, ours):
            for part in (STREAM[:offset], STREAM[offset:]):
                sender = threading.Thread(target=ours.sendall, args=(part,))
                sender.start()
                while sender.is_alive() or client.buffered or select.select([client.socket()], [], [], 0)[0]:
                    client.loop_read()
                sender.join()
            assert _shown(client.inbox) == EXPECTED, offset


def test_a_new_connection_starts_with_nothing_of_the_old() -> None:
    """Half a message of a connection that is gone is forgotten: the broker sends all of it again."""
    with fed() as (client, ours):
        ours.sendall(CONNACK + publish(b"w", b"1", 1) + publish(b"w", b"lost", 2)[:-2])
        while client._at < len(client._buffer) or len(client.inbox) < 1:
            client.loop_read()
        ours.sendall(publish(b"w", b"3", 3))
        client._sock_recv(1)
        again, theirs = socket.socketpair()
        client._create_socket = lambda: theirs  # type: ignore[method-assign, return-value]
        client.reconnect()
        again.sendall(CONNACK + publish(b"w", b"whole", 2))
        until(lambda: client.loop_read() == 0 and len(client.inbox) == 2)
        assert _shown(client.inbox) == [(b"1", 1, 0), (b"whole", 2, 0)]
        again.close()


def test_a_packet_that_breaks_the_protocol_ends_the_connection() -> None:
    """Malformed packets are refused, never guessed at, and never raise."""
    good = publish(b"w", b"1", 1)[2:]
    for end in range(len(good) - 1):
        assert parse_publish(0x32, good[:end], True, end) is None
    assert parse_publish(0x36, good, True, len(good)) is None
    assert parse_publish(0x32, publish(b"w", b"1", 0)[2:], True, len(good)) is None
    assert parse_publish(0x32, publish(b"w", b"1", 1, b"\xff\xff\xff\xff\x01")[2:], True, 99) is None
    with fed() as (client, ours):
        ours.sendall(CONNACK + b"\x32\x01\x00")
        results = [client.loop_read() for _ in range(3)]
        assert any(results)
        assert client.inbox == []


def test_a_topic_that_is_not_text_is_kept() -> None:
    """Such a message becomes a dead letter further on; here it must not stop the link."""
    message = parse_publish(0x32, publish(b"\xff", b"1", 9)[2:], True, 8)
    assert message is not None
    assert message.topic == "�"


def test_no_bytes_of_a_broker_raise() -> None:
    """Whatever a broken broker sends ends the connection at most: nothing escapes into the agent's loop."""
    source = random.Random(1)
    kinds = (0x20, 0x30, 0x32, 0x40, 0x50, 0x62, 0x90, 0xB0, 0xD0, 0xE0, 0xF0)
    for _ in range(600):
        body = bytes(source.randrange(256 if source.random() < 0.5 else 4) for _ in range(source.randrange(30)))
        with fed() as (client, ours):
            ours.sendall(source.choice((CONNACK, b"")) + bytes([source.choice(kinds), len(body)]) + body)
            for _ in range(4):
                client.loop_read()
            assert all(isinstance(message, Message) for message in client.inbox)
