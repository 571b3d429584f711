"""Senders that were forgotten: what the broker sends again of them is in doubt.

Of a source with `keys.most` the memory of a sender goes when too many others came since. Where the acknowledgements of
several commits are lost at once, the broker repeats messages whose senders nobody knows any more. Until it has taken an
acknowledgement over the new connection, what looks new of such sources may be one of those. And once any was forgotten,
a retained message of a sender that nobody knows may have counted when it was published.
"""

from __future__ import annotations

import logging
import sqlite3

from sluicegate_agent.messages import Message

log = logging.getLogger("sluicegate.identity")
#: Its row in `meta`, once a sender was forgotten: whether one was too early, and the broker has not confirmed it.
FORGOT, EARLY, ONCE = "forgotten senders", "early", "once"


class Strangers:
    """Whether messages of senders that are not known may be repeats; commits are counted as the pipeline does."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        #: The commits at which senders left that the broker has not confirmed; the one that forgot one too early.
        self._leaving: dict[str, int] = {}
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (FORGOT,)).fetchone()
        self._written = found[0] if found else ""
        self._early = 0 if self._written == EARLY else None
        self._has_forgotten = found is not None
        self._newcomer = ""
        self._commit, self._connected_at, self._is_settled = 0, 0, False
        #: Whether the broker may be sending again what was forgotten.
        self.is_open = False

    def left(self, sender: str) -> None:
        """The commit that is being made puts a sender's memory away."""
        self._leaving[sender] = self._commit + 1

    def forgot(self, sender: str) -> None:
        """The commit that is being made forgets a sender."""
        self._has_forgotten = True
        left = self._leaving.pop(sender, None)
        if left is None and self._is_settled:
            return
        if self._early is None:
            log.warning("more senders speak at once than are remembered: repeats may count in doubt; raise keys.most")
        self._early = self._commit + 1

    def came(self, sender: str) -> None:
        """A sender speaks that is not known."""
        self._newcomer = sender

    def doubt(self, message: Message, sender: str) -> bool:
        """Whether a message that looks new may have been counted before its sender was forgotten."""
        is_first, self._newcomer = sender == self._newcomer, ""
        return (message.qos > 0 and self.is_open) or (message.retain and is_first and self._has_forgotten)

    def committed(self, generation: int) -> None:
        """The commit just made has this number."""
        self._commit = generation

    def confirmed(self, generation: int) -> None:
        """The broker knows the messages of commit number `generation`, and of those before, to be acknowledged."""
        if generation <= self._connected_at:
            return
        self._is_settled, self.is_open = True, False
        self._leaving = {sender: left for sender, left in self._leaving.items() if left > generation}
        if self._early is not None and self._early <= generation:
            self._early = None

    def connected(self, *, session_present: bool) -> None:
        """A new connection: with the session of before the broker sends again what it does not know of."""
        self._connected_at = self._commit
        self.is_open = session_present and self._early is not None

    def save(self, connection: sqlite3.Connection) -> None:
        """Write whether one was forgotten, and too early, inside the caller's transaction."""
        if (now := self._told) != self._written:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (FORGOT, now))

    @property
    def _told(self) -> str:
        return EARLY if self._early is not None else ONCE if self._has_forgotten else ""

    def saved(self) -> None:
        """It is durable."""
        self._written = self._told
