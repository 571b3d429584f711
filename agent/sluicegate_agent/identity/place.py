"""Where a file that grows is read to: its lines before that place were counted, whatever they say."""

from __future__ import annotations

import sqlite3

import msgspec
from msgspec import Struct

from sluicegate_agent.checksums import Part, checksum, require_sound


class Place(Struct, array_like=True):
    """A file, the bytes that were read of it, and the last of those; no `crc`: of an older Sluicegate."""

    device: int
    inode: int
    offset: int
    mark: bytes
    crc: int | None = None

    def pack(self, key: str) -> bytes:
        """As it is stored under a key of `meta`."""
        self.crc = checksum(*_checked(key, self))
        return _encode(self)


class Known(Struct, array_like=True):
    """Files beside it that need not be read, and how long they were."""

    files: dict[str, int]
    crc: int = 0

    def pack(self, key: str) -> bytes:
        """As it is stored under a key of `meta`."""
        self.crc = checksum(key, str(self.files))
        return _encode(self)


_decode_known = msgspec.msgpack.Decoder(Known).decode
_decode = msgspec.msgpack.Decoder(Place).decode
_encode = msgspec.msgpack.Encoder().encode


def read_place(key: str, value: object) -> Place:
    """A place as it is stored. Raises sqlite3.DatabaseError for one that is not as it was written."""
    try:
        place = _decode(value)  # type: ignore[arg-type]  # another type than bytes is refused
    except (msgspec.MsgspecError, TypeError) as error:
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: {key}: {error}") from error
    require_sound("meta", place.crc, *_checked(key, place))
    return place


def read_known(key: str, value: object) -> dict[str, int]:
    """The files that were known, as they are stored. Raises sqlite3.DatabaseError, as `read_place`."""
    try:
        known = _decode_known(value)  # type: ignore[arg-type]  # another type than bytes is refused
    except (msgspec.MsgspecError, TypeError) as error:
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: {key}: {error}") from error
    require_sound("meta", known.crc, key, str(known.files))
    return known.files


def _checked(key: str, place: Place) -> tuple[Part, ...]:
    return key, place.device, place.inode, place.offset, place.mark
