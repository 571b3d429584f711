"""What is known of every document of a shard, and what new ones change: the fates of batch, judged again only in part.

The ledger has a row a document, without its buckets. New documents of a line (one stream of one incarnation) are judged
by `placing`, beginning at the last place before them that no document reaches across: what lies before it cannot
change, and all that is needed of it is where it ends. Of what is judged again the ledger tells which times are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.documents import buffers_of
from sluicegate_cloud.grid import Ints
from sluicegate_cloud.lines.placing import OWNED_BY, Document, Line, begun
from sluicegate_cloud.losses import NOTHING, After, Before, Losses, losses_of
from sluicegate_cloud.schema import REFUSED, RETIRED, USED
from sluicegate_cloud.table.horizon import too_late
from sluicegate_cloud.table.settled.refused import count, fewer
from sluicegate_cloud.table.settled.rows import (
    LEDGER,
    Owner,
    Settled,
    after_of,
    files_of,
    in_order,
    ints,
    is_known,
    load,
    of_runs,
    runs_of,
)
from sluicegate_cloud.table.versions import Store

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
    ledger: pa.Table, new: pa.Table, cell_us: int, load: Load, settled: Settled, horizon_us: int | None = None
) -> Judged:  # fmt: skip
    """Take `new` rows of `documents.DOCUMENTS` into the ledger of their shard.

    `load`: the packed buckets of a document that is in the ledger; `settled`: where the documents of its runs are;
    `horizon_us`: what lies before it is refused.
    """
    is_refused = pc.equal(ledger["fate"], REFUSED)
    old_refused, placed = ledger.filter(is_refused), ledger.filter(pc.invert(is_refused))
    known = settled.digests(placed, new)
    if horizon_us is not None:
        new = too_late(new, known, horizon_us)
    refused = new.filter(pc.is_valid(new["reason"]))
    readable = new.filter(pc.is_null(new["reason"])) if refused.num_rows else new
    fresh = _fresh(known, readable)
    by_line = [*_by_line(fresh)]
    placed, lines = _opened(placed, settled, by_line)
    touched, gone = Touched(), np.zeros(placed.num_rows, bool)
    rows: list[Row] = []
    for owner, mine in by_line:
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
    told = pa.concat_tables([in_order(kept), fewer(pa.concat_tables([old_refused, refused]))])
    return Judged(told, fresh, touched, copies, refused.num_rows)


def empty() -> pa.Table:
    """A ledger without a document."""
    return LEDGER.empty_table()


def written(store: Store, ledger: pa.Table) -> Row:
    """Write it; what the index of its shard says of it."""
    return {
        "ledger": store.write("ledger", ledger),
        "settled": files_of(ledger),
        "refused": count(ledger),
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


def _fresh(known: pa.ChunkedArray, new: pa.Table) -> pa.Table:
    """Those of `new` whose digest is not among the `known`; of several with one digest the one of the first path."""
    names = new.select(["digest", "path"])
    order = np.asarray(pc.sort_indices(names, [("digest", "ascending"), ("path", "ascending")])).astype(np.int64)
    digest = np.asarray(new["digest"].to_numpy(zero_copy_only=False))[order]
    once = np.ones(order.size, bool)
    once[order[1:]] = digest[1:] != digest[:-1]
    once &= ~np.asarray(pc.is_in(new["digest"], value_set=known.combine_chunks()))
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


def _opened(placed: pa.Table, settled: Settled, by_line: Sequence[tuple[Owner, list[Row]]]) -> tuple[pa.Table, _Lines]:
    """The ledger without the runs of which a document is judged again, and its lines."""
    while True:
        lines = _Lines(placed)
        at = [run for owner, mine in by_line for run in lines.runs_before(owner, mine)]
        if not at:
            return placed, lines
        placed = settled.opened(placed, at)


def _by_line(documents: pa.Table) -> Iterator[tuple[Owner, list[Row]]]:
    found: dict[Owner, list[Row]] = {}
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
        self._first, self._last = (ints(ledger, name) for name in ("first", "t_last"))
        self._end = of_runs(ledger, "end", self._first + ints(ledger, "readings"))
        self._is_run = runs_of(ledger)
        self._reached = np.asarray(ledger["reached"].combine_chunks().fill_null(False))
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

    def runs_before(self, owner: Owner, new: list[Row]) -> list[int]:
        """The runs to be opened, since documents that are judged again with the `new` ones may lie in them."""
        begin, end = self._at.get(owner, (0, 0))
        runs = begin + np.flatnonzero(self._is_run[begin:end])
        if not runs.size:
            return []
        cut = self._judged_from(begin, end, new)
        least = min([*(row["t_last"] for row in new), *self._last[cut:end].tolist()])
        return [int(at) for at in runs if at >= cut or self._last[at] > least]

    def judged(self, owner: Owner, new: list[Row], load: Load) -> _Line:
        """The line with `new` documents."""
        begin, end = self._at.get(owner, (0, 0))
        cut = self._judged_from(begin, end, new)
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

    def _losses(self, owner: Owner, begin: int, cut: int) -> Losses:
        """What the documents before told is lost."""
        if cut == begin:
            return Losses(begun(owner))
        some = self._ledger.slice(begin, cut - begin)

        def before() -> Before:
            reached = some.filter(some["reached"].fill_null(False))
            told = [losses_of(one) for one in buffers_of(some["losses"].drop_null())]
            losses = np.concatenate(told) if told else losses_of(None)
            ends = ints(reached, "t_first"), _lasts(reached), _holes(some)
            return Before(some["key"][0].as_py(), *ends, losses, _after(reached))

        return Losses(begun(owner), before, has_holes=bool(ints(some, "hole").any()))

    def _judged_from(self, begin: int, end: int, new: list[Row]) -> int:
        return max(self._cut(begin, end, new), self._after_retired(begin, end))

    def _after_retired(self, begin: int, end: int) -> int:
        """The first row whose document still has its buckets: those before it cannot be compared with others."""
        last = int(np.searchsorted(self._retired, end)) - 1
        return max(begin, int(self._retired[last]) + 1) if last >= 0 else begin

    def _cut(self, begin: int, end: int, new: list[Row]) -> int:
        """From which row on the line is judged again: from its begin where two boards wrote it."""
        if begin == end:
            return end
        first, ends = self._first[begin:end], self._end[begin:end]
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
        at = begin + np.flatnonzero(self._reached[begin:cut])
        for row in at[self._end[at] == self._end[at].max(initial=0)].tolist():
            key = self._ledger["key"][row].as_py()
            mine = int(self._end[row]), int(self._last[row])  # a run's last document ends it in time, too
            out[key] = max(out.get(key, (0, 0)), mine)
        return out


def _lasts(reached: pa.Table) -> Ints:
    """The last time of each of these documents, also of each one in a run."""
    last = ints(reached, "t_last")
    if not runs_of(reached).any():
        return last
    of_each = zip(runs_of(reached).tolist(), buffers_of(_of_run(reached, "lasts")), last, strict=True)
    return np.concatenate([np.frombuffer(lasts, np.int64) if is_run else [one] for is_run, lasts, one in of_each])


def _holes(some: pa.Table) -> Ints:
    """Between which two times each of the holes of these documents lies."""
    gone = some.filter(pc.greater(some["hole"].fill_null(0), 0))
    holes = np.stack([ints(gone, name) for name in ("hole_from", "hole_to")], axis=1)
    inside = [np.frombuffer(one, np.int64).reshape(-1, 2) for one in buffers_of(_of_run(gone, "holes"))]
    return np.concatenate([holes[~runs_of(gone)], *inside])


def _of_run(some: pa.Table, name: str) -> pa.Array:
    return some["run"].combine_chunks().field(name)


def _after(reached: pa.Table) -> After:
    """How the clock stands after these documents: as the last ones say."""
    after, last = NOTHING, ints(reached, "t_last")
    is_run, told = runs_of(reached), _of_run(reached, "after")
    for at in range(last.size - 1, -1, -1):
        one = after_of(told[at].as_py()) if is_run[at] else After.of(reached["gaps"][at].as_py(), int(last[at]))
        after = one.then(after)
        if is_known(after):
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


def used_columns(ledger: pa.Table) -> dict[str, Any]:
    """As arrays, the columns that readers of the ledger need: of what is used in part, that part's."""
    out = {name: ints(ledger, name) for name in ("buckets", "readings", "gap", "doubt", "t_first", "t_last")}
    part = ledger["part"].combine_chunks()
    some = np.asarray(pc.is_valid(part))
    if some.any():
        for name in out:
            out[name] = np.where(some, np.asarray(part.field(name).fill_null(0)), out[name])
    return out | {"part": some}
