"""A device's messages that wait, in a file as well: they outlive a process that is killed. A power cut may take some.

Nothing is synced, so that a card is written only where messages wait for longer than the system does.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

from sluicegate_agent.errors import EnvironmentRefused

log = logging.getLogger("sluicegate.poll")
#: Lines of messages that wait no more, beyond as many as wait, before the file is written anew.
_DONE_MOST = 1000


class Kept:
    """The file of one device."""

    def __init__(self, folder: Path, topic: str) -> None:
        """Raises EnvironmentRefused where it cannot be written, or another process has it."""
        self._path = folder / f"{blake2b(topic.encode(), digest_size=12).hexdigest()}.jsonl"
        self._is_lost = False
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EnvironmentRefused(f"agent.keep = {folder}: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise EnvironmentRefused(f"agent.keep = {folder}: another process polls {topic} with it") from error
        self._lines = 0

    def read(self, most: int) -> list[bytes]:
        """What an earlier process left, the newest `most`; a line without its end was never told of."""
        whole = self._path.read_bytes().rpartition(b"\n")[0].split(b"\n")
        found = [line for line in whole if _is_message(line)][-most:]
        self.write(found)
        return found

    def add(self, message: bytes) -> None:
        """One more waits."""
        self._do(lambda: os.write(self._file, message + b"\n"))
        self._lines += 1

    def done(self, count: int, waiting: Iterable[bytes]) -> None:
        """So many still wait, these: the file need not have the others, and is written anew before it has many."""
        if not count or self._lines > 2 * count + _DONE_MOST:
            self.write(waiting)

    def write(self, messages: Iterable[bytes]) -> None:
        """Have these in the file, and no others. Killed in between it has those of before, which are known again."""
        lines = [message + b"\n" for message in messages]
        self._lines = len(lines)
        self._do(lambda: self._replace(b"".join(lines)) if lines else os.ftruncate(self._file, 0))

    def _replace(self, whole: bytes) -> None:
        new = self._path.with_suffix(".new")
        handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(handle, "wb", closefd=False) as file:
            file.write(whole)
        new.rename(self._path)
        os.close(self._file)
        self._file = handle

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._file)

    def _do(self, work: Callable[[], object]) -> None:
        """What a full disk refuses is in memory alone."""
        try:
            work()
        except OSError as error:
            if not self._is_lost:
                log.warning("%s: %s: what waits is in memory alone, and a kill would lose it", self._path, error)
            self._is_lost = True
        else:
            self._is_lost = False


def _is_message(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
