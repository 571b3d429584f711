"""Everything durable of one agent, behind one lock: the store, its counters, dead letters, streams and outbox."""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sluicegate_agent import health
from sluicegate_agent.backlog.rows import encoded
from sluicegate_agent.carried import most
from sluicegate_agent.checksums import (
    FILES,
    LOST,
    SURE,
    count,
    is_hexadecimal,
    is_sound,
    keep_time,
    require_sound,
    verify,
)
from sluicegate_agent.config.carrying import asked_of
from sluicegate_agent.dead_letters import DeadLetters
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.identity.under_way import may_come_twice
from sluicegate_agent.identity.unsure import lose_memory
from sluicegate_agent.lock import Lock
from sluicegate_agent.outbox import Outbox, least_bytes
from sluicegate_agent.private import FOLDER, make_private
from sluicegate_agent.record.limits import limits
from sluicegate_agent.record.recovery import lose_history, now_or_later, recover
from sluicegate_agent.state.counters import Counters
from sluicegate_agent.state.home import home
from sluicegate_agent.state.lost import begin_again, forget_numbers
from sluicegate_agent.state.opening import open_window
from sluicegate_agent.state.parting import forget_drained, new_key, part_if_copied
from sluicegate_agent.state.renaming import part_if_renamed
from sluicegate_agent.state.status import collect
from sluicegate_agent.state.store import BESIDE, Store, StoreDamaged, meta
from sluicegate_agent.streams import Stream
from sluicegate_agent.tables.streams import Row, next_number, stored_rows

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.config.model import StateConfig

log = logging.getLogger("sluicegate.state")
_SQUEEZED_AT_ONCE = 512
_TARGETS_KEPT = 8
#: Sets of tags of one stream that may wait to be sent before it goes on with another.
_TAGGED_MOST = 8


class State:
    """One agent's durable state, open. Only one process has it; one thread uses it."""

    def __init__(self, config: Config) -> None:
        """Lock the directory and open what is in it.

        Raises Locked, NewerStore, and EnvironmentRefused where the directory or its disk refuses.
        """
        self.config = config
        try:
            config.state.path.mkdir(mode=FOLDER, parents=True, exist_ok=True)
            self._lock = Lock(config.state.path)
            make_private(config.state.path)  # before anything is opened: as an older version left it
        except OSError as error:
            raise EnvironmentRefused(f"[state] path {config.state.path}: {error.strerror}: {_REMEDY}") from error
        try:
            self._open_or_begin_anew()
            make_private(config.state.path)  # what a library made
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise EnvironmentRefused(f"[state] path {config.state.path}: {error}: {_REMEDY}") from error
        except BaseException:
            self.close()
            raise

    def _open_or_begin_anew(self) -> None:
        """Open; where rows say nonsense the store is condemned by that, and the second try begins a new one."""
        try:
            self._open()
        except StoreDamaged:
            self.store.close()
            self._open()

    def _open(self) -> None:
        config = self.config
        here = home(stored_at(config.state))
        self.store = open_store(config.state)
        moved = self.store.moved
        if here["inode"] is None or moved:  # it is new, and a copy of it may be made before its next start
            self.store.close()
            here = home(stored_at(config.state))
            self.store = open_store(config.state)
        if moved:
            log.error("%s: damaged; set aside as %s, started anew", self.store.path, moved.name)
        with self.store.noticing_damage():
            self._read(here, lost_since=self.store.lost_since)
        while self.outbox.is_over and self._squeezed():
            pass

    def _read(self, here: dict[str, Any], *, lost_since: int | None) -> None:
        """Know what is stored. `here`: where; `lost_since`: it is what was salvaged of a store that began then."""
        config, connection, had_damage = self.config, self.store.connection, lost_since is not None
        self.store.limit_log(limits(config).log)
        with self.store.transaction():
            verify(connection)
            if lost_since is not None:
                begin_again(connection, config, lost_since)
            is_apart = recover(connection, config.state.path, config, open_window)
            new, carries = self.store.next_incarnation, partial(asked_of, config)
            copied = part_if_copied(connection, self.store.path, here, new, carries, is_apart=is_apart)
            count(connection, {"copies_noticed": int(bool(copied))})
            if copied:
                may_come_twice(connection)
            self.counters = Counters(connection)
            self.dead_letters = DeadLetters(connection, config.dead_letters.rows, config.dead_letters.bytes_each)
            self._identify(connection)
            if part_if_renamed(connection, config.device.id, new, carries):
                self._identify(connection)
            forget_drained(connection)
            self.streams = self._load_streams()
            for stream in self.streams.values() if had_damage or copied else ():
                lose_history(connection, stream)
            if had_damage or is_apart:
                self._lose_streams(connection, is_sure=not is_apart and meta(connection, SURE) is not None)
            self.outbox = Outbox(connection, config.outbox.rows, config.outbox.bytes)
            self.outbox.carries = {stream.number: stream.carries for stream in self._carrying()}
        if had_damage:
            self.store.loss_is_told()
        self._index_is_stale = False
        self._counted: dict[str, int] = {}
        self._check_budget()

    def _lose_streams(self, connection: sqlite3.Connection, *, is_sure: bool) -> None:
        """Streams by key may be gone with the damaged store: what comes new may have been here until now.

        `is_sure`: what was known as seen is not.
        """
        until = now_or_later(self.streams.values())
        keep_time(connection, LOST, until)
        if not is_sure:
            lose_memory(connection, until)
            keep_time(connection, FILES, until)
            forget_numbers(connection, self.config, self.streams.values())

    def _identify(self, connection: sqlite3.Connection) -> None:
        """The incarnation and the key of what is taken from now on; a store of an older version had no key."""
        self.store.incarnation = str(meta(connection, "incarnation"))
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('key', ?)", (new_key(),))
        self.key = meta(connection, "key")
        if not is_hexadecimal(self.key, 32):
            raise sqlite3.DatabaseError(f"a malformed row in the table meta: key {self.key!r}")
        for row in [*stored_rows(connection, "key = ''")]:
            row._replace(incarnation=self.store.incarnation, key=self.key).write(connection)

    def _load_streams(self) -> dict[str, Stream]:
        """All streams of the configuration, and those that an earlier one had: what they left has still to be sent."""
        connection, bucket = self.store.connection, self.config.bucket
        known = {name for (name,) in connection.execute("SELECT name FROM stream WHERE retired = 0")}
        for name in self.config.streams:
            if name not in known:
                named = self.store.incarnation, self.key
                Row(next_number(connection), name, Stream(0, name, 1, 1).pack(), *named).write(connection)
        origins = {row[0] for *row, crc in connection.execute("SELECT * FROM origin") if is_sound(crc, *row)}
        tags: dict[int, dict[str, str]] = {}
        for number, text, crc in connection.execute("SELECT stream, tags, crc FROM tagged"):
            require_sound("tagged", crc, number, text)
            try:
                tags[number] = json.loads(text)
            except ValueError as error:
                raise sqlite3.DatabaseError(f"a malformed row in the table tagged: {error}") from error
        found: dict[str, Stream] = {}
        self.retired: list[Stream] = []
        self.leaving: list[Stream] = []
        self.renumbered: list[tuple[int, int]] = []
        self._last_number, self._begun_as = next_number(connection) - 1, ""
        for number, name, row, incarnation, key, is_retired in stored_rows(connection):
            stream = Stream(number, name, bucket.readings, bucket.span)
            stream.restore(row)
            stream.carries = asked_of(self.config, name)
            stream.incarnation, stream.key, stream.is_known = incarnation, key, number in origins
            stream.tags = tags.get(number, stream.tags)
            if is_retired:
                stream.is_retired = True
                self.retired.append(stream)
            else:
                found[name] = stream
        return found

    def begin(self, name: str, sender: str) -> Stream:
        """A stream that nobody has heard of before, or not since it left: in memory, until a commit writes it.

        Its incarnation is later than any that a stream of its name can have had.
        """
        bucket = self.config.bucket
        self._begun_as = self._begun_as or self.store.next_incarnation()
        self._last_number += 1
        stream = Stream(self._last_number, name, bucket.readings, bucket.span)
        stream.incarnation, stream.key, stream.source, stream.is_new = self._begun_as, self.key, sender, True
        stream.carries = self.outbox.carries[stream.number] = asked_of(self.config, name)
        self.streams[name] = stream
        return stream

    def leave(self, name: str) -> Stream:
        """Close a stream for good: what it has is sent, and the next reading of its name begins another."""
        stream = self.streams.pop(name)
        stream.close()
        stream.is_retired = stream.has_left = stream.changed = True
        self.leaving.append(stream)
        self._begun_as = ""
        return stream

    def retag(self, name: str, tags: dict[str, str]) -> bool:
        """Have a stream go on with other tags: what has closed keeps the old ones. False where too much waits."""
        stream = self.streams[name]
        if stream.builder is None:
            stream.tags, stream.has_new_tags, stream.changed = tags, True, True
            return True
        waiting = sum(each.name == name for each in (*self.retired, *self.leaving))
        if waiting >= _TAGGED_MOST or not self.has_room_for_stream:
            return False
        self._last_number += 1
        self.streams[name] = stream.go_on_as(self._last_number, tags)
        self.outbox.carries[self._last_number] = stream.carries
        self.leaving.append(stream)
        self.renumbered.append((self._last_number, stream.number))
        return True

    def renumber(self, connection: sqlite3.Connection) -> None:
        """What stands beside a stream goes on under its new number, inside the caller's transaction."""
        for table in ("window", "doubtful"):
            update = f"UPDATE {table} SET stream = ? WHERE stream = ?"  # noqa: S608  our own names
            connection.executemany(update, self.renumbered)

    def left(self) -> None:
        """The streams that left are written as such."""
        self.retired += self.leaving
        self.leaving = []
        self.renumbered = []

    def drop_drained(self, connection: sqlite3.Connection) -> None:
        """Forget streams that left and of which nothing waits any more, inside the caller's transaction."""
        sent = {number for (number,) in connection.execute("SELECT DISTINCT stream FROM chunk")}
        drained = [each for each in self.retired if each.number not in sent and not self.outbox.lanes.get(each.number)]
        for table, column in (("stream", "id"), *((each, "stream") for each in ("origin", "tagged", "doubtful"))):
            delete = f"DELETE FROM {table} WHERE {column} = ?"  # noqa: S608  our own names
            connection.executemany(delete, [(each.number,) for each in drained])
        gone = {each.number for each in drained}
        self.retired = [each for each in self.retired if each.number not in gone]
        for number in gone:
            self.outbox.carries.pop(number, None)

    @property
    def has_room_for_stream(self) -> bool:
        """Whether the outbox has a row for one more."""
        outbox = self.config.outbox
        count = len(self.streams) + len(self.retired) + len(self.leaving) + 1
        carried = max((encoded(most(asked_of(self.config, name))) for name in self.config.names), default=0)
        return count <= outbox.rows and least_bytes(count) + count * carried <= outbox.bytes

    def _least_bytes(self, carrying: Iterable[Stream]) -> int:
        """What a row of each stream takes, where these carry what is asked of them."""
        rows = least_bytes(len(self.streams) + len(self.retired))
        return rows + sum(encoded(most(stream.carries)) for stream in carrying)

    def _carrying(self) -> list[Stream]:
        """The streams whose rows carry what is asked of them: those that are retired, too, where there is room."""
        every = [*self.streams.values(), *self.retired]
        has_room = self._least_bytes(every) <= int(self.config.outbox.bytes)
        return every if has_room else every[: len(self.streams)]

    def _check_budget(self) -> None:
        """Refuse a budget in which not even one row a stream fits."""
        outbox = self.config.outbox
        least = self._least_bytes(self.streams.values())
        if outbox.rows < len(self.streams) or outbox.bytes < least:
            raise EnvironmentRefused(
                f"outbox.rows = {outbox.rows}, outbox.bytes = {int(outbox.bytes)}: {len(self.streams)} streams need at "
                f"least {len(self.streams)} rows and {least} bytes"
            )

    def _squeezed(self) -> int:
        """Bring an outbox into a budget that became smaller, a bounded transaction at a time; the steps taken."""
        with self.transaction() as connection:
            return self.squeeze(connection, _SQUEEZED_AT_ONCE)

    def check(self) -> None:
        """See that directory, lock and store are still those that were opened.

        Raises StateGone where one was deleted, moved or replaced; a deleted lock is made anew.
        """
        self.store.check()
        self._lock.check()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A durable change of the store; where it fails the outbox's index is read anew, as the store still is."""
        if self._index_is_stale:
            self.outbox.reload(self.store.connection)
        self._index_is_stale = True
        self._counted = {}
        with self.store.transaction() as connection:
            self._lock.check()
            yield connection
        self._index_is_stale = False
        self.outbox.behind.settled()
        self.counters.noted(self._counted)

    def count(self, connection: sqlite3.Connection, amounts: dict[str, int]) -> None:
        """Count what the open transaction does, as part of it: not at all where it fails."""
        self.counters.add_now(connection, amounts)
        for name, amount in amounts.items():
            self._counted[name] = self._counted.get(name, 0) + amount

    def squeeze(self, connection: sqlite3.Connection, most: int = 1 << 62) -> int:
        """Bring the outbox into its budget and count the detail that is lost; the steps taken."""
        outbox = self.outbox
        merges, singles = outbox.merges, outbox.singles_dropped
        steps = outbox.squeeze(connection, most)
        lost = {"outbox.merges": outbox.merges - merges, "outbox.single_readings": outbox.singles_dropped - singles}
        self.count(connection, lost)
        return steps

    @property
    def incarnation(self) -> str:
        """16 hexadecimal digits that name this store, later ones sorting later."""
        return self.store.incarnation

    def remember(self, asked: dict[str, Any]) -> None:
        """Keep what the configuration asks for, to tell a later one from it; again at the next start if it fails."""
        with contextlib.suppress(sqlite3.OperationalError), self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('asked', ?)", (json.dumps(asked),))

    def write_link(self, connection: sqlite3.Connection, link: dict[str, Any]) -> None:
        """Keep how the link to the target is, for `status`."""
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('link', ?)", (json.dumps(link),))

    def known_target(self) -> str:
        """The id in the marker of the directory target, as of when it was last written to; empty before that."""
        return known_targets(self.store.connection).get(str(self.config.sync.path), "")

    def keep_target(self, connection: sqlite3.Connection, mark: str) -> None:
        """Keep the id of the directory target, inside the caller's transaction; an empty one forgets it."""
        kept = known_targets(connection)
        place = str(self.config.sync.path)
        if kept.pop(place, "") != mark:
            newest = [*kept.items()][-_TARGETS_KEPT:] + [(place, mark)] * bool(mark)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('targets', ?)", (json.dumps(dict(newest)),))

    def health(self) -> dict[str, Any]:
        """A small summary that travels with each chunk: counters, and how full the outbox is."""
        return {
            **health.brief(),
            "counters": self.counters.as_dict(),
            "outbox_rows": self.outbox.rows,
            "outbox_bytes": self.outbox.bytes_held,
            "stores_set_aside": self.store.set_aside,
        }

    def status(self) -> dict[str, Any]:
        """Streams, windows, outbox, link, counters and dead letters as of the last commit."""
        return {"running": True, **collect(self.store.connection, self.config.state.path)}

    def close(self) -> None:
        """Let the store and the directory go; what was not committed will be delivered again. Again is harmless."""
        if hasattr(self, "store"):
            self.store.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close. Raises EnvironmentRefused where the disk refuses outside of a commit: that ends the command, too."""
        try:
            with self.store.noticing_damage():
                if error is not None:
                    raise error
        except sqlite3.OperationalError as refused:
            if getattr(refused, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR:
                raise  # a statement that is wrong, and no disk that refuses
            raise EnvironmentRefused(f"[state] path {self.config.state.path}: {refused}: {_REMEDY}") from refused
        finally:
            self.close()


def stored_at(config: StateConfig) -> Path:
    """The file that [state] names: a SQLite database, or the one inside Couchbase Lite's folder."""
    return config.path / (Store.files[0] if config.store == "sqlite" else f"{BESIDE[0]}/db.sqlite3")


def open_store(config: StateConfig) -> Store:
    """The store that [state] names, opened or made.

    Raises EnvironmentRefused where the directory holds one of the other kind: what waits in it would be left behind.
    """
    files = {"sqlite": Store.files[0], "couchbase-lite": BESIDE[0]}
    for kind, name in files.items():
        if kind != config.store and (config.path / name).exists():
            raise EnvironmentRefused(
                f'state.store = "{config.store}", but {config.path / name} holds a state in "{kind}": write that, or '
                "give another [state] path; what waits in it is sent by an agent that opens it"
            )
    if config.store == "couchbase-lite":
        from sluicegate_agent.state.couchbase_lite import CouchbaseLiteStore

        return CouchbaseLiteStore(config.path)
    return Store(config.path)


def known_targets(connection: sqlite3.Connection) -> dict[str, str]:
    """The ids of the directory targets that were written to, by path."""
    found = connection.execute("SELECT value FROM meta WHERE key = 'targets'").fetchone()
    return dict(json.loads(found[0])) if found else {}


_REMEDY = "give a directory that this user may write to, on a disk with room"
