"""One MQTT session: messages in, acknowledgements and results out, reconnecting for ever; it loses nothing."""

from __future__ import annotations

import logging
import random
import select
import socket
import time
from collections.abc import Iterable
from typing import Any, Protocol

from paho.mqtt.reasoncodes import ReasonCode

from sluicegate_agent.config import Config
from sluicegate_agent.link.options import client_of, subscription
from sluicegate_agent.link.reasons import hint_of, reason_of
from sluicegate_agent.messages import Message

log = logging.getLogger("sluicegate.mqtt")

HELD = 256 * 1024  # bytes of payloads that one poll returns at most, beyond the last one
_FIRST_DELAY, _LONGEST_DELAY = 0.25, 60.0


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
        self._client = client_of(config)
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
            self._failed(reason_of(error))
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
            self._failed(f"refused us: {reason}{hint_of(str(reason))}")
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
        client.subscribe([(source.topic, subscription(self.config.mqtt)) for source in self.config.sources])

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
