"""The plants that are measured: a configuration and the payload of message i, for each shape of message."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

BEGIN = 1_750_000_000
METRICS = ("temp", "humid", "press", "flow", "level", "power")
ITEMS = 100
TOPIC = "plant/line"


class World(NamedTuple):
    """`payload(i)`: message i, a second after the one before; `readings`: how many it holds.

    `is_sent`: with a folder as target, so that documents are made; else closed buckets stay in the outbox.
    """

    what: str
    readings: int
    source: dict[str, Any]
    payload: Callable[[int], bytes]
    windows: int = 1
    is_sent: bool = False


def _value(i: int) -> float:
    return round(20 + (i * 7919 % 1000) / 100, 2)


def _one(i: int) -> bytes:
    return json.dumps({"n": i, "t": BEGIN + i, "temp": _value(i)}).encode()


def _six(i: int) -> bytes:
    return json.dumps({"n": i, "t": BEGIN + i, **{name: _value(i + k) for k, name in enumerate(METRICS)}}).encode()


def _array(i: int) -> bytes:
    first = BEGIN + i * ITEMS
    return json.dumps([{"t": first + k, "temp": _value(first + k)} for k in range(ITEMS)]).encode()


def _number(i: int) -> bytes:
    return str(_value(i)).encode()


_TIMED = {"topic": TOPIC, "time": "t", "time_format": "s"}
_COUNTED = _TIMED | {"sequence": "n"}
_ARRAY = _TIMED | {"format": "array", "streams": {"temp": "temp"}}
WORLDS = (
    World("one reading, one window", 1, _COUNTED | {"streams": {"temp": "temp"}}, _one),
    World("one reading, three windows", 1, _COUNTED | {"streams": {"temp": "temp"}}, _one, 3),
    World("six metrics, one window", 6, _COUNTED | {"streams": {name: name for name in METRICS}}, _six),
    World("a number, one window", 1, {"topic": TOPIC, "format": "number", "streams": {"temp": ""}}, _number),
    World("an array of 100", ITEMS, _ARRAY, _array),
    World("an array of 100, sent", ITEMS, _ARRAY, _array, is_sent=True),
)
WINDOWS = (
    {"name": "hour", "policy": {"time": "1h"}, "aggregate": ["mean", "max"], "buckets": 64},
    {"name": "day", "policy": {"time": "24h"}, "aggregate": ["mean", "max"], "buckets": 64},
    {"name": "last", "policy": {"count": 1000}, "aggregate": "mean", "buckets": 64},
)


def tables(world: World, port: int = 1883) -> dict[str, Any]:
    """Its configuration, as TOML would be read."""
    return {
        "device": {"id": "bench"},
        "state": {"path": "state"},
        "mqtt": {"host": "127.0.0.1", "port": port},
        "source": [world.source],
        "window": list(WINDOWS[: world.windows]),
        "results": {"topic": ""},
        "sync": {"target": "directory", "path": "."} if world.is_sent else {"target": "none"},
    }


def write_toml(path: Path, raw: dict[str, Any]) -> None:
    """The same as a file."""
    lines = []
    for name, table in raw.items():
        for each in table if isinstance(table, list) else [table]:
            lines.append(f"[[{name}]]" if isinstance(table, list) else f"[{name}]")
            lines += [f"{key} = {_toml(value)}" for key, value in each.items()]
    path.write_text("\n".join(lines) + "\n")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)
