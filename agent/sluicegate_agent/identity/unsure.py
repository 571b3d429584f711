"""After a loss of what was known as seen, what may come again counts in doubt: nobody can tell it from a new reading.

With a time of its own that is what is not later than the loss, for as many messages as are remembered. Without one it
is as many messages as a broker can have on their way.
"""

from __future__ import annotations

import sqlite3

from sluicegate_agent.checksums import checksum, is_sound

#: Its row in `meta`: until when what was seen is lost (µs); how many messages may still be repeats, of those without a
#: time and of those with one; a checksum.
NAME = "unsure"
_ALL = -1


def lose_memory(connection: sqlite3.Connection, until_us: int, left: int = _ALL, timed: int = _ALL) -> None:
    """What was seen until then is not known for certain any more, inside the caller's transaction."""
    value = f"{until_us} {left} {timed} {checksum(NAME, until_us, left, timed)}"
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (NAME, value))


class Unsure:
    """What may be a repeat since a loss."""

    def __init__(self, connection: sqlite3.Connection, most: int, remembered: int) -> None:
        """`most`: messages that a broker may have on their way; `remembered`: those with times, of all sources.

        Raises sqlite3.DatabaseError for a damaged row.
        """
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (NAME,)).fetchone()
        self._until, self._left, self._timed = (0, 0, 0) if found is None else read(found[0])
        self._left = most if self._left == _ALL else self._left
        self._timed = remembered if self._timed == _ALL else self._timed
        #: Of a file that is read: until when another may have been that is not known any more, µs; 0: none.
        self.files = 0
        self.changed = False

    @property
    def is_set(self) -> bool:
        """Whether there was a loss."""
        return self._until > 0

    @property
    def is_open(self) -> bool:
        """Whether a message without a time may still be a repeat."""
        return self._left > 0 or self.files > 0

    def after(self, earliest: int) -> int:
        """The first time from `earliest` on of which all that was seen is known, µs."""
        return max(earliest, self._until + 1 if self._timed else earliest, self.files + 1 if self.files else earliest)

    def of_file(self, time_us: int | None) -> int:
        """1 where what a file says may have been counted from it before."""
        return int(self.files > 0 and (time_us is None or time_us <= self.files))

    def doubt(self, time_us: int | None) -> int:
        """1 where a message that looks new may have been counted before; `time_us`: its own, None without one."""
        if self.of_file(time_us):
            return 1
        if time_us is None:
            found = int(self._left > 0)
            self._left -= found
        else:
            found = int(self._timed > 0 and time_us <= self._until)
            self._timed -= found
        self.changed |= bool(found)
        return found

    def save(self, connection: sqlite3.Connection) -> None:
        """Write how many may still be repeats, inside the caller's transaction."""
        if self.changed:
            lose_memory(connection, self._until, self._left, self._timed)

    def saved(self) -> None:
        """It is durable."""
        self.changed = False


def read(value: object) -> tuple[int, int, int]:
    """What a row says. Raises sqlite3.DatabaseError for one that is not as it was written."""
    *said, crc = str(value).split(" ")
    try:
        until, left, timed = map(int, said)
        is_whole = is_sound(int(crc), NAME, until, left, timed)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise sqlite3.DatabaseError(f"a malformed row in the table meta: {NAME} has a wrong checksum")
    return until, left, timed
