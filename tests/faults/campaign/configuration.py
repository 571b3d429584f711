"""The agent's configuration of a run: one source by its identity, a window over all, small buckets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from campaign.plan import Plan
from campaign.sensor import STREAM

_SOURCES = {
    "sequence": 'sequence = "n"\nstreams = { level = "v" }',
    "epochs": 'sequence = "n"\nepoch = "boot"\nstreams = { level = "v" }',
    "time": 'time = "t"\ntime_format = "us"\nstreams = { level = "v" }',
    "bare": 'format = "number"\nstreams = { level = "" }',
    "constant": 'format = "number"\nstreams = { level = "" }',
}
#: What a form adds to a source.
_FORMS = {
    "json": "",
    "msgpack": 'format = "msgpack"',
    "cbor": 'format = "cbor"',
    "items": 'format = "array"',
}
_TEXT = """
[device]
id = "{device}"
[state]
path = "{state}"
memory = "64MiB"
[mqtt]
host = "127.0.0.1"
port = {port}
version = {version}
client_id = "agent-{client}"
receive_maximum = {receive_maximum}
keepalive = "{keepalive}"
[commit]
every = "{every}"
fold = "{fold}"
[identity]
horizon = {horizon}
[[source]]
topic = "{topic}"
{source}
[[window]]
name = "all"
policy = {{ count = 1000000 }}
aggregate = ["count", "sum"]
[bucket]
readings = {bucket}
[outbox]
chunk_buckets = 64
chunk_age = "{age}"
[results]
every = "100ms"
[sync]
every = "{sync_every}"
{sync}
"""


def text(plan: Plan, device: str, topic: str, port: int, disk: Path, sync: dict[str, Any]) -> str:
    """The file."""
    assert STREAM == "level"
    return _TEXT.format(
        **plan.settings,
        device=device,
        client=topic.rpartition("/")[2],
        topic=topic,
        port=port,
        state=disk / "state",
        version="5" if plan.version == "5" else f'"{plan.version}"',
        keepalive="5s" if "half-open" in plan.families else "60s",
        source=_source(plan),
        age="1s",
        sync="\n".join(f"{key} = {json.dumps(value)}" for key, value in sync.items()),
    )


def _source(plan: Plan) -> str:
    """The source of an identity in the run's form."""
    if plan.form == "line":
        return 'format = "line"\ntime_format = "us"\nstreams = { level = "m.v" }'
    return "\n".join(part for part in (_FORMS[plan.form], _SOURCES[plan.identity]) if part)
