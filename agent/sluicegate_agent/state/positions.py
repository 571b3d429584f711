"""Where an input beside MQTT goes on after a restart: a row of `meta` for each, with a checksum."""

from __future__ import annotations

import sqlite3

import msgspec
from msgspec import Struct

from sluicegate_agent.checksums import checksum, require_sound

#: How the keys of these rows begin; bytes of a position at most.
POSITION, POSITION_MOST = "input ", 4096


class Position(Struct, array_like=True):
    """What an input said, as it said it."""

    said: bytes
    crc: int


_decode = msgspec.msgpack.Decoder(Position).decode
_encode = msgspec.msgpack.Encoder().encode


def packed(key: str, said: bytes) -> bytes:
    """As it is stored under a key of `meta`."""
    return _encode(Position(said, checksum(key, said)))


def read_position(key: str, value: object) -> bytes:
    """What was stored. Raises sqlite3.DatabaseError for a row that is not as it was written."""
    try:
        found = _decode(value)  # type: ignore[arg-type]  # another type than bytes is refused
    except (msgspec.MsgspecError, TypeError) as error:
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: {key}: {error}") from error
    require_sound("meta", found.crc, key, found.said)
    return found.said
