"""Alerts in the store: a row for each that is not at rest, a row for each message that somebody has not taken yet.

Rows of the table `meta`, so that every kind of store keeps them as it does the rest, and an agent without alerts has
none. Numbers of messages never come twice, also after all are gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from sluicegate_agent.alerts.messages import Told
from sluicegate_agent.alerts.rules import Kept

STATE, MESSAGE, NUMBER = "alert.state/", "alert.message/", "alert.number"
Key = tuple[str, str]
_kept, _told = msgspec.json.Decoder(Kept), msgspec.json.Decoder(Told)


class Waiting(msgspec.Struct):
    """A message and who has not taken it yet."""

    told: Told
    mqtt: bool
    webhook: bool


_waiting = msgspec.json.Decoder(Waiting)


def load_states(connection: sqlite3.Connection) -> dict[Key, Kept]:
    """All that are not at rest, by alert and stream. A row that cannot be read is at rest: it is judged anew."""
    found = {}
    for key, row in _rows(connection, STATE):
        alert, _, stream = key.partition("/")
        try:
            found[alert, stream] = _kept.decode(row)
        except msgspec.DecodeError:
            continue
    return found


def load_messages(connection: sqlite3.Connection) -> dict[int, Waiting]:
    """What nobody has taken yet, in order."""
    found = {}
    for key, row in _rows(connection, MESSAGE):
        try:
            found[int(key)] = _waiting.decode(row)
        except (msgspec.DecodeError, ValueError):
            continue
    return dict(sorted(found.items()))


def load_number(connection: sqlite3.Connection) -> int:
    """The newest message's number; 0 before the first."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (NUMBER,)).fetchone()
    return int(row[0]) if row else 0


def save_state(connection: sqlite3.Connection, key: Key, kept: Kept) -> None:
    """Keep one, in the caller's transaction; one at rest needs no row."""
    name = STATE + "/".join(key)
    if kept.state == "ok":
        connection.execute("DELETE FROM meta WHERE key = ?", (name,))
    else:
        _put(connection, name, msgspec.json.encode(kept).decode())


def save_message(connection: sqlite3.Connection, waiting: Waiting) -> None:
    """Keep one until both have taken it, in the caller's transaction."""
    name = f"{MESSAGE}{waiting.told.number}"
    if waiting.mqtt or waiting.webhook:
        _put(connection, name, msgspec.json.encode(waiting).decode())
    else:
        connection.execute("DELETE FROM meta WHERE key = ?", (name,))


def save_number(connection: sqlite3.Connection, number: int) -> None:
    """Keep the newest message's number, in the caller's transaction."""
    _put(connection, NUMBER, str(number))


def _put(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def _rows(connection: sqlite3.Connection, prefix: str) -> Iterator[tuple[str, str]]:
    query = "SELECT key, value FROM meta WHERE key >= ? AND key < ?"
    for key, value in connection.execute(query, (prefix, prefix[:-1] + "0")).fetchall():  # "0" follows "/"
        yield key.removeprefix(prefix), str(value)
