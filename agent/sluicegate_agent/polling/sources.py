"""The `[[source]]` tables that an agent needs for what `sluicegate poll` hands on."""

from __future__ import annotations

import json

from sluicegate_agent.polling.config import PollConfig


def sources(config: PollConfig) -> str:
    """TOML, a table a device."""
    return "\n".join(_source(device.topic, [*device.values]) for device in config.devices)


def _source(topic: str, names: list[str]) -> str:
    streams = ", ".join(f'"{name}" = "values.{name}"' for name in names)
    return f"""[[source]]
topic = {json.dumps(topic)}
input = "http"
time = "time"
time_format = "ms"
sequence = "seq"
epoch = "boot"
streams = {{ {streams} }}
"""
