"""What is published on a broker for some seconds: topics with a few payloads each, bounded in number and bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from paho.mqtt.subscribeoptions import SubscribeOptions

from sluicegate_agent.config import Config, Duration
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.link.options import client_of
from sluicegate_agent.link.reasons import reason_of

#: Topics, payloads of each, bytes of one.
TOPICS, SAMPLES, LONGEST = 500, 4, 65_536


class Heard:
    """Topics in the order in which they were heard, each with its first payloads."""

    def __init__(self) -> None:
        self.payloads: dict[str, list[bytes]] = {}
        self.beyond = 0

    def add(self, topic: str, payload: bytes) -> None:
        """One message."""
        if topic not in self.payloads and len(self.payloads) >= TOPICS:
            self.beyond += 1
            return
        found = self.payloads.setdefault(topic, [])
        if len(found) < SAMPLES and len(payload) <= LONGEST:
            found.append(payload)


def listen(config: Config, topics: list[str], seconds: float, tell: Callable[[int], None]) -> Heard:
    """Listen with a session of its own that leaves nothing behind; `tell` is told how many topics there are.

    Raises EnvironmentRefused where the broker cannot be reached, or refuses us.
    """
    heard, said = Heard(), {"reason": "it did not answer"}
    trial = replace(config.mqtt, client_id=f"sluicegate-init-{time.time_ns() % 10**9}", session_expiry=Duration(0))
    client = client_of(replace(config, mqtt=trial))
    once: Any = SubscribeOptions(qos=0) if config.mqtt.version == 5 else 0

    def connected(_c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        said["reason"] = str(reason) if reason.is_failure else ""
        if not reason.is_failure:
            client.awaited = len(topics)
            client.subscribe([(topic, once) for topic in topics])

    def subscribed(*_: Any) -> None:
        client.awaited = 0

    client.on_connect, client.on_subscribe = connected, subscribed
    place = f"{config.mqtt.host}:{config.mqtt.actual_port}"
    try:
        client.connect(config.mqtt.host, config.mqtt.actual_port, 30)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            client.loop(min(left, 0.2))
            for message in client.take():
                if not message.whole:
                    heard.add(message.topic, message.payload)
            tell(len(heard.payloads))
        client.disconnect()
        client.loop(0.1)
    except (OSError, ValueError) as error:
        raise EnvironmentRefused(f"broker {place}: {reason_of(error)}") from None
    if said["reason"]:
        raise EnvironmentRefused(f"broker {place} refuses us: {said['reason']}; correct the user and password")
    return heard
