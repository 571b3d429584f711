"""Messages with a time of their own: 128 bits of BLAKE2b over topic and payload, for the last `horizon` of them."""

from __future__ import annotations

import sqlite3
from collections import deque
from itertools import islice

from sluicegate_agent.identity.stored import entries_of, last, save_entries
from sluicegate_agent.identity.verdict import DIGEST, Verdict, digest_of
from sluicegate_agent.messages import Message


class Contents:
    """The last `horizon` messages of one source, by what they say."""

    missing = 0

    def __init__(self, connection: sqlite3.Connection, source: str, horizon: int) -> None:
        self.source, self.horizon = source, horizon
        self._total = last(connection, source)
        self._recent: deque[bytes] = deque(islice(entries_of(connection, source, DIGEST), horizon))
        self._recent.reverse()
        self._known = set(self._recent)
        self._waiting: list[bytes] = []

    def check(self, message: Message) -> Verdict:
        """The verdict on a message, which is known from now on."""
        digest = digest_of(message)
        if digest in self._known:
            return Verdict.DUPLICATE
        self._known.add(digest)
        self._recent.append(digest)
        self._waiting.append(digest)
        if len(self._recent) > self.horizon:
            self._known.discard(self._recent.popleft())
        return Verdict.NEW

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the batch as one row and delete those beyond the horizon, inside the caller's transaction."""
        save_entries(connection, self.source, self._total, self._waiting, self.horizon)

    def committed(self, generation: int) -> None:
        """What came so far is durable with this commit, and is being acknowledged."""

    def confirmed(self, generation: int) -> None:
        """The broker has taken the acknowledgements up to this commit's."""

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._total += len(self._waiting)
        self._waiting = []
