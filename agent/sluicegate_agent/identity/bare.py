"""Messages that tell nothing of themselves: known by how brokers deliver, and retained ones by what they say."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from sluicegate_agent.identity.copies import Copies
from sluicegate_agent.identity.deliveries import Deliveries
from sluicegate_agent.identity.posted import Unanswered
from sluicegate_agent.identity.retained import Retained
from sluicegate_agent.identity.verdict import Verdict, digest_of
from sluicegate_agent.messages import Message


class Bare:
    """All sources without number and time; `topics` are theirs. The pipeline's one place to ask about them."""

    missing = 0

    def __init__(self, connection: sqlite3.Connection, topics: set[str], most: int) -> None:
        self.topics = topics
        self._deliveries = Deliveries(connection, most)
        self._retained = Retained(connection)
        self._session = True
        self.unanswered = Unanswered(connection)
        self.copies = Copies()
        #: Whether any source may be bare: topics may come later.
        self.is_asked = bool(topics)

    def connected(self, *, session_present: bool) -> None:
        """A new connection, with the session of before or without."""
        self._session = session_present
        self._deliveries.connected(session_present=session_present)
        self._retained.connected(session_present=session_present)

    def forget(self, topic: str) -> None:
        """Let what is known of a topic's retained messages go; it is durable."""
        self.topics.discard(topic)
        self._retained.forget(topic)

    def heard(self, connection: sqlite3.Connection, topic: str) -> None:
        """A topic that may have been forgotten speaks again."""
        self.topics.add(topic)
        self._retained.know(connection, topic)

    def passed(self, message: Message) -> None:
        """Any message at all, before its `check`: those of other topics share the packet ids."""
        if self.is_asked and message.qos:
            self._deliveries.passed(message, bare=message.topic in self.topics)

    def all_passed(self, messages: Iterable[Message]) -> None:
        """The same of several, in their order."""
        if self.is_asked:
            for message in messages:
                self.passed(message)

    def check(self, message: Message) -> Verdict:
        """The verdict on a message of a bare topic, which is known from now on."""
        if message.retain:
            is_first = not self._retained.has_come(message.topic)
            verdict = self._retained.check(message, queued=self._session)
            if verdict is not Verdict.NEW:
                return verdict
            # It may have come when it was published, and other things since that were not to be retained.
            may_be_known = self._deliveries.has_said(message) or (is_first and self._deliveries.forgot_a_session)
            return Verdict.UNDECIDABLE if may_be_known else verdict
        digest = digest_of(message)
        is_copy = self.copies.may_be(message) and self._was_said(message, digest)
        if message.qos:
            verdict = self._deliveries.check(message, digest)
        else:  # the broker delivers once or not at all; who posts may do so again
            verdict = Verdict.UNDECIDABLE if self.unanswered.take(message, digest) else Verdict.NEW
        verdict = verdict if verdict is Verdict.DUPLICATE else self._retained.judge(message, digest, verdict)
        return Verdict.UNDECIDABLE if is_copy and verdict is Verdict.NEW else verdict

    def _was_said(self, message: Message, digest: bytes) -> bool:
        return self.copies.was_said(digest) or (message.qos > 0 and self._deliveries.has_said(message))

    def committed(self, generation: int) -> None:
        """What came so far is durable with this commit, and is being acknowledged."""
        self._deliveries.committed(generation)

    def confirmed(self, generation: int) -> None:
        """The broker has taken the acknowledgements up to this commit's."""
        self._deliveries.confirmed(generation)
        if self._deliveries.settled:
            self._retained.settled()

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed, inside the caller's transaction."""
        if self.is_asked:
            self._deliveries.save(connection)
            self._retained.save(connection)
        self.unanswered.save(connection)

    def saved(self) -> None:
        """The transaction is durable: nothing is waiting."""
        self._deliveries.saved()
        self._retained.saved()
        self.unanswered.saved()
