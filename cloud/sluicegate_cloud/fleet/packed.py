"""Documents' packed buckets → rows of whole streams for the pass: no bucket is a row of Spark's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate.format.gaps import NEVER
from sluicegate_cloud.documents import fields_of
from sluicegate_cloud.fleet.known import as_frames
from sluicegate_cloud.fleet.wire import MOST, ROWS, WHOLE, Cuts, Fields, Rows, Source, owners, pieces_of, unknown
from sluicegate_cloud.grid import Columns, Grid, Ints
from sluicegate_cloud.losses import told_by
from sluicegate_cloud.schema import BUCKET_FIELDS, USED

_AT = {name: i for i, name in enumerate(BUCKET_FIELDS)}
_BY = ("device", "stream", "piece")
#: Columns of a document that tell what is missing at it.
HOLES = ("first", "hole", "hole_from", "hole_to", "lost")


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


def with_holes(columns: Columns, holes: Mapping[str, Any], owner: Ints, center: Any, grid: Grid) -> Columns:
    """And a row of n = 0 for each of `holes`, readings missing at a document (`documents.unpack`)."""
    if owner.size == 0:
        return columns
    first, lost = holes["first"], holes["lost"]
    times = [pick(holes["hole_from"], holes["hole_to"]) for pick in (np.minimum, np.maximum)]
    told: Columns = {"gap": holes["hole"], "t_first": times[0], "t_last": times[1], "owner": owner, "center": center}
    return _with_missing(columns, told | {"first": np.where(lost == 0, first - holes["hole"], -1 - first)}, grid)


def with_losses(columns: Columns, losses: Sequence[Any], owner: Ints, center: Any, grid: Grid) -> Columns:
    """And a row of n = 0 for each loss that documents tell of, or take back: the `losses` of each.

    What a document tells so its buckets do not: their gaps are 0 then (`told`).
    """
    found = [told_by(some) for some in losses]
    of = np.repeat(np.arange(len(found)), [some.shape[0] for some in found])
    if not of.size:
        return columns
    since, upto, gap, _ = np.concatenate(found).T
    told = {"gap": gap, "t_first": since, "t_last": upto, "owner": owner[of], "center": np.asarray(center)[of]}
    return _with_missing(columns, told | {"first": np.full(of.size, NEVER)}, grid)


def _with_missing(columns: Columns, told: Columns, grid: Grid) -> Columns:
    size = told["gap"].size
    told |= {f"{end}_frame": grid.frame_of(told[f"t_{end}"]) for end in ("first", "last")}
    told |= {"total": np.zeros(size)}
    out = {}
    for name, column in columns.items():
        empty = np.nan if column.dtype == np.float64 else 0
        out[name] = np.concatenate((column, told.get(name, np.full(size, empty, column.dtype))))
    return out


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
    packed = [view for view, wanted in zip(table["packed"], used.tolist(), strict=True) if wanted]
    pieces = [fields_of(view.as_buffer(), count) for view, count in zip(packed, counts.tolist(), strict=True)]
    columns = columns_of(pieces, wanted, grid)
    columns |= {"owner": np.repeat(owner[used], counts), "center": np.repeat(center[used], counts)}
    tells = np.asarray(pc.is_valid(table["gaps"]).combine_chunks())
    columns["gap"] = np.where(np.repeat(tells[used], counts), 0, columns["gap"])
    some = table["hole"].to_numpy() > 0
    holes = {name: table[name].to_numpy()[some] for name in HOLES}
    columns = with_holes(columns, holes, owner[some], center[some], grid)
    some = np.asarray(pc.greater(pc.binary_length(table["losses"]), 0).fill_null(False).combine_chunks())
    losses = [packed.as_buffer() for packed in table["losses"].filter(pa.array(some))]
    columns = with_losses(columns, losses, owner[some], center[some], grid)
    of_pieces = pieces_of(device, stream, number, cuts)
    with np.errstate(all="ignore"):
        return Rows(as_frames(columns, wanted.every), device, stream, pieces=of_pieces)
