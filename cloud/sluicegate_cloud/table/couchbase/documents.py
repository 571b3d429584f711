"""Rows of windows → documents: an id that says which window it is, and what is known of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from sluicegate_cloud.table import read
from sluicegate_cloud.table.grouping.groups import column_of
from sluicegate_cloud.table.versions import Store, Version

Document = dict[str, Any]
#: What tells a window's document from others.
TYPE = "sluicegate.window"
#: Rows that are made documents at a time.
ROWS = 256
#: Bytes of a document's id, Couchbase's limit.
_LONGEST_ID = 250


def id_of(name: str, row: Document) -> str:
    """NAME::START::END::DEVICE::TAGS::STREAM, hashed where it is too long; no device: all, or those of the tags.

    Texts are quoted as in a URL: a gateway does not escape every id that it tells of in JSON.
    """
    values = {of: row.get(column_of(of)) for of in row[read.ROLLUP].split(",")} if row[read.ROLLUP] else {}
    tags = "&".join(quote(of) if value is None else f"{quote(of)}={quote(value)}" for of, value in values.items())
    window = (str(row["window_start"]), str(row["window_end"]), row["device"] or "", tags, quote(row["stream"]))
    told = "::".join((name, *window))
    if len(told.encode()) <= _LONGEST_ID:
        return told
    return f"{name}::{hashlib.sha256(told.encode()).hexdigest()}"


def document_of(row: Document) -> Document:
    """What JSON has a word for: null and not finite ones are left out."""
    known = {name: of for name, of in row.items() if of is not None}
    finite = {name: of for name, of in known.items() if not isinstance(of, float) or math.isfinite(of)}
    return {"type": TYPE, **finite}


def documents(store: Store, version: Version, files: Sequence[str], name: str) -> Iterator[dict[str, Document]]:
    """The rows of some files as documents by their ids, ROWS at a time."""
    for file in files:
        for batch in read.as_asked(store.read(file), version.definition).to_batches(ROWS):
            yield {id_of(name, row): document_of(row) for row in batch.to_pylist()}
