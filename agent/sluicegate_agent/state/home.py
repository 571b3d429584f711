"""Tells whether a state still lives where it was made, or is a copy on another card, in another folder or machine.

It compares what is cheap to read and does not change: inode and generation of the store's file, the machine's id,
serial number and network addresses, the serial numbers of its cards. A clone of a whole card has the same inode and
machine id, but another board's serial number and addresses. A copied folder or a backup has another inode, or the same
number with another generation. What a system does not tell is not compared.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

_MOST = 4096
#: FS_IOC_GETVERSION: ext4, XFS, Btrfs and F2FS know it.
_GET_GENERATION = 2 << 30 | struct.calcsize("l") << 16 | ord("v") << 8 | 1
#: File systems that number their files anew at each mount.
_UNSTEADY = ("vfat", "msdos", "exfat", "fuse", "ntfs", "9p", "virtiofs")


def home(path: Path, root: Path = Path("/")) -> dict[str, Any]:
    """What identifies the place of a store's file now; `root`: where the system's files are (another one in tests).

    No database may be open on the file: closing ours would take its locks away.
    """
    return {
        "inode": None if _is_unsteady(path, root) else _file(path),
        "machine": _digest(_read(root / "etc/machine-id")),
        "serial": _digest(
            _read(root / "proc/device-tree/serial-number") or _read(root / "sys/class/dmi/id/product_uuid")
        ),
        "addresses": sorted(filter(None, map(_address, _entries(root / "sys/class/net")))),
        "cards": sorted(filter(None, (_digest(_read(each / "device/cid")) for each in _entries(root / "sys/block")))),
    }


def differences(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Why what is here now cannot be where the state was: empty where it is, or where nothing can be compared."""
    words = {"inode": "another file", "machine": "another machine id", "serial": "another serial number"}
    told = [text for key, text in words.items() if was.get(key) and now.get(key) and was[key] != now[key]]
    if was.get("serial") and was["serial"] == now.get("serial"):
        return told  # a board whose network adapter was changed is the same board
    sets = {"addresses": "other network adapters", "cards": "another card"}
    return told + [
        text for key, text in sets.items() if was.get(key) and now.get(key) and not {*was[key]} & {*now[key]}
    ]


def _file(path: Path) -> str | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return identity_of(handle)
    finally:
        os.close(handle)


def identity_of(handle: int) -> str:
    """An open file's inode and generation: a number that a file system makes up for each new file; none where it does
    not."""
    inode, answer = os.fstat(handle).st_ino, bytearray(8)
    try:
        fcntl.ioctl(handle, _GET_GENERATION, answer)
    except OSError:
        return f"{inode}"
    return f"{inode}:{int.from_bytes(answer[:4], sys.byteorder)}"


def _is_unsteady(path: Path, root: Path) -> bool:
    """Whether the file system that a path is on numbers files anew; by the longest mount point above it."""
    longest, kind = "", ""
    for line in _read(root / "proc/self/mounts", 1 << 20).splitlines():
        parts = line.split(" ")
        if len(parts) > 2 and len(parts[1]) >= len(longest) and path.resolve().is_relative_to(parts[1]):
            longest, kind = parts[1], parts[2]
    return kind.startswith(_UNSTEADY)


def _address(adapter: Path) -> str:
    """The digest of a real adapter's own address; empty for one that was set or made up."""
    if not (adapter / "device").exists() or _read(adapter / "addr_assign_type") not in ("", "0"):
        return ""
    return _digest(_read(adapter / "address"))


def _digest(text: str) -> str:
    """A digest: enough to tell two machines apart, without storing serial numbers or addresses."""
    return blake2b(text.encode(), digest_size=8, person=b"sluicegate").hexdigest() if text else ""


def _read(path: Path, most: int = _MOST) -> str:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(most).decode(errors="replace").strip("\0 \n")
    return ""


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
