"""Documents' packed buckets → rows of whole streams for the pass: no bucket is a row of Spark's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate.format.gaps import NEVER
from sluicegate_cloud.documents import buffers_of, fields_of
from sluicegate_cloud.fleet.known import as_frames
from sluicegate_cloud.fleet.wire import MOST, ROWS, WHOLE, Cuts, Fields, Rows, Source, owners, pieces_of, unknown
from sluicegate_cloud.grid import Columns, Floats, Grid, Ints
from sluicegate_cloud.losses import told_by
from sluicegate_cloud.schema import BUCKET_FIELDS, USED

_AT = {name: i for i, name in enumerate(BUCKET_FIELDS)}
_BY = ("device", "stream", "piece")
#: Columns of a document that tell what is missing at it.
HOLES = ("first", "hole", "hole_from", "hole_to", "lost")


class Missing(NamedTuple):
    """What some documents say is missing: columns of HOLES, or the `losses` of each; their owners and centers."""

    told: Any
    owner: Ints
    center: Floats


def columns_of(pieces: Sequence[Ints], wanted: Fields, grid: Grid) -> Columns:
    """The fields that the pass needs of packed buckets (`documents.fields_of`), `center` aside.

    Those of a cut are read where a bucket crosses a frame's edge or is in doubt.
    """

    def whole(name: str) -> Any:
        column = np.concatenate([piece[_AT[name]] for piece in pieces]) if pieces else np.zeros(0, np.int64)
        return column if BUCKET_FIELDS[name] == "bigint" else column.view(np.float64)

    columns: Columns = {name: whole(name) for name in wanted.every if name in BUCKET_FIELDS}
    columns |= {f"{end}_frame": grid.frame_of(columns[f"t_{end}"]) for end in ("first", "last")}
    cut = bool(np.any((columns["first_frame"] != columns["last_frame"]) | (columns["doubt"] > 0)))
    size = columns["n"].size
    return columns | {name: whole(name) if cut else unknown(BUCKET_FIELDS[name], size) for name in wanted.cut}


def with_missing(columns: Columns, holes: Missing, losses: Missing, grid: Grid) -> Columns:
    """And rows of n = 0: one for each hole at a document (`documents.unpack`), and for each loss it tells of or takes
    back. What a document tells so its buckets do not: their gaps are 0 then.
    """
    found = [of for of in (_holes(holes), _losses(losses)) if of["gap"].size]
    if not found:
        return columns
    told = {name: np.concatenate([of[name] for of in found]) for name in found[0]}
    told |= {f"{end}_frame": grid.frame_of(told[f"t_{end}"]) for end in ("first", "last")}
    size = told["gap"].size
    told |= {"total": np.zeros(size)}
    out = {}
    for name, column in columns.items():
        empty = np.broadcast_to(np.asarray(np.nan if column.dtype == np.float64 else 0, column.dtype), size)
        is_unknown = column.strides == (0,)
        more = told.get(name, empty)
        out[name] = unknown(BUCKET_FIELDS[name], column.size + size) if is_unknown else np.concatenate((column, more))
    return out


def _holes(of: Missing) -> Columns:
    first, lost, hole = (of.told[name] for name in ("first", "lost", "hole"))
    times = [pick(of.told["hole_from"], of.told["hole_to"]) for pick in (np.minimum, np.maximum)]
    told: Columns = {"gap": hole, "t_first": times[0], "t_last": times[1], "owner": of.owner, "center": of.center}
    return told | {"first": np.where(lost == 0, first - hole, -1 - first)}


def _losses(of: Missing) -> Columns:
    found = [told_by(some) for some in of.told]
    at = np.repeat(np.arange(len(found)), [some.shape[0] for some in found])
    since, upto, gap, _ = (np.concatenate(found) if found else told_by(None)).T
    told: Columns = {"gap": gap, "t_first": since, "t_last": upto, "owner": of.owner[at], "center": of.center[at]}
    return told | {"first": np.full(at.size, NEVER)}


def source(wanted: Fields, grid: Grid, cuts: Cuts = WHOLE) -> Source:
    """Rows of `dedupe.catalogue` of whole streams, by device and stream → rows of their buckets."""
    return partial(whole_streams, wanted=wanted, grid=grid, cuts=cuts)


def whole_streams(
    batches: Iterable[pa.RecordBatch],
    wanted: Fields,
    grid: Grid,
    rows: int = ROWS,
    most: int = MOST,
    cuts: Cuts = WHOLE,
) -> Iterator[Rows]:
    """At least so many buckets at a time; a stream is in two only where it is longer than `most`, and comes by time.

    So it does where the batches have `since`: when the first bucket or hole of a document begins, in µs. They have
    `piece` then too: the number of one of `cuts`, whose documents are together, or −1.
    """
    held: list[pa.RecordBatch] = []
    size, last = 0, None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        owners = [last, *zip(*(batch[name].to_pylist() for name in _BY if name in batch.schema.names), strict=True)]
        edges = [at for at, (a, b) in enumerate(pairwise(owners)) if a != b]
        last, more = owners[-1], pc.sum(batch["buckets"]).as_py()
        if size + more < rows or not edges:
            held, size = [*held, batch], size + more
            if size >= most and "since" in batch.schema.names:
                until_us = batch["since"][batch.num_rows - 1].as_py()
                yield _rows(pa.Table.from_batches(held), wanted, grid, cuts)._replace(until_us=until_us)
                held, size = [], 0
            continue
        if whole := [one for one in (*held, batch.slice(0, edges[-1])) if one.num_rows]:
            yield _rows(pa.Table.from_batches(whole), wanted, grid, cuts)
        held = [batch.slice(edges[-1])]
        size = pc.sum(held[0]["buckets"]).as_py()
    if held:
        yield _rows(pa.Table.from_batches(held), wanted, grid, cuts)


def _rows(table: pa.Table, wanted: Fields, grid: Grid, cuts: Cuts) -> Rows:
    table = table.combine_chunks()
    owner, device, stream, number = owners(table)
    center = table["center"].to_numpy()
    used = np.asarray(pc.equal(table["fate"], USED).combine_chunks())
    counts = table["buckets"].to_numpy()[used]
    packed = [one for one, wanted in zip(buffers_of(table["packed"]), used.tolist(), strict=True) if wanted]
    pieces = [fields_of(one, count) for one, count in zip(packed, counts.tolist(), strict=True)]
    columns = columns_of(pieces, wanted, grid)
    columns |= {"owner": np.repeat(owner[used], counts), "center": np.repeat(center[used], counts)}
    tells = np.asarray(pc.is_valid(table["gaps"]).combine_chunks())
    columns["gap"] = np.where(np.repeat(tells[used], counts), 0, columns["gap"])
    some = table["hole"].to_numpy() > 0
    holes = {name: table[name].to_numpy()[some] for name in HOLES}
    tell = np.asarray(pc.greater(pc.binary_length(table["losses"]), 0).fill_null(False).combine_chunks())
    losses = Missing(buffers_of(table["losses"].filter(pa.array(tell))), owner[tell], center[tell])
    columns = with_missing(columns, Missing(holes, owner[some], center[some]), losses, grid)
    of_pieces = pieces_of(device, stream, number, cuts)
    with np.errstate(all="ignore"):
        return Rows(as_frames(columns, wanted.every), device, stream, pieces=of_pieces)
