"""One MQTT session: messages in, acknowledgements and results out, reconnecting for ever; it loses nothing."""

from __future__ import annotations

import logging
import re
import select
import socket
import time
from collections.abc import Iterable
from typing import Any, Literal, Protocol

from paho.mqtt.client import MQTTMessageInfo
from paho.mqtt.reasoncodes import ReasonCode

from sluicegate_agent.config import Config
from sluicegate_agent.link.backoff import Backoff
from sluicegate_agent.link.granted import GrantedWindow
from sluicegate_agent.link.options import client_id, client_of, subscription
from sluicegate_agent.link.reasons import TAKEN_OVER, closed, hint_of, reason_of, suspected, taken_over
from sluicegate_agent.logs.repeats import Repeats
from sluicegate_agent.messages import Message
from sluicegate_agent.payloads.sparkplug.topics import dotted

log = logging.getLogger("sluicegate.mqtt")

#: Seconds a broker has for its CONNACK, and for its SUBACK.
PATIENCE = 30.0
#: Seconds that one poll reads what is buffered, however fast a peer sends.
READING = 0.25

#: Messages that come one by one are read a few at a time, so many seconds apart and no more than this share of
#: `commit.every`, once one of them waits for its commit: a turn of the agent costs ten times what a message does.
GATHERED, GATHERED_SHARE, FEW = 0.02, 8, 32

#: Sent to `$share/…` itself, once, where nothing came for so many seconds: a broker that knows shared subscriptions
#: has no such topic. It drops it, or hangs up (Mosquitto 2.0.11 with max_queued_messages 0).
PROBE_AFTER = 30.0
PROBE = b"sluicegate: are shared subscriptions known here?"

#: Microseconds after which no broker goes back behind a subscription that it granted (Mosquitto saves each 30 minutes).
LASTS_AFTER = 86_400_000_000

#: The packet id of a SUBSCRIBE that is made once more, where all of the first was refused: brokers begin far from it.
OTHER_ID = 60_000

#: What `state` says where the connection stands and nothing is wrong with it.
GRANTED = "connected"

Stage = Literal["away", "connecting", "subscribing", "granted"]


def _pause(seconds: float) -> None:
    """By select: libfaketime, with which users try wrong clocks, refuses a sleep once the clock is set back."""
    select.select([], [], [], seconds)


class Counts(Protocol):
    """Where the link counts: the state's counters, kept with the next commit."""

    def add(self, name: str, amount: int = 1) -> None:
        """Count `amount` more under `name`."""

    def __getitem__(self, name: str) -> int:
        """The count under `name`, 0 where nothing was counted."""


class Link:
    """The agent's side of one broker: `poll` gives messages, `ack` acknowledges, `publish` sends results.

    A connection goes through the stages connecting (until CONNACK), subscribing (until SUBACK) and granted; however it
    ends, the next one waits (backoff.py), and `state` says why. `connection` numbers the connections of this process
    and `session_present` says whether the broker kept the session; all messages of one `poll` came over one connection.
    Counters it keeps: connects, disconnects, connect_failures, taken_over, sessions_lost, results_published,
    results_skipped.
    """

    def __init__(
        self,
        config: Config,
        counters: Counts,
        wake: socket.socket | None = None,
        retired: Iterable[str] = (),
        subscribed_us: int = 0,
    ) -> None:
        """`retired`: topics that an earlier configuration had; unsubscribed from, and then the attribute is empty.
        The attribute `former` is empty when, besides, all has come that the broker may have sent because of them.

        `subscribed_us`: when the session first had all of this configuration's subscriptions, µs; 0: not yet. Kept here
        as it changes, to be given again after a restart.
        """
        self.config, self.counters = config, counters
        self.state = "not connected yet"
        self.connection = 0
        self.session_present = False
        self.retired = self.former = tuple(retired)
        self._undone = 0
        self.subscribed_us = subscribed_us
        self._wake = [wake] if wake else []
        self._unacknowledged: dict[int, int] = {}  # packet id → QoS
        self._granted_window = GrantedWindow()
        self._gathers, self._came = min(GATHERED, config.commit.every.seconds / GATHERED_SHARE), 0
        self._stage: Stage = "away"
        self._since = 0.0
        self._brought = False
        self._refusal = ""
        self._asked: list[str] = []
        self._is_first = True
        # MQTT 3.1.1 has no way to say that `$share` is unknown: these topics are in doubt until a message comes.
        shared = [source.filter for source in config.subscribed if source.is_shared]
        self._doubtful = shared if config.mqtt.version != 5 else []
        self._probed = False
        self._backoff = Backoff()
        self._next_attempt = 0.0
        self._repeats = Repeats(log)
        self._place = f"broker {config.mqtt.host}:{config.mqtt.actual_port}"
        self._takes_sparkplug = any(source.format == "sparkplug" for source in config.sources)
        self._client = client_of(config)
        self._client.on_connect = self._connected
        self._client.on_disconnect = self._disconnected
        self._client.on_subscribe = self._subscribed
        self._client.on_unsubscribe = self._unsubscribed

    @property
    def connected(self) -> bool:
        """Whether the broker has accepted us and the connection stands."""
        return self._client.socket() is not None and self._client.is_connected()

    @property
    def subscribed(self) -> bool:
        """Whether it stands, and the broker has granted every subscription: what is published from now on comes."""
        return self.connected and self.state == GRANTED

    def poll(self, timeout: float, most: int) -> list[Message]:
        """Wait up to `timeout` seconds, do what the connection needs, and return at most `most` messages."""
        self._repeats.tick()
        if self._client.socket() is None:
            self._ended()
            if not self._connect(timeout):
                return []
        if most > 0:
            self._client.most = most
            self._exchange(timeout)
        self._client.loop_misc()
        self._check_patience()
        messages = self._client.take()
        self._came = len(messages)
        if self._takes_sparkplug:
            messages = [message._replace(topic=dotted(message.topic)) for message in messages]
        if self._doubtful:
            messages = self._judged(messages)
        self._brought |= bool(messages)
        if not (self.retired or messages or self._unacknowledged) and self.confirmed > self._undone:
            self.former = ()  # the broker had nothing more to send when it had taken our PUBACKs
        if self._client.socket() is None:
            self._ended()
        else:
            self._unacknowledged.update((message.packet_id, message.qos) for message in messages if message.qos)
            if messages:
                self._granted_window.arrived(len(self._unacknowledged), time.monotonic())
        return messages

    def wake_for(self, sock: socket.socket) -> None:
        """Let what waits on this socket end a `poll` that waits, too; who reads it has to empty it."""
        self._wake.append(sock)

    def sleep_through(self, sock: socket.socket) -> None:
        """Let it end none any more."""
        self._wake = [each for each in self._wake if each is not sock]

    @property
    def is_window_full(self) -> bool:
        """Whether the broker, as far as is known of it, sends no more until we acknowledge."""
        return self._granted_window.is_full(len(self._unacknowledged))

    def ack(self, packet_ids: Iterable[int]) -> None:
        """Acknowledge committed messages; those of a connection that is gone come again and are known as repeats."""
        there = self._unacknowledged
        alive = [(packet_id, there[packet_id]) for packet_id in packet_ids if packet_id in there]
        if alive and len(alive) == len(self._unacknowledged):
            self._granted_window.acknowledged(len(alive), time.monotonic())
            self._unacknowledged.clear()
        else:
            for packet_id, _ in alive:
                del self._unacknowledged[packet_id]
        self._client.acknowledge(alive)

    def confirm(self, generation: int) -> None:
        """Have the broker confirm what was acknowledged so far, the PUBACKs of commit `generation` the last of it."""
        if self.connected:
            self._client.ask(generation)

    @property
    def confirmed(self) -> int:
        """The newest commit whose PUBACKs the broker has taken over this connection; 0 before the first."""
        return self._client.barrier.passed

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """Send a result (QoS 0); False, and counted, where the broker is away or has not taken the last one yet."""
        ready = self.connected and not self._client.want_write()
        if ready:
            self._client.publish(topic, payload, retain=retain)
        self.counters.add("results.published" if ready else "results.skipped")
        return ready

    def command(self, topic: str, payload: bytes) -> bool:
        """Send a command (QoS 0, as Sparkplug has it); False where the broker is away or busy: ask again."""
        ready = self.connected and not self._client.want_write()
        if ready:
            self._client.publish(topic, payload)
        return ready

    def send(self, topic: str, payload: bytes, *, retain: bool) -> MQTTMessageInfo | None:
        """Send a message with QoS 1: its `is_published` says when the broker has it; None where it has to wait.

        One that is under way when the connection ends is sent again over the next one.
        """
        if not self.connected or self._client.want_write():
            return None
        info = self._client.publish(topic, payload, qos=1, retain=retain)
        return None if info.rc else info

    def pause(self, reason: str, seconds: float) -> None:
        """Leave the broker, which keeps what it has not delivered, and come back after a while."""
        self.close()
        self._next_attempt = time.monotonic() + seconds
        self.state = f"away: {reason}"

    def close(self) -> None:
        """Say goodbye and keep the session at the broker."""
        self._stage = "away"
        if self._client.socket() is not None:
            self._client.disconnect()
            self._client.loop_write()
            self._client.hang_up()
        self._unacknowledged.clear()
        self.state = "closed"

    def status(self) -> dict[str, object]:
        """The link for `status`: where to, its state, connections in vain so far, and what waits for a commit."""
        mqtt = self.config.mqtt
        return {
            "broker": f"{mqtt.host}:{mqtt.actual_port}",
            "tls": mqtt.uses_tls,
            "state": self.state,
            "failed_in_a_row": self._backoff.failures,
            "unacknowledged": len(self._unacknowledged),
            "window": self._granted_window.size,
        }

    # reading and writing

    def _exchange(self, timeout: float) -> None:
        sock: Any = self._client.socket()
        if sock is None:  # the broker hung up on our first word
            return
        waiting = [sock] if self._client.want_write() else []
        timeout = 0.0 if self._client.buffered else timeout
        readable, writable, _ = select.select([sock, *self._wake], waiting, [], timeout)
        if writable:
            self._client.loop_write()
        if sock in readable:
            if self._unacknowledged and self._came < FEW and not self._granted_window.size:
                _pause(min(self._gathers, timeout))
            self._client.loop_read()
        end = time.monotonic() + READING
        while self._client.has_room and self._client.buffered and not self._client.loop_read():
            if time.monotonic() >= end:
                return

    def _connect(self, timeout: float) -> bool:
        wait = self._next_attempt - time.monotonic()
        if wait > 0:
            select.select(self._wake, [], [], min(wait, timeout))
            return False
        self._turn("connecting")
        try:
            self._client.reconnect()
        except (OSError, ValueError) as error:
            self._client.hang_up()
            self._ended(reason_of(error))
            return False
        return True

    def _check_patience(self) -> None:
        """Hang up on a broker that keeps us waiting for its first answers."""
        if self._stage in ("connecting", "subscribing") and time.monotonic() - self._since > PATIENCE:
            awaited = "CONNACK" if self._stage == "connecting" else "SUBACK"
            self._client.hang_up()
            self._ended(f"no {awaited} in {PATIENCE:.0f} s; is it an MQTT broker?")

    # stages of a connection

    def _turn(self, stage: Stage) -> None:
        self._stage, self._since = stage, time.monotonic()

    def _connected(self, client: Any, _: Any, flags: Any, reason: ReasonCode, properties: Any) -> None:
        if reason.is_failure:
            self._refusal = f"refused us: {reason}{hint_of(str(reason))}"
            return
        self._turn("subscribing")
        if not flags.session_present and self.counters["mqtt.connects"]:
            self.counters.add("mqtt.sessions_lost")
            lost = "the broker kept no session for us: messages sent while we were away may be lost"
            self._repeats.tell(logging.WARNING, lost)
        self._unacknowledged.clear()
        self._granted_window.forget()
        self.connection += 1
        self.session_present = bool(flags.session_present)
        self.counters.add("mqtt.connects")
        self.state = "connected, subscribing"  # what is published from here on is not ours yet
        self._subscribe(client, properties)
        if self.retired:
            log.warning("no longer in the configuration: unsubscribing from %s", ", ".join(self.retired))
            client.left = len(self.retired)
            client.unsubscribe(list(self.retired))

    def _subscribe(self, client: Any, properties: Any) -> None:
        """Before anything else is sent: see `subscribe_under`."""
        self._asked = [source.filter.subscription for source in self.config.subscribed]
        if getattr(properties, "SharedSubscriptionAvailable", 1) == 0:  # asking would end the connection
            self._asked = [each.filter.subscription for each in self.config.subscribed if not each.is_shared]
        if not self.session_present:
            self.subscribed_us = 0
        if not self._asked:
            self._granted([])
            return
        if self._has_subscriptions():
            self._turn_granted()
            return
        self._is_first = True
        client.subscribe_under(1, self._subscriptions())

    def _subscriptions(self) -> list[tuple[str, Any]]:
        return [(topic, subscription(self.config.mqtt)) for topic in self._asked]

    def _has_subscriptions(self) -> bool:
        """Whether the resumed session holds them for certain, so that asking would only bring retained messages again.

        MQTT 5 asks each time, without the retained ones. MQTT 3.1.1 has no such wish, and a broker that went back to
        what it once saved may have lost subscriptions: those that are young are made again.
        """
        if self.config.mqtt.version == 5 or not self.subscribed_us:
            return False
        return time.time_ns() // 1000 - self.subscribed_us >= LASTS_AFTER

    def _subscribed(self, client: Any, _: Any, mid: int, reasons: list[ReasonCode], properties: Any) -> None:
        client.awaited = 0
        if self._is_first and reasons and all(reason.is_failure for reason in reasons):
            # mochi refuses an id that a message of its own has, which it sends again.
            self._is_first = False
            client.subscribe_under(OTHER_ID, self._subscriptions())
            return
        self._granted(reasons)

    def _granted(self, reasons: list[ReasonCode]) -> None:
        """What was asked is answered: say what the broker refused."""
        self._turn_granted()
        refused = [f"{topic} ({r})" for topic, r in zip(self._asked, reasons, strict=False) if r.is_failure]
        refused += [f"{topic} (no answer)" for topic in self._asked[len(reasons) :]]
        shared = [source.filter.subscription for source in self.config.subscribed if source.is_shared]
        refused += [f"{topic} (it has no shared subscriptions)" for topic in shared if topic not in self._asked]
        if refused:
            names = ", ".join(refused)
            self.state = f"connected, but the broker refused {names}"
            told = f"the broker refused our subscription to {names}: check its access rules"
            self._repeats.tell(logging.ERROR, told)
            self.subscribed_us = 0
        else:
            self.subscribed_us = self.subscribed_us or time.time_ns() // 1000

    def _turn_granted(self) -> None:
        self._turn("granted")
        self._brought = False
        self.state = GRANTED
        self._repeats.tell(logging.INFO, f"{self._place}: connected")

    def _unsubscribed(self, client: Any, _: Any, mid: int, reasons: list[ReasonCode], properties: Any) -> None:
        self.retired, client.left = (), 0
        # What is under way now, or waits for room, may have been sent for them.
        self._undone = self.confirmed if self._unacknowledged or client.inbox else -1

    def _judged(self, messages: list[Message]) -> list[Message]:
        """The messages without our own question; which is asked of a broker that delivers nothing from `$share/…`."""
        if any(each.match(message.topic) is not None for message in messages for each in self._doubtful):
            self._doubtful = []
            return messages
        if not self._probed and self._stage == "granted" and time.monotonic() - self._since > PROBE_AFTER:
            self._probed = True
            self._client.publish(re.sub("[+#]", "x", self._doubtful[0].subscription), PROBE)
        kept = [message for message in messages if message.payload != PROBE or not message.topic.startswith("$share/")]
        if len(kept) < len(messages):
            self.state = "connected, but the broker does not know shared subscriptions: nothing comes from $share/…"
            told = f"{self._place}: it takes $share/… for an ordinary topic; subscribe to the topic itself"
            self._repeats.tell(logging.ERROR, told)
        return kept

    def _disconnected(self, client: Any, _: Any, flags: Any, reason: ReasonCode, properties: Any) -> None:
        if getattr(reason, "value", None) == TAKEN_OVER and flags.is_disconnect_packet_from_server:
            self._refusal = taken_over(client_id(self.config))
            self.counters.add("mqtt.taken_over")
        self._ended(self._closed(self._stage, reason))

    def _closed(self, stage: Stage, reason: ReasonCode | None) -> str:
        mqtt = self.config.mqtt
        return closed(stage, reason, tls=mqtt.uses_tls, version_5=mqtt.version == 5)

    def _ended(self, reason: str = "") -> None:
        """The connection is over: say why, once, and wait before the next."""
        stage, self._stage = self._stage, "away"
        if stage == "away":
            return
        self._unacknowledged.clear()
        told = self._refusal or self._client.why
        if stage == "granted" and not self._refusal:
            delay = self._backoff.ended(time.monotonic() - self._since, messages=self._brought)
        else:
            delay = self._backoff.failed()
        reason = told or reason or self._closed(stage, None)
        if self._backoff.is_cut_often and not self._refusal:
            reason += suspected(client_id(self.config))
        self._refusal = ""
        self._next_attempt = time.monotonic() + delay
        self.counters.add("mqtt.connect_failures" if stage == "connecting" else "mqtt.disconnects")
        self.state = f"away: {reason}"
        self._repeats.tell(logging.WARNING, f"{self._place}: {reason}", f"; trying again in {delay:.1f} s")
