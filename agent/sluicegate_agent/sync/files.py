"""Documents as files below a folder that a marker names: durable before they are accepted, never replaced.

Run by its path (`python -I -S files.py FOLDER`) it is the directory target's own process, which takes frames on
standard input and answers each. So it imports built-in modules alone: a board pays for everything else.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in typing, which costs a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable

MARKER = ".sluicegate-target"
PARTIAL = ".partial"
#: Behind an id that is known: nothing was sent there yet, so a folder with another marker is as good.
UNUSED = "?"
#: A frame: kind, length of the name, length of the data. An answer: kind, length of the text.
FRAME, ANSWER = 7, 5
BEGIN, STORE = b"B", b"S"
TAKEN, NEVER, LATER, MARK = b"T", b"N", b"L", b"M"
OTHER_BYTES = "other bytes are there under this id"
#: Seconds without a frame after which the process ends: a board that sends once an hour has its memory back.
IDLE = 30.0
_LARGEST_MARKER = 4096
#: What the system mounts when it is told to, and what is mounted now.
FSTAB, MOUNTS = "/etc/fstab", "/proc/self/mounts"
_LARGEST_TABLE = 1 << 17
_ID_BYTES = 32
_PIECE = 1 << 16
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.~")


class Away(Exception):  # noqa: N818  the medium that belongs here is not here
    """The folder is not the one that belongs here. The message says what was found and what to do."""


def _no_step(name: str) -> None:
    """Nothing happens at a step outside of tests."""


class Folder:
    """The target's folder, open: what is mounted over its name meanwhile is not written to.

    Raises Away where there is no such folder, OSError where it cannot be opened.
    """

    def __init__(self, path: str, step: Callable[[str], None] = _no_step) -> None:
        self.path, self._step = path, step
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            raise Away(
                f"{path}: there is no such folder; mount or make it (it is not made here: it may be a medium's)"
            ) from None

    def close(self) -> None:
        """Let the medium go, so that it can be unmounted."""
        os.close(self._root)

    def identity(self, known: str) -> str:
        """The id in the folder's marker, which has to be `known`; without one known, it is adopted or written.

        Another marker is adopted also where UNUSED stands behind the known one. Raises Away, OSError.
        """
        found, is_used = self._marker(), not known.endswith(UNUSED)
        known = known.rstrip(UNUSED)
        if not known:
            if not found and (place := unmounted(self.path)):
                raise Away(
                    f"{self.path}: {FSTAB} mounts a medium at {place}, and none is mounted there now; mount it: this "
                    "agent never sent anything, so it cannot tell the bare folder from the medium by a marker"
                )
            return found or self._mark()
        if not found:
            raise Away(
                f"{self.path}: has no {MARKER}, so it is not the folder that was used before (is its medium mounted?); "
                f"mount it, or write {known} into {self.path}/{MARKER} to send to this folder from now on"
            )
        if found != known and is_used:
            raise Away(
                f"{self.path}: is the target {found} by its {MARKER}, not {known} which was used before; mount that "
                "one; to send to this one from now on stop the agent and run `sluicegate status FILE --accept-target`"
            )
        return found

    def _marker(self) -> str:
        """The id in the marker; empty where there is none."""
        try:
            handle = os.open(MARKER, os.O_RDONLY | os.O_NONBLOCK, dir_fd=self._root)
        except FileNotFoundError:
            return ""
        try:
            text = os.read(handle, _LARGEST_MARKER).decode("ascii", "replace").strip()
        finally:
            os.close(handle)
        if len(text) != _ID_BYTES or any(digit not in "0123456789abcdef" for digit in text):
            raise Away(
                f"{self.path}/{MARKER}: expected {_ID_BYTES} hexadecimal digits; remove it if no agent uses this folder"
            )
        return text

    def _mark(self) -> str:
        """Name the folder; where another agent does so at the same time, its name is the one."""
        made = os.urandom(_ID_BYTES // 2).hex()
        try:
            self._write(self._root, MARKER, f"{MARKER}.{made}{PARTIAL}", made.encode() + b"\n")
        except FileExistsError:
            return self._marker()
        return made

    def store(self, id: str, data: bytes | bytearray) -> None:
        """The document under its name, durably. Raises ValueError for an id that is none, FileExistsError for one that
        is there with other bytes, OSError."""
        device, stream, name = names_of(id)
        folder = self._opened(device, stream)
        try:
            if not self._is_there(folder, name, data):
                self._write(folder, name, name + PARTIAL, data)
        finally:
            os.close(folder)

    def _opened(self, device: str, stream: str) -> int:
        """The stream's folder; made where it is missing, its name durable."""
        above = os.dup(self._root)
        for name in (device, stream):
            try:
                below = _folder(name, above)
                if below is None:
                    try:
                        os.mkdir(name, dir_fd=above)
                    except FileExistsError:
                        pass
                    os.fsync(above)
                    below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=above)
            finally:
                os.close(above)
            above = below
        return above

    def _is_there(self, folder: int, name: str, data: bytes | bytearray) -> bool:
        """Whether the file is there with these bytes, durably. Raises FileExistsError for other bytes."""
        try:
            handle = os.open(name, os.O_RDONLY, dir_fd=folder)
        except FileNotFoundError:
            return False
        try:
            if os.fstat(handle).st_size != len(data) or not _equal(handle, memoryview(data)):
                raise FileExistsError(17, OTHER_BYTES, name)
            os.fsync(handle)
        finally:
            os.close(handle)
        _removed(folder, name + PARTIAL)
        os.fsync(folder)
        return True

    def _write(self, folder: int, name: str, partial: str, data: bytes | bytearray) -> None:
        try:
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666, dir_fd=folder)
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(handle, left) :]
                self._step("directory: written")
                os.fsync(handle)
            finally:
                os.close(handle)
            self._step("directory: file synced")
            _name(folder, partial, name)
            self._step("directory: named")
        finally:
            _removed(folder, partial)
        os.fsync(folder)
        self._step("directory: folder synced")


def unmounted(path: str) -> str:
    """The mount point above a path that the system's table names and at which nothing is mounted; empty: there is none.

    Only the nearest one above the path counts: what is mounted further up is where a folder of its own may lie.
    """
    real = os.path.realpath(path)
    points = [point for point in _mount_points(FSTAB) if real == point or real.startswith(point.rstrip("/") + "/")]
    nearest = max(points, key=len, default="/")
    return nearest if nearest != "/" and nearest not in _mount_points(MOUNTS) else ""


def _mount_points(table: str) -> list[str]:
    """The second column of fstab(5); empty where the system has no such file."""
    try:
        handle = os.open(table, os.O_RDONLY)
    except OSError:
        return []
    try:
        lines = bytes(_read(handle, _LARGEST_TABLE)).decode("utf-8", "replace").splitlines()
    finally:
        os.close(handle)
    columns = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    found = [column[1] for column in columns if len(column) > 1 and column[1].startswith("/")]
    for escape, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        found = [point.replace(escape, plain) for point in found]
    return [os.path.realpath(point) for point in found]


def _equal(handle: int, data: memoryview) -> bool:
    """Whether a file begins with these bytes, a piece at a time."""
    return all(_read(handle, len(piece := data[at : at + _PIECE])) == piece for at in range(0, len(data), _PIECE))


def _removed(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass


def _folder(name: str, above: int) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=above)
    except FileNotFoundError:
        return None


def _name(folder: int, partial: str, name: str) -> None:
    """Give the written file its name, which nobody has. Raises FileExistsError."""
    try:
        os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        raise
    except OSError:
        # No hard links (FAT on a stick): only one agent writes a device's folder, so a look before is enough.
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            raise FileExistsError(17, OTHER_BYTES, name) from None


def names_of(id: str) -> tuple[str, str, str]:
    """Folder, folder and file of a document. Raises ValueError for an id that is none of a chunk."""
    parts = id.split("::")
    if len(parts) != 4 or not all(parts):
        raise ValueError(f"document id {id!r}: expected device::stream::incarnation::first")
    device, stream, incarnation, first = map(_encoded, parts)
    return device, stream, f"{incarnation}-{first}.json"


def _encoded(name: str) -> str:
    """A file name that every system takes: percent-encoded, and never `.` or `..`."""
    plain = _PLAIN if name.strip(".") else frozenset(b"")
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in name.encode())


def explained(error: OSError, path: str) -> str:
    """What the file system refused, for people."""
    return f"{error.filename if isinstance(error.filename, str) else path}: {error.strerror or error}"


# The process of its own


def serve(path: str) -> None:
    """Answer frames until the other side is gone, or has nothing for IDLE seconds."""
    import select

    while select.select([0], [], [], IDLE)[0] and _served(path):
        pass


def _served(path: str) -> bool:
    """One put: the frame that begins it has the id that is known, and how many documents follow."""
    kind, known, count = _frame()
    if kind != BEGIN:
        return False
    folder, reason, answer, text = _begun(path, known)
    _answer(answer, text)
    for _ in range(int.from_bytes(count, "big")):
        _, name, data = _frame()
        if folder is None:
            _answer(LATER, reason)
            continue
        answer, text = _stored(folder, name, data)
        _answer(answer, text)
        if answer == LATER:
            _closed(folder)
            folder, reason = None, text
    _closed(folder)
    return True


def _frame() -> tuple[bytes, str, bytearray]:
    """Kind, name and data; nothing at the end."""
    head = _read(0, FRAME)
    name = _read(0, int.from_bytes(head[1:3], "big")).decode("utf-8", "replace")
    return bytes(head[:1]), name, _read(0, int.from_bytes(head[3:7], "big"))


def _begun(path: str, known: str) -> tuple[Folder | None, str, bytes, str]:
    """The folder, opened; and why not, with the answer."""
    folder = None
    try:
        folder = Folder(path)
        return folder, "", MARK, folder.identity(known)
    except Away as away:
        reason = str(away)
    except OSError as error:
        reason = explained(error, path)
    _closed(folder)
    return None, reason, LATER, reason


def _stored(folder: Folder, id: str, data: bytearray) -> tuple[bytes, str]:
    try:
        folder.store(id, data)
    except FileExistsError:
        return NEVER, OTHER_BYTES
    except ValueError as error:
        return NEVER, str(error)
    except OSError as error:
        return LATER, explained(error, folder.path)
    return TAKEN, ""


def _closed(folder: Folder | None) -> None:
    if folder is not None:
        folder.close()


def _read(handle: int, size: int) -> bytearray:
    """So many bytes, held once; fewer at the end of the file."""
    data, got = bytearray(size), 0
    while got < size and (more := os.readv(handle, [memoryview(data)[got:]])):
        got += more
    return data if got == size else data[:got]


def _answer(kind: bytes, text: str) -> None:
    said = text.encode("utf-8", "replace")[:4096]
    data = kind + len(said).to_bytes(4, "big") + said
    while data:
        data = data[os.write(0, data) :]


if __name__ == "__main__":
    serve(sys.argv[1])
