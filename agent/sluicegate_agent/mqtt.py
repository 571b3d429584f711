"""One MQTT session: messages in, acknowledgements and results out, reconnecting for ever; nothing is lost on its side.

Single-threaded on paho-mqtt 2.2. Three of paho's private methods are overridden (the minor version is pinned for that):
`_sock_recv` reads 64 KiB at a time and cuts a payload that is larger than allowed while it arrives, `_handle_publish`
puts a message into a list instead of building paho's, and `reconnect` forgets what an old connection left half read.
"""

from __future__ import annotations

import logging
import random
import select
import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any, Protocol

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from sluicegate_agent.config import Config, MqttConfig
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.messages import Message
from sluicegate_agent.passwords import password

log = logging.getLogger("sluicegate.mqtt")

RECEIVE = 65536
HELD = 256 * 1024  # bytes of payloads that one poll returns at most, beyond the last one
_PUBLISH, _PUBACK = 0x30, 0x40
_LONGEST_HEAD = 65536 + 1024  # the longest topic and some properties beside the payload
_FIRST_DELAY, _LONGEST_DELAY = 0.25, 60.0


class Client(paho.Client):
    """paho's client with a receive buffer, bounded payloads and a plain list (`inbox`) of messages."""

    def __init__(self, payload_limit: int, **options: Any) -> None:
        self._buffer = b""
        self._at = 0
        self._cap = payload_limit + _LONGEST_HEAD
        self.inbox: list[Message] = []
        self.held = 0
        super().__init__(CallbackAPIVersion.VERSION2, manual_ack=True, reconnect_on_failure=False, **options)

    @property
    def buffered(self) -> bool:
        """Whether bytes wait that select() cannot see: here, or inside the TLS layer."""
        sock: Any = self.socket()
        return self._at < len(self._buffer) or (isinstance(sock, ssl.SSLSocket) and sock.pending() > 0)

    def reconnect(self) -> MQTTErrorCode:
        """Connect again, with nothing left of the old connection's bytes."""
        self._buffer, self._at = b"", 0
        return super().reconnect()

    def _sock_recv(self, bufsize: int) -> bytes:
        if self._at >= len(self._buffer):
            self._buffer, self._at = b"", 0
            self._buffer = super()._sock_recv(RECEIVE)
        piece = self._buffer[self._at : self._at + bufsize]
        self._at += len(piece)
        return piece if self._in_packet["remaining_length"] <= self._cap else self._cut(piece)

    def _cut(self, piece: bytes) -> bytes:
        """Hand on what still fits, but at least the one byte paho needs to go on; count the rest as read."""
        packet = self._in_packet
        if not packet["have_remaining"] or packet["command"] & 0xF0 != _PUBLISH:
            return piece
        del packet["packet"][self._cap :]
        handed = piece[: max(self._cap - len(packet["packet"]), 1)]
        packet["to_process"] -= len(piece) - len(handed)
        return handed

    def _handle_publish(self) -> MQTTErrorCode:
        command, packet = self._in_packet["command"], self._in_packet["packet"]
        message = parse_publish(command, packet, self._protocol == paho.MQTTv5, self._in_packet["remaining_length"])
        if message is None:
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        self.inbox.append(message)
        self.held += len(message.payload)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def take(self) -> list[Message]:
        """The messages that arrived since the last call."""
        messages, self.inbox, self.held = self.inbox, [], 0
        return messages

    def acknowledge(self, packet_ids: Iterable[int]) -> None:
        """Queue the PUBACKs of many messages as one write of paho's own (partial writes, TLS)."""
        packet = b"".join(b"\x40\x02" + packet_id.to_bytes(2, "big") for packet_id in packet_ids)
        if packet:
            self._packet_queue(_PUBACK, packet, 0, 1)


def parse_publish(command: int, packet: bytes | bytearray, version_5: bool, length: int) -> Message | None:
    """A PUBLISH packet after its fixed header, perhaps cut short of its `length`; None where it breaks the protocol."""
    qos = (command >> 1) & 3
    if len(packet) < 2 or qos > 1:
        return None
    at = 2 + int.from_bytes(packet[:2], "big")
    topic = bytes(packet[2:at])
    packet_id = int.from_bytes(packet[at : at + 2], "big") if qos else 0
    at += 2 if qos else 0
    if version_5:
        at = _after_properties(packet, at)
    if at > length or (qos and not packet_id):
        return None
    whole = length - at if length > len(packet) else 0
    return Message(topic.decode(errors="replace"), bytes(packet[at:]), packet_id, qos, whole)


def _after_properties(packet: bytes | bytearray, at: int) -> int:
    """Where the payload begins: after a variable byte integer and as many bytes; past everything if it is malformed."""
    size = 0
    for place in range(4):
        if at + place >= len(packet):
            break
        size |= (packet[at + place] & 127) << (7 * place)
        if packet[at + place] < 128:
            return at + place + 1 + size
    return 1 << 62


class Counts(Protocol):
    """Where the link counts: the state's counters, kept with the next commit."""

    def add(self, name: str, amount: int = 1) -> None:
        """Count `amount` more under `name`."""

    def __getitem__(self, name: str) -> int:
        """The count under `name`, 0 where nothing was counted."""


class Link:
    """The agent's side of one broker: `poll` gives messages, `ack` acknowledges, `publish` sends results.

    `connection` numbers the connections of this process and `session_present` says whether the broker kept the session;
    all messages of one `poll` came over one connection. Counters it keeps: connects, disconnects,
    connect_failures, sessions_lost, results_published, results_skipped.
    """

    def __init__(self, config: Config, counters: Counts, wake: socket.socket | None = None) -> None:
        self.config, self.counters = config, counters
        self.state = "not connected yet"
        self.connection = 0
        self.session_present = False
        self._wake = [wake] if wake else []
        self._unacknowledged: dict[int, None] = {}
        self._failures = 0
        self._next_attempt = 0.0
        self._client = _client(config)
        self._client.on_connect = self._connected
        self._client.on_disconnect = self._disconnected
        self._client.on_subscribe = self._subscribed

    @property
    def connected(self) -> bool:
        """Whether the broker has accepted us and the connection stands."""
        return self._client.socket() is not None and self._client.is_connected()

    def poll(self, timeout: float, most: int) -> list[Message]:
        """Wait up to `timeout` seconds, do what the connection needs, and return at most `most` messages."""
        if self._client.socket() is None and not self._connect(timeout):
            return []
        if most > 0:
            self._exchange(timeout)
            while self._has_room(most) and self._client.buffered and not self._client.loop_read():
                pass
        self._client.loop_misc()
        messages = self._client.take()
        if self._client.socket() is not None:
            self._unacknowledged.update((message.packet_id, None) for message in messages if message.qos)
        return messages

    def ack(self, packet_ids: Iterable[int]) -> None:
        """Acknowledge committed messages; those of a connection that is gone come again and are known as repeats."""
        alive = [packet_id for packet_id in packet_ids if packet_id in self._unacknowledged]
        for packet_id in alive:
            del self._unacknowledged[packet_id]
        self._client.acknowledge(alive)

    def publish(self, topic: str, payload: bytes) -> bool:
        """Send a result (QoS 0); False, and counted, where the broker is away or has not taken the last one yet."""
        ready = self.connected and not self._client.want_write()
        if ready:
            self._client.publish(topic, payload)
        self.counters.add("results.published" if ready else "results.skipped")
        return ready

    def pause(self, reason: str, seconds: float) -> None:
        """Leave the broker, which keeps what it has not delivered, and come back after a while."""
        self.close()
        self._unacknowledged.clear()
        self._next_attempt = time.monotonic() + seconds
        self.state = f"away: {reason}"

    def close(self) -> None:
        """Say goodbye and keep the session at the broker."""
        if self._client.socket() is not None:
            self.state = "closed"
            self._client.disconnect()
            self._client.loop_write()
        self.state = "closed"

    def status(self) -> dict[str, object]:
        """The link for `status`: where to, its state, and what waits for a commit."""
        mqtt = self.config.mqtt
        where = f"{mqtt.host}:{mqtt.actual_port}"
        return {"broker": where, "tls": mqtt.uses_tls, "state": self.state, "unacknowledged": len(self._unacknowledged)}

    def _has_room(self, most: int) -> bool:
        return len(self._client.inbox) < most and self._client.held < HELD

    def _exchange(self, timeout: float) -> None:
        sock: Any = self._client.socket()
        waiting = [sock] if self._client.want_write() else []
        timeout = 0.0 if self._client.buffered else timeout
        readable, writable, _ = select.select([sock, *self._wake], waiting, [], timeout)
        if writable:
            self._client.loop_write()
        if sock in readable:
            self._client.loop_read()

    def _connect(self, timeout: float) -> bool:
        wait = self._next_attempt - time.monotonic()
        if wait > 0:
            select.select(self._wake, [], [], min(wait, timeout))
            return False
        try:
            self._client.reconnect()
        except (OSError, ValueError) as error:
            self._failed(_reason(error))
            return False
        return True

    def _failed(self, reason: str) -> None:
        delay = min(_FIRST_DELAY * 2 ** min(self._failures, 16), _LONGEST_DELAY)
        delay *= random.uniform(0.5, 1.0)  # noqa: S311  jitter, so that a fleet does not return all at once
        self._failures += 1
        self._next_attempt = time.monotonic() + delay
        self.counters.add("mqtt.connect_failures")
        mqtt = self.config.mqtt
        self.state = f"away: {reason}"
        log.warning("broker %s:%d: %s; trying again in %.1f s", mqtt.host, mqtt.actual_port, reason, delay)

    def _connected(self, client: Any, _: Any, flags: Any, reason: ReasonCode, properties: Any) -> None:
        if reason.is_failure:
            self._failed(f"refused us: {reason}{_hint(str(reason))}")
            return
        if not flags.session_present and self.counters["mqtt.connects"]:
            self.counters.add("mqtt.sessions_lost")
            log.warning("the broker kept no session for us: messages sent while we were away may be lost")
        self._failures = 0
        self._unacknowledged.clear()
        self.connection += 1
        self.session_present = bool(flags.session_present)
        self.counters.add("mqtt.connects")
        self.state = "connected, subscribing"  # what is published from here on is not ours yet
        log.info("connected to %s:%d", self.config.mqtt.host, self.config.mqtt.actual_port)
        client.subscribe([(source.topic, _subscription(self.config.mqtt)) for source in self.config.sources])

    def _subscribed(self, client: Any, _: Any, mid: int, reasons: list[ReasonCode], properties: Any) -> None:
        self.state = "connected"
        refused = [f"{s.topic} ({r})" for s, r in zip(self.config.sources, reasons, strict=False) if r.is_failure]
        if refused:
            self.state = f"connected, but the broker refused {', '.join(refused)}"
            log.error("the broker refused our subscription to %s: check its access rules", ", ".join(refused))

    def _disconnected(self, client: Any, _: Any, flags: Any, reason: ReasonCode, properties: Any) -> None:
        self._unacknowledged.clear()
        if not self.state.startswith("connected"):
            return
        self.counters.add("mqtt.disconnects")
        self._failed(f"connection lost ({reason})")


def _client(config: Config) -> Client:
    mqtt = config.mqtt
    client_id = mqtt.client_id or f"sluicegate-{config.device.id}"
    session: dict[str, Any] = {} if mqtt.version == 5 else {"clean_session": False}
    protocol = paho.MQTTv5 if mqtt.version == 5 else paho.MQTTv311
    client = Client(config.limits.payload, client_id=client_id, protocol=protocol, **session)
    client.suppress_exceptions = False
    if mqtt.username is not None:
        client.username_pw_set(mqtt.username, password("mqtt", mqtt.password_file, mqtt.password_env))
    if mqtt.uses_tls:
        client.tls_set_context(_tls(mqtt))
    start: dict[str, Any] = {"clean_start": False, "properties": _session(mqtt)} if mqtt.version == 5 else {}
    client.connect_async(mqtt.host, mqtt.actual_port, keepalive=round(mqtt.keepalive.seconds), **start)
    return client


def _session(mqtt: MqttConfig) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = round(mqtt.session_expiry.seconds)
    properties.ReceiveMaximum = mqtt.receive_maximum
    return properties


def _subscription(mqtt: MqttConfig) -> SubscribeOptions | int:
    """QoS 1; with MQTT 5 a retained message comes with a new subscription only, not at every reconnect."""
    return SubscribeOptions(qos=1, retainHandling=1) if mqtt.version == 5 else 1


def _tls(mqtt: MqttConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(mqtt.tls.ca_file) if mqtt.tls.ca_file else None)
        if mqtt.tls.cert_file:
            context.load_cert_chain(mqtt.tls.cert_file, mqtt.tls.key_file)
        return context
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentRefused(f"mqtt.tls: the certificate files cannot be used: {error}") from None


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); name its authority in mqtt.tls.ca_file"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error}); does this port speak TLS?"
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved; check mqtt.host"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there (connection refused); is the broker running, are mqtt.host and mqtt.port right?"
    return str(error) or type(error).__name__


def _hint(reason: str) -> str:
    lowered = reason.lower()
    if "user name" in lowered or "authori" in lowered:
        return "; check mqtt.username and the password"
    return ' (try mqtt.version = "3.1.1")' if "protocol" in lowered else ""
