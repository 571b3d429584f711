"""Finds between which two times readings are missing, and takes back what came late after all.

A device numbers its readings in the order of their times. So a reading that is missing before one that came was taken
since the newest one before that, and one that came late was taken where its own time is: it takes back what was told
of that place, wherever its bucket is. A loss is a row of n = 0 between two times, as a hole in the ordinals is; a
late reading is the same row with a negative number, so that each window that has the one has the other. What cannot be
placed for certain is not taken back: no window says that it is more complete than it is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sluicegate.format.gaps import NEVER, NOWHERE, WIDTH
from sluicegate_cloud.grid import Ints

#: Losses of a line that may still be taken back: of more, those that reach least far stay told.
MOST = 1 << 18
#: Documents by whose times it is known how far a board had come: one whose clock was years off is soon forgotten.
RECENT = 8
#: Between two times, both included, so many are lost, fewer where the number is negative; and what kind of row it is.
Loss = tuple[int, int, int, int]
#: Told; told and to be taken back; not told yet, as its end is not known (since when, and how many); told at last; told
#: of a place that nobody knows.
SURE, OPEN, OWED, PAID, ANYWHERE = range(5)
#: From and to where a loss lies of which nobody can say where it lies.
EARLIEST, LATEST = NOWHERE, 1 << 61
Key = str | None
_FIELDS = 4


class Gap(NamedTuple):
    """A row of `sluicegate.format.gaps`."""

    ordinal: int
    gap: int
    since: int
    first: int
    last: int
    until: int

    def is_unsure(self, unsure: Iterable[tuple[int, int]]) -> bool:
        """Whether it has no time, or one between two of these."""
        return self.first == NEVER or any(low <= self.last and self.first <= high for low, high in unsure)


class After(NamedTuple):
    """How a board's clock stands after a document: the time of the last reading that did not come late, NEVER: it has
    none; whether it was set back and has not come to the newest time again, None: that is as before; and whether it
    was so at the first such reading.
    """

    recent: int
    is_back: bool | None
    began_back: bool = False

    @classmethod
    def of(cls, packed: bytes | None, last: int) -> After:
        """After a document of these `gaps` and this last time."""
        if not packed:
            return cls(last, None if packed is None else False)
        head = Gap(*np.frombuffer(packed, np.int64, WIDTH).tolist())
        if head.gap:
            return cls(last, False)
        return cls(head.since, None if head.first == NEVER else bool(head.first), head.last == 1)

    def then(self, later: After) -> After:
        """After both."""
        recent = self.recent if later.recent == NEVER else later.recent
        return After(recent, self.is_back if later.is_back is None else later.is_back, later.began_back)


#: Before the first document.
NOTHING = After(NEVER, None)


class Before(NamedTuple):
    """Documents of one board before those that are judged, in their order: their times; the times of the holes before
    them, all losses that were told, and how the clock stands after the last.
    """

    key: Key
    first: Ints
    last: Ints
    holes: Ints
    losses: Ints
    after: After


def gaps_of(packed: bytes | None) -> list[Gap]:
    """Of a document, in order."""
    rows = np.frombuffer(packed or b"", np.int64).reshape(-1, WIDTH)
    return [Gap(*row) for row in rows.tolist()]


def losses_of(packed: bytes | None) -> Ints:
    """A row for each of `packed`: from, to, readings, kind."""
    return np.frombuffer(packed or b"", np.int64).reshape(-1, _FIELDS)


def told_by(packed: bytes | None) -> Ints:
    """Those of them that say what is lost."""
    rows = losses_of(packed)
    return np.asarray(rows[rows[:, 2] != 0])


def packed(losses: Iterable[Loss]) -> bytes:
    """As a column has them."""
    return np.array([*losses], np.int64).tobytes()


@dataclass(slots=True)
class _Board:
    """What is known of one key.

    `ends`: the last times of its documents, ascending; `recent`: of the last ones; `oldest`: its oldest time. By the
    time to which each reaches, ascending, the losses that are not taken back: since when, and how many; `longest`: no
    loss lies between two times that are further apart. `owed`: holes whose end is not known yet: since when each, and
    how many.
    """

    ends: list[int] = field(default_factory=list)
    recent: list[int] = field(default_factory=list)
    oldest: int | None = None
    upto: list[int] = field(default_factory=list)
    open: list[tuple[int, int]] = field(default_factory=list)
    longest: int = 0
    holes: list[tuple[int, int]] = field(default_factory=list)
    owed: list[tuple[int, int]] = field(default_factory=list)
    after: After = NOTHING

    def reach(self, first: int, last: int, after: After) -> None:
        """A document lies between these times."""
        self.after = self.after.then(after)
        insort(self.ends, last)
        self.recent = [*self.recent[1 - RECENT :], last]
        self.oldest = first if self.oldest is None else min(self.oldest, first)

    def tell(self, since: int, upto: int, readings: int) -> None:
        """So many are lost, or fewer than before."""
        at = bisect_left(self.upto, upto)
        while at < len(self.upto) and self.upto[at] == upto and self.open[at][0] != since:
            at += 1
        if at < len(self.upto) and self.upto[at] == upto:
            left = self.open[at][1] + readings
            self.open[at] = since, left
            if left <= 0:
                del self.upto[at], self.open[at]
        elif readings > 0:
            self.longest = max(self.longest, upto - since)
            self.upto.insert(at, upto)
            self.open.insert(at, (since, readings))
            if len(self.upto) > MOST:
                del self.upto[0], self.open[0]

    def told_of(self, first: int, last: int) -> list[int]:
        """Which losses may be of a time between these, two at most."""
        found: list[int] = []
        for at in range(bisect_left(self.upto, first), bisect_right(self.upto, last + self.longest)):
            found += [at] if self.open[at][0] <= last else []
            if len(found) > 1:
                break
        return found

    def owe(self, since: int, readings: int) -> None:
        """So many are missing since a time, and it is not known yet until when."""
        self.owed.append((since, readings))
        self.holes.append((since, since))

    def hides(self, first: int, last: int) -> bool:
        """Whether what was told between these times may be in a document that did not come."""
        return any(low <= last and first <= high for low, high in self.holes)


class Losses:
    """Those of one line (a stream of one incarnation), document after document.

    `begun`: when its incarnation began, µs: what is missing before the first document that came was taken since then.
    `before`: asked when it is needed; `has_holes`: whether documents did not come before those that are judged.
    """

    def __init__(
        self, begun: int = NEVER, before: Callable[[], Before | None] | None = None, *, has_holes: bool = False
    ) -> None:
        self._begun, self._before, self._has_holes = begun, before, has_holes
        self._boards: dict[Key, _Board] = {}
        self._waiting: list[tuple[Key, int, int, After]] = []
        self._told: list[Loss] = []

    def reach(self, key: Key, first: int, last: int, after: After) -> None:
        """A document between these times is in use, or a copy of one, and those that follow go on from it."""
        self._waiting.append((key, first, last, after))

    def hole(
        self, key: Key, readings: int, last: int, begins: Callable[[int], int | None], *, began_back: bool = False
    ) -> tuple[int, int]:
        """Between which times the readings of documents that did not come before this one were taken.

        `last`: its last time; `began_back`: whether the clock was set back before it, so that it may be any time;
        `begins`: of its first reading after a time that did not come late, the latest time that
        it may have. What `place` tells then puts it where else it may have been: at the first document that came there
        is no reading before, and in one all of which came late none after.
        """
        self._learn()
        board, boards = self._board(key), self._of(key)
        recent = max((max(board.recent, default=NEVER) for board in boards), default=NEVER)
        recent = min([recent, *(board.after.recent for board in boards if board.after.is_back)])
        since = recent if recent <= last else _newest(boards, last)
        upto = begins(since)
        if recent > last or upto is None:
            newest = max(recent, last)
            board.owe(newest, readings)
            self._told += [(newest, readings, 0, OWED), (newest, newest, readings, SURE)]
        upto = last if upto is None else upto
        if since == NEVER or began_back:
            whole = (EARLIEST, LATEST) if began_back else (min(self._begun, upto), upto)
            self._told += [(*whole, readings, SURE), (upto, upto, -readings, SURE)]
            board.holes.append(whole)
            return upto, upto
        board.holes.append((since, upto))
        return since, upto

    def place(
        self, key: Key, gaps: Sequence[Gap], begins: Callable[[int], int | None],
        unsure: Sequence[tuple[int, int]], lacks: Callable[[Gap, int], int], *, whole: bool,
    ) -> list[Loss]:  # fmt: skip
        """What a document tells; `unsure`: times of which others tell that are not judged yet; `lacks`: how much
        longer than since this time what a gap tells takes, as it is not so fast (µs).

        Not `whole`: nothing is taken back of it, nor by it.
        """
        out, self._told = self._told, []
        if not any(gap.gap for gap in gaps) and not self._owes():
            return out
        self._learn()
        board, boards = self._board(key), self._of(key)
        if board.owed and (upto := begins(since := min(board.owed)[0])) is not None:
            out += [(newest, newest, -readings, SURE) for newest, readings in board.owed]
            out.append((since, upto, sum(readings for _, readings in board.owed), PAID))
            board.holes.append((since, upto))
            board.owed = []
        for gap in gaps:
            if gap.gap > 0:
                since, upto = self._lost(boards, gap, lacks)
                is_open = whole and upto < LATEST
                out.append((since, upto, gap.gap, OPEN if is_open else ANYWHERE if upto == LATEST else SURE))
                if is_open:
                    board.tell(since, upto, gap.gap)
            elif gap.gap and whole and not gap.is_unsure(unsure):
                out += self._late(boards, gap)
        return out

    def miss(self, key: Key, low: int, high: int) -> None:
        """What documents between these times told is not known."""
        self._learn()
        self._board(key).holes.append((min(low, high), max(low, high)))

    def _owes(self) -> bool:
        """Whether a hole's end is not known."""
        if self._before is not None and self._has_holes:
            self._learn()
        return any(board.owed for board in self._boards.values())

    def _lost(self, boards: Sequence[_Board], gap: Gap, lacks: Callable[[Gap, int], int]) -> tuple[int, int]:
        """Of a clock that was set back in between nobody knows to which time it had come, nor when it began anew.

        Nobody sees one that was ahead again after it: but where so many do not lie between two readings at the pace of
        their sensor, it was set back by as much as is lacking, at most.
        """
        since = gap.since if gap.since != NEVER else self._recent(boards)
        if since != NEVER and gap.until != NOWHERE and (gap.until == NEVER or since <= gap.first):
            beyond = lacks(gap, since)
            return min(since, gap.first) - beyond, gap.last + beyond
        oldest = [board.oldest for board in boards if board.oldest is not None]
        oldest += [gap.until] if gap.until != NEVER else []
        if since != NEVER:
            return EARLIEST, LATEST
        if any(board.holes for board in boards):  # at the first document that came: nothing is known of those before
            return min(self._begun, gap.first), gap.last
        return gap.first, max(gap.last, min(oldest, default=gap.last))

    @staticmethod
    def _recent(boards: Sequence[_Board]) -> int:
        """The last reading that did not come late: of several boards, one of which it goes on from, the oldest."""
        found = [board.after.recent for board in boards if board.after.recent != NEVER]
        return min(found, default=NEVER)

    @staticmethod
    def _late(boards: Sequence[_Board], gap: Gap) -> list[Loss]:
        """All in one place: where there are two, or it may be told by what did not come, it is not known."""
        if gap.until == NEVER and any(board.after.is_back for board in boards):
            return []
        if any(board.hides(gap.first, gap.last) for board in boards):
            return []
        found = [(board, at) for board in boards for at in board.told_of(gap.first, gap.last)]
        if len(found) != 1:
            return []
        board, at = found[0]
        upto, (since, left) = board.upto[at], board.open[at]
        if -gap.gap > left:
            return []
        board.tell(since, upto, gap.gap)
        return [(since, upto, gap.gap, OPEN)]

    def _of(self, key: Key) -> list[_Board]:
        """Those whose documents the board may have written, or that it goes on from."""
        mine = [board for of in dict.fromkeys((key, None)) if (board := self._boards.get(of)) and board.ends]
        return mine if mine and key is not None else [*self._boards.values()]

    def _board(self, key: Key) -> _Board:
        if key not in self._boards:
            self._boards[key] = _Board()
        return self._boards[key]

    def _learn(self) -> None:
        """What came before is looked at once something is missing: of most streams nothing ever is."""
        if self._before is not None:
            told, self._before = self._before(), None
            if told is not None:
                self._boards[told.key] = _board_of(told)
        for key, first, last, after in self._waiting:
            self._board(key).reach(first, last, after)
        self._waiting.clear()


def _board_of(told: Before) -> _Board:
    """What is known after those documents, as if they had come one after the other."""
    board = _Board(np.sort(told.last).tolist(), told.last[-RECENT:].tolist(), int(told.first.min()))
    board.after = told.after
    for since, upto, readings, kind in told.losses.tolist():
        if kind == OPEN:
            board.tell(since, upto, readings)
        elif kind == OWED:
            board.owe(since, upto)
        elif kind != ANYWHERE:
            board.holes.append((since, upto))
            board.owed = [] if kind == PAID else board.owed
    board.holes += ((min(hole), max(hole)) for hole in told.holes.tolist())
    return board


def _newest(boards: Iterable[_Board], time: int) -> int:
    """The newest last time of their documents that is not after this one."""
    found = [board.ends[at - 1] for board in boards if (at := bisect_right(board.ends, time))]
    return max(found, default=NEVER)
