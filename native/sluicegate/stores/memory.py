"""A store in this process's memory: for tests, and to measure what a real store costs."""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.errors import StoreError
from sluicegate.stores.contract import DEFAULT, Key, Plan, Row, check_key


class Memory:
    """Rows in a dictionary. They last as long as the object does, so a window can be opened from it again."""

    ordered = True

    def __init__(self, plan: Plan = DEFAULT) -> None:
        self.plan = plan.checked()
        self.rows: dict[Key, bytes] = {}
        self._closed = False

    def put(self, rows: Sequence[Row]) -> None:
        """See the contract. Raises StoreError after `close`."""
        self._check()
        self.rows.update((check_key(key), bytes(value)) for key, value in rows)

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See the contract."""
        self._check()
        return [self.rows.get(check_key(key)) for key in keys]

    def delete(self, keys: Sequence[Key]) -> None:
        """See the contract."""
        self._check()
        for key in keys:
            self.rows.pop(check_key(key), None)

    def sync(self) -> None:
        """Nothing outlives the process."""
        self._check()

    def close(self) -> None:
        """No call but this is allowed any more; `reopen` undoes it."""
        self._closed = True

    def reopen(self) -> Memory:
        """The same rows in a store that is open."""
        again = Memory(self.plan)
        again.rows = self.rows
        return again

    def _check(self) -> None:
        if self._closed:
            raise StoreError("store memory: is closed; open the window again from `reopen()`")
