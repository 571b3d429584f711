"""Documents that the target refuses for good: a few are kept in the state directory, and a person takes them out.

While as many wait as are kept, nothing more is set aside: what the target refuses then stays unsent, the outbox grows
coarser, and no reading is dropped.
"""

from __future__ import annotations

import os
from pathlib import Path

from sluicegate_agent.config import Config
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.outbox import REJECTED
from sluicegate_agent.state import State
from sluicegate_agent.sync.directory import relative_path


def take(config: Config, folder: Path) -> list[tuple[Path, str]]:
    """Move the refused documents into `folder`, a file each, named as the directory target does; why each was refused.

    The agent must not run. A file is durable before its document leaves the state. Raises EnvironmentRefused where the
    folder refuses, Locked where the agent runs.
    """
    with State(config) as state:
        query = "SELECT id, reason, document FROM chunk WHERE state = ? ORDER BY number"
        rows = state.store.connection.execute(query, (REJECTED,)).fetchall()
        try:
            taken = [(_written(folder, name, document), str(reason)) for name, reason, document in rows]
        except OSError as error:
            raise EnvironmentRefused(f"{error.filename or folder}: {error.strerror}; nothing was taken out") from None
        with state.transaction() as connection:
            connection.executemany("DELETE FROM chunk WHERE id = ? AND state = 1", [(name,) for name, _, _ in rows])
            state.outbox.load_sealed(connection)
    return taken


def _written(folder: Path, name: str, document: bytes) -> Path:
    """The document's file; one that is there already is replaced, since the state still has it."""
    path = folder / relative_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(document)
        file.flush()
        os.fsync(file.fileno())
    return path
