"""Messages that counted may be under way and not be known any more: such as may be among them count in doubt.

That is so where the configuration has a source's messages known by something else than before: as many as a broker may
have under way may come again, or as many as who posts may say again. And in a copied state: what the original counts
since is sent to the copy with DUP where both speak to a broker under one client id; and what it has read since, of a
file for example, is read again by the copy. That is all that is there already, and so it is where the configuration
gives what was read another name or input.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from sluicegate_agent.checksums import checksum, is_sound
from sluicegate_agent.identity.kinds import asked_before, changed_kinds, readers, without_their_place
from sluicegate_agent.identity.posted import AGAIN_MOST
from sluicegate_agent.routing.routes import Route

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, SourceConfig
    from sluicegate_agent.messages import Decoded, Message

#: Its row in `meta`: a checksum and JSON, messages that may still come by topic as configured, each with the time of
#: the change in µs; under the empty name those of a copied state.
NAME = "under way"
_COPIED, _ALL = "", -1
#: Messages and a time of a source that is read anew: all, until it has come to the end of what was there.
_ANEW = 1 << 62, 1 << 62
_Left = dict[str, tuple[int, int]]


def may_come_twice(connection: sqlite3.Connection) -> None:
    """The state was copied, inside the caller's transaction."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (NAME,)).fetchone()
    _write(connection, read(found and found[0]) | {_COPIED: (_ALL, 0)})


class UnderWay:
    """How many messages of which sources may still be repeats."""

    def __init__(self, connection: sqlite3.Connection, config: Config, most: int, until_us: int) -> None:
        """`most`: messages that a broker may have on their way; `until_us`: none that was counted has a later time.

        Raises sqlite3.DatabaseError for a damaged row.
        """
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (NAME,)).fetchone()
        self._left = {
            name: (most if left == _ALL else left, at) for name, (left, at) in read(found and found[0]).items()
        }
        before, is_new_copy = asked_before(connection), read(found and found[0]).get(_COPIED, (0, 0))[0] == _ALL
        changed = [source for source, _ in changed_kinds(before, config)]
        for source in changed:
            self._left[_name(source)] = most if source.input == "mqtt" else max(most, AGAIN_MOST), until_us
        anew = readers(config) if is_new_copy else without_their_place(before, config)
        self._left |= {_name(source): _ANEW for source in anew}
        self.changed = False
        if changed or anew or is_new_copy:  # before the state says that this configuration was asked
            _write(connection, self._left)

    @property
    def is_empty(self) -> bool:
        """Whether no message of any source may be a repeat."""
        return not self._left

    @property
    def is_copied(self) -> bool:
        """Whether what comes with DUP may have been counted by the original."""
        return _COPIED in self._left

    def holds(self, source: SourceConfig) -> bool:
        """Whether any message of a source may be a repeat."""
        return bool(self._left) and _name(source) in self._left

    def caught_up(self, source: SourceConfig) -> None:
        """All that was there when a source began to be read anew was read: what comes now nobody can have counted."""
        name = _name(source)
        if self._left.get(name, (0, 0))[1] == _ANEW[1]:
            del self._left[name]
            self.changed = True

    def doubt(self, source: SourceConfig, message: Message, decoded: Decoded) -> bool:
        """Whether a message that looks new may be one of them: then one less is to come."""
        if not self._left:
            return False
        is_copied = message.dup and self._take(_COPIED) is not None
        changed_us = self._take(_name(source))
        return is_copied or (changed_us is not None and (source.time is None or decoded.time_us <= changed_us))

    def _take(self, name: str) -> int | None:
        if name not in self._left:
            return None
        left, at = self._left[name]
        self._left[name] = left - 1, at
        if left <= 1:
            del self._left[name]
        self.changed = True
        return at

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what may still come, inside the caller's transaction."""
        if self.changed:
            _write(connection, self._left)

    def saved(self) -> None:
        """It is durable."""
        self.changed = False


def _name(source: SourceConfig) -> str:
    return source.origin if isinstance(source, Route) else source.subscribed


def _write(connection: sqlite3.Connection, left: _Left) -> None:
    said = json.dumps(left)
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (NAME, f"{checksum(NAME, said)} {said}"))


def read(row: object) -> _Left:
    """What a row says. Raises sqlite3.DatabaseError for one that is not as it was written."""
    if row is None:
        return {}
    crc, _, said = str(row).partition(" ")
    if not crc.isdigit() or not is_sound(int(crc), NAME, said):
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: {NAME} has a wrong checksum")
    return {name: (left, at) for name, (left, at) in json.loads(said).items()}
