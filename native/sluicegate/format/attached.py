"""The extras of a chunk as bytes: by name, which of the buckets (of those stored whole) have one, and their slots.

Each name has a string of its own, so that a reader passes over those that it does not know. Standard library only.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence

from sluicegate.constants import MOST_EXTRAS
from sluicegate.format.extras import Extra, ExtraError, Parts, Placed, extra
from sluicegate.format.packing import inflated
from sluicegate.format.unpacking import Reader


def pack_beside(parts: Mapping[str, Parts], placed: Placed, singles: Sequence[object]) -> tuple[int, dict[str, str]]:
    """The same of all buckets, of which some are stored as single readings, and the format that says it; 0: none.

    What single readings say is left out; where they do not say all of it, there is room for every bucket's. Raises
    ExtraError.
    """
    told = {name: _untold(name, each, singles) for name, each in parts.items() if any(x is not None for x in each)}
    every = any(part is not None and at for each in told.values() for part, at in zip(each, singles, strict=True))
    kept = [i for i, readings in enumerate(singles) if every or not readings]
    packed = pack({name: [each[i] for i in kept] for name, each in told.items()}, [placed[i] for i in kept])
    return (5 if every else 4 if packed else 0), packed


def _untold(name: str, parts: Parts, singles: Sequence[object]) -> Parts:
    if not _known(name).of_readings:
        return parts
    return [None if readings else part for part, readings in zip(parts, singles, strict=True)]


def pack(parts: Mapping[str, Parts], placed: Placed) -> dict[str, str]:
    """Of each name, in order, what JSON says: base64 of raw deflate. Names that no bucket has are left out.

    Raises ExtraError for bytes that are not what their name says.
    """
    kept = {name: each for name, each in sorted(parts.items()) if any(part is not None for part in each)}
    if len(kept) > MOST_EXTRAS:
        raise ExtraError(f"{len(kept)} extras, at most {MOST_EXTRAS} go into one document")
    return {name: _packed(_known(name), each, placed) for name, each in kept.items()}


def _known(name: str) -> Extra:
    found = extra(name)
    if found is None:
        raise ExtraError(f"extra {name!r} is none that this Sluicegate writes")
    return found


def _packed(kind: Extra, parts: Parts, placed: Placed) -> str:
    for part, where in zip(parts, placed, strict=True):
        if part is not None:
            kind.check(part, *where)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    return base64.b64encode(packer.compress(kind.columns(parts, placed)) + packer.flush()).decode("ascii")


def unpack(told: Mapping[str, str], placed: Placed, most: int) -> tuple[dict[str, Parts], tuple[str, ...]]:
    """The parts by name, and the names that are not known, passed over; all of them inflate to `most` bytes at most.

    Raises PackingError or ExtraError for what is no such extra, before memory is taken for it.
    """
    found: dict[str, Parts] = {}
    for name in sorted(told):
        kind = extra(name)
        if kind is not None:
            data = inflated("an extra", told[name], min(most, 10 * len(placed) + 64 + kind.most * len(placed)))
            most -= len(data)
            found[name] = _unpacked(kind, data, placed)
    return found, tuple(name for name in sorted(told) if name not in found)


def _unpacked(kind: Extra, data: bytes, placed: Placed) -> Parts:
    reader = Reader(data)
    parts = kind.of_columns(reader, placed)
    reader.finish()
    for part, where in zip(parts, placed, strict=True):
        if part is not None:
            kind.check(part, *where)
    return parts
