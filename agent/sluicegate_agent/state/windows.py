"""A window kept as rows: closed leaves and one small state row; no commit writes a whole window.

After a level eviction the rows of lower levels are folded into their new leaf a bounded number a commit; rows of leaves
that left the window are deleted the same way. Whatever of that is still undone at a restart, `sg.Window.rebuild` does.
Where pairs are merged, the row of a leaf that took over others is written anew and theirs are deleted with it. Leaves
that closed together are one row (`leaf_runs`).
"""

from __future__ import annotations

import logging
import sqlite3
from array import array
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any

import sluicegate as sg
from sluicegate.errors import InputError, SnapshotError
from sluicegate.format.pairs import Pair, PairColumn
from sluicegate_agent.checksums import checksum
from sluicegate_agent.config.questions import COUNT, build_window, configured_window
from sluicegate_agent.state import leaf_runs
from sluicegate_agent.state.asleep import AWAY, Asleep, asleep
from sluicegate_agent.state.shared import Shorter, make_row
from sluicegate_agent.state.store import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluicegate_agent.config import WindowConfig
    from sluicegate_agent.doubts import Doubts
    from sluicegate_agent.messages import Result
    from sluicegate_agent.streams import Stream

log = logging.getLogger("sluicegate.windows")
#: Rows deleted or folded a commit beyond twice what it inserted: a backlog of them always shrinks.
TIDIED = 64
#: Leaves that left, a quarter of all at most, before their rows are deleted: these stand on a page of their own.
TOGETHER = 16


class StoredWindow:
    """One window of one stream, its rows and what of it waits for the commit.

    One that took nothing for long is its rows alone, until somebody asks for its `window`.
    """

    #: A dictionary of so many takes as much as all of a window that is put away.
    __slots__ = (
        *("_asleep", "_base", "_by_time", "_config", "_connection", "_definition", "_head", "_leaves", "_left_untidy"),
        *("_level", "_merged", "_open", "_sharing", "_stream", "_tidied", "_took_at", "_untidy", "_window"),
        *("aggregates", "begun_anew", "buckets", "changed", "is_begun", "is_damaged", "is_new", "name", "names"),
        *("number", "refused", "shorter"),
    )
    #: Whether nothing but its rows is needed to go on.
    may_sleep = True

    def results(self, stream: Stream, doubts: Doubts | None) -> Iterator[Result]:
        """Results that it gives by itself: none."""
        return iter(())

    def __init__(
        self,
        connection: sqlite3.Connection,
        stream: int,
        config: WindowConfig,
        sharing: Sequence[WindowConfig] = (),
        numbers: Iterator[int] | None = None,
    ) -> None:
        """Continue the stored window, or begin one where none has this definition; in the caller's transaction.

        `sharing`: the windows that are answered from its buckets. `numbers`: of rows that `save` makes first, so that
        a stream's windows can begin outside of a transaction.
        """
        self._connection, self._stream, self.is_new = connection, stream, False
        self._config, self._sharing = config, sharing
        self.name, self.aggregates, self.buckets = config.name, config.aggregates, config.buckets
        self._definition = config.definition
        self._by_time = config.policy.time is not None
        self.changed = False
        self.begun_anew = self.is_damaged = self.is_begun = False
        self.refused = ""
        self._begin_collecting()
        self._level = self._base = self._head = self._open = 0
        self._untidy = self._left_untidy = True
        self._tidied = 0
        self._asleep: Asleep | None = None
        self._took_at = monotonic()
        kept = None
        if numbers is not None:
            self.number, self._window = next(numbers), build_window(config)
            self.is_new = self.changed = True
        else:
            kept = self._restored(connection, stream, config)
            self.number, self._window = kept or self._begun(connection, stream, config)
        self.shorter = Shorter(connection, stream, config.name, self._window, sharing, numbers) if sharing else None
        #: Its own, and those of the windows that are answered from its buckets.
        self.names = (self.name, *self.shorter.numbers) if self.shorter else _alone(self.name)
        if kept:
            self._put_away()

    @property
    def asked(self) -> tuple[WindowConfig, Sequence[WindowConfig]]:
        """What it was made of, and the windows that are answered from its buckets."""
        return self._config, self._sharing

    def _begin_collecting(self) -> None:
        """Leaves that closed, and pairs that were merged, since the last commit."""
        self._leaves: dict[tuple[int, int], bytes] = {}
        self._merged: list[tuple[int, int]] = []

    @property
    def window(self) -> sg.Window:
        """The window itself."""
        if self._asleep is not None:
            self._wake(self._asleep)
        return self._window

    def _put_away(self) -> None:
        """Drop the window from memory: its rows hold all of it now."""
        if self.may_sleep and self.shorter is None:
            self._asleep = asleep(self._window, self._config.policy.time)
            del self._window, self._leaves, self._merged

    def _wake(self, was: Asleep) -> None:
        """Go on from its rows, as of the time that it was told last.

        Raises StoreDamaged where they are of no use any more: the next start begins it anew, and its answers say so.
        """
        self._asleep, self._took_at = None, monotonic()
        self._begin_collecting()
        query = "SELECT id, state, crc FROM window WHERE id = ?"
        found = self._rebuilt(self._connection, self._config, self._connection.execute(query, (self.number,)))
        self._untidy = self._left_untidy = True
        if found is None:
            raise StoreDamaged(f"the rows of window {self.name} are not as they were written; start again")
        self._window = found[1]
        if self._by_time and was.now is not None:
            self._window.advance(was.now)

    def _restored(
        self, connection: sqlite3.Connection, stream: int, config: WindowConfig
    ) -> tuple[int, sg.Window] | None:
        _rename(connection, stream, config)
        query = "SELECT id, state, crc FROM window WHERE stream = ? AND name = ? AND definition = ?"
        kept = stream, config.name, config.definition
        return self._rebuilt(connection, config, connection.execute(query, kept))

    def _rebuilt(
        self, connection: sqlite3.Connection, config: WindowConfig, rows: sqlite3.Cursor
    ) -> tuple[int, sg.Window] | None:
        """Its number, and the window of its row and leaves; None where there is none, or it cannot be used."""
        found = rows.fetchone()
        if found is None:
            return None
        number, state, crc = found
        query = "SELECT level, number, leaf, crc FROM window_leaf WHERE window = ?"
        leaf_rows = connection.execute(query, (number,)).fetchall()
        try:
            leaf_runs.require_sound(number, config.definition, state, crc, leaf_rows)
            leaves = [*leaf_runs.read(connection, number), *(row[:3] for row in leaf_rows)]
            return number, configured_window(config).rebuilt(state, leaves)
        except SnapshotError as error:
            log.warning("window %s begins anew: what is kept of it cannot be used (%s)", config.name, error)
            # Only this answer is lost: the readings themselves are in the outbox or already sent.
            self.begun_anew = self.is_damaged = True
            return None

    def _begun(self, connection: sqlite3.Connection, stream: int, config: WindowConfig) -> tuple[int, sg.Window]:
        window = build_window(config)
        asked = "stream = ? AND name = ?"
        had = connection.execute(f"SELECT 1 FROM window WHERE {asked}", (stream, config.name)).fetchone()  # noqa: S608
        self.begun_anew |= had is not None
        self.is_begun = True
        forget(connection, asked, (stream, config.name))
        insert = "INSERT INTO window (stream, name, definition, state, crc) VALUES (?, ?, ?, ?, ?)"
        state = window.state()
        values = (stream, config.name, config.definition, state, checksum(config.definition, state))
        return int(connection.execute(insert, values).lastrowid or 0), window

    def insert_many(self, values: array[float], times: array[int]) -> int:
        """Fold readings in their order, the policy applied after each; how many the window refused.

        A window of two values takes a `PairColumn`; from readings of one, as they were before, it has nothing to take.
        """
        window, taken = self.window, values
        if len(window.dimensions) > 1:
            if not isinstance(values, PairColumn):
                return 0
            taken = values.rows()
        self.changed = True
        try:
            window.insert_many(taken, times, results=False)
        except InputError:
            # Refused as a whole: one of them is beyond what a window takes; the others count.
            return sum(not self.inserted(value, time) for value, time in zip(values, times, strict=True))
        return 0

    def inserted(self, value: float, time: int) -> bool:
        """Fold one reading; whether the window took it."""
        self.changed = True
        try:
            both = (value, value.second) if isinstance(value, Pair) and len(self.window.dimensions) > 1 else value
            self.window.insert(both, time=time)
        except InputError as error:
            if not self.refused:
                self.refused = str(error)
                log.warning(
                    "window %s: refused %s; it counts elsewhere, further ones are counted only", self.name, error
                )
            return False
        return True

    def advance(self, time: int) -> bool:
        """It is at least this late (µs) in a window by time; whether buckets left it, or a shorter one's."""
        if not self._by_time:
            return False
        if self._asleep is not None and self._asleep.may_wait(time):
            self._asleep = self._asleep.told(time)
            return False
        before = self._all_held()
        self.window.advance(time)
        self.changed |= (left := before != self._all_held())
        return left

    def _all_held(self) -> list[int]:
        shorter = self.shorter
        return [len(self.window), *(map(shorter.windows.held, shorter.numbers) if shorter else ())]

    @property
    def now(self) -> int | None:
        """The event time of a window by time; None before its first reading."""
        return (self._asleep or self._window).now if self._by_time else None

    def is_ahead_of(self, latest: int) -> bool:
        """Whether event time has gone beyond the latest (µs) that a reading may have: all that comes would be late."""
        return (now := self.now) is not None and now > latest

    def time_of(self, newest: int) -> int:
        """What its answers are as of: by time its event time, which goes on in silence; else the stream's `newest`."""
        return newest if (now := self.now) is None else now

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its row, and theirs."""
        return (self.number, *(self.shorter.numbers.values() if self.shorter else ()))

    def answers(self, name: str = "") -> dict[str, sg.Bounded]:
        """Value, low, high and exact of each aggregate of the configuration, by name; its own or a shorter window's."""
        if self.shorter and name in self.shorter.numbers:
            found = self.shorter.windows.answer(name, bounds=True)
            return {aggregate: found[aggregate] for aggregate in self.shorter.aggregates[name]}
        found = self.window.query(bounds=True)
        return {name: found[name] for name in self.aggregates}

    def told(self, name: str) -> tuple[dict[str, sg.Bounded], tuple[int, int]]:
        """`answers` and `size`, asked for once."""
        if self.shorter and name in self.shorter.numbers:
            return self.answers(name), self.size(name)
        window = self.window
        found = window.query(bounds=True)
        count = int(found[COUNT].value or 0) if COUNT in found else window.readings
        return {name: found[name] for name in self.aggregates}, (count, len(window))

    def size(self, name: str = "") -> tuple[int, int]:
        """Readings in the window, or in a shorter one (an estimate where the edge cuts a bucket), and its buckets."""
        if self.shorter and name in self.shorter.numbers:
            windows = self.shorter.windows
            return int(windows.answer(name)[COUNT] or 0), windows.held(name)
        return self.count, len(self.window)

    @property
    def count(self) -> int:
        """Readings in the window: an estimate where its edge cuts a bucket.

        Of one that evicts up to an extreme: the readings that are still there.
        """
        found = self.window.query()
        return int(found[COUNT] or 0) if COUNT in found else self.window.readings

    def given_out(self) -> int:
        """What it had to say has been taken; how many results nobody will get."""
        return 0

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Its buckets, oldest first: readings, first and last time, then what each aggregate is of it."""
        for bucket in self.window.buckets():
            values = (bucket[name] for name in self.aggregates)
            yield (bucket.count, bucket.t_first or 0, bucket.t_last or 0, *values)

    @property
    def held(self) -> int:
        """How many buckets it keeps."""
        return len(self.window) if self._asleep is None else self._asleep.held

    @property
    def nbytes(self) -> int:
        """Bytes of its partials in memory."""
        return self.window.footprint.bytes if self._asleep is None else 0

    @property
    def limit(self) -> int:
        """The most buckets that it keeps now."""
        return self.window.limit if self._asleep is None else self._asleep.limit

    def squeeze(self, buckets: int) -> bool:
        """Keep at most so many buckets from now on; whether that is a change."""
        if buckets == self.limit:
            return False
        self.window.limit_to(buckets)
        self.changed = True
        return True

    def belongs_to(self, stream: int) -> None:
        """Its stream has another number from now on."""
        self._stream = stream
        if self.shorter:
            self.shorter.stream = stream

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the state, the leaves closed since the last commit, and tidy a little, in the caller's transaction."""
        if not self.changed:
            return
        self._collect()
        state = self.window.state()
        crc = checksum(self._definition, state)
        if self.is_new:
            make_row(connection, self.number, self._stream, self.name, self._definition)
        connection.execute("UPDATE window SET state = ?, crc = ? WHERE id = ?", (state, crc, self.number))
        if self.shorter:
            self.shorter.save(connection)
        rows = [(*key, leaf) for key, leaf in self._leaves.items()]
        closed = leaf_runs.Closed(self._base, self._level, self._head, self._open)
        leaf_runs.clip(connection, self.number, closed, self.window.leaf)
        if self._may_append(rows):
            leaf_runs.append(connection, self.number, *rows[0][:2], [leaf for *_, leaf in rows])
        else:
            for row in rows:
                self._insert(connection, *row)
        taken_over = "DELETE FROM window_leaf WHERE window = ? AND level = 0 AND number > ? AND number < ?"
        connection.executemany(taken_over, [(self.number, first, end) for first, end in self._merged])
        # What the open bucket took over is in the state; levels apart, no closed leaf is newer than the open one.
        beyond = "DELETE FROM window_leaf WHERE window = ? AND level = ? AND number >= ?"
        connection.execute(beyond, (self.number, self._level, self._open))
        self._tidy(connection, TIDIED + 2 * len(rows), closed)

    def _may_append(self, rows: list[leaf_runs.Leaf]) -> bool:
        """Whether these leaves are consecutive ones of one level, and none of them takes over another later."""
        if len(rows) < leaf_runs.LEAST or self._config.merge == "pairs":
            return False
        (level, first, _), (to, last, _) = rows[0], rows[-1]
        return level == to and last - first + 1 == len(rows)

    def _collect(self) -> None:
        """Take over what changed; a commit that fails leaves it here for the next."""
        changes = self.window.changes()
        together = min(TOGETHER, self.buckets // 4)
        self._untidy |= changes.level != self._level or changes.head > self._tidied + together
        self._level, self._base = changes.level, changes.base
        self._head, self._open = changes.head, changes.open
        self._leaves.update(((changes.level, number), leaf) for number, leaf in changes.closed)
        self._merged += changes.merged

    def _tidy(self, connection: sqlite3.Connection, most: int, closed: leaf_runs.Closed) -> None:
        """Delete rows of leaves that left, and fold rows of lower levels, at most about `most` rows."""
        if not self._untidy:
            self._left_untidy = False
            return
        runs_left = leaf_runs.tidy(connection, self.number, closed, self.window.leaf)
        stale = self._stale(connection, most)
        folded: set[int] = set()
        for level, number in stale:
            target = number >> (self._level - level)
            if not self._base <= level < self._level or not self._head <= target < self._open:
                self._delete(connection, level, number)
            elif target not in folded:
                self._fold(connection, target)
                folded.add(target)
        self._left_untidy = runs_left or len(stale) == most

    def _stale(self, connection: sqlite3.Connection, most: int) -> list[tuple[int, int]]:
        """Rows before the window's head, then rows of lower levels, the lowest first."""
        query = "SELECT level, number FROM window_leaf WHERE window = ? AND level = ? AND number < ? LIMIT ?"
        left = connection.execute(query, (self.number, self._level, self._head, most)).fetchall()
        query = "SELECT level, number FROM window_leaf WHERE window = ? AND level < ? ORDER BY level LIMIT ?"
        return left + connection.execute(query, (self.number, self._level, most - len(left))).fetchall()

    def _fold(self, connection: sqlite3.Connection, target: int) -> None:
        """Write the leaf `target` of the present level and delete the rows of lower levels that belong to it."""
        self._insert(connection, self._level, target, self.window.leaf(target))
        delete = "DELETE FROM window_leaf WHERE window = ? AND level = ? AND number >= ? AND number < ?"
        for level in range(self._base, self._level):
            shift = self._level - level
            connection.execute(delete, (self.number, level, target << shift, (target + 1) << shift))

    def _insert(self, connection: sqlite3.Connection, level: int, number: int, leaf: bytes) -> None:
        row = (self.number, level, number, leaf)
        connection.execute("INSERT OR REPLACE INTO window_leaf VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row)))

    def _delete(self, connection: sqlite3.Connection, level: int, number: int) -> None:
        delete = "DELETE FROM window_leaf WHERE window = ? AND level = ? AND number = ?"
        connection.execute(delete, (self.number, level, number))

    def saved(self) -> bool:
        """The transaction is durable: nothing is waiting. Whether it is put away: it took nothing for long."""
        if self._asleep is not None:
            return False
        now = monotonic()
        if not self.changed:
            if now - self._took_at >= AWAY:
                self._put_away()
            return self._asleep is not None
        self._took_at = now
        self._leaves.clear()
        self._merged.clear()
        if self._untidy and not self._left_untidy:
            self._tidied = self._head
        self._untidy, self.changed, self.is_new = self._left_untidy, False, False
        if self.shorter:
            self.shorter.is_new = False
        return False


@cache
def _alone(name: str) -> tuple[str]:
    """The names of a window from which no other is answered, the same for every stream."""
    return (name,)


def _rename(connection: sqlite3.Connection, stream: int, config: WindowConfig) -> None:
    """Take over what the window kept under the name it had before, unless there is one of its own already."""
    if config.was is None:
        return
    own = connection.execute("SELECT 1 FROM window WHERE stream = ? AND name = ?", (stream, config.name)).fetchone()
    if own is None:
        rename = "UPDATE window SET name = ? WHERE stream = ? AND name = ?"
        connection.execute(rename, (config.name, stream, config.was))


def forget(connection: sqlite3.Connection, where: str, values: tuple[object, ...]) -> None:
    """Delete the stored windows that a condition on the table `window` selects, with their leaves."""
    selected = f"SELECT id FROM window WHERE {where}"  # noqa: S608  the conditions are this package's own
    for table in ("window_leaf", "window_run"):
        connection.execute(f"DELETE FROM {table} WHERE window IN ({selected})", values)  # noqa: S608
    connection.execute(f"DELETE FROM window WHERE {where}", values)  # noqa: S608
