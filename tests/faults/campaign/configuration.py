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
enabled = true
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
topic = "{subscribed}"
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
{more}
[sync]
every = "{sync_every}"
{sync}
"""


_WAYS = {
    "mqtt": "",
    "shared": "",
    "sparkplug": "",
    "http": 'input = "http"',
    "tail": 'input = "tail"\nfile = "{file}"',
}


def text(
    plan: Plan, device: str, topic: str, port: int, disk: Path, sync: dict[str, Any], *, listen: int, grows: Path,
    edition: int = 0,
) -> str:  # fmt: skip
    """The file; `listen`: the port for POST, `grows`: the file of lines. Editions differ as a reload may have it."""
    assert STREAM == "level"
    subscribed = {"shared": f"$share/campaign/{topic}", "sparkplug": f"spBv1.0/{topic.rpartition('/')[2]}/#"}.get(
        plan.way, topic
    )
    more = f'[http]\nlisten = "127.0.0.1:{listen}"' if plan.way == "http" else ""
    if edition:
        more += _EDITION.format(edition=edition)
    settings = plan.settings | ({"bucket": 2 + edition % 3, "every": "70ms"} if edition else {})
    return _TEXT.format(
        **settings,
        subscribed=subscribed,
        more=more,
        device=device,
        client=topic.rpartition("/")[2],
        port=port,
        state=disk / "state",
        version="5" if plan.version == "5" else f'"{plan.version}"',
        keepalive="5s" if "half-open" in plan.families else "60s",
        source=f"{_source(plan)}\n{_WAYS[plan.way].format(file=grows)}",
        age="1s",
        sync="\n".join(f"{key} = {json.dumps(value)}" for key, value in sync.items()),
    )


#: What editions have that the first has not.
_EDITION = """
[availability]
every = "{edition}min"
[[window]]
name = "more"
policy = {{ count = 500 }}
"""


def _source(plan: Plan) -> str:
    """The source of an identity in the run's form."""
    if plan.form == "sparkplug":
        return 'format = "sparkplug"\nkeys = { most = 4 }\nstreams = { level = "Level" }'
    if plan.form == "line":
        return 'format = "line"\ntime_format = "us"\nstreams = { level = "m.v" }'
    return "\n".join(part for part in (_FORMS[plan.form], _SOURCES[plan.identity]) if part)
