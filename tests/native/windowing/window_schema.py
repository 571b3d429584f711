"""Writes docs/schema/window.schema.json, the JSON Schema of a window's table for editors: run it after a change.

It says what can be seen of a definition without calculating; `WindowSpec.from_dict` says the rest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluicegate.policies import MAX_COUNT
from sluicegate.windowing.calendar import UNITS
from sluicegate.windowing.partitions import SELECTIONS

Schema = dict[str, Any]


def schema() -> Schema:
    """What an agent's `[[window]]`, `WindowSpec.from_dict` and `cloud merge --windows` read."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "window.schema.json",
        "title": "Sluicegate window",
        "description": "A [[window]] of the agent or of `cloud merge --windows`, or what sg.WindowSpec.from_dict reads",
        "oneOf": [*_kinds()],
        "$defs": _definitions(),
    }


def _kinds() -> list[Schema]:
    lateness, keyed = {"lateness": _ref("lateness")}, {"key": _ref("key"), "partitions": _ref("partitions")}
    placed = {"aligned": _ref("aligned"), "timezone": _ref("timezone")}
    early = {"trigger": _ref("early")}
    by_arrival = _one_of("byCount", "byTime", "byDelta", "byPunctuation")
    policy = _one_of("asked", "byDelta")
    tumbling_by_time = {"evict": _ref("byTime"), **early, **lateness, **placed}
    return [
        _table("answered when it is asked, short", None, {"policy": policy} | keyed, ["policy"]),
        _table("answered when it is asked", "sliding", {"evict": policy} | keyed, ["evict"]),
        _table("tumbling, by arrival", "tumbling", {"evict": by_arrival} | keyed, ["evict"]),
        _table("tumbling, by event time", "tumbling", tumbling_by_time | keyed, [])
        | {"anyOf": [{"required": ["evict", "lateness"]}, {"required": ["aligned"]}]},
        _table("sliding", "sliding", _sliding("evict") | {"kind": {"const": "sliding"}} | keyed, ["evict", "trigger"]),
        _table("sliding, short", None, _sliding("policy") | keyed, ["policy", "trigger"]),
        _table("hopping, by event time", "hopping", _hopping(early | lateness | placed) | keyed, ["evict"]),
        _table("session, by event time", "session", {"evict": _ref("byTime"), **early, **lateness} | keyed, ["evict"]),
    ]


def _sliding(evict: str) -> Schema:
    return {
        evict: _one_of("byCount", "byTime", "byDelta"),
        "trigger": _one_of("byCount", "byTime", "onDelta"),
        "partial": {"type": "boolean", "description": "Whether it is processed before it has been full"},
    }


def _hopping(common: Schema) -> Schema:
    return {"evict": _ref("byHops"), **common, "aligned": {"enum": ["clock", "day", "week"]}}


def _table(title: str, kind: str | None, properties: Schema, required: list[str]) -> Schema:
    """One kind of window; what a `[[window]]` says beside what it is may stand in each."""
    named = {"kind": {"const": kind}} if kind else {}
    depends = {"partitions": ["key"]} | ({"timezone": ["aligned"]} if "timezone" in properties else {})
    return {
        "title": title,
        "type": "object",
        "properties": named | properties | _asked(),
        "required": [*named, *required],
        "dependentRequired": depends,
        "additionalProperties": False,
    }


def _asked() -> Schema:
    """What is asked of which streams, and how a board keeps it."""
    kept = {name: _ref(name) for name in ("sum_like", "max_like", "hop")}
    return {
        "name": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$"},
        "streams": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": 'Names, or "*" for all',
        },
        "aggregate": _ref("aggregate"),
        "buckets": {"type": "integer", "minimum": 0, "description": "The most a board keeps; 0: no such limit"},
        "merge": {"enum": ["levels", "pairs"]},
        **kept,
        "shares": {"type": "string", "description": "The longer window from whose buckets a board answers it"},
        "was": {"type": "string", "description": "The name that it had before"},
        "cloud": {"type": "boolean", "description": "Send what the cloud needs to answer its aggregates too"},
    }


def _definitions() -> Schema:
    attribute = {"type": "string", "description": "An attribute; empty: the reading itself"}
    count = {"type": "integer", "minimum": 1, "maximum": MAX_COUNT}
    width, length = {"type": "number", "minimum": 0}, _ref("length")
    up_to = {"enum": ["max", "min"], "description": "What cannot be that any more leaves"}
    of_delta = {"delta": attribute, "width": width}
    by_count = _only({"count": count, "hop": count, "up_to": up_to}, ["count"])
    by_time = _only({"time": length, "hop": length, "up_to": up_to}, ["time"])
    names = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
    limits = {"count": count, "readings": count, "age": length, "select": {"enum": [*SELECTIONS]}}
    return {
        "length": {
            "description": "A length of time: µs, or a text such as 24h, 90s, 500ms",
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": r"^\s*[0-9]{1,19}(\.[0-9]{1,9})?\s*(us|ms|s|min|m|h|d|w)\s*$"},
            ],
        },
        "lateness": {
            "anyOf": [length, {"const": 0}],
            "description": "How late a reading may be and still correct a result",
        },
        "asked": {"oneOf": [by_count, by_time]},
        "byCount": _only({"count": count}, ["count"]),
        "byTime": _only({"time": length}, ["time"]),
        "byHops": _only({"time": length, "hop": length}, ["time", "hop"]),
        "byDelta": _only(of_delta | {"growing": {"type": "boolean"}}, ["delta", "width"]),
        "onDelta": _only(of_delta, ["delta", "width"]),
        "byPunctuation": _only({"punctuation": {"const": True}}, ["punctuation"]),
        "early": _one_of("byCount", "byTime") | {"description": "When early results are given"},
        "aligned": {"enum": ["clock", *UNITS]},
        "timezone": {"type": "string", "description": "IANA's name, such as Europe/Vienna; UTC unless said"},
        "key": {
            "description": "The attribute, or attributes, of whose values each has its own window",
            "oneOf": [{"type": "string", "minLength": 1}, names],
        },
        "partitions": _only(limits, [])
        | {
            "description": "Which of the keys' windows leave",
            "anyOf": [{"required": [limit]} for limit in ("count", "readings", "age")],
        },
        "aggregate": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
        **{rule: {"type": "object", "description": "Where a bucket ends"} for rule in ("sum_like", "max_like", "hop")},
    }


def _only(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _one_of(*names: str) -> Schema:
    return {"oneOf": [_ref(name) for name in names]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


if __name__ == "__main__":
    written = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    (Path(__file__).parents[3] / "docs/schema/window.schema.json").write_text(written, "utf-8")
