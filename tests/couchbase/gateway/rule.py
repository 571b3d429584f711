"""deploy/couchbase/sync.js once more, in Python, for the stand-in: who may write what, and into which channels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Rule = Callable[[dict[str, Any], "str | None"], list[str]]
_TEXTS = ("type", "id", "device", "stream", "incarnation", "codec", "data")
_WHOLE = ("format", "first", "readings", "buckets", "t_first", "t_last", "gap", "crc32")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}")


class Forbidden(Exception):  # noqa: N818  what the sync function throws
    """The reason."""


def shard_of(name: str) -> str:
    """The channel for parallel reading that a document's id goes to."""
    number = 0
    for character in name:
        number = (number * 31 + ord(character)) % 1_000_003
    return f"shard-{number % 16:02d}"


def telemetry(document: dict[str, Any], user: str | None) -> list[str]:
    """The channels of a chunk. Raises Forbidden."""
    _need({*document} - {"_id", "_rev", "health"} == {*_TEXTS, *_WHOLE, "center"}, "keys")
    _need(all(type(document[key]) is str for key in _TEXTS), "a text")
    _need(all(type(document[key]) is int for key in _WHOLE), "a whole number")
    _need(type(document["center"]) in (int, float) and isinstance(document.get("health", {}), dict), "center, health")
    _need(document["type"] == "sluicegate.chunk" and document["format"] in (1, 2), "type or format")
    _need(document["codec"] == f"columns-{document['format']}", "codec")
    _need(1 <= document["buckets"] <= min(65536, document["readings"]), "buckets")
    _need(document["first"] >= 0 and document["t_first"] <= document["t_last"], "first")
    _need(0 <= document["crc32"] < 2**32, "crc32")
    _need(bool(re.fullmatch("[A-Za-z0-9+/]+={0,2}", document["data"])) and len(document["data"]) % 4 == 0, "data")
    device, stream, incarnation = (document[key] for key in ("device", "stream", "incarnation"))
    _need(bool(_NAME.fullmatch(device) and _NAME.fullmatch(stream)), "device or stream")
    _need(bool(re.fullmatch("[0-9a-f]{16}", incarnation)), "incarnation")
    told = f"{device}::{stream}::{incarnation}::{document['first']:016d}"
    _need(document["id"] == document["_id"] == told, "the id")
    _need(user in (None, device), "wrong user")
    return [f"device-{device}", shard_of(told)]


def plain(document: dict[str, Any], user: str | None) -> list[str]:
    """Anything of anybody."""
    return ["all"]


def _need(true: bool, reason: str) -> None:
    if not true:
        raise Forbidden(reason)
