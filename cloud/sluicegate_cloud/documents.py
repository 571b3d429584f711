"""Chunk documents ↔ Arrow: a document's bytes become one row with its buckets packed, packed buckets become columns.

A document is decoded by `sluicegate.chunks.columns`, which refuses what is damaged, foreign, newer or too large; the
refusal is the row's `reason`, so nothing is dropped in silence. Buckets stay packed (248 bytes each, column after
column) while documents are told apart, and are unpacked as whole columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate import chunks
from sluicegate_cloud.grid import Columns
from sluicegate_cloud.schema import BUCKET_FIELDS, OWNER, ddl

PATHS = "path string"
_KINDS = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "binary": pa.binary()}
_DOCUMENT = {
    "path": "string",
    "size": "bigint",
    "reason": "string",
    "id": "string",
    **OWNER,
    "first": "bigint",
    "readings": "bigint",
    "buckets": "bigint",
    "gap": "bigint",
    "t_first": "bigint",
    "t_last": "bigint",
    "digest": "string",
    "packed": "binary",
}
#: One row a document. `reason`: why it is refused, else null; `digest`: of its bytes; `packed`: its buckets.
DOCUMENTS = ddl(_DOCUMENT)
ARROW = pa.schema([(name, _KINDS[kind]) for name, kind in _DOCUMENT.items()])
_BATCH_BYTES = 8 << 20
Batches = Iterable[pa.RecordBatch]


def decode_files(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows of `path` → rows of DOCUMENTS; the files are opened here, one at a time."""
    return document_batches(
        (path, _file_loader(path)) for batch in batches for path in batch.column("path").to_pylist()
    )


def decode_contents(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows of `path` and `content` → rows of DOCUMENTS."""
    for batch in batches:
        yield from document_batches(
            (path.as_py(), content.as_py) for path, content in zip(batch["path"], batch["content"], strict=True)
        )


def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows of `dedupe.catalogue` that are used → rows of `schema.BUCKETS`: a document's hole, then its buckets."""
    for batch in batches:
        yield _holes(batch)
        if batch.num_rows:
            yield bucket_rows(batch)


def _file_loader(path: str) -> Callable[[], bytes]:
    def load() -> bytes:
        if not path.endswith(".json"):
            raise ValueError("not a chunk document: the name does not end in .json")
        with Path(path).open("rb") as file:
            return file.read(chunks.MAX_DOCUMENT + 1)

    return load


def document_batches(documents: Iterable[tuple[str, Callable[[], bytes]]]) -> Iterator[pa.RecordBatch]:
    """Rows of DOCUMENTS, in batches of about _BATCH_BYTES of packed buckets, of paths and what gives their bytes.

    An OSError or a ValueError that it raises is the reason why a document is refused.
    """
    held: list[dict[str, Any]] = []
    size = 0
    for path, load in documents:
        held.append(_row(path, load))
        size += 512 + len(held[-1].get("packed") or b"")
        if size >= _BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(held, ARROW)
            held, size = [], 0
    if held:
        yield pa.RecordBatch.from_pylist(held, ARROW)


def _row(path: str, load: Callable[[], bytes]) -> dict[str, Any]:
    data = b""
    try:
        data = load()
        return {"path": path, "size": len(data), **_decoded(data)}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return {"path": path, "size": len(data), "reason": reason}


def _decoded(data: bytes) -> dict[str, Any]:
    columns = chunks.columns(data)
    packed = b"".join(columns[name].tobytes() for name in BUCKET_FIELDS)
    row = {name: columns[name] for name in ("id", *OWNER, "readings")}
    row |= {"first": columns["first"][0], "t_first": min(columns["t_first"]), "t_last": max(columns["t_last"])}
    row |= {"buckets": len(columns["n"]), "gap": sum(columns["gap"])}
    return row | {"digest": hashlib.sha256(data).hexdigest(), "packed": packed}


def _holes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row of n = 0 for every document that does not follow the one before: `gap` readings between two times."""
    batch = batch.filter(pc.greater(batch["hole"], 0))
    zero, none = np.zeros(batch.num_rows, np.int64), pa.nulls(batch.num_rows, pa.float64())
    low, high = (np.asarray(batch[name]) for name in ("hole_from", "hole_to"))
    columns: dict[str, Any] = {name: zero if kind == "bigint" else none for name, kind in BUCKET_FIELDS.items()}
    columns |= {"total": zero.astype(np.float64), "gap": batch["hole"]}
    columns |= {"first": np.asarray(batch["first"]) - np.asarray(batch["hole"])}
    columns |= {"t_first": np.minimum(low, high), "t_last": np.maximum(low, high)}
    chunk = pa.nulls(batch.num_rows, pa.string())
    return pa.RecordBatch.from_pydict({name: batch[name] for name in OWNER} | columns | {"chunk": chunk})


def bucket_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of DOCUMENTS that are chunks, at least one → rows of `schema.BUCKETS`."""
    rows = len(BUCKET_FIELDS)
    counts = np.asarray(batch["buckets"])
    packed = [np.frombuffer(view.as_buffer(), np.int64).reshape(rows, -1) for view in batch["packed"]]
    whole = np.concatenate(packed, axis=1)
    columns: Columns = {
        name: whole[i] if kind == "bigint" else whole[i].view(np.float64)
        for i, (name, kind) in enumerate(BUCKET_FIELDS.items())
    }
    owner = np.repeat(np.arange(batch.num_rows), counts)
    heads = {name: batch[name].take(pa.array(owner)) for name in (*OWNER, "id")}
    chunk = heads.pop("id")
    return pa.RecordBatch.from_pydict(heads | columns | {"chunk": chunk})
