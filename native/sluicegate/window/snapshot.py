"""Stored windows as bytes: little-endian, versioned, checked by CRC-32 and by the configuration they belong to.

    magic 4 | version u16 | kind u16 | fingerprint 16 | length u64 | payload | crc32 u32 of all before

This envelope is the same in every version, so that damage is told apart from a newer version. A state's payload is
`Saved` in order; a snapshot's adds the closed leaves.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import zlib
from array import array
from collections.abc import Sequence
from math import isnan

from sluicegate.core import KEPT_LEVELS, NEVER, Saved
from sluicegate.errors import ForeignSnapshotError, NewerSnapshotError, SnapshotError
from sluicegate.histograms.constrained import LEAST
from sluicegate.monoids.layout import WIDE, Layout, Op

#: All earlier ones are read. 1: R1 whole, no histograms; 2: no limit of buckets now, nothing that held a window; 3: no
#: buckets of late readings.
VERSION = 4
STATE, SNAPSHOT = 1, 2
LARGEST = 2**40
_MAGIC = b"SGW\x1a"
_HEAD = struct.Struct("<4sHH16sQ")
_CRC = struct.Struct("<I")
_LENGTH = struct.Struct("<I")
_LIMIT = struct.Struct("<2q")
_FIXED = struct.Struct("<8q2H3B")
_NAMES = {STATE: "window state", SNAPSHOT: "window snapshot"}


def fingerprint(parts: Sequence[str]) -> bytes:
    """16 bytes that tell one configuration from another."""
    return hashlib.sha256("\x1f".join(parts).encode()).digest()[:16]


def seal(kind: int, owner: bytes, payload: bytes, version: int) -> bytes:
    """Put a payload into its envelope; `version`: as `version_of` the state in it."""
    head = _HEAD.pack(_MAGIC, version, kind, owner, len(payload)) + payload
    return head + _CRC.pack(zlib.crc32(head))


def unseal(kind: int, owner: bytes, data: bytes) -> tuple[int, memoryview]:
    """The version and the payload of an envelope.

    Raises SnapshotError for damaged or truncated bytes, NewerSnapshotError for a later version, ForeignSnapshotError
    for another window's.
    """
    name = _NAMES[kind]
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SnapshotError(f"{name}: {type(data).__name__}, expected the bytes that Sluicegate stored")
    view = memoryview(data).cast("B")
    if len(view) < _HEAD.size + _CRC.size or bytes(view[:4]) != _MAGIC:
        raise SnapshotError(f"{name}: {len(view)} bytes that do not begin like one; expected what Sluicegate stored")
    _, version, found, whose, length = _HEAD.unpack_from(view)
    if length > LARGEST or length != len(view) - _HEAD.size - _CRC.size:
        raise SnapshotError(
            f"{name}: damaged or truncated, it states {length} bytes of payload and {len(view)} are there"
        )
    if zlib.crc32(view[: -_CRC.size]) != _CRC.unpack_from(view, len(view) - _CRC.size)[0]:
        raise SnapshotError(f"{name}: damaged, its checksum does not match; use an older one or start the window anew")
    if version > VERSION:
        raise NewerSnapshotError(f"{name}: version {version}, this Sluicegate reads up to {VERSION}; upgrade it")
    if found != kind:
        raise ForeignSnapshotError(f"{name}: these bytes hold a {_NAMES.get(found, 'record')} of kind {found}")
    if whose != owner:
        raise ForeignSnapshotError(
            f"{name}: of another configuration (aggregates, policy, engine or histograms differ, "
            "or Sluicegate 0.1 wrote it, whose buckets kept less about extremes)"
        )
    return version, view[_HEAD.size : -_CRC.size]


def version_of(saved: Saved) -> int:
    """The oldest version that can say it, so that an older Sluicegate reads what it can."""
    return 4 if saved.late else 3


def pack_state(saved: Saved) -> bytes:
    """All of a window but its closed leaves."""
    partials = (saved.left, saved.right, saved.newest_leaf)
    fixed = _FIXED.pack(
        saved.accepted, saved.newest, saved.edge, saved.created, saved.head, saved.tail, saved.mark, saved.level,
        len(saved.heads), len(saved.centers), *(bool(partial) for partial in partials),
    )  # fmt: skip
    return b"".join([
        fixed, struct.pack(f"<{len(saved.heads)}q", *saved.heads),
        struct.pack(f"<{len(saved.centers)}d", *saved.centers),
        *(portable(partial) for partial in partials), _LENGTH.pack(len(saved.rules)), saved.rules,
        *((_LENGTH.pack(len(saved.late)), portable(saved.late)) if saved.late else ()),
        _LIMIT.pack(saved.limit, saved.held),
    ])  # fmt: skip


def unpack_state(version: int, payload: memoryview, width: int, limit: int) -> tuple[Saved, memoryview]:
    """A state and the bytes after it; `limit`: the window's own, which its limit now does not exceed.

    Raises SnapshotError where its parts contradict each other.
    """
    if len(payload) < _FIXED.size:
        raise SnapshotError(f"window state: {len(payload)} bytes, expected at least {_FIXED.size}")
    *numbers, levels, dimensions, has_left, has_right, has_leaf = _FIXED.unpack_from(payload)
    need = _FIXED.size + 8 * (levels + dimensions + width * (has_left + has_right + has_leaf))
    accepted, _, _, _, head, tail, _, level = numbers
    if levels != level % KEPT_LEVELS or len(payload) < need or not 0 <= head <= tail <= accepted:
        raise SnapshotError(
            f"window state: {levels} levels, leaves {head} to {tail}, {accepted} readings do not fit together"
        )
    at = _FIXED.size
    heads, at = struct.unpack_from(f"<{levels}q", payload, at), at + 8 * levels
    centers, at = struct.unpack_from(f"<{dimensions}d", payload, at), at + 8 * dimensions
    partials = []
    for present in (has_left, has_right, has_leaf):
        partials.append(portable(bytes(payload[at : at + 8 * width * present])))
        at += 8 * width * present
    if version < 2:  # R1 was stored with the newest leaf in it: both are taken from the leaves anew
        partials[:2] = b"", b""
    rules, at = (b"", at) if version < 2 else _sized(payload, at, "histograms' state")
    late, at = (b"", at) if version < 4 else _sized(payload, at, "late buckets")
    now, held, at = _limit(version, payload, at, limit)
    return Saved._make([*numbers, heads, centers, *partials, rules, now, held, portable(late)]), payload[at:]


def _limit(version: int, payload: memoryview, at: int, most: int) -> tuple[int, int, int]:
    if version < 3:
        return most, NEVER, at
    if len(payload) < at + _LIMIT.size:
        raise SnapshotError(f"window state: {len(payload)} bytes, expected the limit of buckets after {at}")
    limit, held = _LIMIT.unpack_from(payload, at)
    if not min(LEAST, most) <= limit <= most:
        raise SnapshotError(f"window state: a limit of {limit} buckets, the window's own is {most}")
    return limit, held, at + _LIMIT.size


def stored_limit(state: bytes) -> int | None:
    """The limit of buckets that a window state holds, as `Window.state` gave it; None where it does not say.

    0: no constrained footprint. For whoever shows a stored window without building it.
    """
    if len(state) < _HEAD.size + _LIMIT.size + _CRC.size or _HEAD.unpack_from(state)[1] < 3:
        return None
    return int(_LIMIT.unpack_from(state, len(state) - _CRC.size - _LIMIT.size)[0])


def _sized(payload: memoryview, at: int, what: str) -> tuple[bytes, int]:
    if len(payload) < at + _LENGTH.size:
        raise SnapshotError(f"window state: {len(payload)} bytes, expected the {what} after {at}")
    end = at + _LENGTH.size + int(_LENGTH.unpack_from(payload, at)[0])
    if len(payload) < end:
        raise SnapshotError(f"window state: {len(payload)} bytes, the {what} end at {end}")
    return bytes(payload[at + _LENGTH.size : end]), end


def refuse_nan(layout: Layout, leaves: Sequence[bytes]) -> None:
    """Raise SnapshotError for a NaN that no operation leaves."""
    for first in range(0, len(leaves), 4096):  # so many lie twice in memory
        floats = array("d", b"".join(leaves[first : first + 4096]))
        for slot in _floats(layout) if any(map(isnan, floats)) else ():  # whole numbers seldom look so
            if any(map(isnan, floats[slot :: layout.width])):
                raise SnapshotError(
                    f"window state: NaN in slot {slot} of a leaf, the {first}th or one after it; use an older one or "
                    "start the window anew"
                )


def _floats(layout: Layout) -> list[int]:
    single = not layout.bucketed  # else products may have overflown
    own = [each for each in layout.components if each.op < WIDE or (single and each.op != Op.COMPILED)]
    return [each.slot + k for each in own for k, code in enumerate(each.format) if code == "d"]


def portable(slots: bytes) -> bytes:
    """Slots of 8 bytes from the machine's order to little-endian, or back."""
    if sys.byteorder == "little":
        return slots
    swapped = array("q", slots)
    swapped.byteswap()
    return swapped.tobytes()
