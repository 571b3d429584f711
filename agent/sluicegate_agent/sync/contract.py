"""What a sync target does: takes write-once documents, says which it has, never takes other bytes under an id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sluicegate.format.chunk import MAX_ID


class Document(NamedTuple):
    """A sealed chunk: `id` is device::stream::incarnation::first, `data` its bytes, which never change."""

    id: str
    data: bytes


@dataclass(frozen=True)
class Outcome:
    """What became of a `put`.

    accepted    ids that are durable at the target now: the agent deletes them
    rejected    id → reason: the target will never take these; other bytes are there under that id, or it refuses them
    retry_after seconds before the others should be tried again (0: the target gives no advice); None: nothing is left,
                or the rest may follow at once
    error       why they were not taken, for people
    pending     no answer yet: give the same again soon; nothing else is said then
    mark        which of several targets at one address this one is: to be kept before anything is forgotten
    """

    accepted: tuple[str, ...] = ()
    rejected: dict[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    error: str = ""
    pending: bool = False
    mark: str = ""


class Target(Protocol):
    """Where chunks go. `put` blocks for a bounded time, and raises nothing for the network's or the disk's fault."""

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Store the documents durably; each is accepted, rejected, or left for a later try."""
        ...

    def close(self) -> None:
        """Let connections go; again is harmless."""
        ...


def unfit(document: Document) -> str:
    """Why a document can be none of a database's, empty where it can: an id of four names, one JSON object."""
    parts = document.id.split("::")
    if len(parts) != 4 or not all(parts) or len(document.id.encode()) > MAX_ID or document.id.startswith("_"):
        return f"document id {document.id!r}: expected device::stream::incarnation::first"
    # What is sealed was encoded by us: a look at both ends finds what is cut, and does not parse a megabyte for it.
    if document.data[:1] != b"{" or document.data[-1:] != b"}":
        return "other bytes than one JSON object: it is cut short, or no document of ours"
    return ""
