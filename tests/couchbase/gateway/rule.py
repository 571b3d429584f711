"""deploy/couchbase/sync.js once more, in Python, for the stand-in: who may write what, and into which channels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Rule = Callable[[dict[str, Any], "str | None", "set[str]"], list[str]]
_TEXTS = ("type", "id", "device", "stream", "incarnation", "codec", "data")
_WHOLE = ("format", "first", "readings", "buckets", "t_first", "t_last", "gap", "crc32")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}")
_STREAM = re.compile(_NAME.pattern + r"(/[^\x00-\x1f\x7f-\x9f]{1,64})?")
_TAG, _CARRIED = re.compile(r"[^\x00-\x1f\x7f-\x9f]{0,256}"), re.compile(r"[A-Za-z0-9+/]*={0,2}")
_DEPTH, _VALUES, _TEXT = 4, 1024, 1024


class Forbidden(Exception):  # noqa: N818  what the sync function throws
    """The reason."""


def shard_of(name: str) -> str:
    """The channel for parallel reading that a document's id goes to."""
    number = 0
    for character in name:
        number = (number * 31 + ord(character)) % 1_000_003
    return f"shard-{number % 16:02d}"


def telemetry(document: dict[str, Any], user: str | None, channels: set[str]) -> list[str]:
    """The channels of a chunk that a user with the right to `channels` writes. Raises Forbidden."""
    _need({*document} - {"_id", "_rev", "health", "key", "tags", "extras"} == {*_TEXTS, *_WHOLE, "center"}, "keys")
    _need(all(type(document[key]) is str for key in _TEXTS), "a text")
    _need(all(type(document[key]) is int for key in _WHOLE), "a whole number")
    _need(type(document["center"]) in (int, float) and isinstance(document.get("health", {}), dict), "center, health")
    _need(all(abs(document[key]) <= 2**62 for key in _WHOLE) and abs(document["center"]) <= 2**960, "a number's size")
    _need(document["type"] == "sluicegate.chunk", "type")
    _check_format(document)
    _need(1 <= document["buckets"] <= min(65536, document["readings"]), "buckets")
    _need(document["first"] >= 0 and document["t_first"] <= document["t_last"], "first")
    _need(0 <= document["crc32"] < 2**32, "crc32")
    _need(bool(re.fullmatch("[A-Za-z0-9+/]+={0,2}", document["data"])) and len(document["data"]) % 4 == 0, "data")
    _need(len(document["data"]) <= 8 * 2**20, "data's length")
    device, stream, incarnation = (document[key] for key in ("device", "stream", "incarnation"))
    _need(bool(_NAME.fullmatch(device) and _STREAM.fullmatch(stream)), "device or stream")
    _need(bool(re.fullmatch("[0-9a-f]{16}", incarnation)), "incarnation")
    told = f"{device}::{stream}::{incarnation}::{document['first']:016d}"
    _need(document["id"] == document["_id"] == told, "the id")
    _check_health(document.get("health", {}), 0, [_VALUES])
    _check_texts(document, "tags", 32, 8192, _NAME, _TAG)
    _check_texts(document, "extras", 16, 8 * 2**20, re.compile("[\x20-\x7e]{1,64}"), _CARRIED)
    _need(user in (None, device), "wrong user")
    _need(user is None or f"device-{device}" in channels, "no device's user")
    return [f"device-{device}", shard_of(told)]


def _check_format(document: dict[str, Any]) -> None:
    version, codec, keyed = document["format"], document["codec"], "key" in document
    _need(not keyed or bool(re.fullmatch("[0-9a-f]{32}", str(document["key"]))), "key")
    _need((version == 4) == ("extras" in document), "extras")
    named = keyed or "tags" in document
    spoken = ["columns-1", "columns-2", "columns-3"][0 if named or version == 4 else 2 :]
    spoken = spoken if version in (3, 4) else [f"columns-{version}"]
    _need(version in (1, 2, 3, 4) and codec in spoken and (version >= 3 or not named), "format or codec")


def _check_texts(
    document: dict[str, Any], name: str, most: int, longest: int, names: re.Pattern[str], values: re.Pattern[str]
) -> None:
    """What is known of the stream beside its name, and what its buckets carry."""
    if name not in document:
        return
    texts = document[name]
    _need(isinstance(texts, dict) and 0 < len(texts) <= most, name)
    _need(all(names.fullmatch(key) and isinstance(text, str) for key, text in texts.items()), name)
    _need(all(values.fullmatch(text) for text in texts.values()) and sum(map(len, texts.values())) <= longest, name)


def _check_health(value: Any, depth: int, left: list[int]) -> None:
    left[0] -= 1
    _need(left[0] >= 0, "health: too many values")
    _need(not isinstance(value, str) or len(value) <= _TEXT, "health: a long text")
    _need(not isinstance(value, str) or not re.fullmatch("-?[0-9]{20,}", value), "health: a number beyond 64 bits")
    _need(not isinstance(value, int | float) or abs(value) <= 2**63, "health: a number beyond 64 bits")
    if isinstance(value, dict | list):
        _need(depth < _DEPTH, "health: too deep")
        named = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in named:
            _need(len(str(key)) <= _TEXT, "health: a long name")
            _check_health(inner, depth + 1, left)


def plain(document: dict[str, Any], user: str | None, channels: set[str]) -> list[str]:
    """Anything of anybody."""
    return ["all"]


def _need(true: bool, reason: str) -> None:
    if not true:
        raise Forbidden(reason)
