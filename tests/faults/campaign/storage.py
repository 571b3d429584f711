"""Where a run's state lies: memory, a small tmpfs, or a file system whose power can be cut; and a disk that refuses.

A power cut is real: EXT4_IOC_SHUTDOWN without flushing on a loop device, so what was never synced is gone. It needs
root; without it, or without loop devices, those runs go without power cuts and the table says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

_SHUTDOWN, _WITHOUT_FLUSHING = 0x8004587D, 2
PATIENCE = 20.0
_FREEZE, _THAW = 0xC0045877, 0xC0045878
_PREFIX, _LOCK = "sluicegate-faults-", "held"
_held: list[int] = []


def _run(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def base() -> Path:
    """A folder in memory where there is one: SIGKILL loses nothing that was written, so syncing proves nothing here.

    It is locked while this process lives; folders that killed campaigns left behind are taken away first.
    """
    memory = Path("/dev/shm")  # noqa: S108  a folder of our own is made below it
    above = memory if memory.is_dir() else Path(tempfile.gettempdir())
    for each in above.glob(f"{_PREFIX}*/{_LOCK}"):
        if _locked(each) is not None:
            take_away(each.parent)
    _forget_clocks(above)
    begun = Path(tempfile.mkdtemp(prefix="sluicegate-begun-", dir=above))
    (begun / _LOCK).touch()
    if (lock := _locked(begun / _LOCK)) is not None:
        _held.append(lock)
    folder = begun.with_name(begun.name.replace("sluicegate-begun-", _PREFIX))
    return begun.rename(folder)


def _forget_clocks(folder: Path) -> None:
    """Take away what libfaketime left of agents that were killed: what no process has in its memory any more."""
    left = [each for each in folder.glob("*faketime_s*") if re.fullmatch(r"(sem\.)?faketime_s(hm|em)_\d+", each.name)]
    held = set[str]()
    for process in Path("/proc").glob("[0-9]*/maps") if left else ():
        with contextlib.suppress(OSError):
            held |= set(re.findall(r"faketime_s(?:hm|em)_(\d+)", process.read_text(errors="replace")))
    for each in left:
        with contextlib.suppress(OSError):
            if each.name.rpartition("_")[2] not in held and each.stat().st_uid == os.geteuid():
                each.unlink()


def _locked(lock: Path) -> int | None:
    """The lock, open and ours from now on; None where a living process has it, or where it is gone."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def take_away(folder: Path) -> None:
    """What a killed campaign left: file systems, which may be frozen, and files."""
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        place = Path(line.split(" ")[1])
        if place.is_relative_to(folder):
            with contextlib.suppress(OSError):
                _tell(place, _THAW, struct.pack("i", 0))
            _run("umount", "-l", str(place))
    shutil.rmtree(folder, ignore_errors=True)


def _tell(place: Path, request: int, argument: bytes) -> None:
    handle = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, request, argument)
    finally:
        os.close(handle)


@cache
def can_mount() -> bool:
    """Whether a small tmpfs can be mounted here: root of a machine that allows it."""
    folder = tempfile.mkdtemp()
    made = os.geteuid() == 0 and _run("mount", "-t", "tmpfs", "-o", "size=1m", "none", folder)
    if made:
        _run("umount", folder)
    Path(folder).rmdir()
    return made


@cache
def can_cut_power() -> bool:
    """Whether an ext4 on a loop device can be made and shut down."""
    if not can_mount() or shutil.which("mkfs.ext4") is None:
        return False
    folder = base()
    try:
        disk = PowerDisk(folder)
        disk.open()
        disk.close()
    except OSError:
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return True


class Plain:
    """A folder; it is full while the agent may not write beyond what a file has now."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "disk"

    def open(self) -> None:
        """Make it."""
        self.path.mkdir()

    def close(self) -> None:
        """Nothing is mounted."""

    def fill(self, pid: int) -> None:
        """No room: writes beyond 4 KiB of any file are refused."""
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    def free(self, pid: int) -> None:
        """Room again."""
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def read_only(self, *, on: bool) -> bool:
        """Whether it could be made so, or writable again."""
        return False


class Small(Plain):
    """A tmpfs of 12 MiB, filled with a file of ballast."""

    def open(self) -> None:
        """Mount it."""
        self.path.mkdir()
        if not _run("mount", "-t", "tmpfs", "-o", "size=12m", "none", str(self.path)):
            raise OSError("no tmpfs can be mounted")

    def close(self) -> None:
        """Unmount it."""
        for _ in range(50):
            if _run("umount", str(self.path)):
                return
            time.sleep(0.05)
        _run("umount", "-l", str(self.path))

    def fill(self, pid: int) -> None:
        """Ballast until nothing fits."""
        with (self.path / "ballast").open("ab", buffering=0) as file, contextlib.suppress(OSError):
            for piece in (1 << 20, 1 << 16, 1 << 12):
                with contextlib.suppress(OSError):
                    while file.write(bytes(piece)) == piece:
                        pass

    def free(self, pid: int) -> None:
        """Throw the ballast out."""
        (self.path / "ballast").unlink(missing_ok=True)

    def read_only(self, *, on: bool) -> bool:
        """Remount; not while a file is open for writing."""
        return _run("mount", "-o", f"remount,{'ro' if on else 'rw'}", str(self.path))


class PowerDisk(Plain):
    """An ext4 on a loop device, whose power can be cut and which can hang."""

    def __init__(self, folder: Path, name: str = "disk") -> None:
        self.path = folder / name

    def open(self) -> None:
        """Make and mount it."""
        self.path.mkdir()
        self._image = self.path.with_suffix(".image")
        with self._image.open("wb") as file:
            file.truncate(24 << 20)
        if not _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", str(self._image)):
            raise OSError("mkfs.ext4 failed")
        end = time.monotonic() + PATIENCE
        while not self._mount():  # machines have few loop devices: others' runs end
            if time.monotonic() > end:
                raise OSError("no ext4 can be mounted on a loop device")
            time.sleep(0.1)

    def _mount(self) -> bool:
        return _run("mount", "-o", "loop,commit=1000,data=writeback", str(self._image), str(self.path))

    def close(self) -> None:
        """Unmount it."""
        for _ in range(100):
            if _run("umount", str(self.path)):
                break
            time.sleep(0.02)
        else:
            _run("umount", "-l", str(self.path))
        self._image.unlink(missing_ok=True)

    def cut_power(self) -> None:
        """From now on nothing more reaches the medium, and what was not synced never will."""
        _tell(self.path, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSHING))

    def hang(self) -> None:
        """From now on whoever writes waits, in the call, and not even SIGKILL ends it."""
        _tell(self.path, _FREEZE, struct.pack("i", 0))

    def go_on(self) -> None:
        """Let them write."""
        _tell(self.path, _THAW, struct.pack("i", 0))

    def restore_power(self) -> None:
        """Mount what the medium has. No process may have a file open below it."""
        for _ in range(150):
            if _run("umount", str(self.path)):
                break
            time.sleep(0.02)
        if not self._mount():
            raise OSError(f"{self._image} cannot be mounted after a power cut")
