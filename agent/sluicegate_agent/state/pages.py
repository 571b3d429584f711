"""The rows of a damaged SQLite file, page by page: whatever pages are whole are read, whatever points to them.

SQLite's own reader starts at the roots and stops at the first page that is damaged. Here each page is looked at by
itself: one that holds rows says so in its first byte. The write-ahead log is laid over the file first, as far as its
checksums hold. Nothing is believed of a page: every offset and length is bounded, and a row that makes no sense is left
out. The file format: https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

Value = int | float | str | bytes | None
#: Kinds of pages that hold whole rows: of tables by number, and of tables by key (whose inner pages hold rows too).
_TABLE_LEAF, _INDEX_INNER, _INDEX_LEAF = 13, 2, 10
_HEAD = {_TABLE_LEAF: 8, _INDEX_LEAF: 8, _INDEX_INNER: 12}
_MAGIC = b"SQLite format 3\0"
_SIZES = (4096, 512, 1024, 2048, 8192, 16384, 32768, 65536)
_LOG_HEAD, _FRAME_HEAD = 32, 24
_COLUMNS_MOST = 16
_BYTES_MOST = 64 << 20
_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class Pages:
    """The pages of a database file with its log laid over them, one in memory at a time."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where the file cannot be read."""
        self._file = path.open("rb")
        self._log = None
        self._frames: dict[int, int] = {}
        head = self._file.read(100)
        self.size = _page_size(head)
        self.count = path.stat().st_size // self.size
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size > _LOG_HEAD:
            self._log = log.open("rb")
            self._frames = dict(_frames(self._log.read(), self.size))
            self.count = max([self.count, *self._frames])
        self.free_is_known = self.page(1)[:16] == _MAGIC
        self.free = set(self._free()) if self.free_is_known else set()

    def close(self) -> None:
        """Let the files go."""
        for file in (self._file, self._log):
            if file is not None:
                file.close()

    def page(self, number: int) -> bytes:
        """A page's bytes, empty beyond the end."""
        if not 1 <= number <= self.count:
            return b""
        file, at = self._file, (number - 1) * self.size
        if number in self._frames and self._log is not None:
            file, at = self._log, self._frames[number]
        file.seek(at)
        return file.read(self.size)

    def rows(self) -> Iterator[tuple[int | None, list[Value]]]:
        """Every row that can be read of every page that is in use: its number (None in a table by key), its values."""
        for number in range(1, self.count + 1):
            if number not in self.free:
                yield from self._of_page(number)

    def _free(self) -> Iterator[int]:
        """The pages that the file says are not in use: what is in them was deleted."""
        head = self.page(1)
        trunk, seen = int.from_bytes(head[32:36], "big"), set()
        while trunk and trunk not in seen and (page := self.page(trunk)):
            seen.add(trunk)
            yield trunk
            if len(page) < self.size:
                self.free_is_known = False
                return
            leaves = min(int.from_bytes(page[4:8], "big"), self.size // 4 - 2)
            yield from struct.unpack_from(f">{leaves}I", page, 8)
            trunk = int.from_bytes(page[:4], "big")

    def _of_page(self, number: int) -> Iterator[tuple[int | None, list[Value]]]:
        page = self.page(number)
        at = 100 if number == 1 else 0
        if len(page) < self.size or page[at] not in _HEAD:
            return
        kind, cells = page[at], int.from_bytes(page[at + 3 : at + 5], "big")
        begin = at + _HEAD[kind]
        if begin + 2 * cells > self.size:
            return
        for place in struct.unpack_from(f">{cells}H", page, begin):
            try:
                row = self._cell(page, place, kind)
            except (IndexError, ValueError, struct.error, UnicodeDecodeError, OverflowError):
                continue
            yield row

    def _cell(self, page: bytes, at: int, kind: int) -> tuple[int | None, list[Value]]:
        if kind == _INDEX_INNER:
            at += 4
        length, at = _varint(page, at)
        number: int | None = None
        if kind == _TABLE_LEAF:
            number, at = _varint(page, at)
            number -= (number >> 63) << 64
        if not 0 < length <= _BYTES_MOST:
            raise ValueError("no row is so long")
        return number, _values(self._payload(page, at, length, is_table=kind == _TABLE_LEAF))

    def _payload(self, page: bytes, at: int, length: int, *, is_table: bool) -> bytes:
        """The row's bytes, those on further pages too."""
        most = self.size - 35 if is_table else (self.size - 12) * 64 // 255 - 23
        here = length
        if length > most:
            least = (self.size - 12) * 32 // 255 - 23
            here = least + (length - least) % (self.size - 4)
            here = here if here <= most else least
        parts, left = [page[at : at + here]], length - here
        following = int.from_bytes(page[at + here : at + here + 4], "big") if left else 0
        while left > 0:
            more = self.page(following)
            if not more:
                raise ValueError("the row ends on a page that is not there")
            parts.append(more[4 : 4 + min(left, self.size - 4)])
            left -= self.size - 4
            following = int.from_bytes(more[:4], "big")
        return b"".join(parts)


def _page_size(head: bytes) -> int:
    size = int.from_bytes(head[16:18], "big")
    size = 65536 if size == 1 else size
    return size if head[:16] == _MAGIC and size in _SIZES else _SIZES[0]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9


def _values(payload: bytes) -> list[Value]:
    """The columns of a row. Raises ValueError, IndexError or struct.error for what is none."""
    end, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    if at != end or not 0 < len(kinds) <= _COLUMNS_MOST:
        raise ValueError("not a row's header")
    values: list[Value] = []
    for kind in kinds:
        width = _WIDTHS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        values.append(_value(kind, payload[at : at + width], width))
        at += width
    if at != len(payload):
        raise ValueError("the row is longer or shorter than its header says")
    return values


def _value(kind: int, data: bytes, width: int) -> Value:
    if len(data) != width or kind in (10, 11):
        raise ValueError("not a value")
    if kind in _WIDTHS:
        return int.from_bytes(data, "big", signed=True)
    if kind == 7:
        return float(struct.unpack(">d", data)[0])
    if kind >= 12:
        return data.decode() if kind % 2 else data
    return {0: None, 8: 0, 9: 1}[kind]


def _frames(log: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Page number → where its newest committed content is in the log, oldest first; up to the first damaged frame."""
    if len(log) < _LOG_HEAD or log[:3] != b"\x37\x7f\x06" or int.from_bytes(log[8:12], "big") != size:
        return
    order = ">" if log[3] & 1 else "<"
    a, b = _checksum(log[:24], 0, 0, order)
    if (a, b) != struct.unpack(">2I", log[24:32]):
        return
    waiting: list[tuple[int, int]] = []
    for at in range(_LOG_HEAD, len(log) - _FRAME_HEAD - size + 1, _FRAME_HEAD + size):
        head = log[at : at + _FRAME_HEAD]
        a, b = _checksum(head[:8], a, b, order)
        a, b = _checksum(log[at + _FRAME_HEAD : at + _FRAME_HEAD + size], a, b, order)
        if head[8:16] != log[16:24] or (a, b) != struct.unpack(">2I", head[16:24]):
            return
        waiting.append((int.from_bytes(head[:4], "big"), at + _FRAME_HEAD))
        if head[4:8] != b"\0\0\0\0":  # a commit
            yield from waiting
            waiting = []


def _checksum(data: bytes, a: int, b: int, order: str) -> tuple[int, int]:
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for x, y in zip(words[::2], words[1::2], strict=True):
        a = (a + x + b) & 0xFFFFFFFF
        b = (b + y + a) & 0xFFFFFFFF
    return a, b
