"""A target in memory, for tests of what stands before a target: it can be away, and its answers can get lost."""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate_agent.sync.contract import Document, Outcome


class MemoryTarget:
    """Keeps documents in a dictionary. `away` refuses; `lost_answers` puts arrive and the sender never learns of it."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.away = False
        self.lost_answers = 0
        self.retry_after = 0.0
        self.puts = 0

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Store each document once."""
        self.puts += 1
        if self.away:
            return Outcome(retry_after=self.retry_after, error="away")
        outcome = self._stored(documents)
        if self.lost_answers:
            self.lost_answers -= 1
            return Outcome(retry_after=0.0, error="the answer was lost")
        return outcome

    def _stored(self, documents: Sequence[Document]) -> Outcome:
        accepted, rejected = [], {}
        for document in documents:
            if len(document.id.split("::")) != 4 or not all(document.id.split("::")):
                rejected[document.id] = "expected device::stream::incarnation::first"
            elif self.documents.setdefault(document.id, document.data) != document.data:
                rejected[document.id] = "other bytes are there under this id"
            else:
                accepted.append(document.id)
        return Outcome(tuple(accepted), rejected)

    def close(self) -> None:
        """Nothing is held open."""
