"""A window kept as rows: closed leaves and one small state row; no commit writes a whole window.

One that took nothing for long is its rows alone. Readings that come then wait beside them while they are few: of
thousands of slow streams each has a handful until the tables are written.
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
from sluicegate_agent.state.asleep import AWAY, REST, UNREAD_MOST, Asleep, Unread, asleep
from sluicegate_agent.state.leaf_rows import LeafRows
from sluicegate_agent.state.shared import Shorter, make_row
from sluicegate_agent.state.store import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluicegate_agent.config import WindowConfig
    from sluicegate_agent.doubts import Doubts
    from sluicegate_agent.messages import Result
    from sluicegate_agent.streams import Stream

log = logging.getLogger("sluicegate.windows")


class StoredWindow:
    """One window of one stream, its rows and what of it waits for the commit.

    One that took nothing for long is its rows alone, until somebody asks for its `window`.
    """

    #: A dictionary of so many takes as much as all of a window that is put away.
    __slots__ = (
        *("_asleep", "_by_time", "_config", "_connection", "_definition", "_refusals", "_rows", "_sharing", "_stream"),
        *("_since", "_taken", "_unread", "_window", "_written"),
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
        self.refused, self._refusals = "", 0
        self._rows = LeafRows()
        self._asleep: Asleep | None = None
        self._unread: Unread | None = None
        self._written: Asleep | None = None
        self._since, self._taken = monotonic(), 0
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

    @property
    def window(self) -> sg.Window:
        """The window itself."""
        if self._asleep is not None:
            self._wake(self._asleep)
        return self._window

    def _put_away(self) -> None:
        """Drop the window from memory: its rows hold all of it now."""
        if self.may_sleep and self.shorter is None:
            self._asleep, self._since = asleep(self._window, self._config.policy.time), monotonic()
            del self._window, self._rows

    def _wake(self, was: Asleep) -> None:
        """Go on from its rows, with what came since, as of the time that it was told last.

        Raises StoreDamaged where they are of no use any more: the next start begins it anew, and its answers say so.
        """
        unread, self._unread, self._asleep, self._written = self._unread, None, None, None
        self._since, self._taken = monotonic(), 0
        query = "SELECT id, state, crc FROM window WHERE id = ?"
        found = self._rebuilt(self._connection, self._config, self._connection.execute(query, (self.number,)))
        if found is None:
            raise StoreDamaged(f"the rows of window {self.name} are not as they were written; start again")
        self._window, self._rows = found[1], LeafRows()
        for values, times, told in unread.parts() if unread else ():
            self._refusals += self._take(values, times)
            if told is not None:
                self._window.advance(told)
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
        if self._asleep is not None and self._waits(self._asleep, values, times):
            return 0
        refused, self._refusals = self._take(values, times) + self._refusals, 0
        return refused

    def _waits(self, asleep: Asleep, values: array[float], times: array[int]) -> bool:
        """Whether readings wait beside the rows of a window that is put away, as long as they are few and one value."""
        unread = Unread(asleep) if self._unread is None else self._unread
        is_wide = isinstance(values, PairColumn) or len(configured_window(self._config).dimensions) > 1
        if is_wide or not times or not unread.has_room(len(times)):
            return False
        unread.add(values, times)
        self._unread, self.changed = unread, True
        if self._by_time:
            self._asleep = asleep.heard(min(times), max(times), int(self._config.policy.time or 0))
        return True

    def _take(self, values: array[float], times: array[int]) -> int:
        self._taken += len(times)
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
            told = self._asleep.told(time)
            if self._unread is not None and told is not self._asleep:
                self._unread.tell(time)
            self._asleep = told
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
        return len(self.window) if self._asleep is None or self._unread is not None else self._asleep.held

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
        """Write the state and the rows of its leaves, in the caller's transaction."""
        if not self.changed:
            return
        was, unread, refusals = self._asleep, self._unread, self._refusals
        stays_away = monotonic() - self._since >= REST
        window = self.window
        self._rows.collect(window.changes(), self.buckets)
        state = window.state()
        crc = checksum(self._definition, state)
        if self.is_new:
            make_row(connection, self.number, self._stream, self.name, self._definition)
        connection.execute("UPDATE window SET state = ?, crc = ? WHERE id = ?", (state, crc, self.number))
        if self.shorter:
            self.shorter.save(connection)
        self._rows.save(connection, self.number, window, in_pairs=self._config.merge == "pairs")
        if was is not None and stays_away and self._refusals == refusals:
            # Thousands are written one after the other: none of them stays in memory for the others.
            self._put_away()
            self._written, self._asleep, self._unread = self._asleep, was, unread

    def saved(self) -> bool:
        """The transaction is durable: nothing is waiting. Whether it is put away: it took little for long."""
        if self._asleep is not None:
            if self._written is not None:
                self._asleep, self._unread, self._written, self.changed = self._written, None, None, False
            return False
        if self.changed:
            self._rows.saved()
            self.changed = self.is_new = False
            if self.shorter:
                self.shorter.is_new = False
        if (now := monotonic()) - self._since < AWAY:
            return False
        is_slow, self._since, self._taken = self._taken <= UNREAD_MOST, now, 0
        if is_slow:
            self._put_away()
        return self._asleep is not None


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
