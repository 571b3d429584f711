"""The record's file: frames that are appended, each durable before `append` returns, and read back up to the last.

A frame has a head (magic, the fold that it follows, its number, length and CRC-32) and a body. After a fold frames are
written from the file's beginning again, over old ones, so a commit changes no size of a file: what an earlier fold's
frames left behind is told by the fold's number. The last frame may be cut short by a crash: it was never acknowledged.
A frame that is not whole although later ones are was damaged.

Whole pages go to the disk: a frame that would reach into one page more than it has to begins with a page.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

from sluicegate_agent import faults, private
from sluicegate_agent.lock import place

NAME = "state.record"
#: Bytes of the largest file that is read, whatever was configured when it was written.
LARGEST = 64 << 20
_HEAD = struct.Struct("<4sQIII")
_MAGIC = b"SGR1"
HEAD = _HEAD.size
_PAGE = 4096


class Record:
    """The open file, written by one process."""

    def __init__(self, folder: Path, largest: int = 8 << 20) -> None:
        """Open or make it; after `largest` bytes of frames the tables are written. Raises OSError."""
        self.path, self._largest = folder / NAME, largest
        private.touch(self.path)
        self._file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self._fold = 0
        self.frames = self.bytes = 0

    def begin(self, fold: int) -> None:
        """The tables hold all there is, as of this fold: frames are written from the beginning again."""
        self._fold, self.frames, self.bytes = fold, 0, 0

    def has_room(self, body: bytes) -> bool:
        """Whether one more frame fits."""
        size = HEAD + len(body)
        return _placed(self.bytes, size) + size <= self._largest

    def append(self, body: bytes) -> None:
        """Write one frame; it is durable when this returns.

        Raises sqlite3.OperationalError where the disk refuses: whether it is there is not known then.
        """
        frame = framed(self._fold, self.frames + 1, body)
        at = _placed(self.bytes, len(frame))
        faults.step("record: before append")
        try:
            written = os.pwrite(self._file, frame, at)
            if written != len(frame):
                raise OSError(f"{written} of {len(frame)} bytes were written")
            faults.step("record: written")
            os.fdatasync(self._file)
        except OSError as error:
            raise sqlite3.OperationalError(f"{self.path}: {error}") from error
        faults.step("record: durable")
        self.frames += 1
        self.bytes = at + len(frame)

    def rescue(self) -> None:
        """Put back what the open file holds where it was deleted or replaced. Raises OSError."""
        found = os.fstat(self._file)
        if place(self.path) == (found.st_dev, found.st_ino):
            return
        if self.path.exists():
            self.path.replace(self.path.with_name(f"rescued-replaced-{NAME}"))
        spare = self.path.with_name(f"rescued-{NAME}")
        with open(spare, "wb", opener=private.opener) as file:
            file.write(os.pread(self._file, self._largest, 0))
            file.flush()
            os.fsync(file.fileno())
        spare.rename(self.path)

    def close(self) -> None:
        """Let it go; again is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _placed(at: int, size: int) -> int:
    """Where a frame of this size begins that may begin here."""
    pages = -(-size // _PAGE)
    return at if (at + size - 1) // _PAGE - at // _PAGE < pages else -(-at // _PAGE) * _PAGE


def framed(fold: int, number: int, body: bytes) -> bytes:
    """A frame as it is written."""
    head = _HEAD.pack(_MAGIC, fold, number, len(body), 0)
    return _HEAD.pack(_MAGIC, fold, number, len(body), zlib.crc32(body, zlib.crc32(head))) + body


class Frames:
    """What a record holds that follows one fold: iterate over the frames that are whole, in order."""

    def __init__(self, data: mmap | bytes, fold: int) -> None:
        self._data, self._fold = data, fold
        self._end = 0

    def __iter__(self) -> Iterator[bytes]:
        at, number = 0, 1
        while (found := self._next(at, number)) is not None:
            (at, body), number = found, number + 1
            yield body
        self._end = at

    def _next(self, at: int, number: int) -> tuple[int, bytes] | None:
        """Where the frame of this number ends, and its body: it begins here, or with the next page."""
        for begin in dict.fromkeys((at, -(-at // _PAGE) * _PAGE)):
            body = _body(self._data, begin, self._fold, number)
            if body is not None:
                return begin + HEAD + len(body), body
        return None

    def __bool__(self) -> bool:
        """Whether there is any."""
        return _body(self._data, 0, self._fold, 1) is not None

    def beyond(self) -> Iterator[bytes]:
        """Whole frames behind one that is not, once all before it were taken: a crash leaves none, only damage does."""
        start, at = _MAGIC + struct.pack("<Q", self._fold), self._end - 1
        while (at := self._data.find(start, at + 1)) >= 0:
            body = _body(self._data, at, self._fold, None)
            if body is not None:
                yield body


def read(folder: Path, fold: int, *, copied: bool = False) -> Frames | None:
    """What the record of a state directory holds that follows a fold; None where there is no file. Raises OSError.

    `copied`: as of now, for who reads it beside an agent that may begin it anew.
    """
    try:
        with (folder / NAME).open("rb") as file:
            size = min(LARGEST, os.fstat(file.fileno()).st_size)
            if copied:
                return Frames(file.read(size), fold)
            return Frames(mmap(file.fileno(), size, access=ACCESS_READ) if size else b"", fold)
    except FileNotFoundError:
        return None


def _body(data: mmap | bytes, at: int, fold: int, number: int | None) -> bytes | None:
    """The body of a frame that begins at a place and is whole."""
    if len(data) - at < HEAD:
        return None
    magic, its_fold, its_number, length, crc = _HEAD.unpack_from(data, at)
    if magic != _MAGIC or its_fold != fold or number not in (None, its_number) or at + HEAD + length > len(data):
        return None
    body = data[at + HEAD : at + HEAD + length]
    head = _HEAD.pack(magic, its_fold, its_number, length, 0)
    return body if zlib.crc32(body, zlib.crc32(head)) == crc else None
