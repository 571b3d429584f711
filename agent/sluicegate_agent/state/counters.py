"""Every dropped thing has a counter: absolute numbers, kept with the commit they belong to."""

from __future__ import annotations

import sqlite3

from sluicegate_agent.checksums import count, counts, write_count


class Counters:
    """Named counts that only grow. A commit writes those that changed; one that fails leaves them to the next."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Raises sqlite3.DatabaseError for a row that is not as it was written."""
        self._values = counts(connection)
        self._changed: set[str] = set()
        #: What was counted since the last commit, recorded or written.
        self.recent: dict[str, int] = {}

    def add(self, name: str, amount: int = 1) -> None:
        """Count `amount` more under `name`."""
        if amount:
            self._values[name] = self._values.get(name, 0) + amount
            self.recent[name] = self.recent.get(name, 0) + amount

    def add_now(self, connection: sqlite3.Connection, amounts: dict[str, int]) -> None:
        """Count inside the caller's transaction, ahead of the next commit; call `noted` when that is durable."""
        count(connection, amounts)

    def noted(self, amounts: dict[str, int]) -> None:
        """What `add_now` wrote is durable: know it here too."""
        for name, amount in amounts.items():
            if amount:
                self._values[name] = self._values.get(name, 0) + amount

    def __getitem__(self, name: str) -> int:
        return self._values.get(name, 0)

    def as_dict(self) -> dict[str, int]:
        """All counts, by name."""
        return dict(sorted(self._values.items()))

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed, inside the caller's transaction."""
        for name in self._changed | self.recent.keys():
            write_count(connection, name, self._values[name])

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._changed.clear()
        self.recent = {}

    def recorded(self) -> None:
        """What was counted stands in the record; its rows are still to be written."""
        self._changed |= self.recent.keys()
        self.recent = {}
