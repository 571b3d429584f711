"""A file that grows: each line counts once, over restarts and rotations; where it is read to is kept with the commit.

The place is the file, the bytes that are read, and the last of those bytes: by them a file is found again under another
name (`meter.log.1`) and one that was written anew is known. So nothing depends on what a line says.
"""

from __future__ import annotations

import contextlib
import csv
import logging
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.errors import InputRefused
from sluicegate_agent.identity.place import Place, read_place
from sluicegate_agent.inputs.lines import Lines
from sluicegate_agent.logs.repeats import Repeats
from sluicegate_agent.messages import Message

log = logging.getLogger("sluicegate.tail")
#: Bytes before the place that are kept to know it again; bytes read at once.
MARK, PIECE = 256, 65_536
#: Seconds between two looks for a file that was rotated, and for which its end must have been seen.
LOOKED_EVERY = 1.0
#: Other files of the folder that are looked at, to find one that was rotated.
OTHERS = 64
_HEADER_MOST = 65_536
_PACKED = (".gz", ".xz", ".bz2", ".zst")
Identity = tuple[int, int]


class Tail:
    """One file; `step` reads on, `save` writes the place of what was accepted."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        source: SourceConfig,
        most: int,
        tell_lost: Callable[[], None],
        *,
        may_be_lost: bool = False,
    ) -> None:
        """`most`: bytes of a line. `tell_lost`: lines may be lost that nobody has read.

        `may_be_lost`: where no place is known, a damage took it: what is there was read.
        Raises sqlite3.DatabaseError for a place that is not as it was written.
        """
        self._source, self._most, self._tell_lost = source, most, tell_lost
        self._file = source.file or Path()
        self._is_csv = self._file.suffix == ".csv"
        self._key = f"tail {source.topic}"
        found = connection.execute("SELECT value FROM meta WHERE key = ?", (self._key,)).fetchone()
        self._place = read_place(self._key, found[0]) if found is not None else Place(0, 0, 0, b"")
        self._raw, self._raw_at = b"", 0  # the last piece and what the mark may need before it; where that begins
        self._repeats = Repeats(log)
        self._handle = -1
        self._queue: list[tuple[Path, Identity | None]] = []
        #: Files that were read to their ends, and when they were changed last: an inode is used again.
        self._ended: deque[tuple[Identity, int]] = deque(maxlen=OTHERS)
        self._columns: dict[int, list[str]] = {}
        self._ready: list[tuple[int, Message | None]] = []
        self._next_look = self._ended_at = 0.0
        self.changed = False
        self._find()
        if not self._place.inode:
            if may_be_lost and found is None:
                self._to_end()
            self.changed |= self._open(self._file, self._place.offset)

    # where to read

    def _find(self) -> None:
        """The file with the place in it, and what was begun after it; the file itself where there is none."""
        if not self._place.inode:
            return
        candidates = [path for path in [self._file, *self._others()] if self._holds_place(path)]
        same = [path for path in candidates if _identity(path) == (self._place.device, self._place.inode)]
        copies = candidates if self._place.mark else []
        found = next(iter([*same, *copies]), None)
        if found is None:
            self._lost("is not the one that was read, and no other file of its folder is: it is read from its begin")
            self._place = Place(0, 0, 0, b"")
            return
        is_rotated = _identity(found) != _identity(self._file)
        self._queue = self._after(_identity(found), _changed(found)) if is_rotated else []
        self._open(found, self._place.offset)

    def _after(self, ended: Identity | None, changed: int) -> list[tuple[Path, Identity | None]]:
        """What was written after a file that was rotated, as it is now, the file itself last."""
        now = _identity(self._file)
        others = [(_changed(each), each, _identity(each)) for each in self._others()]
        newer = [
            (at, each, who)
            for at, each, who in others
            if at >= changed and who not in (None, ended, now) and (who, at) not in self._ended
        ]
        return [*((each, who) for _, each, who in sorted(newer)), (self._file, now)]

    def _others(self, *, packed: bool = False) -> list[Path]:
        """Files that it may have been renamed to, the newest first; those that are packed cannot be read on."""
        try:
            found = [each for each in self._file.parent.iterdir() if each.name.startswith(self._file.name)]
        except OSError:
            return []
        asked = [each for each in found if (each.suffix in _PACKED) == packed and each.is_file()]
        return sorted(asked, key=_changed, reverse=True)[:OTHERS]

    def _holds_place(self, path: Path) -> bool:
        mark, offset = self._place.mark, self._place.offset
        try:
            with path.open("rb") as handle:
                handle.seek(offset - len(mark))
                return handle.read(len(mark)) == mark and os.fstat(handle.fileno()).st_size >= offset
        except OSError:
            return False

    def _lost(self, why: str) -> None:
        self._tell_lost()
        log.warning("%s %s; lines between may be lost", self._file, why)
        self.changed = True

    def _to_end(self) -> None:
        """Read on behind the last line that is there: from the begin each would count twice."""
        with contextlib.suppress(OSError), self._file.open("rb") as file:
            begin = max(0, file.seek(0, os.SEEK_END) - self._most - MARK)
            file.seek(begin)
            data = file.read(self._most + MARK)  # a longer line is refused wherever it is begun
            offset = begin + data.rfind(b"\n") + 1
            self._lost("was read up to a place that a damage of the store took: it is read from its end on")
            self._place = Place(0, 0, offset, data[: offset - begin][-MARK:])

    def _open(self, path: Path, offset: int) -> bool:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            self._repeats.tell(logging.WARNING, f"{path} cannot be read", f": {error.strerror}; waiting for it")
            return False
        self.close()
        self._handle, self._lines, self._at = handle, Lines(self._source.topic, self._most), offset
        self._ready, self._ended_at = [], 0.0
        status = os.fstat(handle)
        mark = self._place.mark if offset else b""
        self._place = Place(status.st_dev, status.st_ino, offset, mark)
        self._raw, self._raw_at = mark, offset - len(mark)
        return not self._is_csv or self._read_header(path)

    def _read_header(self, path: Path) -> bool:
        from sluicegate_agent.replay import columns_of

        head, end, _ = os.pread(self._handle, _HEADER_MOST, 0).partition(b"\n")
        try:
            if not end:
                raise InputRefused(f"{path}: has no header yet")
            row = next(csv.reader([head.decode("utf-8-sig")]), None)
            self._columns = columns_of(path, row, self._source)
        except (InputRefused, UnicodeDecodeError, csv.Error) as error:
            self._repeats.tell(logging.WARNING, f"{path} cannot be read as CSV", f": {error}")
            self.close()
            return False
        if not self._at:
            self._at = self._place.offset = len(head) + 1
            self._place.mark = (head + b"\n")[-MARK:]
            self._raw, self._raw_at = self._place.mark, self._at - len(self._place.mark)
        return True

    # reading

    def step(self, room: int) -> Iterator[Message]:
        """At most `room` lines that are new; a line is read once it is handed out."""
        now = time.monotonic()
        if self._handle < 0 and now >= self._next_look:
            self._next_look = now + LOOKED_EVERY
            self._open(self._file, 0)
        while room > 0 and self._handle >= 0:
            if not self._ready and not self._read(now):
                return
            while self._ready and room > 0:
                length, message = self._ready.pop(0)
                self._pass(length)
                if message is not None and (message := self._row(message)) is not None:
                    room -= 1
                    yield message

    @property
    def is_busy(self) -> bool:
        """Whether there is more to read at once."""
        return bool(self._ready) or bool(self._queue)

    def _read(self, now: float) -> bool:
        """Read a piece; False where there is none, now or with the next file."""
        if self._was_rewritten():
            self._find()  # its copy, where it was emptied
            if self._place.inode:
                return self._handle >= 0
            return self._open(self._file, 0)
        piece = os.pread(self._handle, PIECE, self._at)
        if piece:
            kept = self._raw[-MARK:]
            self._raw, self._raw_at = kept + piece, self._at - len(kept)
            self._at += len(piece)
            self._ready, self._ended_at = self._lines.cut(piece), 0.0
            return True
        self._ended_at = self._ended_at or now
        return self._goes_on(now)

    def _was_rewritten(self) -> bool:
        """Whether the file does not have any more what was read of it, a line without its end included."""
        read = self._raw[-MARK:]
        return os.pread(self._handle, len(read), self._at - len(read)) != read

    def _goes_on(self, now: float) -> bool:
        """At the end of a file that has a successor: with that, once nobody writes to this one any more."""
        if not self._queue and (now < self._next_look or now - self._ended_at < LOOKED_EVERY):
            return False
        self._next_look = now + LOOKED_EVERY
        if not self._queue:
            mine = self._place.device, self._place.inode
            if _identity(self._file) in (mine, None):
                return False
            renamed = next((each for each in self._others() if _identity(each) == mine), None)
            if renamed is None and self._place.mark and self._holds_place(self._file):
                return self._open(self._file, self._place.offset)  # a copy of what was read took its place
            self._queue = self._after(mine, _changed(renamed or self._file))
        if self._lines.begun:
            self._ready = self._lines.last()
            return True
        following, identity = self._queue.pop(0)
        status = os.fstat(self._handle)
        if _identity(following) != identity:  # rotated meanwhile
            self._queue = self._after((status.st_dev, status.st_ino), status.st_mtime_ns)
            return True
        if any(status.st_mtime_ns < _changed(each) <= _changed(following) for each in self._others(packed=True)):
            self._lost("was rotated more than once, and a file in between is packed")
        self._ended.append(((status.st_dev, status.st_ino), status.st_mtime_ns))
        return self._open(following, 0)

    def _pass(self, length: int) -> None:
        place = self._place
        end = min(place.offset + length, self._raw_at + len(self._raw))  # a last line has no end
        place.offset, read = end, end - self._raw_at
        place.mark = self._raw[max(0, read - MARK) : read]
        self.changed = True

    def _row(self, message: Message) -> Message | None:
        if not self._is_csv:
            return message
        from sluicegate_agent.replay import document_of

        try:
            (row,) = csv.reader([message.payload.decode()], strict=True)
        except (UnicodeDecodeError, csv.Error, ValueError):
            return message  # the dead letter shows the line
        return message._replace(payload=_encode_json(document_of(row, self._columns)))

    # commits

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the place, inside the caller's transaction."""
        if self.changed:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (self._key, self._place.pack(self._key)))

    def saved(self) -> None:
        """The transaction is durable."""
        self.changed = False

    def close(self) -> None:
        """Let the file go."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


_encode_json = msgspec.json.Encoder().encode


def _changed(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def _identity(path: Path) -> Identity | None:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None
