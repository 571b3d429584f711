"""Publishers and the collector of answers: paho-mqtt at QoS 1, as fast as the broker takes it, nothing sent unseen."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

WINDOW = 200  # messages sent and not acknowledged by the broker
NO_SUBSCRIBERS = 0x10
LAG = 500  # a message that is sent again comes at most so many messages after its first time
PATIENCE = 60.0  # seconds without a PUBACK after which a publisher gives up


Step = tuple[int, Callable[[], None]]


class PublishError(Exception):
    """Raised when the broker stops taking messages; the message says how many it took."""

    exit_code = 4


def schedule(messages: int, again: float, seed: int = 1) -> list[int]:
    """The order in which message numbers are sent: all once, and a share `again` of them a second time, a while later.

    A repeat never comes before its original; its originals' order is kept.
    """
    rng = random.Random(seed)
    repeats: dict[int, list[int]] = {}
    for number in sorted(rng.sample(range(messages), round(messages * again))):
        repeats.setdefault(min(messages - 1, number + rng.randrange(1, LAG)), []).append(number)
    return [one for number in range(messages) for one in (number, *repeats.get(number, ()))]


class Publisher(threading.Thread):
    """Sends one device's messages in a schedule's order; `steps` are (position in it, what to do there), sorted."""

    def __init__(
        self, port: int, device: str, topic: str, payloads: list[bytes], order: list[int], steps: list[Step]
    ) -> None:
        super().__init__(name=f"publisher {device}", daemon=True)
        self.payloads, self.topic, self.order, self.steps = payloads, topic, order, list(steps)
        self.sent = 0
        self.error: Exception | None = None
        self._port, self._device = port, device
        self._room = threading.Condition()
        self._given = self._taken = 0
        self._unheard = False
        self._client = paho.Client(CallbackAPIVersion.VERSION2, f"publisher-{device}", protocol=paho.MQTTv5)
        self._client.on_publish = self._acknowledged
        self._client.max_inflight_messages_set(WINDOW)

    def run(self) -> None:
        """Publish everything; what goes wrong is kept in `error`."""
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = 600
        try:
            self._client.connect("127.0.0.1", self._port, clean_start=False, properties=properties)
            self._client.loop_start()
            self._wait_for_a_subscriber()
            for position, number in enumerate(self.order[1:], 1):
                self._step(position)
                self._send(number)
            self._step(len(self.order))
            self._drain()
            self._client.disconnect()
        except Exception as error:
            self.error = error
        finally:
            self._client.loop_stop()

    def _step(self, position: int) -> None:
        while self.steps and self.steps[0][0] <= position:
            self.steps.pop(0)[1]()

    def _wait_for_a_subscriber(self) -> None:
        """Send the first message until the broker says that somebody has it: before that nothing would be kept."""
        end = time.monotonic() + PATIENCE
        while True:
            self._unheard = False
            self._send(self.order[0])
            self._drain()
            if not self._unheard:
                return
            if time.monotonic() > end:
                raise PublishError(f"{self.topic}: nobody subscribed within {PATIENCE:.0f} s; see the agent's log")
            self.sent -= 1
            time.sleep(0.1)

    def _send(self, number: int) -> None:
        self._wait_until(lambda: self._given - self._taken < WINDOW)
        self._given += 1  # outside the lock: paho calls `_acknowledged` while it holds one that `publish` wants
        self.sent += 1
        self._client.publish(self.topic, self.payloads[number], qos=1)

    def _drain(self) -> None:
        self._wait_until(lambda: self._given == self._taken)

    def _wait_until(self, true: Callable[[], bool]) -> None:
        with self._room:
            if not self._room.wait_for(true, PATIENCE):
                done = f"{self.sent} of {len(self.order)}"
                raise PublishError(f"{self.topic}: the broker took no message for {PATIENCE:.0f} s, after {done}")

    def _acknowledged(self, _client: Any, _data: Any, _mid: int, reason: Any, _properties: Any) -> None:
        with self._room:
            self._unheard |= reason.value == NO_SUBSCRIBERS
            self._taken += 1
            self._room.notify()


class Collector:
    """Collects the answers that agents publish; a context manager."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._messages: list[bytes] = []
        self._ready, self._caught_up = threading.Event(), threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, "demo-collector", protocol=paho.MQTTv5)
        self._client.on_connect = lambda client, *_: client.subscribe("sluicegate/+/results", qos=1)
        self._client.on_subscribe = lambda *_: self._ready.set()
        self._client.on_message = lambda _c, _d, message: self._take(bytes(message.payload))

    def __enter__(self) -> Collector:
        self._client.connect("127.0.0.1", self._port)
        self._client.loop_start()
        if not self._ready.wait(PATIENCE):
            raise PublishError("the broker did not confirm the subscription to the agents' results")
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _take(self, payload: bytes) -> None:
        if payload:
            self._messages.append(payload)
        else:
            self._caught_up.set()

    def catch_up(self) -> None:
        """Return when the answers are here that were on their way: a message of our own comes behind them."""
        time.sleep(0.2)  # what the broker has still to read
        self._client.publish("sluicegate/-/results", b"", qos=0)
        if not self._caught_up.wait(PATIENCE):
            raise PublishError("the broker did not send the collector's own message on")

    def results(self) -> Iterator[dict[str, Any]]:
        """Every answer received, with its device."""
        for message in list(self._messages):
            document = json.loads(message)
            for result in document["results"]:
                yield {"device": document["device"], **result}
