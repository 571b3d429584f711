"""What a sync target does: takes write-once documents, says which it has, never takes other bytes under an id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Document(NamedTuple):
    """A sealed chunk: `id` is device::stream::incarnation::first, `data` its bytes, which never change."""

    id: str
    data: bytes


@dataclass(frozen=True)
class Outcome:
    """What became of a `put`.

    accepted    ids that are durable at the target now: the agent deletes them
    rejected    id → reason: the target will never take these; other bytes are there under that id, or it refuses them
    retry_after seconds before the others should be tried again (0: the target gives no advice); None: nothing is left
    error       why they were not taken, for people
    """

    accepted: tuple[str, ...] = ()
    rejected: dict[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    error: str = ""


class Target(Protocol):
    """Where chunks go. `put` blocks for a bounded time, and raises nothing for the network's or the disk's fault."""

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Store the documents durably; each is accepted, rejected, or left for a later try."""
        ...

    def close(self) -> None:
        """Let connections go; again is harmless."""
        ...
