"""Remembers the messages of each sender: in memory for those heard lately, in rows for the others, for a while.

As many senders are kept as their sources may have keys, and the rows of as many that were put away. So a sender that
comes back says again what is known; only of one that was away for longer than all others is it forgotten. One that is
kept and silent for long is in its rows alone, too.
"""

from __future__ import annotations

import sqlite3
from time import monotonic
from typing import TYPE_CHECKING

from sluicegate_agent.checksums import named
from sluicegate_agent.identity.former import FORMER
from sluicegate_agent.identity.identities import Identities
from sluicegate_agent.routing.routes import SENDER
from sluicegate_agent.state.asleep import AWAY

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

_TABLES = (
    "SELECT source FROM sequence UNION SELECT source FROM identity WHERE source != '' UNION SELECT topic FROM retained"
)


#: In the place of a sender: keys of requests that were posted.
POSTS = "\x1fposts"


class Senders:
    """The senders of sources whose streams come as they are heard of, the one heard of least lately first."""

    def __init__(self, connection: sqlite3.Connection, config: Config, identities: Identities) -> None:
        self._identities = identities
        self.most = sum(source.keys.most for source in config.plants)
        self._known: dict[str, None] = {}  # an ordered one takes five times as much
        self._gone: dict[str, None] = {}
        self._back: set[str] = set()
        self._away: set[str] = set()
        if self.most:
            fixed = {source.topic for source in config.sources if not source.is_plant}
            self._away = {sender for (sender,) in connection.execute("SELECT sender FROM departed")}
            found = {sender for (sender,) in connection.execute(_TABLES)} - fixed - {POSTS, FORMER} - self._away
            self._known = dict.fromkeys(sorted(found))

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, sender: str) -> bool:
        return sender in self._known

    @property
    def changed(self) -> bool:
        """Whether one left or is back."""
        return bool(self._gone or self._back)

    @property
    def is_full(self) -> bool:
        """Whether one more that leaves before a commit would have another forgotten, of which nothing is acknowledged.

        A broker sends all of a batch again that was committed and not acknowledged.
        """
        return len(self._gone) >= self.most > 0

    def heard(self, sender: str) -> bool:
        """It speaks: another one may have to go. Whether it was not among those that are kept."""
        if sender in self._known:
            del self._known[sender]
            self._known[sender] = None
            return False
        self._known[sender] = None
        was_here = sender in self._gone
        self._gone.pop(sender, None)
        if sender in self._away:
            self._back.add(sender)
        elif not was_here:
            self._identities.strangers.came(sender)
        if len(self._known) > self.most:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._gone[oldest] = None
            self._back.discard(oldest)
        return True

    def save(self, connection: sqlite3.Connection) -> None:
        """Note who left and who is back; delete what is kept of the first of too many. In the caller's transaction."""
        if self._back:
            connection.executemany("DELETE FROM departed WHERE sender = ?", [(each,) for each in self._back])
        if self._gone:
            newest = connection.execute("SELECT coalesce(max(number), 0) FROM departed").fetchone()[0]
            rows = [named("departed", newest + place, sender) for place, sender in enumerate(self._gone, 1)]
            connection.executemany("INSERT OR REPLACE INTO departed VALUES (?, ?, ?)", rows)
            for sender in self._gone:
                self._identities.strangers.left(sender)
            self._forget(connection)
        self._identities.strangers.save(connection)

    def _forget(self, connection: sqlite3.Connection) -> None:
        query = "SELECT number, sender FROM departed ORDER BY number DESC LIMIT -1 OFFSET ?"
        for number, sender in connection.execute(query, (self.most,)).fetchall():
            for table in ("sequence", "identity"):
                connection.execute(f"DELETE FROM {table} WHERE source = ?", (sender,))  # noqa: S608  our own names
            connection.execute("DELETE FROM meta WHERE key = ?", (f"clock {sender}",))
            connection.execute("DELETE FROM retained WHERE topic = ?", (sender.partition(SENDER)[0],))
            connection.execute("DELETE FROM departed WHERE number = ?", (number,))
            self._away.discard(sender)
            self._identities.strangers.forgot(sender)

    def saved(self) -> None:
        """It is durable: the memory of those that left can go."""
        self._identities.strangers.saved()
        stay = {sender for sender in self._gone if not self._identities.put_away(sender)}
        self._away = (self._away | self._gone.keys()) - self._back
        self._known.update(dict.fromkeys(stay))
        self._gone.clear()
        self._back = stay

    def put_away_silent(self) -> bool:
        """Let the rows be all there is of who said nothing for long, once all is durable; whether there were any."""
        return self._identities.put_away_silent(self._known, monotonic() - AWAY)
