"""A page as bytes: up to 512 partials of one level, little-endian, with what tells it from any other page.

    magic 4 | version u16 | level u16 | width u32 | count u32 | number u64 | life u32 | reserved u32 | crc32 u32
    | partials

`width`: slots of 8 bytes a partial has; `number`: the page's place in its level; `life`: which opening of the store
wrote it, so that what an earlier life wrote beyond its last manifest never passes for a later one's. The checksum is
of all the rest.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from sluicegate.errors import CorruptPageError
from sluicegate.stores.contract import LARGEST_VALUE, Key

VERSION = 1
_MAGIC = b"SGP\x1a"
_HEAD = struct.Struct("<4sHHIIQII")
_CRC = struct.Struct("<I")
OVERHEAD = _HEAD.size + _CRC.size
MOST_SLOTS = (LARGEST_VALUE - OVERHEAD) // 8


class Page(NamedTuple):
    """What a page says of itself, and its partials."""

    life: int
    partials: bytes  # little-endian


def encode(key: Key, life: int, width: int, partials: bytes) -> bytes:
    """A page of little-endian partials as a row's value."""
    head = _HEAD.pack(_MAGIC, VERSION, key.level, width, len(partials) // (8 * width), key.page, life, 0)
    return b"".join([head, _CRC.pack(zlib.crc32(partials, zlib.crc32(head))), partials])


def decode(key: Key, width: int, count: int, value: bytes | None) -> Page:
    """The page `key` of `count` partials. Raises CorruptPageError for anything else."""
    place = f"store: page {key.page} of level {key.level}"
    if value is None:
        raise CorruptPageError(f"{place} is missing; restore the store, or start the window anew")
    if len(value) < OVERHEAD or value[:4] != _MAGIC:
        raise CorruptPageError(f"{place}: {len(value)} bytes that do not begin like a page; restore the store")
    _, version, level, slots, partials, number, life, _ = _HEAD.unpack_from(value)
    (crc,) = _CRC.unpack_from(value, _HEAD.size)
    body = value[OVERHEAD:]
    if zlib.crc32(body, zlib.crc32(value[: _HEAD.size])) != crc:
        raise CorruptPageError(f"{place}: damaged, its checksum does not match; restore the store")
    if version != VERSION:
        raise CorruptPageError(f"{place}: of version {version}, expected {VERSION}; use a newer Sluicegate")
    if (level, number) != key or (slots, partials, len(body)) != (width, count, 8 * width * count):
        raise CorruptPageError(
            f"{place}: holds page {number} of level {level}, {partials} partials of {slots} slots, "
            f"expected {count} of {width}; the store has mixed up its rows"
        )
    return Page(life, body)
