"""A directory as a sync target: a file a chunk, in a folder that a marker names.

`<path>/<device>/<stream>/<incarnation>-<first>.json`, each name percent-encoded. A document is written under a
temporary name, synced, linked to its own name (which fails where that is taken), and the folder is synced. This class
does so in the calling process; the agent has a process of its own for it (`apart`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sluicegate_agent import faults
from sluicegate_agent.sync.contract import Document, Outcome
from sluicegate_agent.sync.files import OTHER_BYTES, Away, Folder, explained, names_of


class DirectoryTarget:
    """Chunks as files below `path`, which must exist and, once it was used, have the marker `known`."""

    def __init__(self, path: Path, known: str = "") -> None:
        self.path, self.known = path, known

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Store each document; stop at the first that the file system refuses, which is tried again later.

        Of none, the first time, the folder is named all the same.
        """
        if not documents and self.known:
            return Outcome()
        try:
            folder = Folder(str(self.path), lambda name: faults.step(name))
        except (Away, OSError) as error:
            return self._later([], {}, error)
        try:
            return self._put(folder, documents)
        finally:
            folder.close()

    def close(self) -> None:
        """Nothing is held open."""

    def _put(self, folder: Folder, documents: Sequence[Document]) -> Outcome:
        accepted: list[str] = []
        rejected: dict[str, str] = {}
        try:
            self.known = folder.identity(self.known)
            for document in documents:
                try:
                    folder.store(document.id, document.data)
                    accepted.append(document.id)
                except FileExistsError:
                    rejected[document.id] = OTHER_BYTES
                except ValueError as error:
                    rejected[document.id] = str(error)
        except (Away, OSError) as error:
            return self._later(accepted, rejected, error)
        return Outcome(tuple(accepted), rejected, mark=self.known)

    def _later(self, accepted: Sequence[str], rejected: dict[str, str], error: Away | OSError) -> Outcome:
        reason = str(error) if isinstance(error, Away) else explained(error, str(self.path))
        return Outcome(tuple(accepted), rejected, 0.0, reason, mark=self.known)


def relative_path(id: str) -> Path:
    """Where a document goes below the target's path. Raises ValueError for an id that is none of a chunk."""
    return Path(*names_of(id))
