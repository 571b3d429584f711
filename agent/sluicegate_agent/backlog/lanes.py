"""The index of the outbox in memory: for each stream where its rows begin, how coarse they are and what they cost."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from functools import cache
from itertools import pairwise

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
        self._finest = self._pair = self._lightest = 0

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
        """A row after the newest; its size class is the number of binary digits of n."""
        self.extend([first], [n], [singles], [section])

    def extend(self, firsts: list[int], sizes: list[int], singles: list[int], sections: list[int]) -> None:
        """Rows after the newest, as `append` takes each."""
        if not firsts:
            return
        self.firsts.extend(firsts)
        self.classes += bytes([n.bit_length() for n in sizes])
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

    def merge(self, at: int) -> int:
        """Rows `at` and the next are one now, with its single readings while they are few; the bytes that saves."""
        singles, others = self.singles[at], self.singles[at + 1]
        both = singles + others if singles and others and singles + others <= SINGLES_MOST else 0
        before = encoded(self.carried)
        if self.sections:
            self.carried -= self.sections.pop(at + 1)
        self.held += both - singles - others
        self.singles[at] = both
        n = self.following(at + 1) - self.firsts[at]
        self.classes[at] = n.bit_length()
        del self.firsts[at + 1], self.classes[at + 1], self.singles[at + 1]
        self._lightest -= self._lightest > at + 1
        return ROW_COST + (singles + others - both) * READING_COST + before - encoded(self.carried)

    def dropped(self, rows: int) -> None:
        """The oldest rows are gone."""
        self.held -= sum(self.singles[:rows])
        self.carried -= sum(self.sections[:rows])
        del self.sections[:rows]
        del self.firsts[:rows], self.classes[:rows], self.singles[:rows]
        self._pair, self._lightest = max(0, self._pair - rows), max(0, self._lightest - rows)


_ANY = re.compile(b"[^\\x00]")


@cache
def _neighbours(largest: int) -> re.Pattern[bytes]:
    return re.compile(b"[\\x00-\\x%02x]{2}" % largest)
