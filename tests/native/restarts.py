"""What tests of restarts share: the rows of a window's leaves, kept as a store keeps them."""

from __future__ import annotations

import random

import sluicegate as sg


class Rows:
    """The rows that `window.changes()` gave out and that are still of use, where leaves are numbered by ordinals."""

    def __init__(self) -> None:
        """Empty."""
        self._rows: dict[int, bytes] = {}

    def keep(self, window: sg.Window) -> int:
        """Take what has changed, and check that the rows are those of the closed leaves; how many rows were written."""
        changes = window.changes()
        rows = self._rows | dict(changes.closed)
        for first, end in changes.merged:
            rows = {number: row for number, row in rows.items() if not first < number < end}
        self._rows = {number: row for number, row in rows.items() if changes.head <= number}
        kept = {number: row for number, row in self._rows.items() if number < changes.open}
        assert len(kept) == len(window) - 1
        assert all(window.leaf(number) == row for number, row in kept.items())
        return len(changes.closed)

    def shuffled(self, rng: random.Random) -> list[tuple[int, int, bytes]]:
        """As `rebuild` takes them, in any order."""
        stored = [(0, number, row) for number, row in self._rows.items()]
        rng.shuffle(stored)
        return stored
