"""Messages with neither number nor time: only what the broker may be sending again can be a repeat.

A broker sends again on a new connection, with DUP, in the order of the first time, what it does not know to be
acknowledged (MQTT 3.1.1, 4.4 and 4.6). So the messages that were accepted are kept in their order. An answer to a ping
that followed a PUBACK shows that the broker has taken it: then the message comes again only from a broker that has
itself gone back in time. What decides is, in this order: the packet id, of a broker whose ids count upward through the
session; the place in the order and the content; and where neither does, the message is accepted and in doubt.
Two brokers behind one name have a session of ours each, and each repeats its own (former.py).
Some brokers do otherwise: without DUP, under another id (ActiveMQ Artemis, Aedes), or later and on the same connection
(NATS, Moquette). So what comes without DUP is new for certain only of a broker that was seen to mark what it repeats.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice

from sluicegate_agent.identity.earlier import ENTRY, Earlier, entry_of
from sluicegate_agent.identity.former import Former
from sluicegate_agent.identity.habits import Habits
from sluicegate_agent.identity.stored import entries_of, last, save_entries
from sluicegate_agent.identity.verdict import Verdict, digest_of
from sluicegate_agent.messages import Message

_CONNECTION = ""
#: Messages that are kept at least; Receive Maximum times KEPT_TIMES where that is more, as brokers send more than it.
KEPT = 2048
KEPT_TIMES = 3
_MARKS = 64
_HABITS = "deliveries"


def kept(receive_maximum: int) -> int:
    """How many messages are kept."""
    return max(KEPT, KEPT_TIMES * receive_maximum)


class Deliveries:
    """The last `most` messages without an identity of their own, and what this connection has shown of the broker."""

    def __init__(self, connection: sqlite3.Connection, most: int) -> None:
        self.most = most
        self._log: deque[bytes] = deque(islice(entries_of(connection, _CONNECTION, ENTRY), most))
        self._log.reverse()
        self._written = self._total = last(connection, _CONNECTION)
        self._whole = False
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (_HABITS,)).fetchone()
        try:
            stored = json.loads(row[0]) if row else {}
        except ValueError as error:
            raise sqlite3.DatabaseError(f"a malformed row in the table meta: {_HABITS}: {error}") from error
        self._unconfirmed = min(len(self._log), stored.get("unconfirmed", len(self._log)))
        self._habits = Habits(stored)
        self._former = Former(connection, most // KEPT_TIMES)
        self._waiting: list[bytes] = []
        self._of_lost_session: list[bytes] = []
        self._lost_a_session = bool(stored.get("lost"))
        self._forgotten = self._changed = False
        self.connected(session_present=True)

    def connected(self, *, session_present: bool) -> None:
        """A new connection: the broker repeats what it has not seen acknowledged, or has forgotten all of it."""
        if not session_present:
            self._of_lost_session = [*self._of_lost_session, *self._log][-self.most :]
            self._lost_a_session |= bool(self._log)
            self._former.add(islice(self._log, len(self._log) - self._unconfirmed, None))
            self._log.clear()
            self._waiting.clear()
            self._unconfirmed = 0
            self._habits = Habits()
            self._forgotten = self._changed = True
        self._whole |= not session_present
        self._session = session_present
        self._open: dict[int, bytes] = {}
        self._unsure: dict[int, bytes] = {}
        self._marks: deque[tuple[int, int, int]] = deque()
        self._received = self._confirmed_here = self._new_here = 0
        self._settled = not session_present
        # What was never acknowledged has to come again, before anything that may be new.
        self._owed = len(self._waiting)
        self._went_back = False
        self._earlier: Earlier | None = None
        self._ahead = True

    def has_said(self, message: Message) -> bool:
        """Whether its topic has said this in what is kept, that of the session before included where that was lost."""
        said = entry_of(0, digest_of(message), _topic_of(message))[2:]
        return any(entry[2:] == said for entry in chain(self._log, self._of_lost_session))

    @property
    def forgot_a_session(self) -> bool:
        """Whether a session was lost before this start, so that nobody knows any more what was said in it."""
        return self._lost_a_session and not self._of_lost_session

    @property
    def settled(self) -> bool:
        """Whether all that the broker had for us from before this connection has come."""
        return self._settled

    @property
    def _before(self) -> Earlier:
        """The log as it was when this connection began."""
        if self._earlier is None:
            entries = [*islice(self._log, 0, max(0, len(self._log) - self._new_here))]
            unconfirmed = max(0, min(self._unconfirmed - self._new_here, len(entries)))
            self._earlier = Earlier(entries, unconfirmed, whole=self._whole)
        return self._earlier

    def passed(self, message: Message, *, bare: bool = True) -> None:
        """Any message of QoS 1, before its `check`: all share the packet ids of a session."""
        packet_id, dup = message.packet_id, message.dup
        if self._session and not self._received:
            # Of messages that are not bare no log says whether one was under way.
            in_flight = dup and (not bare or self._may_be_in_flight(packet_id))
            self._habits.begin(packet_id, dup=dup, in_flight=in_flight)
        self._ahead = self._habits.ahead(packet_id)
        unconfirmed = self._received - self._confirmed_here
        self._habits.passed(packet_id, dup=dup, settled=self._settled, unconfirmed=unconfirmed)
        self._habits.marks |= self._session and dup and not self._received
        self._received += 1
        self._changed = True

    def _may_be_in_flight(self, packet_id: int) -> bool:
        place = self._before.last_of(packet_id)
        return place is not None and self._before.may_be_unacknowledged(place)

    def check(self, message: Message, digest: bytes) -> Verdict:
        """The verdict on a message of QoS 1, of topic and payload with this digest, which is known from now on."""
        entry = entry_of(message.packet_id, digest, _topic_of(message))
        if self._open.get(message.packet_id) == digest:
            self._strayed()
            return Verdict.DUPLICATE
        verdict = self._judge(message, entry)
        if verdict is Verdict.NEW and self._may_be_of_former(message, entry):
            verdict = Verdict.UNDECIDABLE
        self._open[message.packet_id] = digest
        self._unsure[message.packet_id] = entry
        if verdict is not Verdict.DUPLICATE:
            self._remember(entry)
        return verdict

    def _judge(self, message: Message, entry: bytes) -> Verdict:
        if self._came_here(message, entry):
            self._strayed()
            return Verdict.DUPLICATE if message.dup and self._habits.decide else Verdict.UNDECIDABLE
        if not self._session:
            return Verdict.NEW
        if not message.dup and self._is_unmarked_repeat(entry):
            return self._possible(entry)
        if self._habits.decide:
            return self._by_id(message, entry)
        if not message.dup and (self._settled or self._habits.kept is False):
            return Verdict.NEW
        before = self._before
        # Where a broker begins its ids anew with each connection the content alone can match.
        by_id = self._habits.kept is True or not message.dup
        run = before.repeated if message.dup else before.restored
        places = before.places(entry, by_id=by_id)
        if not run.follow(places):
            # A broker that begins its ids anew may deliver something new, or what else it holds, in between.
            is_known = message.dup and (places or before.places(entry, by_id=False))
            return self._possible(entry) if is_known else Verdict.NEW
        if message.dup and self._owed > 0:
            self._owed -= 1
            return Verdict.DUPLICATE
        return self._possible(entry)

    def _may_be_of_former(self, message: Message, entry: bytes) -> bool:
        """Whether it may repeat what another session had under way, of a broker that has come back with that one."""
        if not self._session or self._settled or not (message.dup or not self._habits.marks):
            return False
        return self._former.take(entry)

    def _came_here(self, message: Message, entry: bytes) -> bool:
        """Whether a message may be one of this connection, sent again before the broker took our PUBACK.

        Without DUP it may be another one that was given the same id: of a sensor that says the same again and again, at
        a broker that was never seen to send anything twice on a connection.
        """
        if message.dup:
            return entry in islice(reversed(self._log), self._new_here)
        if self._unsure.get(message.packet_id) != entry:
            return False
        return self._habits.strays or sum(kept[2:] == entry[2:] for kept in self._log) == 1

    def _strayed(self) -> None:
        self._habits.strays = self._changed = True

    def _is_unmarked_repeat(self, entry: bytes) -> bool:
        """Whether it may repeat what came before this connection, of a broker that may not mark its repeats with DUP.

        Where ids go back too, the broker may have forgotten acknowledgements that it had taken.
        """
        if self._habits.marks:
            return False
        went_back = self._habits.decide and not self._ahead and not self._settled
        return self._before.takes_unconfirmed(entry) or (went_back and self._before.holds(entry))

    def _by_id(self, message: Message, entry: bytes) -> Verdict:
        """Of a broker that counts upward: ahead is new; behind it repeats, or has gone back to what it once saved."""
        if self._ahead:
            return self._possible(entry) if message.dup and self._before.has(entry) else Verdict.NEW
        if self._settled and not message.dup:
            return self._used_again(message.packet_id)
        before, place = self._before, self._before.last_of(message.packet_id)
        if place is not None and before.same(place, entry):
            if message.dup and before.may_be_unacknowledged(place):
                return Verdict.DUPLICATE
            self._went_back = True
            return self._possible(entry)
        if place is None and not before.reaches(message.packet_id):
            self._went_back = True
            return Verdict.UNDECIDABLE
        if message.dup and before.holds(entry):
            return self._possible(entry)  # of a broker that began its ids anew, as NATS does at its start
        # Late, on a connection that already brought newer ones: it says nothing about the ids to come.
        return Verdict.NEW if message.dup or not self._habits.marks else self._from_here(message.packet_id)

    def _from_here(self, packet_id: int) -> Verdict:
        """The id once named another message: the broker went back behind that, and all that follows is new."""
        self._habits.tip = packet_id
        self._settled = self._went_back = True
        return Verdict.NEW

    def _used_again(self, packet_id: int) -> Verdict:
        """Behind, with nothing under way: after it went back these ids are due again, else it does not count upward."""
        if not self._went_back:
            self._habits.reuses()
        self._habits.tip = packet_id
        return Verdict.NEW

    def _possible(self, entry: bytes) -> Verdict:
        return Verdict.DUPLICATE if self._before.is_unmistakable(entry) else Verdict.UNDECIDABLE

    def _remember(self, entry: bytes) -> None:
        self._waiting.append(entry)
        self._log.append(entry)
        self._total += 1
        self._new_here += 1
        self._unconfirmed = min(self._unconfirmed + 1, self.most)
        if len(self._log) > self.most:
            self._log.popleft()
            self._whole = False

    def committed(self, generation: int) -> None:
        """What came so far is durable with this commit, and is being acknowledged."""
        self._open.clear()
        if len(self._unsure) > self.most:
            self._unsure.clear()
        if len(self._marks) >= _MARKS:
            del self._marks[-1]
        self._marks.append((generation, self._total, self._received))

    def confirmed(self, generation: int) -> None:
        """The broker has taken the acknowledgements up to this commit's."""
        while self._marks and self._marks[0][0] <= generation:
            _, total, received = self._marks.popleft()
            self._confirmed_here = received
            if total > self._total - self._new_here:
                # Repeats come before anything new: what was there before this connection is known too.
                self._unconfirmed = min(self._unconfirmed, self._total - total)
            if received == self._received:
                # All that it had for us has come, and it knows that: what comes from now on it sends the first time.
                self._settled, self._unconfirmed = True, 0
                self._unsure.clear()
        self._changed = True

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the batch as one row and delete what is beyond what is kept, inside the caller's transaction."""
        if self._forgotten:
            connection.execute("DELETE FROM identity WHERE source = ?", (_CONNECTION,))
        self._former.save(connection)
        save_entries(connection, _CONNECTION, self._written, self._waiting, self.most)
        if self._changed:
            row = self._habits.stored() | {"unconfirmed": self._unconfirmed, "lost": self._lost_a_session}
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_HABITS, json.dumps(row)))

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._written += len(self._waiting)
        self._waiting = []
        self._former.saved()
        self._forgotten = self._changed = False


def _topic_of(message: Message) -> bytes:
    return _digest_of(message.topic)


@lru_cache(256)
def _digest_of(topic: str) -> bytes:
    return blake2b(topic.encode(), digest_size=4).digest()
