"""The name that a shared library gives itself (DT_SONAME), read from the file before it is loaded."""

from __future__ import annotations

import struct
from pathlib import Path

_LOAD, _DYNAMIC = 1, 2
_STRTAB, _SONAME = 5, 14
_MOST_TAGS = 4096


def soname(path: Path) -> str | None:
    """`libcblite.so.3` of such a file; None where it is no ELF library of this machine's kind or has no name.

    Raises OSError where the file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(64)
        if len(head) < 52 or head[:4] != b"\x7fELF" or head[5] != 1 or head[4] not in (1, 2):
            return None
        wide = head[4] == 2
        offset, size, count = (
            (*struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54))
            if wide
            else (*struct.unpack_from("<I", head, 28), *struct.unpack_from("<HH", head, 42))
        )
        file.seek(offset)
        segments = [_segment(file.read(size), wide) for _ in range(count)]
        dynamic = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
        if dynamic is None:
            return None
        file.seek(dynamic[1])
        tags = _tags(file.read(min(dynamic[3], 16 * _MOST_TAGS)), wide)
        if _SONAME not in tags or _STRTAB not in tags:
            return None
        file.seek(_in_file(tags[_STRTAB], segments) + tags[_SONAME])
        return file.read(256).split(b"\0")[0].decode("ascii", "replace")


def _segment(row: bytes, wide: bool) -> tuple[int, int, int, int]:
    """Kind, place in the file, address, bytes in the file."""
    if wide:
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", row)
    else:
        kind, offset, address, _, size = struct.unpack_from("<IIIII", row)
    return kind, offset, address, size


def _tags(rows: bytes, wide: bool) -> dict[int, int]:
    pair = struct.Struct("<QQ" if wide else "<II")
    return dict(pair.iter_unpack(rows[: len(rows) // pair.size * pair.size]))


def _in_file(address: int, segments: list[tuple[int, int, int, int]]) -> int:
    for kind, offset, start, size in segments:
        if kind == _LOAD and start <= address < start + size:
            return address - start + offset
    return address
