"""Chunk documents ↔ Arrow: a document's bytes become one row with its buckets packed, packed buckets become columns.

A document is decoded by `sluicegate.format.chunk.columns`, which refuses what is damaged, foreign, newer or too large;
the refusal is the row's `reason`, so nothing is dropped in silence, and no document, whatever is in it, stops the
others. Buckets stay packed (256 bytes each, column after column) while documents are told apart, and are
unpacked as whole columns.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluicegate.format import chunk as chunks
from sluicegate.format.gaps import NEVER
from sluicegate_cloud.errors import GatewayError, PlaceError
from sluicegate_cloud.grid import Columns, Ints
from sluicegate_cloud.losses import told_by
from sluicegate_cloud.places.bucket import OBJECTS, ahead, begin_of
from sluicegate_cloud.places.compacted import ENDING
from sluicegate_cloud.places.server import SERVERS, fetched
from sluicegate_cloud.schema import BUCKET_FIELDS, OWNER, USED, ddl

log = logging.getLogger("sluicegate.documents")
PATHS = "path string"
_KINDS = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "binary": pa.binary()}
_KINDS["map<string, map<bigint, binary>>"] = pa.map_(pa.string(), pa.map_(pa.int64(), pa.binary()))
_KINDS["map<string, string>"] = pa.map_(pa.string(), pa.string())
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
    "doubt": "bigint",
    "t_first": "bigint",
    "t_last": "bigint",
    "digest": "string",
    "content": "string",
    "packed": "binary",
    "gaps": "binary",
    "extras": "map<string, map<bigint, binary>>",
    "skipped": "string",
    "tags": "map<string, string>",
    "health": "string",
}
#: One row a document. `reason`: why it is refused, else null (then `id` and `device` are what it claims, if it says);
#: `digest`: of its bytes; `content`: of what it says of its stream, without key and health; `packed`: its buckets;
#: `gaps`: what they say is missing or came late, and when (`sluicegate.format.gaps`), null where an older Sluicegate
#: kept it; `extras`: what they carry, by name and first ordinal; `skipped`: names that this Sluicegate does not know;
#: `tags`: what is known of the stream beside its name; `health`: how the agent was, JSON as it came.
DOCUMENTS = ddl(_DOCUMENT)
ARROW = pa.schema([(name, _KINDS[kind]) for name, kind in _DOCUMENT.items()])
_BATCH_BYTES, _MOST_FILE = 8 << 20, 1 << 30
_MOST_REASON, _MOST_NAME = 400, 250
#: Readings that a document may tell of: what some devices make up would sum up to beyond 64 bits, for all of them.
MOST_READINGS = 1 << 48
#: Bytes of an agent's health that are kept.
MOST_HEALTH = 8_192
_FIELDS = itemgetter(*BUCKET_FIELDS)
_CLAIMED = re.compile(rb'"id"\s*:\s*"([^"\\]{1,250})"')
Batches = Iterable[pa.RecordBatch]


class Found(NamedTuple):
    """A document that is still to be read: where it lies, what gives its bytes, and its id where the place tells it."""

    path: str
    load: Callable[[], bytes]
    id: str | None = None


def decode_files(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows of `path` → rows of DOCUMENTS; the files are opened here, one at a time, objects (`bucket`) some ahead, and
    a server's documents (`server`) some together.

    What was compacted (`places.compacted`) is rows of DOCUMENTS already.
    """
    paths = (path for batch in batches for path in batch.column("path").to_pylist())
    for (whole, kind), some in groupby(paths, lambda path: (path.endswith(ENDING), _kind(path))):
        if kind == SERVERS:
            yield from document_batches(Found(path, load) for path, load in fetched(some))
        elif whole:
            yield from (batch for path in some for batch in _rows_of(path, kind == OBJECTS))
        else:
            loads = ahead(some, _content) if kind == OBJECTS else ((path, partial(_content, path)) for path in some)
            yield from document_batches(Found(path, load) for path, load in loads)


def _kind(path: str) -> Any:
    return next((kind for kind in (OBJECTS, SERVERS) if path.startswith(kind)), "")


def of_files(paths: Sequence[str], kind: str) -> Iterator[pa.RecordBatch]:
    """Of files their `documents`, or the `buckets` of those that can be read; copies and holes are told apart later."""
    if not paths:
        return
    batches = decode_files([pa.RecordBatch.from_pydict({"path": pa.array(paths, pa.string())})])
    yield from batches if kind == "documents" else buckets_of(batches, "a folder")


def buckets_of(batches: Batches, where: str) -> Iterator[pa.RecordBatch]:
    """The buckets of what is a chunk; what is not is counted by its reason, and said in the worker's log."""
    refused: Counter[str] = Counter()
    first: dict[str, str] = {}
    for batch in batches:
        left_out = batch.filter(pc.is_valid(batch["reason"]))
        for row in left_out.select(["reason", "id", "path"]).to_pylist():
            refused[row["reason"]] += 1
            first.setdefault(row["reason"], row["id"] or row["path"])
        used = batch.filter(pc.is_null(batch["reason"]))
        if used.num_rows:
            yield bucket_rows(used)
    for reason, count in refused.most_common(20):
        log.warning("%s: %d documents left out, %s the first: %s", where, count, first[reason], reason)


def _rows_of(path: str, remote: bool) -> Iterator[pa.RecordBatch]:
    """Of a file of compacted documents; one that is none is a document that cannot be read."""
    try:
        rows = pq.ParquetFile(pa.BufferReader(begin_of(path, _MOST_FILE)) if remote else path)
        if not {"digest", "packed", "reason"} <= {*rows.schema_arrow.names}:
            raise ValueError("not a chunk document, and not documents that were compacted")
    except (OSError, ValueError) as error:
        row = {"path": _text(path), "size": 0, "reason": _text(_said(error))[:_MOST_REASON]}
        yield pa.RecordBatch.from_pylist([row], ARROW)
        return
    yield from kept_batches(rows)


def kept_batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """The rows of a file of documents as they are now: of each row group about _BATCH_BYTES, few of large documents."""
    held: list[pa.RecordBatch] = []
    for group in range(file.num_row_groups):
        for batch in file.iter_batches(256, row_groups=[group]):
            held.append(as_now(batch))
            if sum(one.nbytes for one in held) >= _BATCH_BYTES:
                yield pa.concat_batches(held)
                held = []
    if held:
        yield pa.concat_batches(held)


def as_now(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that an older Sluicegate kept, with the columns that came since, empty."""
    columns = [
        batch[field.name] if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
        for field in ARROW
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW)


def decode_contents(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows of `path` and `content` → rows of DOCUMENTS."""
    for batch in batches:
        yield from document_batches(
            Found(path.as_py(), content.as_py) for path, content in zip(batch["path"], batch["content"], strict=True)
        )


def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows of `dedupe.catalogue` → rows of `schema.BUCKETS`: what is missing at documents, then those in use."""
    for batch in batches:
        yield _holes(batch)
        if "losses" in batch.schema.names and (losses := _losses(batch)).num_rows:
            yield losses
        used = batch.filter(pc.equal(batch["fate"], USED))
        if used.num_rows:
            yield bucket_rows(used)


def _content(path: str) -> bytes:
    """At most one byte more than a document may have."""
    if not path.endswith(".json"):
        raise ValueError("not a chunk document: the name does not end in .json")
    if path.startswith(OBJECTS):
        return begin_of(path, chunks.MAX_DOCUMENT + 1)
    with open(path, "rb") as file:  # noqa: PTH123 - a Path for each of many small documents takes as long as opening it
        return file.read(chunks.MAX_DOCUMENT + 1)


def document_batches(documents: Iterable[Found]) -> Iterator[pa.RecordBatch]:
    """Rows of DOCUMENTS, in batches of about _BATCH_BYTES.

    Whatever loading or decoding one raises is the reason why it is set aside. Raises GatewayError, PlaceError: then it
    is not the document that could not be read.
    """
    held: list[dict[str, Any]] = []
    size = 0
    for found in documents:
        held.append(_row(found))
        size += _size(held[-1])
        if size >= _BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(held, ARROW)
            held, size = [], 0
    if held:
        yield pa.RecordBatch.from_pylist(held, ARROW)


def _size(row: dict[str, Any]) -> int:
    """About how many bytes it takes: a small document may inflate to 32 MiB of extras."""
    told = [row.get("packed") or b"", row.get("health") or "", *(text for of in row.get("tags") or () for text in of)]
    told += [part for _, parts in row.get("extras") or () for _, part in parts]
    return 512 + sum(map(len, told))


def _row(found: Found) -> dict[str, Any]:
    data = b""
    try:
        data = found.load()
        return {"path": _text(found.path), "size": len(data), **_decoded(data)}
    except (GatewayError, PlaceError):
        raise
    except Exception as error:  # a device may send anything: no document ends the reading of the others
        name = _claimed(found, data)
        row = {"path": _text(found.path), "size": len(data), "reason": _text(_said(error))[:_MOST_REASON]}
        return row | {"id": name, "device": name.partition("::")[0] if name and "::" in name else None}


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return str(error.strerror)
    return f"{error}" if isinstance(error, ValueError) and str(error) else f"cannot be read ({error!r})"


def _claimed(found: Found, data: bytes) -> str | None:
    """The id by which the place knows a document that cannot be read, else the one that it gives itself."""
    if found.id is not None:
        return _text(found.id)[:_MOST_NAME]
    told = _CLAIMED.search(data)
    return told[1].decode(errors="replace") if told else None


def _text(text: str) -> str:
    """As UTF-8 can say it: a device's JSON may hold half a surrogate pair."""
    return text.encode(errors="replace").decode()


def _decoded(data: bytes) -> dict[str, Any]:
    columns = chunks.columns(data)
    gaps = np.abs(np.frombuffer(columns["gap"], np.int64)).sum(dtype=np.float64)
    if max(columns["first"][0] + columns["readings"], gaps) > MOST_READINGS:
        raise ValueError(f"it tells of more than {MOST_READINGS} readings, had or missing: no stream has so many")
    packed = b"".join(_FIELDS(columns))
    row = {name: columns.get(name) for name in ("id", *OWNER, "readings")}
    row |= {"first": columns["first"][0], "buckets": len(columns["n"]), **columns["totals"]}
    content = hashlib.sha256(repr(columns["center"]).encode())
    content.update(packed)
    row |= {"extras": [(name, [*of.items()]) for name, of in columns["extras"].items()] or None}
    row |= {"skipped": ", ".join(columns["skipped"]) or None, "tags": _pairs(columns.get("tags"))}
    row |= {"health": _health(columns.get("health")), "gaps": columns["gaps"].tobytes()}
    return row | {"digest": hashlib.sha256(data).hexdigest(), "content": content.hexdigest(), "packed": packed}


def _pairs(tags: dict[str, str] | None) -> list[tuple[str, str]] | None:
    return [(_text(name), _text(value)) for name, value in sorted(tags.items())] if tags else None


def _health(told: dict[str, Any] | None) -> str | None:
    """As JSON; what a device makes longer than MOST_HEALTH bytes is not kept, nor numbers that JSON has not: 1e999."""
    try:
        text = json.dumps(told, allow_nan=False) if told else ""
    except ValueError:
        return None
    return text if text and len(text) <= MOST_HEALTH else None


def _holes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row of n = 0 for every document at which readings are missing: `gap` of them between two times.

    Before one that is used, or left out of one: those ordinals are others', so its row has none of them.
    """
    batch = batch.filter(pc.greater(batch["hole"], 0))
    zero, none = np.zeros(batch.num_rows, np.int64), pa.nulls(batch.num_rows, pa.float64())
    low, high, first, hole = (np.asarray(batch[name]) for name in ("hole_from", "hole_to", "first", "hole"))
    before = np.asarray(batch["lost"]) == 0
    columns: dict[str, Any] = {name: zero if kind == "bigint" else none for name, kind in BUCKET_FIELDS.items()}
    columns |= {"total": zero.astype(np.float64), "gap": batch["hole"]}
    columns |= {"first": np.where(before, first - hole, -1 - first)}
    columns |= {"t_first": np.minimum(low, high), "t_last": np.maximum(low, high)}
    chunk = pa.nulls(batch.num_rows, batch["id"].type)  # a session may have texts of 64-bit lengths
    return pa.RecordBatch.from_pydict({name: batch[name] for name in OWNER} | columns | {"chunk": chunk})


def _losses(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row of n = 0 for every loss that documents tell of, or take back (`losses`)."""
    batch = batch.filter(pc.is_valid(batch["losses"]))
    found = [told_by(packed) for packed in buffers_of(batch["losses"])]
    of = np.repeat(np.arange(batch.num_rows), [some.shape[0] for some in found])
    told = np.concatenate(found) if found else told_by(None)
    zero, none = np.zeros(of.size, np.int64), pa.nulls(of.size, pa.float64())
    columns: dict[str, Any] = {name: zero if kind == "bigint" else none for name, kind in BUCKET_FIELDS.items()}
    columns |= {"total": zero.astype(np.float64), "gap": told[:, 2], "t_first": told[:, 0], "t_last": told[:, 1]}
    columns |= {"first": np.full(of.size, NEVER)}
    chunk = pa.nulls(of.size, batch["id"].type)
    heads = {name: batch[name].take(pa.array(of)) for name in OWNER}
    return pa.RecordBatch.from_pydict(heads | columns | {"chunk": chunk})


def buffers_of(column: Any) -> list[pa.Buffer]:
    """The bytes of each entry of a binary column, of a null none. No byte is copied, as each scalar of Arrow's is."""
    out: list[pa.Buffer] = []
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        kind = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
        _, ends, data = chunk.buffers()
        if ends is None or data is None:
            out += [pa.py_buffer(b"")] * len(chunk)
            continue
        at = np.frombuffer(ends, kind)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
        out += [data.slice(begin, end - begin) for begin, end in pairwise(at)]
    return out


def fields_of(packed: Any, buckets: int) -> Ints:
    """The packed buckets of one document, (field, bucket); what an older Sluicegate kept has fewer fields: 0, then."""
    told = np.frombuffer(packed, np.int64).reshape(-1, buckets)
    missing = len(BUCKET_FIELDS) - told.shape[0]
    return np.concatenate([told, np.zeros((missing, buckets), np.int64)]) if missing else told


def bucket_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of DOCUMENTS that are chunks, at least one → rows of `schema.BUCKETS`.

    Where `losses` tell what is missing, and when, the buckets do not.
    """
    counts = np.asarray(batch["buckets"])
    packed = [fields_of(one, count) for one, count in zip(buffers_of(batch["packed"]), counts, strict=True)]
    whole = np.concatenate(packed, axis=1)
    columns: Columns = {
        name: whole[i] if kind == "bigint" else whole[i].view(np.float64)
        for i, (name, kind) in enumerate(BUCKET_FIELDS.items())
    }
    owner = np.repeat(np.arange(batch.num_rows), counts)
    if "losses" in batch.schema.names:
        columns["gap"] = np.where(np.asarray(pc.is_valid(batch["gaps"]))[owner], 0, columns["gap"])
    heads = {name: batch[name].take(pa.array(owner)) for name in (*OWNER, "id")}
    chunk = heads.pop("id")
    return pa.RecordBatch.from_pydict(heads | columns | {"chunk": chunk})
