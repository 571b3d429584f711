"""What is known of every document of a shard, and what new ones change: the fates of batch, judged again only in part.

The ledger has a row a document, without its buckets. New documents of a line (one stream of one incarnation) are judged
by `placing`, beginning at the last place before them that no document reaches across: what lies before it cannot
change, and all that is needed of it is where it ends. Of what is judged again the ledger tells which times are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate.format.gaps import NEVER
from sluicegate_cloud.documents import buffers_of
from sluicegate_cloud.grid import Ints
from sluicegate_cloud.lines.placing import CATALOGUE, OWNED_BY, Document, Line, begun
from sluicegate_cloud.losses import NOTHING, After, Before, Losses, losses_of
from sluicegate_cloud.schema import REFUSED, RETIRED, USED
from sluicegate_cloud.table.horizon import too_late
from sluicegate_cloud.table.versions import Store

_INT = pa.int64()
#: Columns of a document of which a part is used, as `placing` makes them anew.
PART = pa.struct(
    [*((name, _INT) for name in ("readings", "buckets", "gap", "doubt", "t_first", "t_last")), ("packed", pa.binary())]
)
#: A row a document: what `dedupe.catalogue` tells of it, less its buckets, and `cell`: the file they are in; `part`:
#: what of it is used, where not all is; `reached`: whether what follows is judged by where it ends.
LEDGER = pa.schema(
    [
        *(of for of in CATALOGUE if of.name not in ("packed", "extras", "skipped", "health")),
        ("cell", _INT), ("reached", pa.bool_()), ("part", PART),
    ]
)  # fmt: skip
_SORTED = [
    *((name, "ascending") for name in OWNED_BY), ("first", "ascending"), ("readings", "descending"),
    ("digest", "ascending"), ("path", "ascending"),
]  # fmt: skip
Row = dict[str, Any]
Load = Callable[[Row], pa.Buffer]
Touched = dict[tuple[str, str], list[tuple[int, int]]]


class Judged(NamedTuple):
    """`ledger`: with the new documents; `fresh`: those of the new ones whose buckets are to be kept; `touched`: of each
    (device, stream) the times in µs within which buckets or holes came, changed or went; `copies`, `refused`: how many
    new ones were there already, and cannot be used.
    """

    ledger: pa.Table
    fresh: pa.Table
    touched: Touched
    copies: int
    refused: int


def judge(
    ledger: pa.Table, new: pa.Table, cell_us: int, load: Load, horizon_us: int | None = None
) -> Judged:  # fmt: skip
    """Take `new` rows of `documents.DOCUMENTS` into the ledger of their shard.

    `load`: the packed buckets of a document that is in the ledger; `horizon_us`: what lies before it is refused.
    """
    is_refused = pc.equal(ledger["fate"], REFUSED)
    old_refused, placed = ledger.filter(is_refused), ledger.filter(pc.invert(is_refused))
    if horizon_us is not None:
        new = too_late(new, placed["digest"], horizon_us)
    refused = new.filter(pc.is_valid(new["reason"]))
    readable = new.filter(pc.is_null(new["reason"])) if refused.num_rows else new
    fresh = _fresh(placed, readable)
    lines, touched, gone = _Lines(placed), Touched(), np.zeros(placed.num_rows, bool)
    rows: list[Row] = []
    for owner, mine in _by_line(fresh):
        line = lines.judged(owner, mine, load)
        gone[line.begin : line.end] = True
        rows += line.rows
        if line.touched:
            touched.setdefault(owner[:2], []).extend(line.touched)
    for row in rows:
        row["cell"] = row["t_first"] // cell_us
    old_refused, refused = _refusals(old_refused, refused, readable)
    kept = pa.concat_tables([placed.filter(pa.array(~gone)), pa.Table.from_pylist(rows, LEDGER)])
    copies = new.num_rows - refused.num_rows - fresh.num_rows
    told = pa.concat_tables([kept.sort_by(_SORTED), old_refused, refused])
    return Judged(told, fresh, touched, copies, refused.num_rows)


def load(store: Store, name: str) -> pa.Table:
    """A ledger that was written; what an older Sluicegate did not write is empty."""
    table = store.read(name)
    for at, one in enumerate(LEDGER):
        if one.name not in table.column_names:
            table = table.add_column(at, one, pa.nulls(table.num_rows, one.type))
    return table


def empty() -> pa.Table:
    """A ledger without a document."""
    return LEDGER.empty_table()


def written(store: Store, ledger: pa.Table) -> Row:
    """Write it; what the index of its shard says of it."""
    return {
        "ledger": store.write("ledger", ledger),
        "refused": int(pc.sum(pc.equal(ledger["fate"], REFUSED)).as_py() or 0),
    }


def unreadable(store: Store, indexes: Iterable[Row]) -> frozenset[str]:
    """Paths of the files that could not be used when they were read last, of the indexes of some shards."""
    some = [index["ledger"] for index in indexes if index["ledger"] and index.get("refused", 1)]
    tables = [store.read(name, ["path"], [("fate", "==", REFUSED)]) for name in some]
    return frozenset(path for table in tables for path in table["path"].to_pylist())


def forgiven(store: Store, index: Row, paths: Iterable[str]) -> Row | None:
    """The index of a shard without the refusals of files that another shard has read again; None where it has none."""
    found = unreadable(store, [index]).intersection(paths)
    if not found:
        return None
    table = load(store, index["ledger"])
    gone = pc.and_(pc.equal(table["fate"], REFUSED), pc.is_in(table["path"], value_set=pa.array(sorted(found))))
    return index | written(store, table.filter(pc.invert(gone)))


def _fresh(ledger: pa.Table, new: pa.Table) -> pa.Table:
    """Those of `new` that are not there to the byte, each once: of equal paths' order the first."""
    names = new.select(["digest", "path"])
    order = np.asarray(pc.sort_indices(names, [("digest", "ascending"), ("path", "ascending")])).astype(np.int64)
    digest = np.asarray(new["digest"].to_numpy(zero_copy_only=False))[order]
    once = np.ones(order.size, bool)
    once[order[1:]] = digest[1:] != digest[:-1]
    once &= ~np.asarray(pc.is_in(new["digest"], value_set=ledger["digest"].combine_chunks()))
    return new if once.all() else new.filter(pa.array(once))  # buckets are copied only where some stay behind


def _refusals(old: pa.Table, refused: pa.Table, readable: pa.Table) -> tuple[pa.Table, pa.Table]:
    """A row a file that cannot be used, of equal documents one: those that stay, and new ones.

    What can be read now is no longer refused.
    """
    again = pa.concat_arrays([of["path"].combine_chunks() for of in (refused, readable)])
    old = old.filter(pc.invert(pc.is_in(old["path"], value_set=again)))
    seen, rows = {*old["digest"].drop_null().to_pylist()}, []
    for row in (
        refused.sort_by("path").select([name for name in LEDGER.names if name in refused.column_names]).to_pylist()
    ):
        if row["digest"] not in seen:
            rows.append(row | {"fate": REFUSED, "hole": 0, "lost": 0})
            seen |= {row["digest"]} - {None}
    return old, pa.Table.from_pylist(rows, LEDGER)


def _by_line(documents: pa.Table) -> Iterator[tuple[tuple[str, str, str], list[Row]]]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in documents.drop_columns(["extras", "skipped", "health", "packed"]).to_pylist():
        found.setdefault((row["device"], row["stream"], row["incarnation"]), []).append(row)
    packed = dict(zip(documents["digest"].to_pylist(), buffers_of(documents["packed"]), strict=True))
    for owner, rows in found.items():
        for row in rows:
            row["packed"] = packed[row["digest"]]
        yield owner, rows


@dataclass
class _Line:
    """Rows `begin` … `end` − 1 of the ledger were judged again, with new ones: they are `rows` now."""

    begin: int
    end: int
    rows: list[Row] = field(default_factory=list)
    touched: list[tuple[int, int]] = field(default_factory=list)


class _Lines:
    """The lines of a ledger, which is sorted by them."""

    def __init__(self, ledger: pa.Table) -> None:
        self._ledger = ledger
        self._first, self._readings = (_ints(ledger, name) for name in ("first", "readings"))
        self._retired = np.flatnonzero(np.asarray(pc.equal(ledger["fate"], RETIRED).combine_chunks()))
        codes = [ledger[name].combine_chunks().dictionary_encode() for name in OWNED_BY]
        changes = np.zeros(max(ledger.num_rows - 1, 0), bool)
        for code in codes:
            changes |= np.diff(np.asarray(code.indices)) != 0
        begins = np.concatenate(([0], np.flatnonzero(changes) + 1)) if ledger.num_rows else np.zeros(0, np.int64)
        ends = np.append(begins[1:], ledger.num_rows)[: begins.size]
        names = [ledger[name].take(pa.array(begins)).to_pylist() for name in OWNED_BY]
        self._at = {
            owner: (int(begin), int(end))
            for owner, begin, end in zip(zip(*names, strict=True), begins, ends, strict=True)
        }

    def judged(self, owner: tuple[str, str, str], new: list[Row], load: Load) -> _Line:
        """The line with `new` documents."""
        begin, end = self._at.get(owner, (0, 0))
        cut = max(self._cut(begin, end, new), self._after_retired(begin, end))
        old = self._ledger.slice(cut, end - cut).to_pylist()
        documents = [Document(row, partial(load, row)) for row in old] + [Document(row, row["packed"]) for row in new]
        documents.sort(key=lambda each: (each.first, -each.row["readings"], each.row["digest"], each.row["path"]))
        line = Line(owner, ends=self._ends(begin, cut), losses=self._losses(owner, begin, cut))
        for document in documents:
            line.take(document)
        line.close()
        out = _Line(cut, end)
        before = {row["digest"]: row for row in old}
        for document in documents:
            row = _row(document)
            out.rows.append(row)
            out.touched += _touched(before.get(row["digest"]), row)
        return out

    def _losses(self, owner: tuple[str, str, str], begin: int, cut: int) -> Losses:
        """What the documents before told is lost."""
        if cut == begin:
            return Losses(begun(owner))
        some = self._ledger.slice(begin, cut - begin)

        def before() -> Before:
            reached = some.filter(some["reached"].fill_null(False))
            first, last = (_ints(reached, name) for name in ("t_first", "t_last"))
            gone = some.filter(pc.greater(some["hole"].fill_null(0), 0))
            holes = np.stack([_ints(gone, name) for name in ("hole_from", "hole_to")], axis=1)
            told = [losses_of(one) for one in buffers_of(some["losses"].drop_null())]
            losses = np.concatenate(told) if told else losses_of(None)
            return Before(some["key"][0].as_py(), first, last, holes, losses, _after(reached["gaps"], last))

        return Losses(begun(owner), before, has_holes=bool(_ints(some, "hole").any()))

    def _after_retired(self, begin: int, end: int) -> int:
        """Where the documents begin whose buckets are kept: others cannot be compared."""
        last = int(np.searchsorted(self._retired, end)) - 1
        return max(begin, int(self._retired[last]) + 1) if last >= 0 else begin

    def _cut(self, begin: int, end: int, new: list[Row]) -> int:
        """From where on the line is judged again. Two boards' documents are judged by all that both sent."""
        if begin == end:
            return end
        first, ends = self._first[begin:end], (self._first + self._readings)[begin:end]
        keys = {*self._ledger["key"].slice(begin, end - begin).unique().to_pylist(), *(row["key"] for row in new)}
        if len(keys) > 1:
            return begin
        least = min(row["first"] for row in new)
        following = np.minimum(np.append(first[1:], least), least)
        clean = (np.maximum.accumulate(ends) <= following) & (first < following)
        at = np.flatnonzero(clean)
        return begin + (int(at[-1]) + 1 if at.size else 0)

    def _ends(self, begin: int, cut: int) -> dict[str | None, tuple[int, int]]:
        """Where the documents before end, by key, as the line has it after them."""
        out: dict[str | None, tuple[int, int]] = {}
        if cut > begin:
            some = self._ledger.slice(begin, cut - begin).select(["key", "first", "readings", "t_last", "reached"])
            some = some.filter(some["reached"])
            last = np.asarray(some["first"]) + np.asarray(some["readings"])
            farthest = np.flatnonzero(last == last.max(initial=0))
            for row in some.take(pa.array(farthest)).to_pylist():
                told = (row["first"] + row["readings"], row["t_last"])
                out[row["key"]] = max(out.get(row["key"], (0, 0)), told)
        return out


def _after(gaps: pa.ChunkedArray, last: Ints) -> After:
    """How the clock stands after documents of these gaps and last times: as the last ones say."""
    after = NOTHING
    for at in range(last.size - 1, -1, -1):
        after = After.of(gaps[at].as_py(), int(last[at])).then(after)
        if after.recent != NEVER and after.is_back is not None:
            break
    return after


def _row(document: Document) -> Row:
    """The document's row of the ledger."""
    told = {name: document.row.get(name) for name in LEDGER.names}
    for name in ("reason", "reached", *_CHANGES, "loss_from", "loss_to"):
        told[name] = getattr(document, name)
    return told


_CHANGES = ("fate", "hole", "lost", "hole_from", "hole_to", "losses", "part")


def _touched(old: Row | None, new: Row) -> Iterator[tuple[int, int]]:
    """The times of what `old` and `new` add to windows, if they do not add the same."""
    if old is not None and all(old[name] == new[name] for name in _CHANGES):
        return
    for row in (old, new):
        if row is not None and row["fate"] == USED:
            yield row["t_first"], row["t_last"]
        if row is not None and row["hole"]:
            yield min(row["hole_from"], row["hole_to"]), max(row["hole_from"], row["hole_to"])
        if row is not None and row["loss_from"] is not None:
            yield row["loss_from"], row["loss_to"]


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table[name].combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)


def used_columns(ledger: pa.Table) -> dict[str, Any]:
    """As arrays, the columns that readers of the ledger need: of what is used in part, that part's."""
    out = {name: _ints(ledger, name) for name in ("buckets", "readings", "gap", "doubt", "t_first", "t_last")}
    part = ledger["part"].combine_chunks()
    some = np.asarray(pc.is_valid(part))
    if some.any():
        for name in out:
            out[name] = np.where(some, np.asarray(part.field(name).fill_null(0)), out[name])
    return out | {"part": some}
