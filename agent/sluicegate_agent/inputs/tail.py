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
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from sluicegate_agent.config.inputs import Opened
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.errors import InputRefused
from sluicegate_agent.identity.place import Place, read_place
from sluicegate_agent.inputs.lines import Lines
from sluicegate_agent.inputs.rotated import Identity, Rotated, beside, changed_at, place_of
from sluicegate_agent.logs.repeats import Repeats
from sluicegate_agent.messages import Message

log = logging.getLogger("sluicegate.tail")
#: Bytes before the place that are kept to know it again; bytes read at once.
MARK, PIECE = 256, 65_536
#: Seconds between two looks for a file that was rotated, and for which its end must have been seen.
LOOKED_EVERY = 1.0
#: Other files of the folder that are opened, to find one that was rotated.
OTHERS = 64
_HEADER_MOST = 65_536


class Tail(Opened):
    """One file; `save` writes the place of what was accepted."""

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
        self._rotated = Rotated(connection, self._file, source.topic)
        self._columns: dict[int, list[str]] = {}
        self._ready: list[tuple[int, Message | None]] = []
        self._next_look = self._ended_at = 0.0
        self._has_moved = False
        self._find()
        if not self._place.inode:
            if may_be_lost and found is None:
                self._to_end()
            self._has_moved |= self._open(self._file, self._place.offset)

    # where to read

    def _find(self) -> None:
        """The file with the place in it, and what was begun after it; the file itself where there is none."""
        if not self._place.inode:
            return
        candidates = [path for path in [self._file, *beside(self._file)[:OTHERS]] if self._holds_place(path)]
        mine = self._place.device, self._place.inode
        same = [path for path in candidates if place_of(path) == mine]
        copies = candidates if self._place.mark else []
        found = next(iter([*same, *copies]), None)
        if not same and place_of(self._file) != mine:
            self._rotated.forget()
        if found is None:
            self._lost("is not the one that was read, and no other file of its folder is: it is read from its begin")
            self._place = Place(0, 0, 0, b"")
            return
        is_rotated = place_of(found) != place_of(self._file)
        self._queue = self._after(place_of(found), changed_at(found)) if is_rotated else []
        self._open(found, self._place.offset)

    def _after(self, ended: Identity | None, changed: int) -> list[tuple[Path, Identity | None]]:
        """What was written after a file that was rotated, as it is now, the file itself last."""
        now = place_of(self._file)
        following, doubts = self._rotated.after(ended, changed)
        for why in doubts:
            self._lost(why)
        return [*((each, place_of(each)) for each in following), (self._file, now)]

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
        self._has_moved = True

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
        if path == self._file and not self._queue:
            self._rotated.begun()
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

    def take(self) -> Message | None:
        """The next line that is new."""
        return next(self.step(1), None)

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
    def is_busy(self) -> bool:  # type: ignore[override]  # it is only looked at
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
            if place_of(self._file) in (mine, None):
                return False
            renamed = next((each for each in beside(self._file) if place_of(each) == mine), None)
            if renamed is None and self._place.mark and self._holds_place(self._file):
                return self._open(self._file, self._place.offset)  # a copy of what was read took its place
            self._queue = self._after(mine, changed_at(renamed or self._file))
        if self._lines.begun:
            self._ready = self._lines.last()
            return True
        following, identity = self._queue.pop(0)
        status = os.fstat(self._handle)
        if place_of(following) != identity:  # rotated meanwhile
            self._queue = self._after((status.st_dev, status.st_ino), status.st_mtime_ns)
            return True
        packed = map(changed_at, beside(self._file, packed=True))
        if any(status.st_mtime_ns < each <= changed_at(following) for each in packed):
            self._lost("was rotated more than once, and a file in between is packed")
        self._rotated.ended(self._handle)
        return self._open(following, 0)

    def _pass(self, length: int) -> None:
        place = self._place
        end = min(place.offset + length, self._raw_at + len(self._raw))  # a last line has no end
        place.offset, read = end, end - self._raw_at
        place.mark = self._raw[max(0, read - MARK) : read]
        self._has_moved = True

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

    @property
    def changed(self) -> bool:  # type: ignore[override]  # it is only looked at
        """Whether anything waits for a commit."""
        return self._has_moved or self._rotated.changed

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the place, inside the caller's transaction."""
        if self._has_moved:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (self._key, self._place.pack(self._key)))
        self._rotated.save(connection)

    def saved(self) -> None:
        """The transaction is durable."""
        self._has_moved = self._rotated.changed = False

    def close(self) -> None:
        """Let the file go."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


_encode_json = msgspec.json.Encoder().encode
