"""Decides which documents of a stream are used, so that each reading counts once and none that came is forgotten.

One pass over the documents of a stream in the order of their first ordinals. Of one that begins before those in use of
the same board end, only what goes beyond is used; what is left out covers nothing: the next is judged by what is in use
alone. A bucket that lies on both sides is used, its readings at ordinals that were counted in doubt; so is one of which
it cannot be told whether those in use have its readings. Two boards that
speak as one device (two keys) each have ordinals of their own, and both count; buckets that both hold, from before the
card was copied, are known by what they say and count once. Readings left out that no other document has exist all the
same: they are `lost`, and missing as the ordinals before a document are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sluicegate.constants import LATE, ORDERED
from sluicegate_cloud.documents import ARROW, buffers_of, fields_of
from sluicegate_cloud.grid import Ints
from sluicegate_cloud.lines.pace import Pace
from sluicegate_cloud.losses import After, Gap, Loss, Losses, gaps_of, packed
from sluicegate_cloud.sameness import Buckets, Mask, parted_by, shared
from sluicegate_cloud.schema import CONFLICT, COPY, OVERLAP, REFUSED, USED

#: What `place` adds to a document. `hole`: readings missing at it, between the times `hole_from` and `hole_to` in µs;
#: `lost`: those of them that it has itself, and that are left out. `losses`: what numbers say is lost, where it was,
#: and what it takes back of that (`losses`), between `loss_from` and `loss_to` in all; null: its buckets say it.
PLACED = {
    "fate": "string", "hole": "bigint", "lost": "bigint", "hole_from": "bigint", "hole_to": "bigint",
    "losses": "binary", "loss_from": "bigint", "loss_to": "bigint",
}  # fmt: skip
_KINDS = {"string": pa.string(), "bigint": pa.int64(), "binary": pa.binary()}
_PLACED = [(name, _KINDS[kind]) for name, kind in PLACED.items()]
CATALOGUE = pa.schema([*ARROW, *(pa.field(*one) for one in _PLACED)])
_READ = (
    "id", "device", "stream", "incarnation", "key", "center", "first", "readings", "buckets", "t_first", "t_last",
    "digest", "content", "reason", "gaps",
)  # fmt: skip
#: Columns of a document of which only a part is used, made anew.
_OF_A_PART = ("readings", "buckets", "gap", "doubt", "t_first", "t_last", "packed")


@dataclass(slots=True)
class Document:
    """One document on its way: what its row says, and what becomes of it; `final` once nothing later can change it.

    `packed`: its buckets, or what reads them; `part`: its columns where not all of it is used; `used_from`: the ordinal
    from which on it is; `left`: the buckets before; `used`, `doubt`: the buckets that are used, and how many of their
    readings are in doubt; `reached`: whether what follows is judged by where it ends.
    """

    row: dict[str, Any]
    packed: Any
    fate: str = USED
    reason: str | None = None
    hole: int = 0
    lost: int = 0
    hole_from: int = 0
    hole_to: int = 0
    losses: bytes | None = None
    loss_from: int | None = None
    loss_to: int | None = None
    part: dict[str, Any] | None = None
    final: bool = True
    reached: bool = False
    used_from: int = 0
    left: Mask | None = None
    used: Mask | None = None
    doubt: Ints | None = None
    _buckets: Buckets | None = None
    _pace: Pace | None = None

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

    @property
    def after(self) -> After:
        """How its board's clock stands after it."""
        return After.of(self.row["gaps"], int(self.row["t_last"]))

    def buckets(self) -> Buckets:
        """Its buckets, unpacked when they are first compared."""
        if self._buckets is None:
            packed = self.packed() if callable(self.packed) else self.packed
            self._buckets = Buckets.of(fields_of(packed, self.row["buckets"]), self.row["center"])
        return self._buckets

    def begins(self, since: int) -> int | None:
        """The latest time that its first reading after another time may have; None: all of these came late."""
        gaps = gaps_of(self.row["gaps"])
        if self.row["gaps"] is not None and (not gaps or gaps[0].gap):
            return int(self.row["t_first"])  # times never go back in it
        mine = self.buckets()
        wanted = (mine.t_last > since) & ((mine.whole("flags") & LATE) == 0)
        return int(mine.t_last[np.argmax(wanted)]) if wanted.any() else None

    def lacks(self, gap: Gap, since: int) -> int:
        """How much longer, µs, what is lost takes at the pace of its readings than lies between them; 0: it may not."""
        mine = self.buckets()
        at = int(np.searchsorted(mine.whole("first"), gap.ordinal))
        if mine.whole("flags")[at] & (LATE | ORDERED) != ORDERED:
            return 0  # of some of its readings another gap tells
        told = 1 + int(np.argmin(mine.t_last[at:] < gap.last))  # where its single readings are stored each is a row
        self._pace = self._pace or Pace.of(mine)
        return self._pace.lacks(gap.gap + max(told, int(mine.n[at])), gap.last - since)

    def take(self, used: Mask, doubt: Ints) -> None:
        """Use these buckets, with so many of their readings in doubt."""
        self.used, self.doubt = used, doubt
        if not used.any():
            self.fate = COPY
        elif not used.all() or doubt[used].any():
            self.part = self.buckets().rows(used, doubt)

    def tell(self, losses: Sequence[Loss]) -> None:
        """What it says is lost, and where; one that an older Sluicegate kept does not say it so."""
        if losses or self.row["gaps"] is not None:
            self.losses = packed(losses)
            self.loss_from = min((loss[0] for loss in losses if loss[2]), default=None)
            self.loss_to = max((loss[1] for loss in losses if loss[2]), default=None)

    def same_board(self, other: Document) -> bool:
        """Whether one board may have written both; what has no key may be of any."""
        return self.key is None or other.key is None or self.key == other.key


@dataclass(slots=True)
class Line:
    """What is known of one stream of one incarnation: the used documents that a later one may still overlap."""

    owner: tuple[Any, ...]
    #: By key: where it ends, and the time of its last reading.
    ends: dict[str | None, tuple[int, int]] = field(default_factory=dict)
    recent: list[Document] = field(default_factory=list)
    waiting: list[Document] = field(default_factory=list)
    versions: list[Document] = field(default_factory=list)
    parted: set[frozenset[str | None]] = field(default_factory=set)
    losses: Losses = field(default_factory=Losses)

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
        if new.end <= covered:
            self._leave_out(new, covered)
        else:
            self._use(new, covered)
        self.recent.append(new)

    def _covered(self, key: str | None) -> int:
        """Where the used documents end that the same board may have written."""
        mine = self.ends.values() if key is None else [self.ends[k] for k in (key, None) if k in self.ends]
        return max((end for end, _ in mine), default=0)

    def _leave_out(self, new: Document, covered: int) -> None:
        version = any(old.row["id"] == new.row["id"] and old.fate == USED for old in self.versions)
        new.fate, new.left = (CONFLICT if version else OVERLAP), np.ones(new.row["buckets"], bool)
        new.reason = (
            f"another document has the id {new.row['id']} and other bytes: that one is used"
            if version
            else f"documents in use have readings {new.first} to {new.end - 1}: left out, lest they count twice"
        )
        self._wait(new)

    def _wait(self, new: Document) -> None:
        """Until no document comes any more that may have what is left out of it."""
        new.final = False
        self.waiting.append(new)

    def _use(self, new: Document, covered: int) -> None:
        others = [old for old in self.recent if old.fate == USED and not old.same_board(new) and old.end > new.first]
        overlaps = new.first < covered
        goes_on = (overlaps or bool(others)) and self._use_a_part(new, covered, others)
        if overlaps:
            self._wait(new)
        elif new.fate == USED:
            before, since = self._before(new, any_board=goes_on)
            new.hole, new.hole_from, new.hole_to = max(new.first - before, 0), since, int(new.row["t_first"])
            if new.hole:
                last, began_back = int(new.row["t_last"]), new.after.began_back
                found = self.losses.hole(new.key, new.hole, last, new.begins, began_back=began_back)
                new.hole_from, new.hole_to = found
        if new.fate == USED:
            unsure = [(int(old.row["t_first"]), int(old.row["t_last"])) for old in self.waiting if old is not new]
            self._tell(new, unsure, whole=new.part is None)
        self._reach(new)

    def _tell(self, new: Document, unsure: Sequence[tuple[int, int]], *, whole: bool) -> None:
        """What it says is lost."""
        gaps = gaps_of(new.row["gaps"])
        new.tell(self.losses.place(new.key, gaps, new.begins, unsure, new.lacks, whole=whole))

    def _reach(self, new: Document) -> None:
        """The board has sent what goes so far."""
        new.reached = True
        first, last = int(new.row["t_first"]), int(new.row["t_last"])
        self.ends[new.key] = max(self.ends.get(new.key, (0, 0)), (new.end, last))
        self.losses.reach(new.key, first, last, new.after)

    def _use_a_part(self, new: Document, covered: int, others: list[Document]) -> bool:
        """What goes beyond `covered` and other boards do not hold too; whether they hold how it begins.

        Until it is known that two boards have parted, what cannot be compared may be readings that both have: in doubt.
        """
        mine = new.buckets()
        doubt = np.clip(covered - mine.edges[:-1], 0, mine.n)
        new.used_from, new.left = covered, mine.edges[1:] <= covered
        known = np.zeros(mine.n.size, bool)
        for other in others:
            found = shared(mine, other.buckets())
            known |= found.same
            both = frozenset((new.key, other.key))
            if both not in self.parted:
                at = parted_by(mine, other.buckets(), found)
                near = mine.edges[:-1] <= (new.end if at is None else at)
                doubt = np.maximum(doubt, np.where(near, found.overlap, 0))
                if at is not None:
                    self.parted.add(both)
        new.take(~(known | new.left), doubt)
        new.left = new.left & ~known
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
                was_used = old.fate == USED
                _tell_what_is_lost(old, self.recent)
                if old.fate == USED and not was_used:
                    self._tell(old, (), whole=False)
                if old.hole:
                    self.losses.miss(old.key, old.hole_from, old.hole_to)
        self.waiting = [old for old in self.waiting if not old.final]
        needed = min([first, *(old.first for old in self.waiting)])
        self.recent = [old for old in self.recent if old.end > needed]


def _tell_what_is_lost(old: Document, recent: list[Document]) -> None:
    """The readings left out of a document that no other has, in use or told before, exist and are missing.

    Those that another may have are used after all, in doubt.
    """
    mine = old.buckets()
    lost = np.ones(mine.n.size, bool) if old.left is None else old.left.copy()
    undecided, before = np.zeros(mine.n.size, bool), True
    for other in recent:
        if other is old:
            before = False
        elif other.first < old.end and other.end > old.first and (before or other.fate == USED):
            found = shared(mine, other.buckets())
            told = mine.edges[1:] > (0 if before else other.used_from)  # what a later one leaves out it tells itself
            lost &= ~(found.same & told)
            undecided |= found.within
    undecided &= lost
    lost &= ~undecided
    if undecided.any():
        _use_in_doubt(old, undecided)
    old.hole = old.lost = int(mine.n[lost].sum())
    old.final = True
    if old.lost:
        old.hole_from, old.hole_to = int(mine.t_first[lost].min()), int(mine.t_last[lost].max())
        said = f"{old.lost} of its readings are at ordinals of documents in use: left out, lest they count twice"
        old.reason = old.reason or said
    elif old.fate in (CONFLICT, OVERLAP):
        old.fate, old.reason = COPY, None


def _use_in_doubt(old: Document, undecided: Mask) -> None:
    mine = old.buckets()
    used = undecided if old.used is None else undecided | old.used
    doubt = np.zeros(mine.n.size, np.int64) if old.doubt is None else old.doubt
    old.fate, old.reason = USED, None
    old.take(used, np.where(undecided, mine.n, doubt))


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
        line = Line(owner, losses=Losses(begun(owner)))
    line.take(document)
    return line


def begun(owner: tuple[Any, ...]) -> int:
    """When the incarnation of a line began, µs."""
    return int(owner[OWNED_BY.index("incarnation")], 16)


def _documents(batch: pa.RecordBatch) -> list[Document]:
    rows = batch.select(_READ).to_pylist()
    return [Document(row, packed) for row, packed in zip(rows, buffers_of(batch["packed"]), strict=True)]


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
