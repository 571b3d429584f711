"""A directory as a sync target: a file a chunk, durable before it is accepted, never replaced.

`<path>/<device>/<stream>/<incarnation>-<first>.json`, each name percent-encoded. A document is written under a
temporary name, synced, linked to its own name (which fails where that is taken), and the folder is synced.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from sluicegate_agent import faults
from sluicegate_agent.state.store import sync_folder
from sluicegate_agent.sync.contract import Document, Outcome

_PARTIAL = ".partial"


class DirectoryTarget:
    """Chunks as files below `path`, which must exist: a medium that is not mounted is no place to write to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Store each document; stop at the first that the file system refuses, which is tried again later."""
        accepted: list[str] = []
        rejected: dict[str, str] = {}
        for document in documents:
            try:
                self._store(document)
                accepted.append(document.id)
            except FileExistsError:
                rejected[document.id] = "other bytes are there under this id"
            except ValueError as error:
                rejected[document.id] = str(error)
            except OSError as error:
                return Outcome(tuple(accepted), rejected, 0.0, self._explained(error))
        return Outcome(tuple(accepted), rejected)

    def close(self) -> None:
        """Nothing is held open."""

    def _explained(self, error: OSError) -> str:
        if not self.path.is_dir():
            return f"{self.path}: there is no such folder; mount or make it (it is not made here: it may be a medium's)"
        return f"{error.filename or self.path}: {error.strerror}"

    def _store(self, document: Document) -> None:
        path = self.path / relative_path(document.id)
        if not self._is_there(path, document.data):
            self._make_folder(path.parent)
            self._write(path, document.data)

    def _is_there(self, path: Path, data: bytes) -> bool:
        """Whether the file is there with these bytes, durably. Raises FileExistsError for other bytes."""
        try:
            with path.open("rb") as file:
                if file.read(len(data) + 1) != data:
                    raise FileExistsError(path)
                os.fsync(file.fileno())
        except FileNotFoundError:
            return False
        sync_folder(path.parent)
        return True

    def _write(self, path: Path, data: bytes) -> None:
        partial = path.with_name(path.name + _PARTIAL)
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                faults.step("directory: written")
                os.fsync(file.fileno())
            faults.step("directory: file synced")
            try:
                os.link(partial, path)
            except FileExistsError:
                raise
            except OSError:
                self._rename(partial, path)
            faults.step("directory: named")
        finally:
            with contextlib.suppress(FileNotFoundError):
                partial.unlink()
        sync_folder(path.parent)
        faults.step("directory: folder synced")

    def _rename(self, partial: Path, path: Path) -> None:
        """For file systems without hard links (FAT on a stick): only one agent writes a device's folder."""
        if path.exists():
            raise FileExistsError(path)
        partial.rename(path)

    def _make_folder(self, folder: Path) -> None:
        """Make the device's and the stream's folder, and their names durable."""
        if folder.is_dir():
            return
        for missing in (folder.parent, folder):
            missing.mkdir(exist_ok=True)
            sync_folder(missing.parent)


def relative_path(id: str) -> Path:
    """Where a document goes below the target's path. Raises ValueError for an id that is none of a chunk."""
    parts = id.split("::")
    if len(parts) != 4 or not all(parts):
        raise ValueError(f"document id {id!r}: expected device::stream::incarnation::first")
    device, stream, incarnation, first = (_encoded(part) for part in parts)
    return Path(device, stream, f"{incarnation}-{first}.json")


def _encoded(name: str) -> str:
    """A file name that every system takes: percent-encoded, and never `.` or `..`."""
    encoded = quote(name, safe="")
    return encoded.replace(".", "%2E") if encoded.strip(".") == "" else encoded
