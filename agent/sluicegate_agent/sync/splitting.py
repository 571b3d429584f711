"""A chunk that is too large for a target goes as two, each a chunk of its own; the same one always as the same two.

The first half keeps the id, the second has the id of its own first reading. So a sender that does not know what arrived
can tell the first half of its own chunk from another's document, and send the rest.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from sluicegate.constants import MOST_EXTRAS
from sluicegate.format import chunk as chunks
from sluicegate_agent.sync.contract import Document

_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
_texts = msgspec.json.Decoder(dict[str, str])
#: Bytes of all that is no text in a document of ours: an agent's health, and numbers.
_NESTED = 64 << 10


def halves(document: Document) -> tuple[Document, Document] | None:
    """The chunk as two of about as many buckets each; None for one that has a single bucket, or is no chunk."""
    try:
        chunk = chunks.decode(document.data)
    except chunks.ChunkError:
        return None
    middle = len(chunk.buckets) // 2
    if not middle:
        return None
    return _part(chunk, 0, middle), _part(chunk, middle, len(chunk.buckets))


def content(data: bytes) -> dict[str, Any] | None:
    """The JSON object of a document of our own or a server's, without a database's own keys; None where it is none.

    Beside its texts it may have _NESTED bytes at most, so that memory follows the length of what a peer sends, not how
    deeply it nests.
    """
    try:
        found = {key: bytes(raw) for key, raw in _raw.decode(data).items() if key[:1] != "_"}
        if sum(len(raw) for key, raw in found.items() if raw[:1] != b'"' and not _is_extras(key, raw)) > _NESTED:
            return None
        return {key: json.loads(raw) for key, raw in found.items()}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _is_extras(key: str, raw: bytes) -> bool:
    """Whether it is what buckets carry: texts by name, few of them."""
    return key == "extras" and raw.count(b":") <= MOST_EXTRAS and bool(_texts.decode(raw))


def missing(document: Document, theirs: dict[str, Any] | None) -> list[Document] | None:
    """What a target still lacks of a document under whose id it has `theirs`: nothing where that is the same, the
    other parts where it is the first part of it, None where it is something else."""
    mine = content(document.data)
    if mine is None or mine == theirs:
        return None if mine is None else []
    if theirs is None or not _may_begin(theirs, mine) or (parts := halves(document)) is None:
        return None
    rest = missing(parts[0], theirs)
    return None if rest is None else [*rest, parts[1]]


def _may_begin(theirs: dict[str, Any], mine: dict[str, Any]) -> bool:
    count, most = theirs.get("buckets"), mine.get("buckets")
    return isinstance(count, int) and isinstance(most, int) and 0 < count < most


def _part(chunk: chunks.Chunk, begin: int, end: int) -> Document:
    named = (chunk.device, chunk.stream, chunk.incarnation, chunk.center)
    health = None if begin else chunk.health
    extras = {name: parts[begin:end] for name, parts in chunk.extras.items()}
    buckets, readings = chunk.buckets[begin:end], chunk.readings[begin:end]
    part = chunks.Chunk(*named, buckets, readings, health, chunk.key, extras, tags=chunk.tags)
    return Document(chunks.document_id(part), chunks.encode(part))
