"""The index of the outbox in memory: for each stream where its rows begin, how coarse they are and what they cost."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import compress, pairwise

from sluicegate_agent.backlog.rows import READING_COST, ROW_COST, encoded
from sluicegate_agent.streams import SINGLES_MOST


class Lane:
    """The rows of one stream in memory, 17 bytes each: first ordinal, size class, number of single readings.

    `end`: the ordinal after the newest row. `sections`: the bytes that each row carries, 4 more; empty where none ever
    did. `least`: rows of so few single readings would carry more without them than they take.
    """

    __slots__ = (
        *("_finest", "_lightest", "_pair", "carried", "classes", "end", "firsts", "held", "least"),
        *("sections", "singles"),
    )

    def __init__(self) -> None:
        self.firsts = array("q")
        self.classes = bytearray()
        self.singles = bytearray()
        self.held = self.carried = self.end = self.least = 0
        self.sections = array("I")
        # No neighbours are finer than `_finest`; of those none are before `_pair`. No singles are before `_lightest`.
        self._finest, self._pair, self._lightest = 1, 0, 0

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def cost(self) -> int:
        """Bytes of all rows as counted."""
        return len(self.firsts) * ROW_COST + self.held * READING_COST + encoded(self.carried)

    def cost_of(self, at: int) -> int:
        """Bytes of one row as counted, rounded up."""
        section = self.sections[at] if self.sections else 0
        return ROW_COST + self.singles[at] * READING_COST + encoded(section)

    def place(self, ordinal: int) -> int:
        """Position of the row that holds this ordinal."""
        return bisect_right(self.firsts, ordinal) - 1

    def following(self, at: int) -> int:
        """The ordinal after row `at`."""
        return self.firsts[at + 1] if at + 1 < len(self.firsts) else self.end

    def carries(self, at: int, section: int) -> None:
        """Row `at` has a section of so many bytes now."""
        if section or self.sections:
            self._have_sections(len(self))
            self.carried += section - self.sections[at]
            self.sections[at] = section

    def _have_sections(self, rows: int) -> None:
        """So many rows have a place for theirs."""
        self.sections.frombytes(bytes(self.sections.itemsize * (rows - len(self.sections))))

    def append(self, first: int, n: int, singles: int, section: int = 0) -> None:
        """A row after the newest; its size class is the number of binary digits of n, at least 1."""
        self.extend([first], [n], [singles], [section])

    def extend(
        self, firsts: Sequence[int], sizes: Sequence[int], singles: Sequence[int], sections: Sequence[int]
    ) -> None:
        """Rows after the newest, at least one, as `append` takes each."""
        self.firsts.extend(firsts)
        self.classes += bytes([n.bit_length() or 1 for n in sizes])
        self.singles += bytes(singles)
        self.held += sum(singles)
        self.end = firsts[-1] + sizes[-1]
        if self.sections or any(sections):
            self._have_sections(len(self) - len(firsts))
            self.sections.extend(sections)
            self.carried += sum(sections)
        self._look_behind(max(0, len(self) - len(firsts) - 1))

    def _look_behind(self, at: int) -> None:
        """Whether neighbours from row `at` on are finer than any before."""
        if min(self.classes[at:]) >= self._finest:
            return
        for place, pair in enumerate(pairwise(self.classes[at:]), at):
            if max(pair) < self._finest:
                self._finest, self._pair = max(pair), place

    def finest_pair(self) -> int:
        """Position of the oldest neighbours whose larger one is as small as can be; there must be two rows."""
        while True:
            found = _neighbours(self._finest).search(self.classes, self._pair)
            if found is not None:
                self._pair = found.start()
                return self._pair
            self._finest, self._pair = self._finest + 1, 0

    def first_with_singles(self) -> int | None:
        """Position of the oldest row that has single readings."""
        found = _ANY.search(self.singles, self._lightest) if self.held else None
        self._lightest = found.start() if found else len(self.singles)
        return found.start() if found else None

    def keeps(self, at: int, singles: int) -> int:
        """Row `at` has so many single readings; by how many bytes it is cheaper."""
        fewer = self.singles[at] - singles
        self.held -= fewer
        self.singles[at] = singles
        if singles and at < self._lightest:
            self._lightest = at
        return fewer * READING_COST

    def lighten(self, most: int, floor: int, least: int, enough: int) -> tuple[list[int], int]:
        """The oldest rows lose their single readings: at most so many rows, while `floor` readings are held.

        It ends before one of at most `least`, or once `enough` bytes are saved. Where they begin, and the bytes saved.
        """
        found, before = list[int](), self.held
        while len(found) < most and self.held >= floor and (before - self.held) * READING_COST < enough:
            at = self.first_with_singles()
            if at is None or self.singles[at] <= least:
                break
            self.held -= self.singles[at]
            self.singles[at] = 0
            found.append(self.firsts[at])
        return found, (before - self.held) * READING_COST

    def coarsen(self, most: int, enough: int) -> tuple[list[int], list[int], int]:
        """Merge the oldest of the finest neighbours, at least once, at most so often, until `enough` bytes are saved.

        There must be two rows. A merged row keeps its single readings while they are few. Where such rows begin, where
        those began that are gone, and the bytes saved. It may end early: neighbours that are left are coarser.
        """
        begin, before, saved = self.finest_pair(), self.carried, 0
        find, firsts, classes, singles = _neighbours(self._finest).search, self.firsts, self.classes, self.singles
        merged, gone, at, other, rows = list[int](), list[int](), begin, begin, len(self.firsts)
        pair = find(classes, begin)
        while pair is not None:
            at, other = pair.start(), pair.end() - 1
            few, more = singles[at], singles[other]
            singles[at] = few + more if few and more and few + more <= SINGLES_MOST else 0
            saved += ROW_COST + (few + more - singles[at]) * READING_COST
            self.held += singles[at] - few - more
            if self.sections:
                self.carried -= self.sections[other]
            classes[at] = ((firsts[other + 1] if other + 1 < rows else self.end) - firsts[at]).bit_length() or 1
            classes[other] = _GONE
            merged.append(firsts[at])
            gone.append(firsts[other])
            if len(gone) == most or saved + encoded(before) - encoded(self.carried) >= enough:
                break
            pair = find(classes, at)
        self._pair = at - classes.count(_GONE, 0, at)
        self._lightest -= classes.count(_GONE, 0, self._lightest)
        self._close_up(begin, other + 1)
        return merged, gone, saved + encoded(before) - encoded(self.carried)

    def _close_up(self, begin: int, end: int) -> None:
        """Nothing is left of rows that are gone."""
        kept = self.classes[begin:end]
        for column in (self.firsts, self.sections):
            column[begin:end] = array(column.typecode, compress(column[begin:end], kept))
        self.singles[begin:end] = bytes(compress(self.singles[begin:end], kept))
        self.classes[begin:end] = kept.translate(None, bytes([_GONE]))

    def dropped(self, rows: int) -> None:
        """The oldest rows are gone."""
        self.held -= sum(self.singles[:rows])
        self.carried -= sum(self.sections[:rows])
        del self.sections[:rows]
        del self.firsts[:rows], self.classes[:rows], self.singles[:rows]
        self._pair, self._lightest = max(0, self._pair - rows), max(0, self._lightest - rows)


_ANY = re.compile(b"[^\\x00]")
#: The class of a row that is merged into the one before it: no other has this, not even a damaged one of 0 readings.
_GONE = 0


@cache
def _neighbours(largest: int) -> re.Pattern[bytes]:
    return re.compile(b"[\\x01-\\x%02x]\\x00*[\\x01-\\x%02x]" % (largest, largest))
