"""Whatever answers on the broker's port: the agent backs off, says why once, holds little memory, and never ends."""

from __future__ import annotations

import logging
import random
import shutil
import socket
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paho.mqtt.client", reason="the agent's tests need the extra `agent`")
from brokers import mosquitto, until

from peers import CONNACK, CONNACK_3, Counts, config, grant, greet, packet, peer
from sluicegate_agent.link import Link, backoff
from sluicegate_demo.ports import free_port

GARBAGE = random.Random(15)


def drive(link: Link, seconds: float) -> None:
    """Poll for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        link.poll(0.05, 10)


def garbage(connection: socket.socket) -> None:
    """Random bytes instead of an answer."""
    connection.recv(65536)
    connection.sendall(GARBAGE.randbytes(2000))


def test_what_is_small_is_sent_at_once() -> None:
    """No answer waits in the kernel for the broker to acknowledge what went before: also after a reconnection."""
    sockets = []
    with peer(greet) as bad:
        link = Link(config(bad.port), Counts())
        end = time.monotonic() + 10
        while len(sockets) < 2 and time.monotonic() < end:
            link.poll(0.01, 10)
            found = link._client.socket()
            if found is not None and found not in sockets:
                assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                sockets.append(found)
        link.close()
    assert len(sockets) == 2


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="Linux alone has it")
def test_what_came_is_acknowledged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel, after each read, since it forgets the wish: else a broker holds its next word back for 40 ms."""
    asked: list[Any] = []
    plain = socket.socket.setsockopt
    spy = lambda sock, *option: asked.append(option) or plain(sock, *option)  # type: ignore[func-returns-value]  # noqa: E731
    monkeypatch.setattr(socket.socket, "setsockopt", spy, raising=False)
    with peer(grant) as good:
        link = Link(config(good.port), Counts())
        until(lambda: link.poll(0.05, 10) is None or asked.count((socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)) >= 2)
        link.close()


def test_what_comes_one_by_one_is_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a message waits for its commit; never longer than the turn may last, and not where a window is narrow."""
    slept: list[float] = []
    monkeypatch.setattr("sluicegate_agent.link.link._pause", slept.append)
    with peer(grant) as good:
        link = Link(config(good.port), Counts())
        until(lambda: link.poll(0.05, 10) is None or link.connection)
        assert slept == []
        link._unacknowledged = {1: 1}
        ours, theirs = socket.socketpair()
        monkeypatch.setattr(link._client, "socket", lambda: ours)
        theirs.send(b"x")
        link._exchange(0.004)
        link._exchange(9.0)
        link._granted_window.size = 20
        link._exchange(9.0)
        monkeypatch.undo()
        link.close()
    assert slept == [0.004, 0.02]


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        (
            lambda connection: None,
            "closed before it answered (no CONNACK); is it an MQTT broker "
            'that knows MQTT 5 (else mqtt.version = "3.1.1")?',
        ),
        (garbage, ""),
        (lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), "is it an MQTT broker?"),
        (lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "is it an MQTT broker?"),
        (greet, "closed before it granted our subscriptions; do its access rules allow them?"),
        (grant, "connection lost"),
    ],
)
def test_a_peer_of_no_use_is_left_alone(
    serve: Callable[[socket.socket], Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Two seconds have room for five connections; each reason is logged once, and `status` has it."""
    counts = Counts()
    with peer(serve) as bad, caplog.at_level(logging.INFO, "sluicegate.mqtt"):
        link = Link(config(bad.port), counts)
        drive(link, 2.0)
        assert 2 <= bad.connections <= 6
        until(lambda: link.poll(0.05, 10) == [] and link.state.startswith("away: "), told=lambda: link.state)
        assert said in link.state
        assert link.status()["failed_in_a_row"] in (bad.connections, bad.connections - 1)
        link.close()
    told = [record.getMessage().partition("; trying again")[0] for record in caplog.records]
    assert len(told) == len(set(told))


def test_what_comes_again_is_told_by_the_minute(caplog: pytest.LogCaptureFixture) -> None:
    """After the first line, one a minute with the count."""
    with peer(lambda connection: None) as bad, caplog.at_level(logging.INFO, "sluicegate.mqtt"):
        link = Link(config(bad.port), Counts())
        until(lambda: link.poll(0.05, 10) == [] and link.status()["failed_in_a_row"] == 4)
        assert len(caplog.records) == 1
        clock = time.monotonic() + 61
        link._repeats._clock = lambda: clock
        link.poll(0.0, 10)
        assert len(caplog.records) == 2
        assert "(3 times more in the last 6" in caplog.records[1].getMessage()
        link.close()


def test_a_silent_peer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that accepts and says nothing, or grants nothing, is hung up on."""
    monkeypatch.setattr("sluicegate_agent.link.link.PATIENCE", 0.2)
    for serve, said in (
        (lambda connection: time.sleep(9), "no CONNACK in"),
        (lambda connection: (greet(connection), time.sleep(9)), "no SUBACK in"),
    ):
        with peer(serve) as silent:
            link = Link(config(silent.port), Counts())
            until(lambda link=link, said=said: link.poll(0.05, 10) == [] and said in link.state)
            link.close()


LYING = [
    (packet(0x90, b"", 200 << 20), "SUBACK of 209715200 bytes"),
    (packet(0xE0, b"\x00", 200 << 20), "DISCONNECT of 209715200 bytes"),
    (packet(0xD0, b"", 200 << 20), "PINGRESP of 209715200 bytes"),
    (packet(0x20, b"", 200 << 20), "a second CONNACK"),
    (packet(0x40, b"\x00\x01"), "a packet of type PUBACK"),
    (packet(0x50, b"\x00\x01"), "a packet of type PUBREC"),
    (packet(0x60, b"\x00\x01"), "PUBREL with reserved bits"),
    (packet(0x62, b"", 200 << 20), "PUBREL of 209715200 bytes"),
    (packet(0x30, b"\xff\xff"), "a PUBLISH that cannot be read"),
    (b"\x30\xff\xff\xff\xff\x7f", "connection lost"),
]


@pytest.mark.parametrize(("bytes_sent", "said"), LYING)
def test_a_packet_is_refused_before_it_is_read(bytes_sent: bytes, said: str) -> None:
    """Its size or kind is told, and nothing of it is held: 200 MB of SUBACK cost less than a megabyte."""
    block = b"\x01" * (1 << 20)

    def serve(connection: socket.socket) -> None:
        if bytes_sent[0] == 0x90:
            greet(connection)
        else:
            grant(connection)
        connection.sendall(bytes_sent)
        for _ in range(200):
            connection.sendall(block)

    with peer(serve) as bad:
        link = Link(config(bad.port), Counts())
        tracemalloc.start()
        try:
            until(lambda: link.poll(0.05, 10) == [] and said in link.state, told=lambda: link.state)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 1 << 20
        link.close()


def test_no_peer_ends_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random bytes, random packets of every kind, lying sizes, in both protocols: a reason each, never an exception."""
    monkeypatch.setattr(backoff, "LONGEST", 0.001)
    rng = random.Random(1516)

    def some() -> bytes:
        body = rng.randbytes(rng.choice((0, 0, 1, 2, 3, 5, 20, 300)))
        length = len(body) if rng.random() < 0.7 else rng.choice((0, 1, 127, 128, 5000, 268_435_455))
        return packet(rng.choice((rng.randrange(256), 0x20, 0x30, 0x32, 0x90, 0xD0, 0xE0)), body, length)

    for version, connack in ((5, CONNACK), ("3.1.1", CONNACK_3)):

        def serve(connection: socket.socket, connack: bytes = connack) -> None:
            kind = rng.randrange(4)
            connection.recv(65536) if kind < 2 else greet(connection, connack)
            connection.sendall(rng.randbytes(rng.randrange(2000)) if kind % 2 else b"".join(some() for _ in range(9)))

        with peer(serve) as bad:
            link = Link(config(bad.port, version=version), Counts())
            until(lambda link=link, bad=bad: isinstance(link.poll(0.01, 10), list) and bad.connections > 100)
            assert link.status()["failed_in_a_row"]
            link.close()


def test_a_broker_that_wants_a_certificate(tmp_path: Path) -> None:
    """Without one, TLS 1.2 and 1.3 alike: the key to set is named, and the agent goes on."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on PATH")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*map(str, make), *subject], check=True, capture_output=True)
    tmp_path.chmod(0o755)
    files = (f"cafile {cert}", f"certfile {cert}", f"keyfile {key}", "user root", "require_certificate true")
    for version in ("tlsv1.3", "tlsv1.2"):
        counts = Counts()
        with mosquitto(tmp_path, free_port(), *files, f"tls_version {version}") as port:
            link = Link(config(port, tls={"enabled": True, "ca_file": str(cert)}), counts)
            until(lambda link=link, counts=counts: link.poll(0.05, 10) == [] and counts["mqtt.connect_failures"] >= 3)
            assert "mqtt.tls.cert_file" in link.state
            link.close()


@pytest.mark.parametrize("version", [5, "3.1.1"])
def test_two_agents_with_one_name(version: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker gives the session to the newest without a word: that is suspected, and they connect less and less."""
    monkeypatch.setattr(backoff, "FIRST", 0.02)
    with mosquitto(tmp_path, free_port()) as port:
        counts = Counts(), Counts()
        links = [Link(config(port, version=version, client_id="twin"), each) for each in counts]

        def suspected() -> bool:
            for link in links:
                link.poll(0.01, 10)
            return any("another client with the same id (twin)" in link.state for link in links)

        until(suspected, told=lambda: [link.state for link in links])
        assert sum(each["mqtt.connects"] for each in counts) <= 30
        for link in links:
            link.close()


def test_a_broker_that_says_who_took_over() -> None:
    """MQTT 5 has a reason for it, which is told, counted and backed off from."""
    counts = Counts()

    def serve(connection: socket.socket) -> None:
        grant(connection)
        connection.sendall(packet(0xE0, b"\x8e"))

    with peer(serve) as broker:
        link = Link(config(broker.port, client_id="twin"), counts)
        until(lambda: link.poll(0.05, 10) == [] and counts["mqtt.taken_over"] >= 3)
        assert "another client with the same id (twin) took the session over" in link.state
        assert link._backoff.failures == broker.connections
        link.close()
