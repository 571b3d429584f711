"""Writes what belongs to a commit but not to its messages: alerts, and how far a file is read."""

from __future__ import annotations

import sqlite3
from typing import Protocol


class Beside(Protocol):
    """What is written with each commit, beside what the messages change."""

    @property
    def changed(self) -> bool:
        """Whether something waits for a commit, though no message does."""

    def save(self, connection: sqlite3.Connection) -> None:
        """Write it, inside the caller's transaction."""

    def saved(self) -> None:
        """The transaction is durable."""
