"""The directory target in a process of its own: a share that hangs keeps that process, never the agent.

A write to a hung network share cannot be interrupted, so whoever does it may have to be left behind. At most one such
process is there: it holds a lock in the state directory, which the next one needs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from sluicegate_agent.sync import files
from sluicegate_agent.sync.contract import Document, Outcome

LOCK = "writer.lock"
#: Seconds that a new put waits for its answers before it says that they are pending.
PATIENCE = 0.05
#: Seconds that `close` gives a put under way.
PARTING = 1.0
_PIECE = 1 << 16
_LOCK_HANDLE = 3


class Apart:
    """Chunks as files below `path`, written by another process, which is given up after `timeout` silent seconds.

    `folder`: the state directory. `known`: the id in the marker of a target that was used before,
    with files.UNUSED behind it where it was named only.
    """

    def __init__(self, path: Path, folder: Path, known: str = "", timeout: float = 30.0) -> None:
        self.path, self.known, self.timeout = path, known, timeout
        self._lock = folder / LOCK
        self._writer: Writer | None = None
        self._hung: Writer | None = None
        self._hangs_since = ""
        self._blocked_at: float | None = None

    @property
    def hangs(self) -> bool:
        """Whether the file system did not answer in time, and has not since."""
        return bool(self._hangs_since)

    def put(self, documents: Sequence[Document]) -> Outcome:
        """The outcome of the put under way; begins one where there is none.

        Of no documents, the first time, one that names the folder.
        """
        if self._writer is not None and self._writer.is_busy:
            return self._heard(self._writer, 0.0)
        if not documents and self.known:
            self._rest()
            return Outcome()
        try:
            writer = self._ready()
        except BlockingIOError:
            return self._blocked()
        except OSError as error:
            return Outcome(retry_after=0.0, error=f"the directory's writer does not start: {error}")
        writer.begin(self.known, documents)
        return self._heard(writer, PATIENCE)

    def _rest(self) -> None:
        """Let a process go that had nothing to do for a while: a board that sends once an hour has its memory back."""
        if self._writer is not None and self._writer.silent > files.IDLE / 2:
            writer, self._writer = self._writer, None
            writer.end()

    def close(self) -> None:
        """Let the process go; one that does not end in PARTING seconds is left behind with what it waits for."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        end = time.monotonic() + (0.0 if self.hangs else PARTING)
        with contextlib.suppress(OSError):
            while writer.is_busy and time.monotonic() < end:
                writer.turn(end - time.monotonic())
        writer.end()

    def _ready(self) -> Writer:
        """The writer, started where there is none. Raises BlockingIOError while an earlier one hangs."""
        if self._hung is not None and self._hung.is_gone:
            self._hung = None
        if self._writer is not None and self._writer.is_gone:
            self._writer = None
        if self._writer is None:
            if self._hung is not None:
                raise BlockingIOError
            self._writer = Writer(self.path, self._lock)
            self._blocked_at = None
        return self._writer

    def _blocked(self) -> Outcome:
        """An earlier process still writes: one of this agent that hangs, or one that a killed agent left."""
        now = time.monotonic()
        self._blocked_at = self._blocked_at if self._blocked_at is not None else now
        if self._hung is not None or self.hangs or now - self._blocked_at >= self.timeout:
            return self._hanging()
        return Outcome(retry_after=0.0, error=f"{self.path}: the writer of an agent that was killed has not ended yet")

    def _heard(self, writer: Writer, patience: float) -> Outcome:
        try:
            writer.turn(patience)
        except OSError as error:
            self._writer, documents = None, writer.waiting
            writer.end()
            if writer.puts > 1:  # it had rested too long, and ended as this put began
                return self.put(documents)
            return Outcome(retry_after=0.0, error=f"{self.path}: its writer ended ({error.strerror or error})")
        if not writer.is_busy:
            self._hangs_since = ""
            outcome = writer.outcome()
            if outcome.mark:
                is_used = bool(outcome.accepted or self.known.rstrip(files.UNUSED) == self.known != "")
                self.known = outcome.mark + ("" if is_used else files.UNUSED)
            return outcome
        if writer.silent < self.timeout:
            return Outcome(pending=True)
        self._writer, self._hung = None, writer
        writer.end()
        return self._hanging()

    def _hanging(self) -> Outcome:
        if not self._hangs_since:
            self._hangs_since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        return Outcome(
            retry_after=0.0,
            error=f"{self.path}: hangs since {self._hangs_since} UTC (no answer from the file system); is its server "
            "there? Mount it anew where it does not come back; readings are taken meanwhile",
        )


class Writer:
    """One process that writes, and the documents it was given in `puts` so far that are `waiting` for their answers.

    Nothing here waits longer than it is told.
    """

    def __init__(self, path: Path, lock: Path) -> None:
        """Raises BlockingIOError where another one still has the lock, OSError."""
        held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._socket, theirs = socket.socketpair()
            with theirs:
                self._pid = _spawned(path, theirs.fileno(), held)
        finally:
            os.close(held)
        self._socket.setblocking(False)
        self.waiting: list[Document] = []
        self.is_busy = False  # whether answers are missing
        self.puts = 0
        self._out: list[memoryview] = []
        self._in = bytearray()
        self._answers: list[tuple[bytes, str]] = []
        self._moved = time.monotonic()

    @property
    def silent(self) -> float:
        """Seconds since a byte moved."""
        return time.monotonic() - self._moved

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended; it is reaped then."""
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                    return False
            self._pid = 0
        return True

    def begin(self, known: str, documents: Sequence[Document]) -> None:
        """Give it a put; `turn` sends it."""
        self.waiting, self._answers, self.is_busy = [*documents], [], True
        self.puts += 1
        self._out = [memoryview(_framed(files.BEGIN, known, len(documents).to_bytes(4, "big")))]
        for each in documents:
            self._out += [memoryview(_head(files.STORE, each.id, each.data)), memoryview(each.data)]
        self._moved = time.monotonic()

    def turn(self, patience: float) -> None:
        """Send and receive what goes, for so many seconds at most, until all answers are there.

        Raises OSError where the process has ended.
        """
        end = time.monotonic() + patience
        while True:
            ready = select.select([self._socket], [self._socket] if self._out else [], [], max(0.0, patience))
            if ready[0]:
                self._receive()
            if ready[1]:
                self._send()
            patience = end - time.monotonic()
            if not self.is_busy or not any(ready) or patience <= 0:
                return

    def _send(self) -> None:
        sent = self._socket.send(self._out[0][:_PIECE])
        self._moved = time.monotonic()
        self._out[0] = self._out[0][sent:]
        if not self._out[0]:
            del self._out[0]

    def _receive(self) -> None:
        data = self._socket.recv(_PIECE)
        if not data:
            raise ConnectionResetError("the process is gone")
        self._moved = time.monotonic()
        self._in += data
        while len(self._in) >= files.ANSWER:
            end = files.ANSWER + int.from_bytes(self._in[1:5], "big")
            if len(self._in) < end:
                return
            self._answers.append((bytes(self._in[:1]), self._in[files.ANSWER : end].decode("utf-8", "replace")))
            del self._in[:end]
            self.is_busy = len(self._answers) <= len(self.waiting)

    def outcome(self) -> Outcome:
        """What the answers say, the first of which is about the folder."""
        (kind, text), *rest = self._answers
        mark, reason = (text, "") if kind == files.MARK else ("", text)
        accepted, rejected = [], {}
        for document, (kind, text) in zip(self.waiting, rest, strict=True):
            if kind == files.TAKEN:
                accepted.append(document.id)
            elif kind == files.NEVER:
                rejected[document.id] = text
            else:
                reason = reason or text
        self.waiting = []
        return Outcome(tuple(accepted), rejected, 0.0 if reason else None, reason, mark=mark)

    def end(self) -> None:
        """Nothing more is asked of it: it ends with its input, or is killed, which a hung write outlasts."""
        self._socket.close()
        self.waiting, self._out, self.is_busy = [], [], False
        end = time.monotonic() + PARTING / 10
        while not self.is_gone and time.monotonic() < end:
            time.sleep(0.002)
        if not self.is_gone:
            os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.01)


def _spawned(path: Path, channel: int, lock: int) -> int:
    """The process's id. It has the channel, the lock and the agent's standard error, and no signal but SIGKILL ends it:
    what is told to the agent's whole group is for the agent."""
    command = [sys.executable, "-I", "-S", files.__file__, str(path)]
    # Moved out of the way first: what is to be at a number may stand at another's.
    held = fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, 10)
    talk = fcntl.fcntl(channel, fcntl.F_DUPFD_CLOEXEC, 10)
    try:
        actions = [
            (os.POSIX_SPAWN_DUP2, talk, 0),
            (os.POSIX_SPAWN_DUP2, held, _LOCK_HANDLE),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
        blocked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        return os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setsigmask=blocked)
    finally:
        os.close(held)
        os.close(talk)


def _head(kind: bytes, name: str, data: bytes) -> bytes:
    said = name.encode()[: 1 << 15]
    return kind + len(said).to_bytes(2, "big") + len(data).to_bytes(4, "big") + said


def _framed(kind: bytes, name: str, data: bytes) -> bytes:
    return _head(kind, name, data) + data
