"""Which documents of a stream are used: each reading once, and what is left out covers nothing and is not forgotten.

One pass over the documents of a stream in the order of their first ordinals. One that begins before a used one of the
same board ends is left out, and covers nothing: the next is judged by those in use alone. Two boards that speak as one
device (two keys) each have ordinals of their own, and both count; buckets that both hold, from before the card was
copied, are known by what they say and count once. Of a document that is left out the readings that no used one has
exist all the same: they are its `hole`, as the ordinals before a used document are, and so are missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sluicegate_cloud.documents import ARROW, fields_of
from sluicegate_cloud.sameness import Buckets, shared, where_they_part
from sluicegate_cloud.schema import CONFLICT, COPY, OVERLAP, REFUSED, USED

#: What `place` adds to a document. `hole`: readings missing at it, between the times `hole_from` and `hole_to` in µs.
PLACED = {"fate": "string", "hole": "bigint", "hole_from": "bigint", "hole_to": "bigint"}
_PLACED = [("fate", pa.string()), *((name, pa.int64()) for name in ("hole", "hole_from", "hole_to"))]
CATALOGUE = pa.schema([*ARROW, *(pa.field(*one) for one in _PLACED)])
_READ = (
    "id", "device", "stream", "incarnation", "key", "center", "first", "readings", "buckets", "t_first", "t_last",
    "digest", "content", "reason",
)  # fmt: skip
#: Columns of a document of which only a part is used, made anew.
_OF_A_PART = ("readings", "buckets", "gap", "doubt", "t_first", "t_last", "packed")


@dataclass(slots=True)
class Document:
    """One document on its way: what its row says, and what becomes of it; `final` once nothing later can change it."""

    row: dict[str, Any]
    packed: Any
    fate: str = USED
    reason: str | None = None
    hole: int = 0
    hole_from: int = 0
    hole_to: int = 0
    part: dict[str, Any] | None = None
    final: bool = True
    _buckets: Buckets | None = None

    @property
    def first(self) -> int:
        """Its first ordinal."""
        return int(self.row["first"])

    @property
    def end(self) -> int:
        """The ordinal after its last."""
        return int(self.row["first"] + self.row["readings"])

    @property
    def key(self) -> str | None:
        """Of the place it was written at."""
        key: str | None = self.row["key"]
        return key

    @property
    def content(self) -> str:
        """What it says, whatever key and health it has."""
        return str(self.row["content"] or self.row["digest"])

    def buckets(self) -> Buckets:
        """Its buckets, unpacked when they are first compared."""
        if self._buckets is None:
            self._buckets = Buckets.of(fields_of(self.packed.as_buffer(), self.row["buckets"]), self.row["center"])
        return self._buckets

    def same_board(self, other: Document) -> bool:
        """Whether one board may have written both; what has no key may be of any."""
        return self.key is None or other.key is None or self.key == other.key


@dataclass(slots=True)
class Line:
    """What is known of one stream of one incarnation: the used documents that a later one may still overlap."""

    owner: tuple[Any, ...]
    ends: dict[str | None, tuple[int, int]] = field(
        default_factory=dict
    )  # by key: end, and the time of the last reading
    recent: list[Document] = field(default_factory=list)
    waiting: list[Document] = field(default_factory=list)
    versions: list[Document] = field(default_factory=list)
    parted: set[frozenset[str | None]] = field(default_factory=set)

    def take(self, new: Document) -> None:
        """Judge the next document by those before it."""
        self._settle(new.first)
        self.versions = [old for old in self.versions if old.first == new.first]
        if not self._is_copy(new):
            self._judge(new)
        self.versions.append(new)

    def close(self) -> None:
        """Nothing more comes."""
        self._settle(1 << 62)

    def _is_copy(self, new: Document) -> bool:
        """The same to the byte, or the same but for key and health: another board's copy of it, or sealed again."""
        same = (old for old in self.versions if old.row["id"] == new.row["id"] and old.fate == USED)
        if any(old.content == new.content for old in same):
            new.fate = COPY
            self._reach(new)
        elif any(old.row["digest"] == new.row["digest"] for old in self.versions):
            new.fate = COPY  # of one that is left out
        return new.fate == COPY

    def _judge(self, new: Document) -> None:
        covered = self._covered(new.key)
        if new.first < covered:
            self._leave_out(new, covered)
            return
        self._use(new)

    def _covered(self, key: str | None) -> int:
        """Where the used documents end that the same board may have written."""
        mine = self.ends.values() if key is None else [self.ends[k] for k in (key, None) if k in self.ends]
        return max((end for end, _ in mine), default=0)

    def _leave_out(self, new: Document, covered: int) -> None:
        version = any(old.row["id"] == new.row["id"] and old.fate == USED for old in self.versions)
        new.fate, new.final = (CONFLICT if version else OVERLAP), False
        new.reason = (
            f"another document has the id {new.row['id']} and other bytes: that one is used"
            if version
            else f"readings {new.first} to {new.end - 1} begin before {covered}, where the document before ends: left "
            "out, lest they count twice"
        )
        self.waiting.append(new)

    def _use(self, new: Document) -> None:
        others = [old for old in self.recent if not old.same_board(new) and old.end > new.first]
        goes_on = bool(others) and self._use_what_is_new(new, others)
        before, since = self._before(new, any_board=goes_on)
        new.hole = max(new.first - before, 0) if new.fate == USED else 0
        new.hole_from, new.hole_to = since, int(new.row["t_first"])
        self._reach(new)
        self.recent.append(new)

    def _reach(self, new: Document) -> None:
        """The board has sent what goes so far."""
        self.ends[new.key] = max(self.ends.get(new.key, (0, 0)), (new.end, int(new.row["t_last"])))

    def _use_what_is_new(self, new: Document, others: list[Document]) -> bool:
        """Of a board's document what the other boards' do not hold too; whether they hold how it begins.

        Where two boards part a bucket may begin with readings that both have: those of it are in doubt.
        """
        mine = new.buckets()
        known, doubtful = np.zeros(mine.n.size, bool), np.zeros(mine.n.size, bool)
        for other in others:
            same = shared(mine, other.buckets())
            both = frozenset((new.key, other.key))
            if both not in self.parted and (parts := where_they_part(mine, other.buckets(), same)):
                self.parted.add(both)
                doubtful[parts] = True
            known |= same
        if known.all():
            new.fate = COPY
        elif known.any() or doubtful.any():
            new.part = mine.rows(~known, doubtful)
        return bool(known[0])

    def _before(self, new: Document, *, any_board: bool) -> tuple[int, int]:
        """Where the document before ends, and the time of its last reading; a board's first one goes on from any."""
        mine = [self.ends[key] for key in (new.key, None) if key in self.ends]
        known = mine if mine and new.key is not None and not any_board else list(self.ends.values())
        return max(known, default=(0, int(new.row["t_first"])))

    def _settle(self, first: int) -> None:
        """What ends at `first` or before is overlapped by nothing that comes."""
        for old in self.waiting:
            if old.end <= first:
                _tell_what_is_lost(old, [used for used in self.recent if used.first < old.end and used.end > old.first])
        self.waiting = [old for old in self.waiting if not old.final]
        needed = min([first, *(old.first for old in self.waiting)])
        self.recent = [used for used in self.recent if used.end > needed]


def _tell_what_is_lost(old: Document, used: list[Document]) -> None:
    """The readings of a document left out that no used one has exist, and are missing."""
    mine = old.buckets()
    lost = ~np.any([np.zeros(mine.n.size, bool), *(shared(mine, other.buckets()) for other in used)], axis=0)
    old.hole, old.final = int(mine.n[lost].sum()), True
    if old.hole:
        old.hole_from, old.hole_to = int(mine.t_first[lost].min()), int(mine.t_last[lost].max())


def place(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `documents.DOCUMENTS` sorted by ORDER → the same rows with `PLACED`.

    Holds what the last documents overlap, and no more.
    """
    held: deque[tuple[pa.RecordBatch, list[Document]]] = deque()
    line: Line | None = None
    for batch in batches:
        documents = _documents(batch)
        held.append((batch, documents))
        for document in documents:
            line = _taken(line, document)
        while held and all(document.final for document in held[0][1]):
            yield _placed(*held.popleft())
    if line is not None:
        line.close()
    yield from (_placed(*one) for one in held)


#: How the documents must be sorted: what belongs to one board's stream together, by ordinal, the best of an id first.
OWNED_BY = ("device", "stream", "incarnation")
ORDER = (*OWNED_BY, "first", "readings desc", "digest", "path")


def _taken(line: Line | None, document: Document) -> Line | None:
    if document.row["reason"] is not None:
        document.fate, document.reason = REFUSED, document.row["reason"]
        return line
    owner = tuple(document.row[name] for name in OWNED_BY)
    if line is None or line.owner != owner:
        if line is not None:
            line.close()
        line = Line(owner)
    line.take(document)
    return line


def _documents(batch: pa.RecordBatch) -> list[Document]:
    rows = batch.select(_READ).to_pylist()
    return [Document(row, packed) for row, packed in zip(rows, batch["packed"], strict=True)]


def _placed(batch: pa.RecordBatch, documents: list[Document]) -> pa.RecordBatch:
    columns = {name: batch[name] for name in ARROW.names}
    columns["reason"] = pa.array([document.reason for document in documents], pa.string())
    if any(document.part for document in documents):
        columns |= _with_parts(batch, documents)
    for name, kind in _PLACED:
        columns[name] = pa.array([getattr(document, name) for document in documents], kind)
    return pa.RecordBatch.from_arrays([columns[name] for name in CATALOGUE.names], schema=CATALOGUE)


def _with_parts(batch: pa.RecordBatch, documents: list[Document]) -> dict[str, pa.Array]:
    """The columns anew, where only a part of a document is used."""
    out = {}
    for name in _OF_A_PART:
        told = batch[name].to_pylist()
        values = [document.part[name] if document.part else old for document, old in zip(documents, told, strict=True)]
        out[name] = pa.array(values, ARROW.field(name).type)
    return out
