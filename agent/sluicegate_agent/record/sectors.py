"""Bytes in sectors that each end with a CRC-32 of their own: what a power cut left of a write is told from damage.

A disk writes a sector whole or not at all. So of a write that was cut short each sector is as the last write that came
to it left it, which is sound, or still zero; one that is neither was damaged after it was written.
"""

from __future__ import annotations

import errno
import os
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path

SECTOR = 512
_CRC = 4
#: Bytes of a sector that are the caller's.
HELD = SECTOR - _CRC
_ZERO = bytes(SECTOR)
#: What stands for a sector that the disk refuses to read; it is not sound.
_UNREADABLE = b"\xff" * SECTOR
#: Bytes that are searched at once.
_PIECE = 128 * SECTOR


def size(held: int) -> int:
    """Bytes on the disk of so many of the caller's."""
    return -(-held // HELD) * SECTOR


def pack(data: bytes) -> bytes:
    """As it is written: whole sectors, the last one filled up with zeros."""
    pieces = (data[at : at + HELD].ljust(HELD, b"\0") for at in range(0, len(data), HELD))
    return b"".join(piece + zlib.crc32(piece).to_bytes(_CRC, "little") for piece in pieces)


class Reader:
    """The bytes of a file, or of a copy of one. `is_plain`: they stand in no sectors, as those of an older file."""

    def __init__(self, source: Path | bytes, most: int, plain: bytes) -> None:
        """At most so many bytes of it; `plain`: what a file without sectors begins with. Raises OSError."""
        self._copy, self._file = (source, -1) if isinstance(source, bytes) else (b"", _opened(self, source))
        self.bytes = min(most, len(self._copy) if self._file < 0 else os.fstat(self._file).st_size)
        self.is_plain = self._raw(0, len(plain)) == plain

    def read(self, at: int, length: int) -> bytes:
        """The caller's bytes from the sector on that begins here; fewer where the file ends."""
        if self.is_plain:
            return self._raw(at, length)
        raw = self._raw(at, size(length))
        if len(raw) <= SECTOR:
            return raw[: min(length, HELD)]
        return b"".join(raw[sector : sector + HELD] for sector in range(0, len(raw), SECTOR))[:length]

    def are_sound(self, at: int, length: int) -> bool:
        """Whether each whole sector of these bytes is as somebody wrote it, or zero."""
        raw = self._raw(at, length)
        return all(_is_sound(raw[begin : begin + SECTOR]) for begin in range(0, len(raw) - SECTOR + 1, SECTOR))

    def find(self, start: bytes, begin: int) -> Iterator[int]:
        """Where the bytes `start` stand, of a file in sectors only where one begins."""
        for at in range(begin, self.bytes, _PIECE):
            raw, place = self._raw(at, _PIECE + len(start) - 1), -1
            while (place := raw.find(start, place + 1)) >= 0:
                if self.is_plain or not (at + place) % SECTOR:
                    yield at + place

    def _raw(self, at: int, length: int) -> bytes:
        length = max(0, min(length, self.bytes - at))
        if self._file < 0:
            return self._copy[at : at + length]
        try:
            return os.pread(self._file, length, at)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        if length <= SECTOR:
            return _UNREADABLE[:length]
        end = at + length
        return b"".join(self._raw(begin, min(SECTOR, end - begin)) for begin in range(at, end, SECTOR))


def _opened(owner: Reader, path: Path) -> int:
    """The file, closed when its owner is gone."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    weakref.finalize(owner, os.close, file)
    return file


def _is_sound(sector: bytes) -> bool:
    return sector == _ZERO or zlib.crc32(sector[:HELD]).to_bytes(_CRC, "little") == sector[HELD:]
