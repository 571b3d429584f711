"""A ledger's rows: one for each document, or one for a run of documents that nothing new changes.

A run's own rows lie in a file of their own, in the folder of ledgers, which is read only where they are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate.format.gaps import NEVER
from sluicegate_cloud.grid import Ints
from sluicegate_cloud.lines.placing import CATALOGUE, OWNED_BY
from sluicegate_cloud.losses import After
from sluicegate_cloud.schema import REFUSED
from sluicegate_cloud.table.versions import Store

_INT = pa.int64()
#: Columns of a document of which a part is used, as `placing` makes them anew.
PART = pa.struct(
    [*((name, _INT) for name in ("readings", "buckets", "gap", "doubt", "t_first", "t_last")), ("packed", pa.binary())]
)
#: Of a run: how many documents; the ordinal after its last; and of what those that follow are judged by: the last times
#: of its last documents, the times of its holes, how the clock stands after it. `file`: where its documents' rows are.
RUN = pa.struct(
    [("documents", _INT), ("end", _INT), *((name, pa.binary()) for name in ("lasts", "holes", "after")),
     ("file", pa.string())]
)  # fmt: skip
#: A row a document: what `dedupe.catalogue` tells of it, less its buckets, and `cell`: the file they are in; `part`:
#: what of it is used, where not all is; `reached`: whether what follows is judged by where it ends. A row a `run`: sums
#: of its documents, the least and greatest of their times, all their losses, and what they have in common.
LEDGER = pa.schema(
    [
        *(of for of in CATALOGUE if of.name not in ("packed", "extras", "skipped", "health")),
        ("cell", _INT), ("reached", pa.bool_()), ("part", PART), ("run", RUN),
    ]
)  # fmt: skip
_SORTED = [
    *((name, "ascending") for name in OWNED_BY), ("first", "ascending"), ("readings", "descending"),
    ("digest", "ascending"), ("path", "ascending"),
]  # fmt: skip
#: The names that say whose a row is.
Owner = tuple[str, str, str]


def load(store: Store, name: str, filters: Any = None) -> pa.Table:
    """A file of rows as they are now; what an older Sluicegate did not write is empty."""
    table = store.read(name, None, filters)
    for at, one in enumerate(LEDGER):
        if one.name not in table.column_names:
            table = table.add_column(at, one, pa.nulls(table.num_rows, one.type))
    return table.select(LEDGER.names).cast(LEDGER)


def in_order(rows: pa.Table) -> pa.Table:
    """By line, and in a line as documents are judged."""
    return rows.sort_by(_SORTED)


def ints(table: pa.Table, name: str) -> Ints:
    """A column of integers, a null as 0."""
    return np.asarray(table[name].combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)


def runs_of(table: pa.Table) -> Any:
    """Which rows are runs."""
    return np.asarray(pc.is_valid(table["run"]).combine_chunks())


def files_of(table: pa.Table) -> list[str]:
    """Where the rows of its runs are."""
    runs = table["run"].drop_null().combine_chunks()
    return sorted(runs.field("file").drop_null().unique().to_pylist())


def of_runs(table: pa.Table, name: str, otherwise: Ints) -> Ints:
    """An integer of each row that is a run, of the others `otherwise`."""
    column = table["run"].combine_chunks()
    return np.where(np.asarray(pc.is_valid(column)), np.asarray(column.field(name).fill_null(0)), otherwise)


def line_numbers(table: pa.Table) -> Ints:
    """Of rows in order, the number of the line of each, from 0 on."""
    changes = np.zeros(max(table.num_rows - 1, 0), bool)
    for name in OWNED_BY:
        changes |= np.diff(np.asarray(table[name].combine_chunks().dictionary_encode().indices)) != 0
    return np.concatenate(([0], np.cumsum(changes)))[: table.num_rows]


def lines_of(table: pa.Table) -> list[tuple[int, int]]:
    """Where the rows of each line begin and end, of rows in order."""
    number = line_numbers(table)
    begins = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist()] if number.size else []
    return [*zip(begins, [*begins[1:], table.num_rows], strict=True)] if begins else []


def is_known(after: After) -> bool:
    """Whether documents before do not change how the clock stands."""
    return after.recent != NEVER and after.is_back is not None


def packed_after(after: After) -> bytes:
    """For a run's column."""
    is_back = -1 if after.is_back is None else int(after.is_back)
    return np.array([after.recent, is_back, after.began_back], np.int64).tobytes()


def after_of(packed: bytes) -> After:
    """Of `packed_after`."""
    recent, is_back, began_back = np.frombuffer(packed, np.int64).tolist()
    return After(recent, None if is_back < 0 else bool(is_back), bool(began_back))


class Settled:
    """The rows of runs, in their files."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def opened(self, table: pa.Table, at: Iterable[int]) -> pa.Table:
        """`table`, with the documents of the runs at some rows in their place; what is refused comes last."""
        some = np.zeros(table.num_rows, bool)
        some[[*at]] = True
        some &= runs_of(table) & np.asarray(pc.not_equal(table["fate"], REFUSED).combine_chunks())
        if not some.any():
            return table
        found = pa.concat_tables([table.filter(pa.array(~some)), *self._rows(table.filter(pa.array(some)))])
        is_refused = pc.equal(found["fate"], REFUSED)
        return pa.concat_tables([in_order(found.filter(pc.invert(is_refused))), found.filter(is_refused)])

    def whole(self, table: pa.Table) -> pa.Table:
        """A row a document."""
        return self.opened(table, range(table.num_rows))

    def digests(self, table: pa.Table, new: pa.Table) -> pa.ChunkedArray:
        """Of all documents of `table` that one of `new` may equal; of a run's only where one begins in it."""
        runs = table.filter(pa.array(runs_of(table)))
        met = _met(runs, new) if runs.num_rows and new.num_rows else []
        found = [table["digest"]]
        for name, some in _by_file(runs.take(pa.array(met, pa.int64()))):
            found.append(self._store.read(name, ["digest"], _between(some))["digest"])
        return pa.chunked_array([chunk for column in found for chunk in column.chunks], pa.string())

    def _rows(self, runs: pa.Table) -> Iterator[pa.Table]:
        for name, some in _by_file(runs):
            rows = load(self._store, name, _between(some))
            mine: dict[Owner, list[tuple[int, int]]] = {}
            for owner, *ends in _extents(some):
                mine.setdefault(owner, []).append((ends[0], ends[1]))
            kept, first = np.zeros(rows.num_rows, bool), ints(rows, "first")
            lines = lines_of(rows)
            for (begin, end), owner in zip(lines, _owners(rows, [begin for begin, _ in lines]), strict=True):
                for low, high in mine.get(owner, ()):
                    kept[begin:end] |= (first[begin:end] >= low) & (first[begin:end] < high)
            if kept.sum() != of_runs(some, "documents", np.zeros(some.num_rows, np.int64)).sum():
                raise ValueError(f"{name} has not the documents of the runs that name it")
            yield rows.filter(pa.array(kept))


def _met(runs: pa.Table, new: pa.Table) -> list[int]:
    """The runs in which one of the new documents begins."""
    mine: dict[Owner, list[tuple[int, int, int]]] = {}
    for at, (owner, low, high) in enumerate(_extents(runs)):
        mine.setdefault(owner, []).append((low, high, at))
    met: set[int] = set()
    owners = zip(*(new[name].to_pylist() for name in OWNED_BY), strict=True)
    for owner, first in zip(owners, ints(new, "first").tolist(), strict=True):
        met.update(at for low, high, at in mine.get(owner, ()) if low <= first < high)
    return sorted(met)


def _extents(runs: pa.Table) -> Iterator[tuple[Owner, int, int]]:
    """Of each run its line, its first ordinal and the one after its last."""
    ends = of_runs(runs, "end", np.zeros(runs.num_rows, np.int64))
    yield from zip(_owners(runs, range(runs.num_rows)), ints(runs, "first").tolist(), ends.tolist(), strict=True)


def _owners(table: pa.Table, at: Sequence[int]) -> list[Owner]:
    some = table.select(OWNED_BY).take(pa.array([*at], pa.int64()))
    return [*zip(*(some[name].to_pylist() for name in OWNED_BY), strict=True)]


def _by_file(runs: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    files = runs["run"].combine_chunks().field("file")
    for name in files.unique().to_pylist():
        yield name, runs.filter(pc.equal(files, name))


def _between(runs: pa.Table) -> list[tuple[str, str, str]]:
    """What a file's row groups are passed over by."""
    least, most = (of(runs["device"]).as_py() for of in (pc.min, pc.max))
    return [("device", ">=", least), ("device", "<=", most)]
