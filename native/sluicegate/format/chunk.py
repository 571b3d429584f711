"""A run of buckets of one stream as one compact, write-once JSON document: docs/reference/format.md.

Each field is a column (sluicegate.format.packing), all of them deflated, base64 in `data`. A bucket whose single
readings are still at hand is stored as those where that is smaller. What buckets carry beside their record
(sluicegate.format.extras) is a string by name in `extras`. A document's format is the oldest that can say it all.
Nothing damaged, foreign, newer or over the limits below is decoded: that is one error, ChunkError, raised before memory
is taken for it. Standard library only.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sluicegate.constants import MOST_EXTRAS, MOST_NAME
from sluicegate.format import payload as body
from sluicegate.format.at_hand import folded, usable
from sluicegate.format.bucket import FIELDS, LARGEST, Bucket
from sluicegate.format.packing import inflated
from sluicegate.format.pairs import PAIR
from sluicegate.format.payload import AS_READINGS, MAX_ROWS, Body, Readings
from sluicegate.format.tags import flaw_of_tags, spelled
from sluicegate.format.unpacking import PackingError

TYPE = "sluicegate.chunk"
CODECS = ("columns-1", "columns-2", "columns-3")
SPOKEN = {1: CODECS[:1], 2: CODECS[1:2], 3: CODECS, 4: CODECS, 5: CODECS}  # by format: the codecs it may have
NEWEST = max(SPOKEN)
MAX_DOCUMENT = 8 * 2**20  # bytes of JSON
MAX_PAYLOAD = 32 * 2**20  # bytes once inflated
MAX_BUCKETS = 2**16
MAX_ID = 250  # bytes: Couchbase's limit of a key
_TOTALS = ("first", "readings", "buckets", "t_first", "t_last", "gap")
KEYS = ("type", "format", "id", "device", "stream", "incarnation", "center", *_TOTALS, "codec", "crc32", "data")
#: As `encode` writes them, with those that a document may lack.
ORDER = (*KEYS[:6], "key", "tags", *KEYS[6:], "extras", "health")
_CHECKED = struct.Struct("<d6q")
_INCARNATION = re.compile("[0-9a-f]{16}")
_KEY = re.compile("[0-9a-f]{32}")
_STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY)
Header = dict[str, Any]

__all__ = ["MAX_ROWS", "Chunk", "ChunkError", "Readings", "columns", "decode", "document_id", "encode"]


class ChunkError(ValueError):
    """The document or chunk is refused: damaged, foreign, newer, or over a limit; the message says which."""


@dataclass(slots=True)
class Chunk:
    """Buckets of one stream, contiguous in ordinals; `readings[i]` are the single readings of bucket i, if at hand.

    `key`: the 32 hex digits that the place they were taken at made up for itself, where it did. `tags`: what is known
    of the stream beside its name, at most 32 texts by name. `extras`: by name, what each bucket carries beside its
    record, None where it has none; a bucket with its single readings needs none but "pair". `skipped`: after `decode`,
    the names of extras that this Sluicegate does not know.

    Times are int64 µs since 1970 UTC, values finite float64. After `decode` the readings are there for the buckets that
    were stored as readings.
    """

    device: str
    stream: str
    incarnation: str
    center: float
    buckets: list[Bucket]
    readings: list[Readings | None]
    health: dict[str, Any] | None = None
    key: str | None = None
    extras: dict[str, list[bytes | None]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    tags: dict[str, str] | None = None


def document_id(chunk: Chunk) -> str:
    """device::stream::incarnation::first, the ordinal in 16 digits."""
    return _id(chunk.device, chunk.stream, chunk.incarnation, chunk.buckets[0].first)


def _id(device: str, stream: str, incarnation: str, first: int) -> str:
    return f"{device}::{stream}::{incarnation}::{first:016d}"


# Encoding


def encode(chunk: Chunk) -> bytes:
    """The chunk's document, UTF-8 JSON; the same chunk gives the same bytes. Raises ChunkError where it is no chunk."""
    _check_chunk(chunk)
    at_hand = usable(chunk.buckets, chunk.readings, chunk.center, chunk.extras.get(PAIR))
    only = [singles if bucket.n == 1 else None for bucket, singles in zip(chunk.buckets, at_hand, strict=True)]
    # Single readings say all that an extra does, so where there are extras they stay.
    choices = [at_hand, only] if at_hand != only and not chunk.extras else [at_hand]
    fitting = [each for each in choices if sum(len(x[0]) if x else 1 for x in each) <= MAX_ROWS] or [only]
    packed = _payload(chunk.buckets, fitting[0])
    if len(fitting) > 1 and body.least_whole(chunk.buckets) < len(packed[2]):
        packed = min(packed, _payload(chunk.buckets, only), key=lambda one: len(one[2]))
    codec, payload, data, singles = packed
    version, extras = _extras(chunk, singles)
    header = _header(chunk, codec, version, extras)
    header["crc32"] = _crc32(header, payload)
    header["data"] = base64.b64encode(data).decode("ascii")
    if extras:
        header["extras"] = header.pop("extras")
    if chunk.health is not None:
        header["health"] = dict(sorted(chunk.health.items()))
    return _document(header)


def _payload(buckets: list[Bucket], singles: list[Readings | None]) -> tuple[int, bytes, bytes, list[Readings | None]]:
    """The codec's number, the payload, the payload deflated, and what is in it as readings."""
    parts = body.pack_body(buckets, singles)
    return body.codec_of(buckets, singles), b"".join(parts), _deflate(parts), singles


def _extras(chunk: Chunk, singles: list[Readings | None]) -> tuple[int, dict[str, str]]:
    """What the buckets carry besides, by name, and the format that says it; 0: there is none."""
    if not chunk.extras:
        return 0, {}
    from sluicegate.format import attached

    if any(len(parts) != len(chunk.buckets) for parts in chunk.extras.values()):
        raise ChunkError(f"chunk {document_id(chunk)}: as many extras as buckets are expected of each name")
    try:
        return attached.pack_beside(chunk.extras, [(b.n, b.t_first, b.t_last) for b in chunk.buckets], singles)
    except ValueError as error:
        raise ChunkError(f"chunk {document_id(chunk)}: {error}") from error


def _document(header: Header) -> bytes:
    try:
        document = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ChunkError(f"chunk {header['id']}: health must be JSON: {error}") from error
    if len(document) > MAX_DOCUMENT:
        raise ChunkError(f"chunk {header['id']}: {len(document)} bytes, at most {MAX_DOCUMENT}: use fewer buckets")
    return document


def _check_chunk(chunk: Chunk) -> None:
    buckets = chunk.buckets
    if not 1 <= len(buckets) <= MAX_BUCKETS or len(chunk.readings) != len(buckets):
        raise ChunkError(f"a chunk has 1 … {MAX_BUCKETS} buckets and as many readings, not {len(buckets)}")
    _check_names(chunk.device, chunk.stream, chunk.incarnation, document_id(chunk))
    _check_marks(chunk.key, chunk.tags)
    if not abs(chunk.center) <= LARGEST:
        raise ChunkError(f"chunk {document_id(chunk)}: center {chunk.center!r} is not a finite number up to 2^960")
    for a, b in pairwise(buckets):
        if b.first != a.first + a.n:
            raise ChunkError(f"chunk {document_id(chunk)}: bucket at {b.first}, expected at {a.first + a.n}")


def _check_names(device: str, stream: str, incarnation: str, identity: str) -> None:
    for name, value in (("device", device), ("stream", stream)):
        if not value or "::" in value or not value.isprintable():
            raise ChunkError(f"{name} {value!r}: expected a printable name without '::'")
    if not _INCARNATION.fullmatch(incarnation):
        raise ChunkError(f"incarnation {incarnation!r}: expected 16 lower-case hex digits")
    if len(identity.encode()) > MAX_ID:
        raise ChunkError(f"id {identity!r}: over {MAX_ID} bytes; shorten the names of device or stream")


def _check_marks(key: Any, tags: Any) -> None:
    if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise ChunkError(f"key {key!r}: expected 32 lower-case hex digits")
    if flaw := flaw_of_tags(tags):
        raise ChunkError(flaw)


def _deflate(columns: list[bytes]) -> bytes:
    """Raw deflate (RFC 1951) by what gives the fewest bytes: a strategy, and a block a column or one for all."""
    layouts = [b"".join(columns)], columns
    return min((_packed(parts, strategy) for parts in layouts for strategy in _STRATEGIES), key=len)


def _packed(parts: list[bytes], strategy: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, strategy)
    return b"".join(packer.compress(part) + packer.flush(zlib.Z_BLOCK) for part in parts) + packer.flush()


def _header(chunk: Chunk, codec: int, version: int, extras: dict[str, str]) -> Header:
    buckets, tags = chunk.buckets, dict(sorted(chunk.tags.items())) if chunk.tags else None
    header = {
        "type": TYPE,
        "format": version or (3 if chunk.key or tags else codec),
        "id": document_id(chunk),
        "device": chunk.device,
        "stream": chunk.stream,
        "incarnation": chunk.incarnation,
        "key": chunk.key,
        "tags": tags,
        "center": float(chunk.center),
        "first": buckets[0].first,
        "readings": sum(bucket.n for bucket in buckets),
        "buckets": len(buckets),
        "t_first": min(bucket.t_first for bucket in buckets),
        "t_last": max(bucket.t_last for bucket in buckets),
        "gap": sum(bucket.gap for bucket in buckets),
        "codec": CODECS[codec - 1],
        "extras": extras or None,
    }
    return {name: value for name, value in header.items() if value is not None}


def _crc32(header: Header, payload: bytes) -> int:
    """Over id, key, tags and codec, the header's numbers as little-endian float64 and int64, the payload before
    deflation, and the extras as the document has them."""
    told = f"{header.get('key', '')}{spelled(header.get('tags'))}{header['codec']}"
    names = header["id"] + (told if header["format"] > 2 else "")
    numbers = _CHECKED.pack(header["center"], *(header[name] for name in _TOTALS))
    carried = "".join(f"{name}\n{text}\n" for name, text in sorted(header.get("extras", {}).items()))
    return zlib.crc32(carried.encode(), zlib.crc32(payload, zlib.crc32(numbers, zlib.crc32(names.encode()))))


# Decoding


def decode(data: bytes) -> Chunk:
    """The chunk of a document, every bucket verified. Raises ChunkError."""
    header, content = _opened(data)
    device, stream, place, center = (header[key] for key in ("device", "stream", "incarnation", "center"))
    chunk = Chunk(
        device, stream, place, center, [], [], header.get("health"), header.get("key"), tags=header.get("tags")
    )
    try:
        for bucket, singles in _buckets(content, header["center"]):
            bucket.verify()
            chunk.buckets.append(bucket)
            chunk.readings.append(singles)
    except (ValueError, OverflowError) as error:
        raise ChunkError(f"chunk {header['id']}: {error}") from error
    by_first, chunk.skipped = _extras_by_ordinal(content, header)
    for name, parts in by_first.items():
        chunk.extras[name] = [parts.get(bucket.first) for bucket in chunk.buckets]
    return chunk


def _buckets(content: Body, center: float) -> Iterator[tuple[Bucket, Readings | None]]:
    fields = [content.whole[name] for name in FIELDS] if content.whole else []
    whole = (Bucket(*row) for row in zip(*fields, strict=True))
    first, single = content.first, 0
    for kind, n, gap, doubt in zip(content.kinds, content.n, content.gap, content.doubt, strict=True):
        if kind & AS_READINGS:
            readings = content.times[single : single + n], content.values[single : single + n]
            yield folded(readings, center, first, gap, kind, doubt), readings
            single += n
        else:
            yield next(whole), None
        first += n


def columns(data: bytes) -> dict[str, Any]:
    """The document's header and one array a field of Bucket: 'q' for integers, 'd' for floats.

    Where a header's field and a column share a name the column is meant. A single reading is a row of n = 1; its
    bucket's gap is on the first of them. `extras`: by name, what buckets carry, by their first ordinal; `skipped`: the
    names of those that it does not know; `totals`: first and last time, sums of doubt and of what `gaps` tells;
    `gaps`: `gaps.gaps`. Raises ChunkError.
    """
    from sluicegate.format.gaps import WIDTH, gaps
    from sluicegate.format.late import LATE_NAME

    header, content = _opened(data)
    rows = body.rows(content, header["center"])
    extras, skipped = _extras_by_ordinal(content, header)
    lost = gaps(content, extras.pop(LATE_NAME, {}))
    totals = {"t_first": header["t_first"], "t_last": header["t_last"], "gap": sum(lost[1::WIDTH])}
    totals["doubt"] = content.in_doubt()
    told = {key: value for key, value in header.items() if key != "data"}
    return {**told, **rows, "extras": extras, "skipped": skipped, "totals": totals, "gaps": lost}


def _extras_by_ordinal(content: Body, header: Header) -> tuple[dict[str, dict[int, bytes]], tuple[str, ...]]:
    """What buckets carry by name and first ordinal, and the names that this Sluicegate does not know."""
    if header["format"] < 4:
        return {}, ()
    from sluicegate.format import attached

    placed = [*(content.placed() if header["format"] > 4 else content.placed_whole())]
    firsts = [first for first, *_ in placed]
    try:
        found, skipped = attached.unpack(header["extras"], [each[1:] for each in placed], MAX_PAYLOAD)
    except (ValueError, OverflowError) as error:
        raise ChunkError(f"chunk {header['id']}: {error}") from error
    by_first = {
        name: {first: part for first, part in zip(firsts, parts, strict=True) if part is not None}
        for name, parts in found.items()
    }
    return by_first, skipped


def _opened(data: bytes) -> tuple[Header, Body]:
    """The checked header of a document and its columns."""
    header = _parsed(data)
    try:
        payload = inflated("its data", header["data"], MAX_PAYLOAD)
        if _crc32(header, payload) != header["crc32"]:
            raise PackingError("its crc32 does not match: the document is damaged")
        content = body.unpack_body(payload, header["buckets"], header["first"], CODECS.index(header["codec"]) + 1)
        if content.totals() != tuple(header[name] for name in _TOTALS):
            raise PackingError("its header and its columns disagree")
    except (ValueError, OverflowError) as error:
        raise ChunkError(f"chunk {header['id']}: {error}") from error
    return header, content


def _parsed(data: bytes) -> Header:
    """The document's header, every field of its type and within its limit."""
    if len(data) > MAX_DOCUMENT:
        raise ChunkError(f"a document of {len(data)} bytes: at most {MAX_DOCUMENT} are read")
    try:
        header = json.loads(data.decode(), parse_constant=_refused_constant)
    except (ValueError, RecursionError) as error:
        raise ChunkError(f"no JSON document in UTF-8: {error}") from error
    if not isinstance(header, dict) or header.get("type") != TYPE:
        raise ChunkError(f"no chunk of Sluicegate: its type is not {TYPE!r}")
    _check_version(header)
    _check_keys(header)
    _check_header(header)
    return header


def _refused_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _check_version(header: Header) -> None:
    version = header.get("format")
    if type(version) is int and version > NEWEST:
        raise ChunkError(f"format {version} is newer than {NEWEST}, the newest this Sluicegate reads: upgrade it")
    if type(version) is not int or version not in SPOKEN:
        raise ChunkError(f"format {version!r}: expected 1 … {NEWEST}")
    if header.get("codec") not in SPOKEN[version]:
        raise ChunkError(f"codec {header.get('codec')!r}: expected {' or '.join(SPOKEN[version])}")


def _check_keys(header: Header) -> None:
    """All keys of the format and no others; databases may add their own, which begin with an underscore."""
    optional = ("health", "key", "tags", "extras")[: (1, 1, 3, 4, 4)[header["format"] - 1]]
    unknown = [key for key in header if key not in KEYS and key not in optional and not key.startswith("_")]
    missing = [key for key in KEYS if key not in header]
    if unknown or missing:
        raise ChunkError(f"keys missing: {missing}, unknown: {unknown}")
    kinds = [(str, ("id", "device", "stream", "incarnation", "data")), (int, (*_TOTALS, "crc32"))]
    wrong = [key for kind, keys in kinds for key in keys if type(header[key]) is not kind]
    if type(header["center"]) not in (int, float) or not isinstance(header.get("health"), dict | None):
        wrong.append("center or health")
    if header["format"] > 3:
        _check_extras(header.get("extras"))
    if wrong:
        raise ChunkError(f"keys of another type than the format says: {wrong}")


def _check_extras(told: Any) -> None:
    if not isinstance(told, dict) or not 1 <= len(told) <= MOST_EXTRAS:
        raise ChunkError(f"extras: expected an object of 1 … {MOST_EXTRAS} names")
    if not all(name and len(name) <= MOST_NAME and name.isprintable() for name in told):
        raise ChunkError(f"extras: expected printable names of at most {MOST_NAME} characters")
    if not all(type(each) is str for each in told.values()):
        raise ChunkError("extras: expected a string of each name")


def _check_header(header: Header) -> None:
    device, stream, incarnation, first = (header[key] for key in ("device", "stream", "incarnation", "first"))
    _check_names(device, stream, incarnation, header["id"])
    _check_marks((header["key"] or "") if "key" in header else None, header.get("tags"))
    if header["format"] == 3 and not {"key", "tags"} & header.keys() and header["codec"] != CODECS[2]:
        raise ChunkError(f"chunk {header['id']}: format 3 has a key, tags, or readings in doubt")
    if not abs(header["center"]) <= LARGEST or not all(abs(header[name]) < 2**62 for name in _TOTALS):
        raise ChunkError(f"chunk {header['id']}: a number of its header is out of range")
    if header["id"] != _id(device, stream, incarnation, first):
        raise ChunkError(f"id {header['id']!r} is not device::stream::incarnation::first")
    if not 1 <= header["buckets"] <= min(MAX_BUCKETS, header["readings"]) or first < 0:
        raise ChunkError(f"chunk {header['id']}: {header['buckets']} buckets, expected 1 … {MAX_BUCKETS}")
    header["center"] = float(header["center"])
