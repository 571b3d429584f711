"""Home Assistant finds each window's answer by itself: one retained message that describes it as a sensor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from sluicegate.version import VERSION
from sluicegate_agent.config import Config
from sluicegate_agent.naming.names import base_of
from sluicegate_agent.results import topic_of

#: Aggregates in the unit of their stream's values.
_OF_VALUES = ("sum", "mean", "min", "max", "first", "last", "range", "std", "geometric_mean", "time_weighted_mean")


class Sender(Protocol):
    """The MQTT link."""

    def send(self, topic: str, payload: bytes, *, retain: bool) -> Any:
        """Send one with QoS 1; None when it has to wait."""


class Discovery:
    """Sends the descriptions once a connection, a few a turn; they are retained, so once more is harmless."""

    def __init__(self, config: Config, sender: Sender) -> None:
        self._sender = sender
        self._all = [*descriptions(config)]
        self._left: list[tuple[str, bytes]] = []
        self._flying: list[Any] = []
        self._connection = 0

    def step(self, connection: int) -> None:
        """Go on; `connection` numbers the connections to the broker, 0 before the first."""
        if connection != self._connection:
            self._connection, self._left, self._flying = connection, [*self._all], []
        self._flying = [info for info in self._flying if not info.is_published()]
        while self._left and len(self._flying) < 8:
            topic, payload = self._left[0]
            info = self._sender.send(topic, payload, retain=True)
            if info is None:
                return
            self._flying.append(info)
            del self._left[0]


def descriptions(config: Config) -> Iterator[tuple[str, bytes]]:
    """Topic and JSON of each window's answers that are one number."""
    results = config.results
    template = results.topic.replace("{device}", config.device.id)
    units = {name: asked.unit for source in config.sources for name, asked in source.values.items()}
    for stream in config.streams:
        for window in config.windows_of(stream):
            for aggregate in window.aggregates:
                name = "".join(c if c.isalnum() else "_" for c in f"{stream}_{window.name}_{aggregate}")
                unique = f"{config.device.id}_{name}".replace(".", "_")
                state = topic_of(template, stream, window.name, aggregate)
                body = _sensor(config.device.id, unique, f"{stream} {aggregate} {window.name}", state, aggregate)
                unit = units.get(base_of(stream), "")
                if unit and aggregate in _OF_VALUES:
                    body["unit_of_measurement"] = unit
                node = config.device.id.replace(".", "_")
                yield f"{results.home_assistant}/sensor/{node}/{name}/config", json.dumps(body).encode()


def _sensor(device: str, unique: str, name: str, topic: str, aggregate: str) -> dict[str, Any]:
    found = f"(value_json.results | selectattr('aggregate', 'eq', '{aggregate}') | first)"
    return {
        "name": name,
        "unique_id": f"sluicegate_{unique}",
        "state_topic": topic,
        "value_template": f"{{{{ {found}.value }}}}",
        "json_attributes_topic": topic,
        "json_attributes_template": f"{{{{ {found} | tojson }}}}",
        "state_class": "measurement",
        "device": {"identifiers": [f"sluicegate_{device}"], "name": device, "sw_version": f"Sluicegate {VERSION}"},
        "origin": {"name": "Sluicegate", "sw": VERSION},
    }
