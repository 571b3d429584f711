"""The record's file: frames that are appended, each durable before `append` returns, and read back up to the last.

A frame has a head (magic, the fold that it follows, its number, length and CRC-32) and a body. After a fold frames are
written from the file's beginning again, over old ones, so a commit changes no size of a file: what an earlier fold's
frames left behind is told by the fold's number. The last frame may be cut short by a crash: it was never acknowledged.
A frame that is not whole although later ones are was damaged.

A frame has sectors of its own, each with a CRC-32 at its end (`sectors`). So of the last frame, too, a cut is told from
damage: a power cut leaves each sector as it was before or as it was to be, and both are sound.

Whole pages go to the disk: a frame that would reach into one page more than it has to begins with a page.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from sluicegate_agent import faults, private
from sluicegate_agent.lock import place
from sluicegate_agent.record import sectors
from sluicegate_agent.record.sectors import Reader

NAME = "state.record"
#: Bytes of the largest file that is read, whatever was configured when it was written.
LARGEST = 64 << 20
_HEAD = struct.Struct("<4sQIII")
#: Of a frame in sectors; of one without, by an older Sluicegate.
_MAGIC, _PLAIN = b"SGR2", b"SGR1"
HEAD = _HEAD.size
_PAGE = 4096
#: What a fold's number begins with that can be checked: those of an older Sluicegate are below.
_CHECKED = 1 << 62


def new_fold() -> int:
    """A fold's number: bits by chance, and their CRC-32, so that one bit that is flipped in it is seen."""
    chance = secrets.randbits(30)
    return _CHECKED | chance << 32 | _check(chance)


def is_fold(number: object) -> bool:
    """Whether it is a number that was given to a fold, and not what damage left of one."""
    if not isinstance(number, int) or not 0 <= number < _CHECKED << 1:
        return False
    is_right = _check(number >> 32 & (1 << 30) - 1) == number & 0xFFFFFFFF
    return is_right == (number >= _CHECKED)


def _check(chance: int) -> int:
    return zlib.crc32(chance.to_bytes(4, "little"))


def has_frames(folder: Path) -> bool:
    """Whether frames were ever written, of whichever fold."""
    path = folder / NAME
    return path.exists() and path.stat().st_size > 0


def first_fold(folder: Path) -> tuple[int, int]:
    """Which fold the file's first frame follows, and the file's bytes; 0 where there is none, or an older one's.

    That is so on the medium, too: after an error of `fdatasync` the system may hold for written what is not.
    Raises OSError.
    """
    try:
        file = os.open(folder / NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0, 0
    try:
        fold, size = _fold_of(os.pread(file, HEAD, 0)), os.fstat(file).st_size
        for at in {0, max(0, size - sectors.SECTOR)} if size else ():
            os.pwrite(file, os.pread(file, sectors.SECTOR, at), at)
        os.fdatasync(file)
        return fold, size if fold else 0
    finally:
        os.close(file)


def _fold_of(head: bytes) -> int:
    magic, fold, *_ = _HEAD.unpack(head.ljust(HEAD, b"\0"))
    return int(fold) if magic == _MAGIC else 0


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
        """The tables hold all there is, as of this fold: frames are written from the beginning again.

        Those of an older Sluicegate go: what is left of them looks like sectors that are damaged.
        """
        if os.pread(self._file, len(_PLAIN), 0) == _PLAIN:
            os.ftruncate(self._file, 0)
        self._fold, self.frames, self.bytes = fold, 0, 0

    def has_room(self, body: bytes) -> bool:
        """Whether one more frame fits."""
        size = sectors.size(HEAD + len(body))
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
    return sectors.pack(_HEAD.pack(_MAGIC, fold, number, len(body), zlib.crc32(body, zlib.crc32(head))) + body)


class Frames:
    """What a record holds that follows one fold: iterate over the frames that are whole, in order."""

    def __init__(self, data: Reader, fold: int, *, is_live: bool = False) -> None:
        """`is_live`: an agent may be writing the next one."""
        self._data, self._fold, self._is_live = data, fold, is_live
        self._magic = _PLAIN if data.is_plain else _MAGIC
        self._end, self._number = 0, 1

    def __iter__(self) -> Iterator[bytes]:
        self._end, self._number = 0, 1
        while (found := self._next()) is not None:
            (self._end, body), self._number = found, self._number + 1
            yield body

    def _next(self) -> tuple[int, bytes] | None:
        """Where the frame that follows ends, and its body."""
        for begin in self._begins():
            body = self._body(begin, self._number)
            if body is not None:
                size = HEAD + len(body)
                return begin + (size if self._data.is_plain else sectors.size(size)), body
        return None

    def _begins(self) -> Iterator[int]:
        """Where the frame that follows may begin: here, or with the next page."""
        yield from dict.fromkeys((self._end, -(-self._end // _PAGE) * _PAGE))

    def is_of_another_time(self, before: int) -> bool:
        """Whether the first frame follows neither our fold nor that `before` it: the record or the tables are older."""
        first = _fold_of(self._data.read(0, HEAD))
        return not self._data.is_plain and first not in (self._fold, before) and self._data.are_sound(0, sectors.SECTOR)

    def is_shorter(self, size: int) -> bool:
        """Whether the file has become shorter than it was: only damage cuts it."""
        return self._data.bytes < size

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self._body(0, 1) is not None

    def beyond(self) -> Iterator[bytes]:
        """Whole frames behind one that is not, once all before it were taken: a crash leaves none, only damage does."""
        for at in self._data.find(self._magic + struct.pack("<Q", self._fold), self._end):
            body = self._body(at, None)
            if body is not None:
                yield body

    def is_next_damaged(self) -> bool:
        """Whether there was one more, once all before it were taken, with a sector that is as nobody wrote it."""
        is_judged = not (self._data.is_plain or self._is_live)
        return is_judged and any(not self._is_sound(begin) for begin in self._begins())

    def _is_sound(self, begin: int) -> bool:
        head = self._head(begin, self._number)
        return self._data.are_sound(begin, sectors.size(HEAD + (head[3] if head else 0)))

    def _head(self, at: int, number: int | None) -> tuple[bytes, int, int, int, int] | None:
        """The head of a frame that begins at a place."""
        head = self._data.read(at, HEAD)
        if len(head) < HEAD:
            return None
        magic, fold, its_number, length, crc = _HEAD.unpack(head)
        if magic != self._magic or fold != self._fold or number not in (None, its_number) or length > LARGEST:
            return None
        return magic, fold, its_number, length, crc

    def _body(self, at: int, number: int | None) -> bytes | None:
        """The body of a frame that begins at a place and is whole."""
        head = self._head(at, number)
        if head is None:
            return None
        *named, length, crc = head
        body = self._data.read(at, HEAD + length)[HEAD:]
        is_whole = len(body) == length and zlib.crc32(body, zlib.crc32(_HEAD.pack(*named, length, 0))) == crc
        return body if is_whole else None


def read(folder: Path, fold: int, *, copied: bool = False) -> Frames | None:
    """What the record of a state directory holds that follows a fold; None where there is no file. Raises OSError.

    `copied`: as of now, for who reads it beside an agent that may begin it anew.
    """
    path = folder / NAME
    try:
        if not copied:
            return Frames(Reader(path, LARGEST, _PLAIN), fold)
        with path.open("rb") as file:
            data = file.read(min(LARGEST, os.fstat(file.fileno()).st_size))
        return Frames(Reader(data, LARGEST, _PLAIN), fold, is_live=True)
    except FileNotFoundError:
        return None
