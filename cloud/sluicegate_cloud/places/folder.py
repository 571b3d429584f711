"""A folder that the driver and all workers see."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from sluicegate_cloud.errors import BusyError, SinkError

_LOCK = ".lock"


@dataclass(frozen=True)
class Folder:
    """See `contract.Place`. A new file counts by a link, which fails where one is there."""

    root: Path

    @classmethod
    def at(cls, named: str) -> Folder:
        """The folder that a path or a file: URI names."""
        path = unquote(urlsplit(named).path) if named.lower().startswith("file:/") else named
        return cls(Path(path).absolute())

    def uri(self, name: str) -> str:
        """See `Place`."""
        return (self.root / name).as_uri()

    @contextmanager
    def written(self, name: str) -> Iterator[pa.NativeFile]:
        """See `Place`."""
        with _told(self.root / name):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            with pa.OSFile(str(self.root / name), "wb") as into:
                yield into

    def create(self, name: str, data: bytes) -> None:
        """See `Place`."""
        path = self.root / name
        new = path.with_name(f".{uuid.uuid4().hex}")
        with _told(self.root):
            path.parent.mkdir(parents=True, exist_ok=True)
            new.write_bytes(data)
            _sync(new)
        try:
            with _told(self.root):
                path.hardlink_to(new)
                _sync(path.parent)
        finally:
            new.unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """See `Place`."""
        return (self.root / name).read_bytes()

    def opened(self, name: str, *, some: bool) -> Path:
        """See `Place`."""
        return self.root / name

    def names(self, folder: str) -> dict[str, float]:
        """See `Place`."""
        place = self.root / folder
        out: dict[str, float] = {}
        for path in place.glob("[!.]*"):  # a name with a dot is of a `create` that died
            with suppress(FileNotFoundError):
                out[f"{folder}/{path.name}"] = path.stat().st_mtime
        return out

    def remove(self, name: str) -> None:
        """See `Place`."""
        (self.root / name).unlink(missing_ok=True)

    def settle(self, names: Iterable[str]) -> None:
        """See `Place`."""
        paths = [self.root / name for name in names]
        for path in [*paths, *{path.parent for path in paths}]:
            _sync(path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """See `Place`."""
        with locked(self.root, BusyError(f"another merge is writing the table {self.root}: wait for it to end")):
            yield


@contextmanager
def locked(folder: Path, busy: Exception, *, holds: str = "") -> Iterator[None]:
    """A folder for one run at a time, made with what it `holds`. Raises SinkError, and `busy` where another has it."""
    try:
        (folder / holds).mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("w")
    except OSError as error:
        told = f"cannot write {str(folder)!r}: {error.strerror}; choose a folder that you may write"
        raise SinkError(told) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise busy from error
        yield


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        if error.filename2 is None:  # a file where a folder is to be made
            raise SinkError(f"cannot write {str(path)!r}: {error.strerror}") from error
        raise
    except OSError as error:
        raise SinkError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def _sync(path: Path) -> None:
    with suppress(FileNotFoundError):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
