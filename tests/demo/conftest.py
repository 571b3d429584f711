"""Two brokers behind one fixture, and a paho client that records what it sees and acknowledges only when told."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from patience import SECONDS, until

mqtt = pytest.importorskip("paho.mqtt.client", reason="the broker tests need the extra `agent` (paho-mqtt)")
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion  # noqa: E402  (after the skip)
from paho.mqtt.packettypes import PacketTypes  # noqa: E402
from paho.mqtt.properties import Properties  # noqa: E402

from sluicegate_demo.broker import Broker  # noqa: E402
from sluicegate_demo.ports import free_port  # noqa: E402


class Prompt(mqtt.Client):
    """Its thread looks every hundredth of a second whether it is to stop; paho's looks once a second."""

    def loop_forever(self, timeout: float = 0.01, retry_first_connection: bool = False) -> Any:
        """What paho's thread runs."""
        return super().loop_forever(timeout, retry_first_connection)


class Client:
    """A paho client with manual acknowledgement: `got` holds (topic, payload, dup) in order of arrival."""

    def __init__(self, port: int, name: str, *, version: int = 5, clean: bool = False, expiry: int = 300,
                 receive_maximum: int = 100, keep_alive: int = 60, will: str = "") -> None:  # fmt: skip
        self.version, self.present, self.reason = version, None, None
        self.got: list[Any] = []
        self.suback: list[int] = []
        self.unsubscribed = False
        self.sent: set[int] = set()
        five = version == 5
        protocol = MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311
        session = {} if five else {"clean_session": clean}
        self.paho = Prompt(CallbackAPIVersion.VERSION2, name, protocol=protocol, manual_ack=True, **session)
        self.paho.on_connect = self._connected
        self.paho.on_message = lambda _c, _u, message: self.got.append(message)
        self.paho.on_subscribe = lambda _c, _u, _m, codes, _p: self.suback.extend(code.value for code in codes)
        self.paho.on_unsubscribe = lambda *_: setattr(self, "unsubscribed", True)
        self.paho.on_disconnect = self._left
        self.paho.on_publish = lambda _c, _u, mid, _r, _p: self.sent.add(mid)
        self.paho.reconnect_delay_set(0.02, 0.1)
        if will:
            self.paho.will_set(will, b"gone", qos=1)
        options: dict[str, Any] = {}
        if five:
            options = {"clean_start": clean, "properties": Properties(PacketTypes.CONNECT)}
            options["properties"].SessionExpiryInterval = expiry
            options["properties"].ReceiveMaximum = receive_maximum
        self.paho.connect("127.0.0.1", port, keepalive=keep_alive, **options)
        self.paho.loop_start()
        assert until(lambda: self.present is not None), "no CONNACK"

    def _connected(self, _c: Any, _u: Any, flags: Any, reason: Any, _p: Any) -> None:
        self.present, self.reason = flags.session_present, None

    def _left(self, _c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        self.reason = reason

    def subscribe(self, name: str, qos: int = 1) -> None:
        before = len(self.suback)
        self.paho.subscribe(name, qos)
        assert until(lambda: len(self.suback) > before), "no SUBACK"

    def unsubscribe(self, name: str) -> None:
        self.paho.unsubscribe(name)
        assert until(lambda: self.unsubscribed), "no UNSUBACK"

    def send(self, topic: str, *payloads: Any, qos: int = 1, retain: bool = False) -> None:
        """Publish and wait for every PUBACK."""
        mids = {self.paho.publish(topic, str(payload), qos, retain).mid for payload in payloads}
        assert until(lambda: mids <= self.sent), f"no PUBACK for {len(mids - self.sent)} of {len(mids)}"

    def payloads(self) -> list[str]:
        return [message.payload.decode() for message in self.got]

    def ack(self, *messages: Any) -> None:
        """On their way, before whatever this client sends next."""
        for message in messages:
            self.paho.ack(message.mid, message.qos)

    def leave(self) -> None:
        """Say goodbye, and return when the broker has hung up: what others send from then on finds nobody here."""
        self._hang_up(b"\xe0\x00")

    def vanish(self) -> None:
        """Drop the connection without a goodbye, and return when the broker knows."""
        self._hang_up(b"")

    def _hang_up(self, last: bytes) -> None:
        self.paho.loop_stop()  # what was queued has gone
        sock = self.paho.socket()
        if sock is None:
            return
        with suppress(OSError), sock:
            sock.settimeout(SECONDS)
            sock.sendall(last)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass


@contextmanager
def mosquitto(folder: Path) -> Iterator[int]:
    """The real Mosquitto on a free loopback port."""
    binary = shutil.which("mosquitto")
    if binary is None:
        pytest.skip("mosquitto is not on PATH")
    port = free_port()
    text = f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
    (folder / "mosquitto.conf").write_text(text)
    process = subprocess.Popen([binary, "-c", str(folder / "mosquitto.conf")], stderr=subprocess.DEVNULL)
    try:
        assert until(lambda: reachable(port)), "mosquitto did not start"
        yield port
    finally:
        process.terminate()
        process.wait(60)


def reachable(port: int) -> bool:
    """Whether something listens."""
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


@pytest.fixture(params=["builtin", "mosquitto"])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """A broker's port: every test of the contract runs on both."""
    if request.param == "mosquitto":
        with mosquitto(tmp_path) as port:
            yield port
    else:
        with Broker() as broker:
            yield broker.port


@pytest.fixture
def client() -> Iterator[Callable[..., Client]]:
    """A maker of clients that are gone when the test is."""
    made: list[Client] = []

    def make(port: int, name: str, **options: Any) -> Client:
        made.append(Client(port, name, **options))
        return made[-1]

    yield make
    for one in made:
        one.leave()
