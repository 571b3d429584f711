"""The leaves of a window as rows: what closed since the last commit is written, what left is deleted a little a commit.

After a level eviction the rows of lower levels are folded into their new leaf a bounded number a commit; rows of leaves
that left the window are deleted the same way. Whatever of that is still undone at a restart, `sg.Window.rebuild` does.
Where pairs are merged, the row of a leaf that took over others is written anew and theirs are deleted with it. Leaves
that closed together are one row (`leaf_runs`).
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from sluicegate_agent.checksums import checksum
from sluicegate_agent.state import leaf_runs

if TYPE_CHECKING:
    import sluicegate as sg

#: Rows deleted or folded a commit beyond twice what it inserted: a backlog of them always shrinks.
TIDIED = 64
#: Leaves that left, a quarter of all at most, before their rows are deleted: these stand on a page of their own.
TOGETHER = 16
#: What waits of a window between two commits, the same for all: nobody writes to these.
_NO_LEAVES: dict[tuple[int, int], bytes] = {}
_NO_PAIRS: tuple[tuple[int, int], ...] = ()


class LeafRows:
    """The rows of a window in memory: where it stood when it was written last, and what waits for the commit."""

    #: A dictionary of so many takes more than all that they say.
    __slots__ = ("_base", "_head", "_leaves", "_left_untidy", "_level", "_merged", "_open", "_tidied", "_untidy")

    def __init__(self) -> None:
        """Of a window that begins, or is read again: whether its rows are tidy is not known."""
        self._level = self._base = self._head = self._open = self._tidied = 0
        self._untidy = self._left_untidy = True
        self._leaves, self._merged = _NO_LEAVES, _NO_PAIRS

    def collect(self, changes: sg.Changes, buckets: int) -> None:
        """Take over what changed in a window of so many buckets; a commit that fails leaves it here for the next."""
        together = min(TOGETHER, buckets // 4)
        self._untidy |= changes.level != self._level or changes.head > self._tidied + together
        self._level, self._base = changes.level, changes.base
        self._head, self._open = changes.head, changes.open
        self._leaves = self._leaves | {(changes.level, number): leaf for number, leaf in changes.closed}
        self._merged = (*self._merged, *changes.merged)

    def save(self, connection: sqlite3.Connection, window: int, kept: sg.Window, *, in_pairs: bool) -> None:
        """Write what waits, and tidy a little, in the caller's transaction; `window`: its number, `kept`: itself."""
        rows = [(*key, leaf) for key, leaf in self._leaves.items()]
        closed = leaf_runs.Closed(self._base, self._level, self._head, self._open)
        leaf_runs.clip(connection, window, closed, kept.leaf)
        if not in_pairs and _are_consecutive(rows):
            leaf_runs.append(connection, window, *rows[0][:2], [leaf for *_, leaf in rows])
        else:
            for row in rows:
                _insert(connection, window, *row)
        taken_over = "DELETE FROM window_leaf WHERE window = ? AND level = 0 AND number > ? AND number < ?"
        connection.executemany(taken_over, [(window, first, end) for first, end in self._merged])
        # What the open bucket took over is in the state; levels apart, no closed leaf is newer than the open one.
        beyond = "DELETE FROM window_leaf WHERE window = ? AND level = ? AND number >= ?"
        connection.execute(beyond, (window, self._level, self._open))
        self._tidy(connection, window, TIDIED + 2 * len(rows), closed, kept)

    def _tidy(
        self, connection: sqlite3.Connection, window: int, most: int, closed: leaf_runs.Closed, kept: sg.Window
    ) -> None:
        """Delete rows of leaves that left, and fold rows of lower levels, at most about `most` rows."""
        if not self._untidy:
            self._left_untidy = False
            return
        runs_left = leaf_runs.tidy(connection, window, closed, kept.leaf)
        stale = self._stale(connection, window, most)
        folded: set[int] = set()
        for level, number in stale:
            target = number >> (self._level - level)
            if not self._base <= level < self._level or not self._head <= target < self._open:
                _delete(connection, window, level, number)
            elif target not in folded:
                self._fold(connection, window, target, kept.leaf(target))
                folded.add(target)
        self._left_untidy = runs_left or len(stale) == most

    def _stale(self, connection: sqlite3.Connection, window: int, most: int) -> list[tuple[int, int]]:
        """Rows before the window's head, then rows of lower levels, the lowest first."""
        query = "SELECT level, number FROM window_leaf WHERE window = ? AND level = ? AND number < ? LIMIT ?"
        left = connection.execute(query, (window, self._level, self._head, most)).fetchall()
        query = "SELECT level, number FROM window_leaf WHERE window = ? AND level < ? ORDER BY level LIMIT ?"
        return left + connection.execute(query, (window, self._level, most - len(left))).fetchall()

    def _fold(self, connection: sqlite3.Connection, window: int, target: int, leaf: bytes) -> None:
        """Write the leaf `target` of the present level and delete the rows of lower levels that belong to it."""
        _insert(connection, window, self._level, target, leaf)
        delete = "DELETE FROM window_leaf WHERE window = ? AND level = ? AND number >= ? AND number < ?"
        for level in range(self._base, self._level):
            shift = self._level - level
            connection.execute(delete, (window, level, target << shift, (target + 1) << shift))

    def saved(self) -> None:
        """The transaction is durable: nothing waits."""
        self._leaves, self._merged = _NO_LEAVES, _NO_PAIRS
        if self._untidy and not self._left_untidy:
            self._tidied = self._head
        self._untidy = self._left_untidy


def _are_consecutive(rows: list[leaf_runs.Leaf]) -> bool:
    """Whether these leaves are of one level, one after the other, and enough for a row of all."""
    if len(rows) < leaf_runs.LEAST:
        return False
    (level, first, _), (to, last, _) = rows[0], rows[-1]
    return level == to and last - first + 1 == len(rows)


def _insert(connection: sqlite3.Connection, window: int, level: int, number: int, leaf: bytes) -> None:
    row = (window, level, number, leaf)
    connection.execute("INSERT OR REPLACE INTO window_leaf VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row)))


def _delete(connection: sqlite3.Connection, window: int, level: int, number: int) -> None:
    delete = "DELETE FROM window_leaf WHERE window = ? AND level = ? AND number = ?"
    connection.execute(delete, (window, level, number))
