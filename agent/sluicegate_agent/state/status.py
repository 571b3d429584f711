"""What the agent's store says of itself: read by the agent, or by `sluicegate status` beside a running agent."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sluicegate.window.snapshot import stored_limit
from sluicegate_agent import dead_letters, doubts, lock
from sluicegate_agent.checksums import counts
from sluicegate_agent.checksums import verify as verify_rows
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.identity.held import FUTURE, UNSET
from sluicegate_agent.outbox import spread
from sluicegate_agent.record import file as record
from sluicegate_agent.state import schema
from sluicegate_agent.state.store import BESIDE, DATABASE, bytes_on_disk, disk_free, is_damage, log_bytes, verify
from sluicegate_agent.streams import Stream

DEAD_LETTERS_SHOWN = 20
READ_SECONDS = 10.0
_TRIES = 3


def read_status(folder: Path) -> dict[str, Any]:
    """The status of a state directory as of its last commit; nothing changes, and a running agent is not disturbed.

    Raises EnvironmentRefused where there is no readable store, NewerStore for one of a newer version.
    """
    path = folder / DATABASE
    if not path.exists() and (folder / BESIDE[0]).exists():
        return _read_documents(folder)
    if not path.exists():
        raise EnvironmentRefused(f"{folder}: no agent has run here yet; check [state] path, or start `sluicegate run`")
    with reading(path) as connection:
        return {"running": lock.holder(folder) is not None, **collect(connection, folder)}


def _always(tables: sqlite3.Connection) -> bool:
    return True


@contextlib.contextmanager
def looked_into(
    folder: Path, plays: Callable[[sqlite3.Connection], bool] = _always
) -> Iterator[sqlite3.Connection | None]:
    """One snapshot of the store of a state directory, of either kind and of a version that is known; None without one.

    `plays`: asked with the tables as they were last written, whether what commits recorded since has to be in it.

    Raises EnvironmentRefused where it cannot be read, NewerStore for one of a newer version.
    """
    if (folder / DATABASE).exists():
        opened: contextlib.AbstractContextManager[sqlite3.Connection] = reading(folder / DATABASE, plays)
    elif (folder / BESIDE[0]).exists():
        from sluicegate_agent.state.couchbase_lite import snapshot

        opened = contextlib.closing(snapshot(folder))
    else:
        yield None
        return
    try:
        with opened as connection:
            found = schema.version(connection)
            if found is not None and found > schema.VERSION:
                raise schema.NewerStore(f"the store has schema version {found}, not {schema.VERSION}")
            yield None if found is None else connection
    except sqlite3.Error as error:
        raise EnvironmentRefused(f"{folder}: the state cannot be read: {error}") from error


@contextlib.contextmanager
def reading(path: Path, plays: Callable[[sqlite3.Connection], bool] = _always) -> Iterator[sqlite3.Connection]:
    """One snapshot of a store beside whoever has it open, for READ_SECONDS at most: while it lasts its log grows.

    Raises EnvironmentRefused where it cannot be read.
    """
    try:
        with contextlib.closing(_opened(path)) as connection:
            end = time.monotonic() + READ_SECONDS
            connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
            with contextlib.closing(_played(connection, path, plays)) as found:
                yield found
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            why = f"to read it takes longer than {READ_SECONDS:.0f} s, and its log grows meanwhile"
            remedy = "ask again when the machine is less busy, or ask the agent's listener ([metrics])"
            raise EnvironmentRefused(f"{path}: {why}: {remedy}") from error
        is_damaged = isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError) and is_damage(error)
        is_damaged &= "no such table" not in str(error)  # an older one has fewer
        remedy = "; it is damaged: the agent's next start keeps what is whole and says what is lost" * is_damaged
        raise EnvironmentRefused(f"{path}: cannot be read: {error}{remedy}") from error


def look_for_damage(folder: Path) -> dict[str, int]:
    """What damage cost a state so far, by counter: lost rows, damaged records, stores that were set aside.

    Raises EnvironmentRefused where the store is damaged now, NewerStore.
    """
    with reading(folder / DATABASE) as connection:
        verify(connection)
        if schema.version(connection) == schema.VERSION:
            verify_rows(connection)
        found = collect(connection, folder)
    return damage_of(found)


def damage_of(found: dict[str, Any]) -> dict[str, int]:
    """The same of what `collect` found."""
    told = {name: n for name, n in found["counters"].items() if name.startswith(("rows.lost.", "record.damaged")) and n}
    return told | {"stores_set_aside": found["stores_set_aside"]} if found["stores_set_aside"] else told


def _played(
    connection: sqlite3.Connection, path: Path, plays: Callable[[sqlite3.Connection], bool]
) -> sqlite3.Connection:
    """The snapshot; where commits were recorded since the tables were written, a copy in memory with these in it."""
    for _ in range(_TRIES):
        connection.execute("BEGIN")
        if schema.version(connection) == schema.VERSION and not plays(connection):
            return connection  # a start asks first, in the memory that the agent is given
        fold = schema.fold(connection)
        beside = lock.holder(path.parent) is not None
        frames = None if fold is None else record.read(path.parent, fold, copied=beside)
        if frames is None or not _has_moved(path, fold):
            break  # else what was read of it may be half overwritten
        connection.execute("ROLLBACK")  # the tables were written in between
    if not frames and (fold is None or connection.execute("SELECT 1 FROM packed LIMIT 1").fetchone() is None):
        return connection
    from sluicegate_agent.record.recovery import recover

    copy = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(copy)
    recover(copy, path.parent, frames=frames)
    spread(copy)
    return copy


def _has_moved(path: Path, fold: int | None) -> bool:
    with contextlib.closing(_opened(path)) as again:
        return schema.fold(again) != fold


def _opened(path: Path) -> sqlite3.Connection:
    """A connection that only reads; also where a full or read-only disk has no room for the log's index."""
    log = path.with_name(f"{path.name}-wal")
    for options in ("mode=ro", "immutable=1"):
        connection = sqlite3.connect(f"file:{path.absolute()}?{options}", uri=True, isolation_level=None, timeout=10)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            if (
                options == "immutable=1"
                or lock.holder(path.parent) is not None
                or (log.exists() and log.stat().st_size)
            ):
                raise
        except BaseException:
            connection.close()
            raise
        else:
            break
    return connection


def _read_documents(folder: Path) -> dict[str, Any]:
    """The same of a store in Couchbase Lite."""
    from sluicegate_agent.state.couchbase_lite import snapshot

    try:
        with contextlib.closing(snapshot(folder)) as connection:
            return {"running": lock.holder(folder) is not None, **collect(connection, folder)}
    except sqlite3.Error as error:
        raise EnvironmentRefused(f"{folder / BESIDE[0]}: cannot be read: {error}") from error


def collect(connection: sqlite3.Connection, folder: Path) -> dict[str, Any]:
    """Streams, windows, outbox, link, counters and dead letters of one snapshot of the store."""
    found = schema.version(connection)
    if found is not None and found > schema.VERSION:
        raise schema.NewerStore(f"the store has schema version {found}, this Sluicegate knows up to {schema.VERSION}")
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    return {
        "incarnation": meta["incarnation"],
        "schema": meta["schema"],
        "stores_set_aside": meta.get("set_aside", 0),
        "bytes_on_disk": bytes_on_disk(folder),
        "log_bytes": log_bytes(folder),
        "disk_free": disk_free(folder),
        "streams": _streams(connection),
        "windows": _windows(connection),
        "outbox": _outbox(connection),
        "held": _held(connection),
        "record_lost": json.loads(meta.get("record lost") or "null"),
        "budget": json.loads(meta.get("budget") or "null"),
        "link": json.loads(meta.get("link") or "{}"),
        "counters": counts(connection),
        "dead_letters": _dead_letters(connection),
    }


def _streams(connection: sqlite3.Connection) -> dict[str, Any]:
    query = """SELECT name, stream.row, (
            SELECT count(*) FROM outbox JOIN stream AS each ON each.id = outbox.stream WHERE each.name = stream.name
        ), doubtful.row
        FROM stream LEFT JOIN doubtful ON doubtful.stream = id WHERE retired = 0 ORDER BY id"""
    return {name: _stream(name, row, rows, doubt) for name, row, rows, doubt in connection.execute(query)}


def _stream(name: str, row: bytes, rows: int, doubt: bytes | None) -> dict[str, Any]:
    stream = Stream(0, name, 1, 1)
    stream.restore(row)
    bucket = stream.builder.bucket if stream.builder else None
    in_doubt, _, lost = doubts.unpack(doubt) if doubt else (0, [], [])
    return {
        "accepted": stream.accepted,
        "late": stream.late,
        "undecidable": in_doubt,
        "lost_until_us": max((each.time for each in lost if not each.windows), default=None),
        "missing": stream.told + stream.owed,
        "buckets_closed": stream.buckets,
        "buckets_waiting": rows,
        "newest_us": stream.builder.newest if stream.builder else None,
        "center": stream.builder.center if stream.builder else None,
        "open_readings": bucket.n if bucket else 0,
    }


def _windows(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    query = """SELECT stream.name, window.name, definition, state,
        (SELECT count(*) FROM window_leaf WHERE window_leaf.window = window.id)
        + (SELECT coalesce(sum(last - first + 1), 0) FROM window_run WHERE window_run.window = window.id),
        (SELECT coalesce(sum(length(leaf)), 0) FROM window_leaf WHERE window_leaf.window = window.id)
        + (SELECT coalesce(sum(length(leaves)), 0) FROM window_run WHERE window_run.window = window.id)
        FROM window JOIN stream ON stream.id = window.stream ORDER BY stream.id, window.id"""
    keys = ("stream", "window", "definition", "state", "leaves", "leaf_bytes")
    return [_window(dict(zip(keys, row, strict=True))) for row in connection.execute(query)]


def _window(row: dict[str, Any]) -> dict[str, Any]:
    """`bucket_limit`: the most buckets it keeps now, fewer than it was given while the target is away; 0: no limit."""
    state = row.pop("state")
    return row | {"state_bytes": len(state), "bucket_limit": stored_limit(state)}


def _outbox(connection: sqlite3.Connection) -> dict[str, Any]:
    rows, row_bytes = connection.execute(
        "SELECT count(*), coalesce(sum(length(bucket) + coalesce(length(readings), 0)), 0) FROM outbox"
    ).fetchone()
    sealed, rejected, documents = connection.execute(
        "SELECT total(state = 0), total(state = 1), coalesce(sum(length(document)), 0) FROM chunk"
    ).fetchone()
    return {
        "rows": rows,
        "bytes": row_bytes + documents,
        "chunks_sealed": int(sealed),
        "chunks_rejected": int(rejected),
        "refused": dict(connection.execute("SELECT id, reason FROM chunk WHERE state = 1 ORDER BY number")),
        "oldest_unsent_us": _oldest(connection),
    }


def _held(connection: sqlite3.Connection) -> dict[str, int]:
    """Messages that wait to be judged: for the clock to be set, for a second message of their source; their bytes."""
    found = {True: [0, 0], False: [0, 0]}
    for why, rows, size in connection.execute("SELECT why, count(*), sum(length(payload)) FROM held GROUP BY why"):
        of = found[why == FUTURE or why.startswith(UNSET)]
        of[0] += rows
        of[1] += size
    (clock, some), (second, others) = found[True], found[False]
    return {"for_clock": clock, "for_second_message": second, "bytes": some + others}


def _oldest(connection: sqlite3.Connection) -> int | None:
    """Time of the oldest reading in each stream's oldest waiting row: within a stream, rows are in order of arrival."""
    query = """SELECT substr(bucket, 17, 8) FROM outbox
        WHERE first = (SELECT min(first) FROM outbox AS other WHERE other.stream = outbox.stream)"""
    times = [int.from_bytes(packed, "little", signed=True) for (packed,) in connection.execute(query)]
    return min(times, default=None)


def _dead_letters(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    return [
        {
            "at_us": letter.at_us,
            "topic": letter.topic,
            "reason": letter.reason,
            "size": letter.size,
            "payload": letter.payload.decode("utf-8", "backslashreplace"),
        }
        for letter in dead_letters.read(connection, DEAD_LETTERS_SHOWN)
    ]
