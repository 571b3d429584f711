"""A manifest as bytes: all of a window that its whole pages do not hold, at one reading's end.

    magic 4 | version u16 | levels u16 | sequence u64 | head i64 | tail i64 | shift u32 | width u32 | lives u32
    | lengths of the last three parts 3 × u32 | crc32 u32
    | lives: (number u32, reserved u32, tail i64) … | levels: (kept u64, begin u64, partials u32, reserved u32) …
    | description | state | partials of each level, oldest first

Two rows take turns, so a torn write leaves the other. The leaves head … tail − 1 are in the window; a life's `tail` is
how many had entered before it began. Of each stored level: `kept`, the first page that may still be there; `begin`,
the index of the first partial that is in no whole page.
Nothing in it is ever executed or unpickled: the description is JSON of plain values, see `description`.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from sluicegate.errors import CorruptPageError, NewerSnapshotError
from sluicegate.stores.contract import LARGEST_VALUE, MANIFEST, Key, Store

VERSION = 1
_MAGIC = b"SGM\x1a"
_HEAD = struct.Struct("<4sHHQqqIIIIII")
_CRC = struct.Struct("<I")
_LIFE = struct.Struct("<IIq")
_LEVEL = struct.Struct("<QQII")


class Life(NamedTuple):
    """One opening of a store: its number, and how many leaves had entered the window before."""

    number: int
    tail: int


class Level(NamedTuple):
    """What a manifest says of one stored level."""

    kept: int  # the first page that may still be stored
    begin: int  # index of the first of `partials`
    partials: bytes  # those that are in no whole page, little-endian


class Manifest(NamedTuple):
    """All that is needed, besides the pages, to go on."""

    sequence: int
    head: int
    tail: int
    shift: int  # a page holds 2^shift partials
    width: int
    lives: tuple[Life, ...]  # oldest first; the last is the one that wrote this
    levels: tuple[Level, ...]  # levels 0, shift, 2·shift … of the tree
    description: bytes
    state: bytes

    @property
    def heads(self) -> list[int]:
        """The first page of each level that is needed."""
        return [self.head >> self.shift * (tier + 1) for tier in range(len(self.levels))]


def encode(manifest: Manifest) -> bytes:
    """The manifest as a row's value. Raises ValueError where it would be larger than a store takes."""
    lives = b"".join(_LIFE.pack(life.number, 0, life.tail) for life in manifest.lives)
    size = 8 * manifest.width
    levels = b"".join(_LEVEL.pack(e.kept, e.begin, len(e.partials) // size, 0) for e in manifest.levels)
    body = [lives, levels, manifest.description, manifest.state, *(e.partials for e in manifest.levels)]
    head = _HEAD.pack(
        _MAGIC, VERSION, len(manifest.levels), manifest.sequence, manifest.head, manifest.tail, manifest.shift,
        manifest.width, len(manifest.lives), len(manifest.description), len(manifest.state),
        sum(len(e.partials) for e in manifest.levels),
    )  # fmt: skip
    payload = b"".join(body)
    if len(head) + len(payload) > LARGEST_VALUE:
        raise ValueError(f"store: a manifest of {len(payload)} bytes, expected up to 8 MiB; take smaller pages")
    return b"".join([head, _CRC.pack(zlib.crc32(payload, zlib.crc32(head))), payload])


def decode(value: bytes) -> Manifest:
    """The manifest that a row holds. Raises CorruptPageError for anything else, NewerSnapshotError for a newer one."""
    if len(value) < _HEAD.size + _CRC.size or value[:4] != _MAGIC:
        raise CorruptPageError(f"store: {len(value)} bytes that do not begin like a manifest")
    _, version, count, sequence, head, tail, shift, width, lived, described, stated, held = _HEAD.unpack_from(value)
    at = _HEAD.size + _CRC.size
    if zlib.crc32(memoryview(value)[at:], zlib.crc32(value[: _HEAD.size])) != _CRC.unpack_from(value, _HEAD.size)[0]:
        raise CorruptPageError("store: a manifest is damaged, its checksum does not match")
    if version != VERSION:
        raise NewerSnapshotError(
            f"store: a manifest of version {version}, this Sluicegate reads {VERSION}; use a newer one"
        )
    if len(value) != at + _LIFE.size * lived + _LEVEL.size * count + described + stated + held or not lived:
        raise CorruptPageError(f"store: a manifest of {len(value)} bytes, its parts say otherwise")
    lives = tuple(Life(number, tail) for number, _, tail in _all(_LIFE, value, at, lived))
    at += _LIFE.size * lived
    rows = _all(_LEVEL, value, at, count)
    at += _LEVEL.size * count
    description, state = value[at : at + described], value[at + described : at + described + stated]
    levels, at = [], at + described + stated
    for kept, begin, partials, _ in rows:
        levels.append(Level(kept, begin, value[at : at + 8 * width * partials]))
        at += 8 * width * partials
    if at != len(value):
        raise CorruptPageError(f"store: a manifest of {len(value)} bytes, its partials end at {at}")
    return Manifest(sequence, head, tail, shift, width, lives, tuple(levels), description, state)


def _all(of: struct.Struct, value: bytes, at: int, count: int) -> list[tuple[int, ...]]:
    return list(of.iter_unpack(value[at : at + of.size * count]))


def newest(store: Store) -> tuple[Manifest, int] | None:
    """The newest whole manifest and the row it is in (0 or 1), None where the store has none at all.

    A torn one beside it is what a crash leaves, and ignored, unless the store has attribute `atomic`. Raises
    CorruptPageError where rows are there and none is whole, NewerSnapshotError for one of a later Sluicegate.
    """
    found, torn = [], []
    for row, value in enumerate(store.get([Key(MANIFEST, 0), Key(MANIFEST, 1)])):
        if value is None:
            continue
        try:
            found.append((decode(value), row))
        except CorruptPageError as error:
            torn.append(error)
    if torn and (not found or getattr(store, "atomic", False)):
        raise CorruptPageError(
            f"{torn[0]}; no manifest is sure to be whole: restore the store, or start the window anew"
        )
    return max(found, key=lambda each: each[0].sequence, default=None)
